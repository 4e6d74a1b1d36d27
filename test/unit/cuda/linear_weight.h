// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random weights of linear layers: as device kernels read them, and their dequantized values.

#ifndef HONE_TEST_UNIT_CUDA_LINEAR_WEIGHT_H
#define HONE_TEST_UNIT_CUDA_LINEAR_WEIGHT_H

#include "parity.h"

#include <algorithm>

namespace hone::test {

/// Parameters of quantization.
struct Quantization {
  int64_t group = 0;
  bool hasZeros = false;
  int32_t scaleType = HONE_F32;
  bool isSigned = false;
};

/// How a weight is stored: whole, quantized with outliers stored separately, or 2:4.
enum class Stored { Whole, Outliers, TwoOfFour };

/// The relative error of a product with a weight of `format` and `rows` rows of x of `type`. Sums in f32 err by less
/// than 1e-6 of every term, and an element that is split into hi and lo terms of bf16 by at most 2^-16. GEMM splits
/// weights too where they and x have more than eight bits, and omits lo · lo, which is as much again; x of bf16 rounds
/// scaled quantized values to bf16.
inline double productError(std::string_view format, int32_t type, int64_t rows) {
  constexpr double kSplit = 1.53e-5;
  bool isGemm = rows > 32, isBf16 = type == HONE_BF16, isQuantized = format.starts_with('a');
  if (format == "f16" && type == HONE_F16)
    return 1e-6;
  if (!isGemm)
    return format == "f32" || format == "f16" || isBf16 ? 1e-6 : 1e-6 + kSplit;
  if (format == "bf16" || (isQuantized && isBf16))
    return isBf16 ? 1e-6 + (isQuantized ? roundingOf(HONE_BF16) : 0) : 1e-6 + kSplit;
  return 1e-6 + 3 * kSplit;
}

class LinearWeight {
public:
  /// `format`: "f32", "f16", "bf16", or "affine" and a number of bits. `layout` is that of a whole float weight,
  /// whose rows are multiples of 16 bytes where it is Aligned.
  LinearWeight(const std::string &format, Stored stored, int64_t outputs, int64_t inputs, const Quantization &kind,
               Layout layout, std::mt19937 &random)
      : weight({0}), stored(stored), outputs(outputs), inputs(inputs), values(static_cast<size_t>(outputs * inputs)) {
    if (stored == Stored::Outliers)
      addOutliers(random);
    if (stored == Stored::TwoOfFour) {
      prune(random);
      layout = Layout::Dense;
    }
    if (isQuantized(format))
      quantize(format.back() - '0', kind, random);
    else
      fill(format == "f32" ? HONE_F32 : format == "f16" ? HONE_F16 : HONE_BF16, layout, random);
  }

  static bool isQuantized(std::string_view format) { return format.starts_with('a'); }
  /// Inputs whose codes fill words, of which kernels read eight at least; 1 of floats.
  static int64_t inputsOfWords(std::string_view format) {
    return isQuantized(format) ? std::max<int64_t>(8, 32 / std::gcd(32, format.back() - '0')) : 1;
  }
  double at(int64_t n, int64_t k) const { return values[static_cast<size_t>(n * inputs + k)]; }

  /// The planes in the order of the kernels' operands.
  std::vector<Tensor *> planes() {
    std::vector<Tensor *> result = {&weight};
    if (isPruned())
      result.push_back(&indices);
    if (scales.count() > 0 || weight.dtype == HONE_U8)
      result.insert(result.end(), {&scales, &zeros});
    if (starts.count() > 0)
      result.insert(result.begin(), {&starts, &columns, &elements});
    return result;
  }

private:
  bool isPruned() const { return stored == Stored::TwoOfFour; }
  double &value(int64_t n, int64_t k) { return values[static_cast<size_t>(n * inputs + k)]; }

  void fill(int32_t dtype, Layout layout, std::mt19937 &random) {
    int64_t unit = layout == Layout::Aligned ? 16 / bytesOf(dtype) : 1, count = isPruned() ? inputs / 2 : inputs;
    weight = Tensor({outputs, (count + unit - 1) / unit * unit}, dtype, layout);
    std::normal_distribution<double> normal;
    weight.forEach([&](const std::vector<int64_t> &index) {
      weight.set(index, index[1] < count ? normal(random) : 0);
      if (index[1] < count)
        value(index[0], isPruned() ? keptInput(index[0], index[1]) : index[1]) = weight.at(index);
    });
  }

  /// Keeps two inputs of every four: `indices` is the plane of #hone.nm.
  void prune(std::mt19937 &random) {
    static constexpr uint8_t kPairs[] = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110};
    isKept.assign(values.size(), false);
    indices = Tensor({outputs, inputs / 8}, HONE_U8);
    for (size_t i = 0; i < isKept.size() / 8; ++i) {
      uint8_t byte = 0;
      for (size_t group = 0; group < 2; ++group) {
        uint8_t pair = kPairs[random() % 6];
        isKept[8 * i + 4 * group + (pair & 3)] = isKept[8 * i + 4 * group + (pair >> 2)] = true;
        byte |= static_cast<uint8_t>(pair << 4 * group);
      }
      indices.memory[i] = byte;
    }
  }

  int64_t keptInput(int64_t n, int64_t index) const {
    int64_t k = index / 2 * 4;
    for (int64_t left = index % 2;; ++k)
      if (isKept[static_cast<size_t>(n * inputs + k)] && left-- == 0)
        return k;
  }

  /// Up to five outliers of each row, as many for all rows of a panel; elements that are not 0 are outliers until
  /// `quantize`.
  void addOutliers(std::mt19937 &random) {
    int64_t panels = (outputs + 15) / 16, slots = 0;
    starts = Tensor({panels + 1}, HONE_I32);
    std::vector<int64_t> order(static_cast<size_t>(inputs));
    std::iota(order.begin(), order.end(), 0);
    std::vector<std::pair<int64_t, double>> all;
    std::normal_distribution<double> normal(0, 3);
    for (int64_t panel = 0; panel < panels; ++panel) {
      starts.set({panel}, static_cast<double>(slots));
      int64_t count = std::min<int64_t>(inputs, static_cast<int64_t>(random() % 6));
      for (int64_t n = 16 * panel; n < 16 * panel + 16; ++n) {
        std::ranges::shuffle(order, random);
        std::sort(order.begin(), order.begin() + count);
        for (int64_t i = 0; i < count; ++i)
          all.emplace_back((slots + i) * 16 + n % 16,
                           n < outputs ? static_cast<double>(order[static_cast<size_t>(i)]) : -1);
      }
      slots += count;
    }
    starts.set({panels}, static_cast<double>(slots));
    columns = Tensor({slots, 16}, HONE_BF16); // of 16 bits; their bytes are written as integers
    elements = Tensor({slots, 16}, HONE_F16);
    placeOutliers(all, normal, random);
  }

  void placeOutliers(const std::vector<std::pair<int64_t, double>> &all, std::normal_distribution<double> &normal,
                     std::mt19937 &random) {
    for (auto [element, column] : all) {
      bool exists = column >= 0;
      auto k = static_cast<uint16_t>(exists ? column : 0);
      std::memcpy(columns.memory.data() + 2 * element, &k, 2);
      std::vector<int64_t> index = {element / 16, element % 16};
      elements.set(index, exists ? normal(random) : 0);
      if (!exists)
        continue;
      int64_t panel = 0;
      while (starts.at({panel + 1}) <= static_cast<double>(index[0]))
        ++panel;
      value(16 * panel + index[1], k) = elements.at(index);
    }
  }

  /// Planes as #hone.affine has them: packed values, rows padded to whole groups.
  void quantize(int32_t bits, const Quantization &kind, std::mt19937 &random) {
    int32_t most = (1 << bits) - 1, flip = kind.isSigned ? 1 << (bits - 1) : 0;
    int64_t groups = kind.group == 0 ? 1 : (inputs + kind.group - 1) / kind.group;
    std::uniform_int_distribution<int32_t> code(0, most);
    std::uniform_real_distribution<double> scale(0.5 / most, 2.0 / most);
    scales = Tensor({outputs, groups}, kind.scaleType);
    std::vector<int32_t> middles(static_cast<size_t>(outputs * groups), (most + 1) / 2), codes(values.size());
    scales.forEach([&](const std::vector<int64_t> &index) { scales.set(index, scale(random)); });
    if (kind.hasZeros)
      std::ranges::generate(middles, [&] { return code(random); });
    for (int64_t n = 0; n < outputs; ++n)
      for (int64_t k = 0; k < inputs; ++k) {
        int64_t group = kind.group > 0 ? k / kind.group : 0;
        auto i = static_cast<size_t>(n * inputs + k);
        int32_t middle = middles[static_cast<size_t>(n * groups + group)];
        codes[i] = values[i] != 0 ? middle : code(random);
        if (values[i] == 0 && (!isPruned() || isKept[i]))
          values[i] = scales.at({n, group}) * (codes[i] - middle);
      }
    int64_t row = kind.group > 0 ? groups * kind.group : inputs;
    if (isPruned()) {
      size_t count = 0;
      for (size_t i = 0; i < codes.size(); ++i)
        if (isKept[i])
          codes[count++] = codes[i];
      row /= 2;
    }
    weight = planeOf(bits, flip, row, isPruned() ? inputs / 2 : inputs, codes);
    if (kind.hasZeros)
      zeros = planeOf(bits, flip, groups, groups, middles);
  }

  /// Packed rows of `count` values, of which `given` exist.
  Tensor planeOf(int32_t bits, int32_t flip, int64_t count, int64_t given, const std::vector<int32_t> &codes) const {
    Tensor plane({outputs, (count * bits + 7) / 8}, HONE_U8);
    std::ranges::fill(plane.memory, uint8_t{0});
    for (int64_t n = 0; n < outputs; ++n)
      for (int64_t i = 0; i < given; ++i)
        for (int32_t bit = 0; bit < bits; ++bit) {
          int32_t code = codes[static_cast<size_t>(n * given + i)] ^ flip;
          plane.memory[static_cast<size_t>(n * plane.sizes[1] + (i * bits + bit) / 8)] |=
              static_cast<uint8_t>((code >> bit & 1) << (i * bits + bit) % 8);
        }
    return plane;
  }

  Tensor weight, scales = Tensor::absent(), zeros = Tensor::absent();
  Tensor starts = Tensor::absent(), columns = Tensor::absent(), elements = Tensor::absent();
  Tensor indices = Tensor::absent();
  Stored stored;
  int64_t outputs, inputs;
  std::vector<double> values;
  std::vector<bool> isKept; // of pruned ones
};

} // namespace hone::test

#endif // HONE_TEST_UNIT_CUDA_LINEAR_WEIGHT_H
