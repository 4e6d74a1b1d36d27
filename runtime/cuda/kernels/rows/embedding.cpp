// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of embedding.

#include "embedding.h"

#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "../kernels.h"

namespace hone::cuda {
namespace {

/// The ids as rows of one element each.
RowView idsOf(hone_tensor ids) {
  ids.sizes[ids.rank] = 1;
  ids.strides[ids.rank] = 1;
  ++ids.rank;
  return rowsOf(ids);
}

EmbeddingArguments argumentsOf(const hone_tensor &ids, const hone_tensor &y, const hone_tensor &table) {
  EmbeddingArguments args = {};
  args.ids = idsOf(ids);
  args.y = rowsOf(y);
  args.rows = args.y.count > 0 ? countRows(y) : 0;
  args.tableRows = table.sizes[0];
  return args;
}

void launchEmbedding(hone_call *call, const char *function, EmbeddingArguments &args, int32_t vectorSize) {
  int64_t blocks = divideUp(args.rows * divideUp(args.y.count, vectorSize), kEmbeddingThreads);
  if (blocks == 0)
    return;
  void *pointers[] = {&args};
  kernelDevice(call).launch({kEmbeddingFatbin, function},
                            {{static_cast<uint32_t>(blocks), 1, 1}, {kEmbeddingThreads, 1, 1}, 0}, pointers);
}

const uint8_t *bytesIn(const hone_tensor &tensor) {
  return isAbsent(tensor) ? nullptr : static_cast<const uint8_t *>(tensor.data);
}

} // namespace

void embeddingF32(hone_call *call, const hone_tensor *operands, const int64_t *, const double *) {
  EmbeddingArguments args = argumentsOf(operands[0], operands[2], operands[1]);
  args.table = rowsOf(operands[1]);
  int32_t vectorSize = vectorSizeOf(args);
  launchEmbedding(call, vectorSize == 4 ? "embedding_4" : "embedding_1", args, vectorSize);
}

void embeddingAffine(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  const hone_tensor &codes = operands[1], &scales = operands[2], &zeros = operands[3];
  EmbeddingArguments args = argumentsOf(operands[0], operands[4], codes);
  args.codes = {bytesIn(codes),
                bytesIn(scales),
                bytesIn(zeros),
                codes.sizes[1],
                isAbsent(zeros) ? 0 : zeros.sizes[1],
                scales.sizes[1],
                static_cast<int32_t>(ints[0]),
                static_cast<int32_t>(ints[1]),
                static_cast<int32_t>(ints[2]),
                scales.dtype};
  launchEmbedding(call, "embedding_quantized", args, kCodesPerThread);
}

} // namespace hone::cuda
