// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of embedding.

#include "embedding.h"

#include "../entry.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"

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

void run(hone_call *call, const kernels::Call<kernels::Embedding, kernels::Dense> &embedding) {
  const auto &o = embedding.operands;
  EmbeddingArguments args = argumentsOf(o.ids, o.y, *o.table);
  args.table = rowsOf(*o.table);
  int32_t vectorSize = vectorSizeOf(args);
  launchEmbedding(call, vectorSize == 4 ? "embedding_4" : "embedding_1", args, vectorSize);
}

void run(hone_call *call, const kernels::Call<kernels::QuantizedEmbedding, kernels::Affine> &embedding) {
  const auto &[codes, scales, zeros] = kernels::planesOf<kernels::Affine>(embedding.operands.table);
  EmbeddingArguments args = argumentsOf(embedding.operands.ids, embedding.operands.y, codes);
  args.codes = {bytesIn(codes),
                bytesIn(scales),
                bytesIn(zeros),
                codes.sizes[1],
                isAbsent(zeros) ? 0 : zeros.sizes[1],
                scales.sizes[1],
                static_cast<int32_t>(embedding.ints.bits),
                static_cast<int32_t>(embedding.formatInts.group),
                static_cast<int32_t>(embedding.formatInts.isSigned),
                scales.dtype};
  launchEmbedding(call, "embedding_quantized", args, kCodesPerThread);
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cuda/embedding.def"
#undef HONE_KERNEL

} // namespace hone::cuda
