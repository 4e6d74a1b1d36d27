// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of rows with the weights of the experts that they are routed to.

#ifndef HONE_RUNTIME_CUDA_KERNELS_EXPERTS_EXPERT_PRODUCTS_H
#define HONE_RUNTIME_CUDA_KERNELS_EXPERTS_EXPERT_PRODUCTS_H

#include "../linear/linear_format.h"
#include "../linear/planes.h"
#include "experts.h"

#include <span>

namespace hone::cuda {

/// The weights of all experts, stacked, as a layer, and the number of rows of an expert.
struct ExpertWeight {
  LinearArguments layer;
  RowView bias; // a row an expert
  int64_t rows;
};

/// Outputs first, first + step, …, `count` of them, of every expert. Factor and y have a row a pair.
struct ExpertProduct {
  int64_t first, step, count;
  int32_t activation;
  RowView factor, y;
};

/// The routing of rows to experts.
struct ExpertChoices {
  const int32_t *groups; // experts.h
  int64_t rows, experts;
  int32_t choices; // of a row

  int64_t pairs() const { return rows * choices; }
};

/// The inputs of products: x in the type in which it is multiplied. No member has a destructor.
class ExpertInputs {
public:
  /// x has a row for each routed row, or for each pair. There is at least one.
  ExpertInputs(KernelDevice &device, Format format, const hone_tensor &x, const ExpertChoices &choices);

  /// Enqueues the products, which have the same weight; ExpertProduct::count is at least one.
  void multiply(const ExpertWeight &weight, std::span<const ExpertProduct> products);

  /// Releases the copy of x. To be called last.
  void release();

private:
  void describe(ExpertLayer &layer, const ExpertWeight &weight, const ExpertProduct &product) const;
  void multiplyGemv(const ExpertWeight &weight, const ExpertProduct &product);
  void multiplyGemm(const ExpertWeight &weight, std::span<const ExpertProduct> products);
  void multiplyPlanes(const ExpertWeight &weight, const PlaneView &planes, int64_t first, int64_t count,
                      const ExpertProduct &product);
  int32_t choicesOfInput() const { return isPerPair ? 1 : choices.choices; }

  KernelDevice &device;
  const Format format;
  const ExpertChoices choices;
  const bool isGemm, isPerPair;
  RowView x;
  Planes planes;        // for GEMM
  PlaneView xPlanes;    // for GEMM
  void *copy = nullptr; // of x
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_EXPERTS_EXPERT_PRODUCTS_H
