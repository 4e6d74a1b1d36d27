// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products in the library's words. It counts matrices by columns: rows of ours are its columns, so that yᵀ = weight · xᵀ, where the
// weight is the transpose of what it sees.

#include "cuda/blas/products.h"

#include "hone/runtime/program.h"

namespace hone::rt::cuda {
namespace {

using hone::cuda::MatrixProduct;

/// What the library's manual advises for sm_90; older chips are content with less.
constexpr uint64_t kMostWorkspaceBytes = uint64_t{32} << 20;

/// The largest power of two that an address is a multiple of, as far as the library cares.
uint32_t alignmentOf(const void *memory) {
  uint32_t alignment = 256;
  while (reinterpret_cast<uintptr_t>(memory) % alignment != 0)
    alignment /= 2;
  return alignment;
}

cudaDataType_t typeOf(int32_t dtype) {
  return dtype == HONE_F32 ? CUDA_R_32F : dtype == HONE_F16 ? CUDA_R_16F : CUDA_R_16BF;
}

uint32_t epilogueOf(const MatrixProduct &product) {
  uint32_t epilogue = product.bias ? uint32_t{CUBLASLT_EPILOGUE_BIAS} : 0;
  if (product.activation != 0)
    epilogue |= product.activation == 1 ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_GELU;
  return epilogue == 0 ? uint32_t{CUBLASLT_EPILOGUE_DEFAULT} : epilogue;
}

/// The matrix that is added: y itself where nothing is, times 0.
const void *addendOf(const MatrixProduct &product) { return product.addend ? product.addend : product.y; }
int64_t addendStrideOf(const MatrixProduct &product) { return product.addend ? product.addendStride : product.yStride; }

/// A plan that gives back what the library has for it.
std::shared_ptr<ProductPlan> makePlan(const CublasLt &library) {
  return {new ProductPlan, [&library](ProductPlan *plan) {
            for (cublasLtMatrixLayout_t layout : {plan->weight, plan->x, plan->addend, plan->y})
              if (layout)
                library.cublasLtMatrixLayoutDestroy(layout);
            if (plan->description)
              library.cublasLtMatmulDescDestroy(plan->description);
            delete plan;
          }};
}

} // namespace

std::unique_ptr<Products> Products::create() {
  const CublasLt *library = CublasLt::get();
  if (!library)
    return nullptr;
  std::unique_ptr<Products> products(new Products(*library));
  bool starts = library->cublasLtCreate(&products->handle) == CUBLAS_STATUS_SUCCESS;
  return starts ? std::move(products) : nullptr;
}

void Products::release() {
  plans.clear();
  library.cublasLtDestroy(handle);
}

Products::Key Products::keyOf(const MatrixProduct &p) {
  return {p.rows,
          p.outputs,
          p.inputs,
          p.xStride,
          p.weightStride,
          addendStrideOf(p),
          p.yStride,
          p.type,
          p.yType,
          p.activation,
          p.bias != nullptr,
          p.addend != nullptr,
          alignmentOf(p.x),
          alignmentOf(p.weight),
          alignmentOf(addendOf(p)),
          alignmentOf(p.y),
          alignmentOf(p.bias)};
}

std::shared_ptr<ProductPlan> Products::plan(const MatrixProduct &product) {
  Key key = keyOf(product);
  auto place = plans.find(key);
  if (place == plans.end()) {
    if (plans.size() == kMostPlans)
      plans.clear();
    place = plans.emplace(key, makePlan(library)).first;
    place->second->isUsable = describe(*place->second, product) && choose(*place->second, product);
  }
  return place->second->isUsable ? place->second : nullptr;
}

bool Products::describe(ProductPlan &plan, const MatrixProduct &product) const {
  auto rows = static_cast<uint64_t>(product.rows), outputs = static_cast<uint64_t>(product.outputs),
       inputs = static_cast<uint64_t>(product.inputs);
  cudaDataType_t type = typeOf(product.type), yType = typeOf(product.yType);
  auto create = [&](cublasLtMatrixLayout_t &layout, cudaDataType_t elements, uint64_t height, uint64_t width,
                    int64_t stride) {
    return library.cublasLtMatrixLayoutCreate(&layout, elements, height, width, stride) == CUBLAS_STATUS_SUCCESS;
  };
  if (library.cublasLtMatmulDescCreate(&plan.description, CUBLAS_COMPUTE_32F, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS ||
      !create(plan.weight, type, inputs, outputs, product.weightStride) ||
      !create(plan.x, type, inputs, rows, product.xStride) ||
      !create(plan.addend, yType, outputs, rows, addendStrideOf(product)) ||
      !create(plan.y, yType, outputs, rows, product.yStride))
    return false;
  auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto &value) {
    return library.cublasLtMatmulDescSetAttribute(plan.description, attribute, &value, sizeof value) ==
           CUBLAS_STATUS_SUCCESS;
  };
  return set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t{CUBLAS_OP_T}) &&
         set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogueOf(product)) &&
         (!product.bias || (set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(yType)) &&
                            set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias)));
}

/// Asks the library for the way that it expects to be the fastest.
bool Products::choose(ProductPlan &plan, const MatrixProduct &product) const {
  cublasLtMatmulPreference_t preference = nullptr;
  if (library.cublasLtMatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS)
    return false;
  auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    return library.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value) ==
           CUBLAS_STATUS_SUCCESS;
  };
  cublasLtMatmulHeuristicResult_t result = {};
  int found = 0;
  bool isKnown =
      set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspaceBytes) &&
      set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignmentOf(product.weight)) &&
      set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignmentOf(product.x)) &&
      set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignmentOf(addendOf(product))) &&
      set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignmentOf(product.y)) &&
      library.cublasLtMatmulAlgoGetHeuristic(handle, plan.description, plan.weight, plan.x, plan.addend, plan.y,
                                             preference, 1, &result, &found) == CUBLAS_STATUS_SUCCESS &&
      found == 1 && result.state == CUBLAS_STATUS_SUCCESS;
  library.cublasLtMatmulPreferenceDestroy(preference);
  plan.algorithm = result.algo;
  plan.workspaceBytes = result.workspaceSize;
  return isKnown;
}

cublasStatus_t Products::enqueue(ProductPlan &plan, const MatrixProduct &product, void *workspace,
                                 CUstream_st *stream) const {
  float alpha = 1, beta = product.addend ? 1.0f : 0.0f;
  if (product.bias) {
    cublasStatus_t status = library.cublasLtMatmulDescSetAttribute(plan.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                                   &product.bias, sizeof product.bias);
    if (status != CUBLAS_STATUS_SUCCESS)
      return status;
  }
  return library.cublasLtMatmul(handle, plan.description, &alpha, product.weight, plan.weight, product.x, plan.x, &beta,
                                addendOf(product), plan.addend, product.y, plan.y, &plan.algorithm, workspace,
                                plan.workspaceBytes, stream);
}

} // namespace hone::rt::cuda
