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

/// The keys of a split among those of an interval.
__device__ inline KeyInterval keysOfSplit(const AttentionArguments &args, KeyInterval keys, int64_t split) {
  int64_t first = split * args.splitKeys, end = first + args.splitKeys;
  return {keys.begin > first ? keys.begin : first, keys.end < end ? keys.end : end};
}

/// One query of one head: its sequence, head and index, and the keys of this block's split that it sees; with lists of
/// blocks, of which keys are in several splits, those of all.
struct QueryRow {
  int64_t sequence, head, query, position;
  KeyInterval visible;

  __device__ QueryRow(const AttentionArguments &args, int64_t sequence, int64_t head, int64_t query, int64_t split)
      : sequence(sequence), head(head), query(query),
        position(kernels::queryPositionOf(args.visibility, sequence, query)),
        visible(kernels::intervalOf(args.visibility, sequence, query)) {
    if (args.visibility.blockKeys == 0)
      visible = keysOfSplit(args, visible, split);
  }

  __device__ int64_t index(const AttentionArguments &args) const {
    return (sequence * args.queryHeads + head) * args.queries + query;
  }
};

/// The logit of a key at a position; `product` is its dot product with the scaled query.
__device__ inline float logitOf(const AttentionArguments &args, const QueryRow &row, float product, int64_t key,
                                int64_t keyPosition) {
  if (args.softcap > 0)
    product = args.softcap * tanhf(product / args.softcap);
  if (args.alibi.data)
    product += args.alibi.at(row.head, 0) * static_cast<float>(keyPosition - row.position);
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

/// Writes the lse of a row, of its running maximum and sum of exponentials without the sink.
__device__ inline void storeLse(const AttentionArguments &args, int64_t sequence, int64_t head, int64_t query,
                                float runningMax, float sum) {
  args.lse[sequence * args.lseStrides[0] + head * args.lseStrides[1] + query * args.lseStrides[2]] =
      sum == 0 ? -infinity() : runningMax + logf(sum);
}

/// What the unnormalized output of a row is multiplied with, of its running maximum and sum of exponentials. With lse, of
/// which sinks are no part, these are without the sink, and one caller of a row, which `writes`, stores it.
__device__ inline float scaleOfRow(const AttentionArguments &args, int64_t sequence, int64_t head, int64_t query,
                                   float runningMax, float sum, bool writes) {
  if (args.lse && writes)
    storeLse(args, sequence, head, query, runningMax, sum);
  if (!args.lse || !args.sinks.data)
    return sum == 0 ? 0 : 1 / sum;
  float sink = args.sinks.at(head, 0), most = maxNan(runningMax, sink), factor = probabilityOf(runningMax, most);
  float total = sum * factor + probabilityOf(sink, most);
  return total == 0 ? 0 : factor / total;
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
