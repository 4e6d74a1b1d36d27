// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The inverse of a Hessian, in the form in which one column after the other is fixed.

#ifndef HONE_COMPRESS_INVERSEFACTOR_H
#define HONE_COMPRESS_INVERSEFACTOR_H

#include "hone/Compress/Matrix.h"
#include "hone/io/status.h"

#include <vector>

namespace hone::compress {

/// Fails where an element of `hessian` is not finite, or one of its diagonal is negative.
absl::Status checkHessian(const Hessian &hessian);

/// The share of the mean of the diagonal that is added to it (Frantar et al., "GPTQ", 2022, section 3.3).
constexpr double kDamping = 0.01;

/// R [K, K], upper triangular with a positive diagonal, Rᵀ R = H'⁻¹, for columns in `order`. H' is H with 1 on the diagonal for
/// each dead input (H_jj = 0), plus damping times the mean of that diagonal. Row j of R says how the
/// columns after it compensate an error of column j, and 1 / R_jj² is what that error costs in H' (Frantar and Alistarh, "SparseGPT", 2023,
/// section 3.1).
///
/// R is the inverse of the upper factor V of H' = V Vᵀ, which is found from the last column on: 2/3 K³ operations in f64, with
/// no inverse of H' on the way. For K = 4864 those are 77 · 10⁹ (6 s on two threads
/// with AVX-512), and 190 MB. Blocked; parallel over rows and columns, and the
/// same bits for every number of threads and every vector width.
class InverseFactor {
public:
  /// `order` permutes the columns: column `order[i]` of H is fixed as number i; as they are where it is empty. Fails where
  /// checkHessian does, or H' is not positive definite.
  static absl::StatusOr<InverseFactor> create(const Hessian &hessian, std::span<const int64_t> order = {},
                                              double damping = kDamping);

  int64_t size() const { return columns; }
  /// Row i from its diagonal on: size() - i elements.
  std::span<const double> row(int64_t i) const { return std::span(elements).subspan(i * columns + i, columns - i); }
  double diagonal(int64_t i) const { return elements[i * columns + i]; }
  /// Row-major, size() elements a row; those before the diagonal are 0.
  const double *data() const { return elements.data(); }
  /// The column of the weight that is fixed as number i.
  int64_t column(int64_t i) const { return order[i]; }
  /// Whether that column never saw an input other than 0.
  bool isDead(int64_t i) const { return dead[i]; }

private:
  InverseFactor() = default;

  int64_t columns = 0;
  std::vector<double> elements;
  std::vector<int64_t> order;
  std::vector<bool> dead;
};

/// Columns by descending H_jj, ties by index: the order of act-order.
std::vector<int64_t> orderByDiagonal(const Hessian &hessian);

/// tr(W H Wᵀ): the mean over inputs x of |W x|². N K² operations in f64.
double outputEnergy(const Weight &weight, const Hessian &hessian);

/// sqrt(tr(D H Dᵀ) / tr(W H Wᵀ)) for W = before and D = before - after: what changed of the outputs, relative to them. 0 where
/// they are all 0. Twice the operations of outputEnergy.
double relativeOutputError(const Weight &before, const Weight &after, const Hessian &hessian);

} // namespace hone::compress

#endif // HONE_COMPRESS_INVERSEFACTOR_H
