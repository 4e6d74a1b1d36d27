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
/// the same of the kernel for 2:4 weights by warpgroups, whose tiles have `groupRows` rows (0: there is none), and `denseShare` of
/// cuBLASLt's for dense ones, both measured on an H200 at 8192 rows, outputs and inputs (docs/cuda-kernels.md).
/// `issue`: instructions a second (SMs times clock) over those of an H200.
struct Chip {
  llvm::StringRef name;
  double bytes, exact, dense, warpShare, issue;
  double groupShare = 0;
  int64_t groupRows = 0;
  double denseShare = 1;
};
constexpr Chip kChips[] = {{"sm_80", 2.0e12, 19.5e12, 312e12, 1, 0.58},
                           {"sm_86", 0.7e12, 37e12, 150e12, 1, 0.53},
                           {"sm_89", 0.86e12, 90e12, 181e12, 1, 1.2},
                           {"sm_90", 3.35e12, 67e12, 989e12, 0.625, 1, 0.32, 256, 0.80},
                           {"sm_100", 8.0e12, 80e12, 2250e12, 0.275, 1.1}};

constexpr double kReadShare = 0.85;              // of the memory bandwidth, which GEMV reached on an H200
constexpr double kLaunchSeconds = 2e-6;          // no kernel takes less
constexpr int64_t kSmallM = 32, kTileRows = 128; // as in runtime/cuda/kernels
constexpr double kReads = 2, kPlaneBytes = 2;    // of weights that are expanded: written, and read again

/// Formats whose products with activations of f32 are so many of 16 bits: small-M, large-M, and planes of the weight then.
/// `denseRate`, `sparseRate`: bytes of dense and of 2:4 weights a second where instructions bound the small-M kernel, measured on an
/// H200 with a row by 4096 x 14336 (docs/cuda-kernels.md); 0 where memory does, and of f32, which has not been measured. f16 is taken
/// to be as bf16.
struct Products {
  llvm::StringRef format;
  double smallM, largeM, planes; // smallM: 0 where products are those of f32
  double denseRate, sparseRate;
};
constexpr Products kProducts[] = {{"f32", 0, 3, 2, 0, 0},
                                  {"f16", 0, 3, 2, 0, 2.07e12},
                                  {"bf16", 2, 2, 0, 0, 2.07e12},
                                  {"u8", 2, 3, 2, 1.99e12, 0.92e12},
                                  {"u4", 2, 3, 2, 1.62e12, 0.52e12}};

/// Bytes a second that a small-M kernel reads.
double readRate(const Chip &chip, double rate) {
  double most = kReadShare * chip.bytes;
  return rate == 0 ? most : std::min(most, rate * chip.issue);
}

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
  double multiplying = 0, rate = chip.bytes;
  if (rows <= kSmallM) {
    rate = readRate(chip, isSparse ? products.sparseRate : products.denseRate);
    multiplying = products.smallM == 0
                      ? 2 * static_cast<double>(rows) * weight / chip.exact
                      : 2 * paddedTo(rows, 8) * weight * products.smallM / (chip.dense * chip.warpShare);
  } else {
    multiplying =
        2 * weight * products.largeM *
        (isSparse ? sparseRowsPerRate(chip, rows) : paddedTo(rows, kTileRows) / (chip.dense * chip.denseShare));
    traffic += elements * products.planes * kPlaneBytes * kReads;
  }
  return std::max({kLaunchSeconds, traffic / rate, multiplying});
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
