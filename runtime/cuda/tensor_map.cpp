// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a box is in the words of the driver.

#include "cuda/tensor_map.h"

#include "hone/runtime/program.h"

namespace hone::rt::cuda {

absl::StatusOr<hone::cuda::TensorMap> encodeTensorMap(Context &context, const hone::cuda::TensorBox &box) {
  constexpr unsigned kRank = 4, kOnes[kRank] = {1, 1, 1, 1};
  constexpr int kNoInterleave = 0, kZeros = 0;
  const unsigned shape[kRank] = {box.columns, box.rows, 1, 1};
  CUtensorMapDataType type = box.dtype == HONE_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  CUtensorMapSwizzle swizzle =
      box.columns == hone::cuda::kBoxColumns ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B;
  hone::cuda::TensorMap map;
  Context::Scope scope(context);
  CUresult result =
      context.driver().cuTensorMapEncodeTiled(map.bytes, type, kRank, box.data, box.sizes, box.strides, shape, kOnes,
                                              kNoInterleave, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, kZeros);
  if (result != CUDA_SUCCESS)
    return context.check(result, "encode a tensor map for TMA");
  return map;
}

} // namespace hone::rt::cuda
