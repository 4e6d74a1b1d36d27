// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of matrices by cuBLASLt: its heuristic is queried once a shape.

#ifndef HONE_RUNTIME_CUDA_BLAS_PRODUCTS_H
#define HONE_RUNTIME_CUDA_BLAS_PRODUCTS_H

#include "cuda/blas/cublaslt.h"
#include "cuda/kernels/matrix_product.h"

#include <map>
#include <memory>
#include <tuple>

namespace hone::rt::cuda {

/// How the library computes products of one shape, alignment and epilogue.
struct ProductPlan {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t weight = nullptr, x = nullptr, addend = nullptr, y = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
  uint64_t workspaceBytes = 0;
  bool isUsable = false;
};

/// The products of one stream. The context that it was created in has to be current; used by one thread at a time.
class Products {
public:
  /// Null where there is no library, or it does not start.
  static std::unique_ptr<Products> create();
  Products(const Products &) = delete;
  Products &operator=(const Products &) = delete;

  /// Gives back what the library holds, on the device too. Not called where the context is lost.
  void release();

  /// How the product is computed, or null where the library has no way. Plans are kept for who asks again, but no more than
  /// kMostPlans.
  std::shared_ptr<ProductPlan> plan(const hone::cuda::MatrixProduct &product);

  /// Prompts of any length have plans of their own, about one for each kind of layer.
  static constexpr size_t kMostPlans = 256;
  size_t plansKept() const { return plans.size(); }

  /// Enqueues a product of that plan; the workspace has its size and is aligned to 256 bytes.
  cublasStatus_t enqueue(ProductPlan &plan, const hone::cuda::MatrixProduct &product, void *workspace,
                         CUstream_st *stream) const;

  /// "CUBLAS_STATUS_EXECUTION_FAILED".
  const char *textOf(cublasStatus_t status) const { return library.cublasLtGetStatusName(status); }

private:
  /// rows, outputs, inputs, strides of x, weight, addend and y, then types, activation, what there is, and alignments.
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int32_t, int32_t, int32_t, bool,
                         bool, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>;

  explicit Products(const CublasLt &library) : library(library) {}
  static Key keyOf(const hone::cuda::MatrixProduct &product);
  bool describe(ProductPlan &plan, const hone::cuda::MatrixProduct &product) const;
  bool choose(ProductPlan &plan, const hone::cuda::MatrixProduct &product) const;
  const CublasLt &library;
  cublasLtHandle_t handle = nullptr;
  std::map<Key, std::shared_ptr<ProductPlan>> plans;
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_BLAS_PRODUCTS_H
