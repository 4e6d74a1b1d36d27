// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of packed linear layers whose weights lie in memory one after the other.

#ifndef HONE_BENCHMARKS_PACKED_LAYERS_H
#define HONE_BENCHMARKS_PACKED_LAYERS_H

#include "measure.h"

#include "hone/cpu/packing/pack_linear.h"

#include <array>
#include <deque>
#include <random>

namespace hone::bench {

/// A kernel, and the weights and activations that it multiplies.
struct LinearCase {
  const char *name, *kernel;
  cpu::PackedFormat format;
  int64_t group, bits;   // bits of activations, 0 where they stay floats
  bool isSparse = false; // two of every four inputs are kept
  double outliers = 0;   // fraction of the elements that are outliers
  int64_t codebook = 0;  // bits of indices into numbers of each output
};

struct LayerSize {
  int64_t outputs, inputs;
};

inline bool isQuantized(cpu::PackedFormat format) { return cpu::bitLayoutOf(format) != nullptr; }

/// Random outliers of a layer, a share of its elements, as many in every panel but for one; those of an output by ascending column.
struct LayerOutliers {
  std::vector<int32_t> starts;
  std::vector<uint16_t> columns;
  std::vector<_Float16> values;

  LayerOutliers(const LayerSize &size, double share, std::mt19937 &random);
  std::array<hone_tensor, 3> views();
};

/// One layer after another from the pool, as a decoder reads them.
class PackedLayers {
public:
  /// Layers of `rows` rows: as many as the pool has memory for, `most` at most.
  PackedLayers(const LinearCase &test, const LayerSize &size, int64_t rows, int64_t most, std::span<uint8_t> pool);

  int64_t layers() const { return count; }
  double bytes() const { return static_cast<double>(count * layerBytes); }

  /// Seconds that all layers take.
  double run(hone_kernel_fn kernel, int threads) const;

private:
  LinearCase test;
  Floats x, y;
  std::mt19937 random{5};
  std::deque<LayerOutliers> outliers;
  std::vector<std::vector<hone_tensor>> calls;
  int64_t layerBytes = 0, count = 0;
};

} // namespace hone::bench

#endif // HONE_BENCHMARKS_PACKED_LAYERS_H
