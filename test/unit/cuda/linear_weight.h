// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random weights of linear layers: as device kernels read them, and as the numbers that they stand for.

#ifndef HONE_TEST_UNIT_CUDA_LINEAR_WEIGHT_H
#define HONE_TEST_UNIT_CUDA_LINEAR_WEIGHT_H

#include "cuda/packing/pack_linear.h"
#include "parity.h"

namespace hone::test {

/// How levels are scaled.
struct LevelKind {
  int64_t group = 0;
  bool hasZeros = false;
  int32_t scaleType = HONE_F32;
  bool isSigned = false; // of what is not packed
};

class LinearWeight {
public:
  /// `format`: "f32", "f16", "bf16", "u8", "u4", "affine8" or "affine4". `layout` is that of a weight without levels, which is packed where it is Aligned.
  LinearWeight(const std::string &format, int64_t outputs, int64_t inputs, const LevelKind &kind, Layout layout,
               std::mt19937 &random)
      : weight({0}), inputs(inputs), values(static_cast<size_t>(outputs * inputs)) {
    if (isQuantized(format))
      quantize({format.ends_with('4') ? 4 : 8, outputs, inputs, kind.group}, kind, format.starts_with('u'), random);
    else
      fill(format == "f32" ? HONE_F32 : format == "f16" ? HONE_F16 : HONE_BF16, outputs, layout, random);
  }

  static bool isQuantized(std::string_view format) { return format.starts_with('u') || format.starts_with('a'); }
  bool isQuantized() const { return weight.dtype == HONE_U8; }
  double at(int64_t n, int64_t k) const { return values[static_cast<size_t>(n * inputs + k)]; }

  Tensor weight, scales = Tensor::absent(), zeros = Tensor::absent();

private:
  void fill(int32_t dtype, int64_t outputs, Layout layout, std::mt19937 &random) {
    bool isPacked = layout == Layout::Aligned;
    weight = Tensor({outputs, isPacked ? cuda::paddedInputs(inputs, bytesOf(dtype)) : inputs}, dtype, layout);
    std::normal_distribution<double> normal;
    weight.forEach([&](const std::vector<int64_t> &index) {
      weight.set(index, index[1] < inputs ? normal(random) : 0);
      if (index[1] < inputs)
        values[static_cast<size_t>(index[0] * inputs + index[1])] = weight.at(index);
    });
  }

  void quantize(const cuda::LevelShape &shape, const LevelKind &kind, bool isPacked, std::mt19937 &random) {
    int32_t most = (1 << shape.bits) - 1;
    std::uniform_int_distribution<int32_t> level(0, most);
    std::uniform_real_distribution<double> scale(0.5 / most, 2.0 / most);
    std::vector<uint8_t> levels(values.size());
    Tensor givenScales({shape.outputs, shape.givenGroups()}, kind.scaleType), givenZeros(givenScales.sizes, HONE_U8);
    givenScales.forEach([&](const std::vector<int64_t> &index) {
      givenScales.set(index, scale(random));
      givenZeros.set(index, kind.hasZeros ? level(random) : (most + 1) / 2);
    });
    for (int64_t n = 0; n < shape.outputs; ++n)
      for (int64_t k = 0; k < inputs; ++k) {
        auto i = static_cast<size_t>(n * inputs + k);
        levels[i] = static_cast<uint8_t>(level(random));
        int64_t group = kind.group > 0 ? k / kind.group : 0;
        values[i] = givenScales.at({n, group}) * (levels[i] - givenZeros.at({n, group}));
      }
    if (!isPacked)
      return layOut(shape, kind, levels, givenScales, givenZeros);
    weight = Tensor({shape.outputs, shape.chunks(), 64}, HONE_U8);
    weight.memory.resize(static_cast<size_t>(shape.bytes()));
    packLevels(shape, levels.data(), inputs, 1, weight.memory);
    scales = packed(shape, givenScales);
    if (kind.hasZeros)
      zeros = packed(shape, givenZeros);
  }

  /// Planes as #hone.affine has them: levels one behind the other, rows filled up to whole groups.
  void layOut(const cuda::LevelShape &shape, const LevelKind &kind, const std::vector<uint8_t> &levels,
              const Tensor &givenScales, const Tensor &givenZeros) {
    int64_t row = kind.group > 0 ? shape.givenGroups() * kind.group : inputs;
    int32_t flip = kind.isSigned ? 1 << (shape.bits - 1) : 0;
    auto planeOf = [&](int64_t count, auto level) {
      Tensor plane({shape.outputs, (count * shape.bits + 7) / 8}, HONE_U8);
      std::ranges::fill(plane.memory, uint8_t{0});
      for (int64_t n = 0; n < shape.outputs; ++n)
        for (int64_t i = 0; i < count; ++i)
          plane.memory[static_cast<size_t>(n * plane.sizes[1] + i * shape.bits / 8)] |=
              static_cast<uint8_t>((level(n, i) ^ flip) << i * shape.bits % 8);
      return plane;
    };
    weight = planeOf(
        row, [&](int64_t n, int64_t k) { return k < inputs ? levels[static_cast<size_t>(n * inputs + k)] : 0; });
    scales = givenScales;
    if (kind.hasZeros)
      zeros = planeOf(shape.givenGroups(),
                      [&](int64_t n, int64_t g) { return static_cast<int32_t>(givenZeros.at({n, g})); });
  }

  static Tensor packed(const cuda::LevelShape &shape, const Tensor &given) {
    Tensor result({shape.outputs, shape.groups()}, given.dtype);
    result.memory.resize(static_cast<size_t>(shape.outputs * shape.groups() * bytesOf(given.dtype)));
    packGroups(shape, bytesOf(given.dtype), given.memory.data(), result.memory);
    return result;
  }

  int64_t inputs;
  std::vector<double> values;
};

} // namespace hone::test

#endif // HONE_TEST_UNIT_CUDA_LINEAR_WEIGHT_H
