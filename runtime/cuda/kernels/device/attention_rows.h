// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code that attention kernels share: logits, and where partial results of split-KV lie.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_ATTENTION_ROWS_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_ATTENTION_ROWS_H

#include "../attention/attention_arguments.h"
#include "elements.h"
#include "reduce.h"

namespace hone::cuda {

/// One query of one head: its sequence, head and index, and the keys of this block's split that it sees.
struct QueryRow {
  int64_t sequence, head, query, position;
  KeyRange visible;

  __device__ QueryRow(const AttentionArguments &args, int64_t sequence, int64_t head, int64_t query, int64_t split)
      : sequence(sequence), head(head), query(query), position(args.keys - args.queries + query) {
    visible = visibleKeys(position, args.keys, args.causal, args.window, args.keyBegin.at(sequence, 0),
                          args.keyEnd.at(sequence, args.keys), args.prefix.at(sequence, 0));
    int64_t first = split * args.splitKeys;
    visible.begin = visible.begin > first ? visible.begin : first;
    visible.end = visible.end < first + args.splitKeys ? visible.end : first + args.splitKeys;
  }

  __device__ int64_t index(const AttentionArguments &args) const {
    return (sequence * args.queryHeads + head) * args.queries + query;
  }
};

/// The logit of a key; `product` is its dot product with the scaled query.
__device__ inline float logitOf(const AttentionArguments &args, const QueryRow &row, float product, int64_t key) {
  if (args.softcap > 0)
    product = args.softcap * tanhf(product / args.softcap);
  if (args.alibi.data)
    product += args.alibi.at(row.head, 0) * static_cast<float>(key - row.position);
  if (args.bias.data && key >= args.firstWithBias)
    product +=
        loadElement(args.bias.data, args.bias.offset(row.sequence, row.head, row.query) + key * args.bias.strides[3],
                    args.bias.dtype);
  return product;
}

/// exp(logit - runningMax); 0 where no logit above -inf has been seen.
__device__ inline float probabilityOf(float logit, float runningMax) {
  return runningMax == -infinity() ? 0 : expf(logit - runningMax);
}

/// Partial results of a row and split: the unnormalized output, and (running maximum, sum of exponentials).
__device__ inline float *partialValues(const AttentionArguments &args, int64_t row, int64_t split) {
  return args.partial + (row * args.splits + split) * args.valueSize;
}
__device__ inline float *partialState(const AttentionArguments &args, int64_t row, int64_t split) {
  return args.partial + args.rows() * args.splits * args.valueSize + (row * args.splits + split) * 2;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_ATTENTION_ROWS_H
