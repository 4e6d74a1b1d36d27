// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random weights of a linear layer: packed, and as the numbers that the packed form stands for.

#ifndef HONE_TEST_UNIT_RUNTIME_PACKED_WEIGHT_H
#define HONE_TEST_UNIT_RUNTIME_PACKED_WEIGHT_H

#include "hone/cpu/packing/pack_codebook.h"
#include "hone/cpu/packing/pack_linear.h"
#include "hone/cpu/packing/pack_sparse.h"
#include "hone/cpu/packing/panel_block.h"
#include "hone/io/array.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hone::test {

/// The kernel of `layer` ("hone.packed_linear", say) for a format.
inline std::string kernelOf(std::string_view layer, cpu::PackedFormat format) {
  static constexpr std::pair<cpu::PackedFormat, std::string_view> names[] = {
      {cpu::PackedFormat::F32, "f32"}, {cpu::PackedFormat::F16, "f16"}, {cpu::PackedFormat::Bf16, "bf16"},
      {cpu::PackedFormat::U8, "u8"},   {cpu::PackedFormat::U6, "u6"},   {cpu::PackedFormat::U5, "u5"},
      {cpu::PackedFormat::U4, "u4"},   {cpu::PackedFormat::U3, "u3"},   {cpu::PackedFormat::U2, "u2"}};
  const auto *found = std::ranges::find(names, format, &std::pair<cpu::PackedFormat, std::string_view>::first);
  return std::string(layer) + "." + std::string(found->second);
}

inline bool isQuantized(cpu::PackedFormat format) { return cpu::bitLayoutOf(format) != nullptr; }

/// What a case asks of a weight; scales are f32 or f16. Of a sparse one two of every four inputs are kept. One with codebooks has
/// indices of so many bits into numbers of the format, bf16.
struct WeightKind {
  cpu::PackedFormat format;
  int64_t group = 0;
  bool hasZeros = false, hasHalfScales = false, isSparse = false;
  double outliers = 0; // fraction of the elements that are outliers, about
  int64_t codebook = 0;
};

/// A share of outliers so that the weight has their planes, and a slot that belongs to no panel.
constexpr double kNoOutliers = 1e-9;

inline std::string kernelOf(std::string_view layer, const WeightKind &kind) {
  if (kind.codebook > 0)
    return std::string(layer) + ".codebook.u" + std::to_string(kind.codebook);
  return kernelOf(layer, kind.format);
}

/// The kernel of packed layers ("linear", "mlp") for such weights.
inline std::string packedKernelOf(std::string_view layers, const WeightKind &kind) {
  std::string family = kind.isSparse ? "hone.sparse_" : "hone.packed_";
  return kernelOf(family + std::string(layers) + (kind.outliers > 0 ? ".outliers" : ""), kind);
}

class PackedWeight {
public:
  PackedWeight(const WeightKind &kind, int64_t outputs, int64_t inputs, std::mt19937 &random)
      : kind(kind), shape{outputs, inputs, kind.group}, values(static_cast<size_t>(outputs * inputs)) {
    build(random);
  }

  float at(int64_t n, int64_t k) const { return values[static_cast<size_t>(n * shape.inputs + k)]; }
  /// What the element is made of, added up by magnitude: products of outliers beside codebooks are summed separately.
  float magnitude(int64_t n, int64_t k) const {
    return magnitudes.empty() ? std::abs(at(n, k)) : magnitudes[static_cast<size_t>(n * shape.inputs + k)];
  }

  /// The planes as kernels take them: of a weight that has several, lying in blocks as artefacts have them.
  std::vector<hone_tensor> views() {
    std::vector<hone_tensor> planes{weightView()};
    if (kind.codebook > 0)
      planes.push_back(tablesView());
    if (kind.isSparse)
      planes.push_back(indicesView());
    if (isQuantized(kind.format))
      planes.insert(planes.end(), {scalesView(), zerosView()});
    if (planes.size() > 1)
      placeInRecords(planes);
    if (kind.outliers > 0)
      for (size_t at = 0; const hone_tensor &plane : outlierViews())
        planes.insert(planes.begin() + static_cast<int64_t>(at++), plane);
    return planes;
  }

  hone_tensor weightView() {
    if (kind.codebook > 0)
      return io::denseView(packed.data(), HONE_U8, cpu::packedIndexPlane(kind.codebook, shape));
    auto sizes = kind.isSparse ? packedSparseShape(kind.format, shape) : packedLinearShape(kind.format, shape);
    return io::denseView(packed.data(), elementType(), sizes);
  }
  hone_tensor indicesView() { return io::denseView(indices.data(), HONE_U8, packedIndexShape(kind.format, shape)); }
  hone_tensor tablesView() {
    return io::denseView(tables.data(), HONE_U8, cpu::packedTablePlane(kind.codebook, shape));
  }
  hone_tensor scalesView() { return scaleView(scales, kind.hasHalfScales ? HONE_F16 : HONE_F32); }
  hone_tensor zerosView() { return scaleView(zeros, HONE_U8); }
  /// Starts, columns and values of the outliers.
  std::array<hone_tensor, 3> outlierViews() {
    std::array<int64_t, 2> slots{static_cast<int64_t>(columns.size()) / 16, 16};
    return {io::denseView(starts.data(), HONE_I32, std::array<int64_t, 1>{static_cast<int64_t>(starts.size())}),
            io::denseView(columns.data(), HONE_I16, slots), io::denseView(outliers.data(), HONE_F16, slots)};
  }

  WeightKind kind;
  cpu::LinearShape shape;

private:
  /// Copies each plane that is there to where its block has it; what is between them are odd bytes.
  void placeInRecords(std::vector<hone_tensor> &planes) {
    auto bytesOf = [](const hone_tensor &plane) {
      return plane.data ? plane.strides[0] * io::dtypeBytes(static_cast<hone_dtype>(plane.dtype)) : 0;
    };
    std::vector<int64_t> bytes;
    std::ranges::transform(planes, std::back_inserter(bytes), bytesOf);
    cpu::PanelBlock block(bytes);
    blocks.assign(static_cast<size_t>(planes[0].sizes[0] * block.bytes), 0xa5);
    for (size_t i = 0; i < planes.size(); ++i) {
      hone_tensor &plane = planes[i];
      const auto *from = static_cast<const uint8_t *>(plane.data);
      for (int64_t panel = 0; from && panel < plane.sizes[0]; ++panel)
        std::memcpy(blocks.data() + panel * block.bytes + block.offsets[i], from + panel * bytes[i],
                    static_cast<size_t>(bytes[i]));
      if (!from)
        continue;
      plane.strides[0] = block.bytes / io::dtypeBytes(static_cast<hone_dtype>(plane.dtype));
      plane.data = blocks.data() + block.offsets[i];
    }
  }

  void build(std::mt19937 &random) {
    if (kind.codebook > 0)
      return lookUp(random);
    switch (kind.format) {
    case cpu::PackedFormat::F32:
      return fill<float>(random, [](float value) { return value; }, [](float value) { return value; });
    case cpu::PackedFormat::F16:
      return fill<_Float16>(
          random, [](float value) { return static_cast<_Float16>(value); },
          [](_Float16 value) { return static_cast<float>(value); });
    case cpu::PackedFormat::Bf16:
      return fill<uint16_t>(
          random, [](float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); },
          [](uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); });
    default:
      return quantize(random, (1 << cpu::bitLayoutOf(kind.format)->bits) - 1, cpu::bitLayoutOf(kind.format)->middle());
    }
  }

  template <typename Element, typename Encode, typename Decode>
  void fill(std::mt19937 &random, Encode encode, Decode decode) {
    std::normal_distribution<float> normal;
    std::vector<Element> elements(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      elements[i] = encode(normal(random));
      values[i] = decode(elements[i]);
    }
    pack(elements, random);
  }

  template <typename Element> void pack(const std::vector<Element> &elements, std::mt19937 &random) {
    if (kind.isSparse)
      return packTwoOfFour(elements, random);
    packed.resize(static_cast<size_t>(packedLinearBytes(kind.format, shape)));
    packLinearWeight(kind.format, shape, {elements.data(), shape.inputs, 1}, packed);
  }

  /// Draws which elements are kept; the others become 0.
  template <typename Element> void packTwoOfFour(const std::vector<Element> &elements, std::mt19937 &random) {
    std::vector<Element> kept;
    std::vector<uint8_t> places;
    for (size_t first = 0; first < values.size(); first += 4) {
      size_t dropped[] = {random() % 4, random() % 3};
      dropped[1] += dropped[1] >= dropped[0];
      for (size_t i = 0; i < 4; ++i)
        if (i == dropped[0] || i == dropped[1]) {
          values[first + i] = 0;
        } else {
          kept.push_back(elements[first + i]);
          places.push_back(static_cast<uint8_t>(i));
        }
    }
    auto countOf = [](const std::array<int64_t, 4> &sizes) {
      return static_cast<size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]);
    };
    packed.resize(countOf(packedSparseShape(kind.format, shape)) * sizeof(Element));
    indices.resize(countOf(packedIndexShape(kind.format, shape)));
    packSparseLinear(kind.format, shape, kept.data(), places.data(), packed, indices);
  }

  void quantize(std::mt19937 &random, int32_t mostCode, int32_t usualZero) {
    std::uniform_int_distribution<int32_t> code(0, mostCode);
    std::uniform_real_distribution<float> scale(0.5f / static_cast<float>(mostCode),
                                                2.0f / static_cast<float>(mostCode));
    int64_t groups = linearGroups(shape);
    std::vector<uint8_t> codes(values.size()), groupZeros(static_cast<size_t>(shape.outputs * groups));
    std::vector<_Float16> halfScales(groupZeros.size());
    std::vector<float> groupScales(groupZeros.size());
    for (size_t i = 0; i < groupZeros.size(); ++i) {
      groupZeros[i] = static_cast<uint8_t>(kind.hasZeros ? code(random) : usualZero);
      halfScales[i] = static_cast<_Float16>(scale(random));
      groupScales[i] = static_cast<float>(halfScales[i]);
    }
    for (size_t i = 0; i < values.size(); ++i) {
      size_t g = groupOf(i);
      codes[i] = static_cast<uint8_t>(code(random));
      values[i] = groupScales[g] * static_cast<float>(codes[i] - groupZeros[g]);
    }
    if (kind.outliers > 0)
      for (size_t i : drawOutliers(random))
        codes[i] = groupZeros[groupOf(i)];
    pack(codes, random);
    packPerGroup(kind.hasHalfScales ? 2 : 4,
                 kind.hasHalfScales ? static_cast<const void *>(halfScales.data()) : groupScales.data(), scales);
    if (kind.hasZeros)
      packPerGroup(1, groupZeros.data(), zeros);
  }

  /// Draws numbers for each output, and which of them an element is; outliers are added to that.
  void lookUp(std::mt19937 &random) {
    std::normal_distribution<float> normal;
    size_t entries = size_t{1} << kind.codebook, inputs = std::max<size_t>(static_cast<size_t>(shape.inputs), 1);
    std::vector<uint16_t> numbers(static_cast<size_t>(shape.outputs) * entries);
    for (uint16_t &number : numbers)
      number = static_cast<uint16_t>(std::bit_cast<uint32_t>(normal(random)) >> 16);
    std::vector<uint8_t> chosen(values.size());
    for (uint8_t &index : chosen)
      index = static_cast<uint8_t>(random() % entries);
    if (kind.outliers > 0)
      drawOutliers(random);
    for (size_t i = 0; i < values.size(); ++i) { // drawn outliers are values already, others 0
      uint32_t bits = numbers[i / inputs * entries + chosen[i]];
      auto number = std::bit_cast<float>(bits << 16);
      magnitudes.push_back(std::abs(values[i]) + std::abs(number));
      values[i] += number;
    }
    auto countOf = [](const std::array<int64_t, 4> &sizes) {
      return static_cast<size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]);
    };
    packed.resize(countOf(cpu::packedIndexPlane(kind.codebook, shape)));
    tables.resize(countOf(cpu::packedTablePlane(kind.codebook, shape)));
    packCodebookIndices(kind.codebook, shape, chosen.data(), packed);
    packCodebookTables(kind.codebook, shape, numbers.data(), tables);
  }

  size_t groupOf(size_t element) const {
    auto inputs = static_cast<size_t>(shape.inputs), k = element % inputs;
    return element / inputs * static_cast<size_t>(linearGroups(shape)) +
           (shape.group > 0 ? k / static_cast<size_t>(shape.group) : 0);
  }

  /// Draws for each panel how many outliers its rows have, none in some, and which elements those are.
  std::vector<size_t> drawOutliers(std::mt19937 &random) {
    std::normal_distribution<float> large(0, 3);
    std::vector<size_t> elements;
    auto most = static_cast<int64_t>(2 * kind.outliers * static_cast<double>(shape.inputs)) + 1;
    if (kind.outliers == kNoOutliers) {
      most = 0;
      columns.resize(16);
      outliers.resize(16);
    }
    starts.push_back(0);
    for (int64_t panel = 0; panel * 16 < shape.outputs; ++panel) {
      int64_t count = std::uniform_int_distribution<int64_t>(0, std::min(most, shape.inputs))(random);
      starts.push_back(starts.back() + static_cast<int32_t>(count));
      columns.resize(static_cast<size_t>(starts.back()) * 16);
      outliers.resize(columns.size());
      for (int64_t n = panel * 16; n < std::min(panel * 16 + 16, shape.outputs); ++n) {
        std::vector<uint16_t> inputs(static_cast<size_t>(shape.inputs)), chosen;
        std::iota(inputs.begin(), inputs.end(), uint16_t{0});
        std::ranges::sample(inputs, std::back_inserter(chosen), count, random); // in their order
        for (size_t slot = 0; slot < chosen.size(); ++slot) {
          size_t place =
              (static_cast<size_t>(starts[static_cast<size_t>(panel)]) + slot) * 16 + static_cast<size_t>(n % 16);
          columns[place] = chosen[slot];
          outliers[place] = static_cast<_Float16>(large(random));
          elements.push_back(static_cast<size_t>(n * shape.inputs) + chosen[slot]);
          values[elements.back()] = static_cast<float>(outliers[place]);
        }
      }
    }
    return elements;
  }

  void packPerGroup(int64_t elementBytes, const void *from, std::vector<uint8_t> &to) {
    auto sizes = packedScaleShape(kind.format, shape);
    to.resize(static_cast<size_t>(sizes[0] * sizes[1] * sizes[2] * elementBytes));
    packLinearScales(kind.format, shape, elementBytes, from, to);
  }

  hone_dtype elementType() const {
    switch (kind.format) {
    case cpu::PackedFormat::F32:
      return HONE_F32;
    case cpu::PackedFormat::F16:
      return HONE_F16;
    case cpu::PackedFormat::Bf16:
      return HONE_BF16;
    default:
      return HONE_U8;
    }
  }

  hone_tensor scaleView(std::vector<uint8_t> &memory, hone_dtype dtype) {
    if (memory.empty())
      return io::denseView(nullptr, dtype, std::array<int64_t, 1>{0});
    return io::denseView(memory.data(), dtype, packedScaleShape(kind.format, shape));
  }

  std::vector<float> values, magnitudes;
  std::vector<uint8_t> packed, indices, tables, scales, zeros, blocks;
  std::vector<int32_t> starts;
  std::vector<uint16_t> columns;
  std::vector<_Float16> outliers;
};

} // namespace hone::test

#endif // HONE_TEST_UNIT_RUNTIME_PACKED_WEIGHT_H
