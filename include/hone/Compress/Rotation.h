// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Orthogonal matrices that spread every channel over all of them, and can be applied in about n log n operations.

#ifndef HONE_COMPRESS_ROTATION_H
#define HONE_COMPRESS_ROTATION_H

#include "hone/Compress/Matrix.h"

#include <vector>

namespace hone::compress {

/// Q [n, n] = D (H ⊗ C): D has random signs on its diagonal, H is the Hadamard matrix of the largest power of two 2^k that divides
/// n, over its root, and C the Hartley matrix of m = n / 2^k, C_ij = (cos(2πij/m) + sin(2πij/m)) / sqrt(m), which is 1 for m = 1. The
/// randomized Hadamard transform (Tseng et al., "QuIP#", 2024, section 3; Ashkboos et al., "QuaRot", 2024, section 3). n (k + m)
/// operations in f64 a row.
class Rotation {
public:
  /// `size` is 1 or more; signs are those of `seed`.
  Rotation(int64_t size, int64_t seed);

  /// I ⊗ H with the Hadamard matrix H of `block` over its root, without signs: each `block` neighbours of `size` by themselves, which a product
  /// with one small matrix does while a model runs. `block` is a power of two that divides `size`.
  static Rotation ofBlocks(int64_t size, int64_t block);

  int64_t size() const { return static_cast<int64_t>(signs.size()); }

  /// row · Q.
  void apply(std::span<double> row) const;

  // In parallel; the same bits for every number of threads.

  /// W Q: of a weight whose inputs x become x Q.
  void rotateInputs(const Weight &weight) const;
  /// Qᵀ W: of a weight whose outputs y become y Q.
  void rotateOutputs(const Weight &weight) const;
  /// Qᵀ H Q, in place: of inputs x that become x Q.
  void rotateHessian(std::span<float> hessian) const;

private:
  std::vector<double> signs, hartley; // [n], [m, m]
  int64_t power, rest;                // 2^k and m: of all of it, or of each of several blocks
};

} // namespace hone::compress

#endif // HONE_COMPRESS_ROTATION_H
