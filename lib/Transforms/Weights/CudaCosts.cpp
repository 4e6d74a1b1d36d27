// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The estimate of products on GPUs: the longer of reading and multiplying, and at least a launch.

#include "SparseCosts.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace hone {
namespace {

/// What vendors' data sheets say of the chips' fastest cards: bytes of memory a second, and operations a second by f32 and, with dense
/// operands of bf16, by tensor cores. `warpShare`: how much of the latter instructions of single warps reach, which small-M kernels
/// have, and for 2:4 weights those for up to `groupRows` / 2 rows. On sm_90 that is 5/8 (Luo et al., "Benchmarking and Dissecting
/// the Nvidia Hopper GPU Architecture via Microbenchmarking", 2024); sm_100 is taken to do as many of them a second as sm_90. `groupShare`:
/// the same of the kernel for 2:4 weights by warpgroups, whose tiles have `groupRows` rows (0: there is none), where shared memory
/// takes 203 cycles for what takes tensor cores 128 (runtime/cuda/kernels/linear/hopper_sparse_gemm.cu).
struct Chip {
  llvm::StringRef name;
  double bytes, exact, dense, warpShare;
  double groupShare = 0;
  int64_t groupRows = 0;
};
constexpr Chip kChips[] = {{"sm_80", 2.0e12, 19.5e12, 312e12, 1},
                           {"sm_86", 0.7e12, 37e12, 150e12, 1},
                           {"sm_89", 0.86e12, 90e12, 181e12, 1},
                           {"sm_90", 3.35e12, 67e12, 989e12, 0.625, 128.0 / 203, 256},
                           {"sm_100", 8.0e12, 80e12, 2250e12, 0.275}};

constexpr double kLaunchSeconds = 2e-6;          // no kernel takes less
constexpr int64_t kSmallM = 32, kTileRows = 128; // as in runtime/cuda/kernels
constexpr double kReads = 2, kPlaneBytes = 2;    // of weights that are expanded: written, and read again

/// Formats whose products with activations of f32 are so many of 16 bits: small-M, large-M, and planes of the weight then.
struct Products {
  llvm::StringRef format;
  double smallM, largeM, planes; // smallM: 0 where products are those of f32
};
constexpr Products kProducts[] = {
    {"f32", 0, 3, 2}, {"f16", 0, 3, 2}, {"bf16", 2, 2, 0}, {"u8", 2, 3, 2}, {"u4", 2, 3, 2}};

/// Rows in whole tiles.
double paddedTo(int64_t rows, int64_t tile) { return static_cast<double>((rows + tile - 1) / tile * tile); }

/// Rows that a 2:4 weight is multiplied with, over the rate.
double sparseRowsPerRate(const Chip &chip, int64_t rows) {
  bool isOfGroups = chip.groupRows > 0 && 2 * rows > chip.groupRows;
  return paddedTo(rows, isOfGroups ? chip.groupRows : kTileRows) /
         (2 * chip.dense * (isOfGroups ? chip.groupShare : chip.warpShare));
}

/// Seconds for a layer whose weight has `bytes` bytes and `elements` elements that are stored.
double estimate(const Chip &chip, const Products &products, LayerShape shape, int64_t rows, double bytes,
                double elements, bool isSparse) {
  double weight = static_cast<double>(shape.outputs) * static_cast<double>(shape.inputs);
  double traffic = bytes + 4.0 * static_cast<double>(rows) * static_cast<double>(shape.inputs + shape.outputs);
  double multiplying = 0;
  if (rows <= kSmallM) {
    multiplying = products.smallM == 0
                      ? 2 * static_cast<double>(rows) * weight / chip.exact
                      : 2 * paddedTo(rows, 8) * weight * products.smallM / (chip.dense * chip.warpShare);
  } else {
    multiplying = 2 * weight * products.largeM *
                  (isSparse ? sparseRowsPerRate(chip, rows) : paddedTo(rows, kTileRows) / chip.dense);
    traffic += elements * products.planes * kPlaneBytes * kReads;
  }
  return std::max({kLaunchSeconds, traffic / chip.bytes, multiplying});
}

} // namespace

bool isCostChip(llvm::StringRef name) {
  return llvm::any_of(kChips, [&](const Chip &chip) { return chip.name == name; });
}

std::optional<double> estimateSparseCost(llvm::StringRef chip, llvm::StringRef format, LayerShape shape, int64_t rows,
                                         LayerBytes bytes) {
  const auto *known = llvm::find_if(kChips, [&](const Chip &one) { return one.name == chip; });
  const auto *products = llvm::find_if(kProducts, [&](const Products &one) { return one.format == format; });
  if (known == std::end(kChips) || products == std::end(kProducts))
    return std::nullopt;
  double elements = static_cast<double>(shape.outputs) * static_cast<double>(shape.inputs);
  return estimate(*known, *products, shape, rows, static_cast<double>(bytes.sparse), elements / 2, /*isSparse=*/true) /
         estimate(*known, *products, shape, rows, static_cast<double>(bytes.dense), elements, /*isSparse=*/false);
}

} // namespace hone
