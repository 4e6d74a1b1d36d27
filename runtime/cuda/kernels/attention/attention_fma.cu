// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention by FMA in f32, for any sizes and strides: four warps divide the keys of a row, with online softmax. Also
// the merge of split-KV.
//
// A warp takes 32 keys at a time: each lane multiplies one with the query, in shared memory, and then lanes have
// consecutive elements of a value.

#include "../device/attention_rows.h"
#include "../device/overlap.h"
#include "attention_fma.h"

namespace hone::cuda {

/// IsMasked: more than an interval decides which keys the row sees.
template <bool IsMasked> class AttentionFma {
public:
  __device__ AttentionFma(const AttentionArguments &args, float *shared)
      : args(args), warp(threadIdx.x / 32), lane(threadIdx.x % 32), split(blockIdx.y),
        row(args, blockIdx.x / args.queries / args.queryHeads, blockIdx.x / args.queries % args.queryHeads,
            blockIdx.x % args.queries, blockIdx.y),
        query(shared), sums(shared + args.size) {}

  __device__ void run() {
    int64_t from = args.query.offset(row.sequence, row.head, row.query);
    for (int i = threadIdx.x; i < args.size; i += blockDim.x)
      query[i] = args.scale * loadElement(args.query.data, from + i * args.query.strides[3], args.query.dtype);
    __syncthreads();
    if constexpr (IsMasked) {
      KeyInterval own = candidates();
      for (int64_t first = own.begin + 32 * warp; first < own.end; first += 32 * kAttentionFmaWarps)
        addSeenKeys(first, own.end);
    } else {
      for (int64_t first = row.visible.begin + 32 * warp; first < row.visible.end; first += 32 * kAttentionFmaWarps)
        addKeys(first);
    }
    stageSums();
    __syncthreads();
    if (warp == 0)
      writeRow();
  }

private:
  /// Of the keys that the row goes through, by their interval or by the listed blocks, those of this block's split.
  __device__ KeyInterval candidates() const {
    if (args.visibility.blockKeys == 0)
      return row.visible;
    int64_t begin = split * args.splitKeys, end = begin + args.splitKeys;
    return {begin, end < args.candidates() ? end : args.candidates()};
  }

  /// Candidate `number`, or -1 where the row does not see it.
  __device__ int64_t seenKey(int64_t number) const {
    const kernels::Visibility &visibility = args.visibility;
    int64_t key = number;
    if (visibility.blockKeys > 0) {
      int64_t block =
          kernels::listedBlock(visibility, row.sequence, row.head, row.query, number / visibility.blockKeys);
      key = block < 0 ? -1 : block * visibility.blockKeys + number % visibility.blockKeys;
    }
    bool isSeen = key >= row.visible.begin && key < row.visible.end &&
                  kernels::seesOfListed(visibility, row.sequence, row.query, key);
    return isSeen ? key : -1;
  }

  /// `addKeys` for candidates from `first` on.
  __device__ void addSeenKeys(int64_t first, int64_t end) {
    int64_t key = first + lane < end ? seenKey(first + lane) : -1, head = kvHead();
    float logit = -infinity();
    if (key >= 0)
      logit = logitOf(args, row, multiply(args.key.offset(row.sequence, head, key)), key,
                      kernels::keyPositionOf(args.visibility, row.sequence, key));
    float probability, rescale = updateSoftmax(logit, probability);
    auto place = static_cast<int>(key);
#pragma unroll
    for (int part = 0; part < kAttentionFmaParts; ++part) {
      int i = 32 * part + lane;
      if (32 * part >= args.valueSize)
        break;
      float value = values[part] * rescale;
      for (int j = 0; j < 32; ++j) {
        float w = __shfl_sync(~0u, probability, j);
        int other = __shfl_sync(~0u, place, j);
        if (other >= 0 && i < args.valueSize)
          value +=
              w * loadElement(args.value.data, args.value.offset(row.sequence, head, other) + i * args.value.strides[3],
                              args.value.dtype);
      }
      values[part] = value;
    }
  }

  __device__ int64_t kvHead() const { return row.head / (args.queryHeads / args.kvHeads); }

  /// Online softmax: `probability` is that of this lane's key; what earlier sums are rescaled by is the result.
  __device__ float updateSoftmax(float logit, float &probability) {
    float now = maxNan(runningMax, warpMaximum(logit)), rescale = probabilityOf(runningMax, now);
    probability = probabilityOf(logit, now);
    runningMax = now;
    sum = sum * rescale + probability; // of this lane's keys
    return rescale;
  }

  __device__ void addKeys(int64_t first) {
    int64_t key = first + lane, head = kvHead();
    float logit = -infinity();
    if (key < row.visible.end)
      logit = logitOf(args, row, multiply(args.key.offset(row.sequence, head, key)), key, key);
    float probability, rescale = updateSoftmax(logit, probability);
    int64_t from = args.value.offset(row.sequence, head, first);
    int count = row.visible.end - first < 32 ? static_cast<int>(row.visible.end - first) : 32;
#pragma unroll
    for (int part = 0; part < kAttentionFmaParts; ++part) {
      int i = 32 * part + lane;
      if (32 * part >= args.valueSize)
        break;
      float value = values[part] * rescale;
      for (int j = 0; j < count; ++j) {
        float w = __shfl_sync(~0u, probability, j);
        if (i < args.valueSize)
          value += w * loadElement(args.value.data, from + j * args.value.strides[2] + i * args.value.strides[3],
                                   args.value.dtype);
      }
      values[part] = value;
    }
  }

  __device__ float multiply(int64_t from) const {
    float product = 0;
    for (int i = 0; i < args.size; ++i)
      product += query[i] * loadElement(args.key.data, from + i * args.key.strides[3], args.key.dtype);
    return product;
  }

  /// sums[warp][running maximum, sum of exponentials, values].
  __device__ void stageSums() {
    float *own = sums + warp * (args.valueSize + 2);
    float total = warpSum(sum);
    if (lane == 0)
      own[0] = runningMax, own[1] = total;
#pragma unroll
    for (int part = 0; part < kAttentionFmaParts; ++part)
      if (32 * part + lane < args.valueSize)
        own[2 + 32 * part + lane] = values[part];
  }

  /// Merges the warps. Sinks are added by the first split, or at the end where lse is asked for.
  __device__ void writeRow() {
    bool hasSink = args.sinks.data && split == 0 && !args.lse;
    float most = hasSink ? args.sinks.at(row.head, 0) : -infinity(), total = hasSink ? 1 : 0,
          factors[kAttentionFmaWarps];
    int stride = args.valueSize + 2;
    for (int i = 0; i < kAttentionFmaWarps; ++i)
      most = maxNan(most, sums[i * stride]);
    if (hasSink)
      total = probabilityOf(args.sinks.at(row.head, 0), most);
#pragma unroll
    for (int i = 0; i < kAttentionFmaWarps; ++i) {
      factors[i] = probabilityOf(sums[i * stride], most);
      total += factors[i] * sums[i * stride + 1];
    }
    float scale = args.splits > 1 ? 1 : scaleOfRow(args, row.sequence, row.head, row.query, most, total, lane == 0);
    int64_t to = args.out.offset(row.sequence, row.head, row.query), index = row.index(args);
    for (int i = lane; i < args.valueSize; i += 32) {
      float value = 0;
#pragma unroll
      for (int j = 0; j < kAttentionFmaWarps; ++j)
        value += factors[j] * sums[j * stride + 2 + i];
      if (args.splits > 1)
        partialValues(args, index, split)[i] = value;
      else
        storeElement(args.out.data, to + i * args.out.strides[3], args.out.dtype, value * scale);
    }
    if (args.splits > 1 && lane == 0) {
      float *state = partialState(args, index, split);
      state[0] = most, state[1] = total;
    }
  }

  const AttentionArguments &args;
  const int warp, lane;
  const int64_t split;
  const QueryRow row;
  float *const query, *const sums;
  float runningMax = -infinity(), sum = 0, values[kAttentionFmaParts] = {};
};

} // namespace hone::cuda

extern "C" __global__ void __launch_bounds__(32 * hone::cuda::kAttentionFmaWarps, hone::cuda::kFmaResidents)
    attention_fma(const __grid_constant__ hone::cuda::AttentionArguments args) {
  extern __shared__ float attentionFmaShared[];
  hone::cuda::enterInOrder();
  hone::cuda::AttentionFma<false>(args, attentionFmaShared).run();
}

extern "C" __global__ void __launch_bounds__(32 * hone::cuda::kAttentionFmaWarps, hone::cuda::kMaskedFmaResidents)
    attention_fma_masked(const __grid_constant__ hone::cuda::AttentionArguments args) {
  extern __shared__ float attentionFmaShared[];
  hone::cuda::enterInOrder();
  hone::cuda::AttentionFma<true>(args, attentionFmaShared).run();
}

/// The LSE merge of split-KV: a block merges the splits of a row. Loads of several splits are in flight.
extern "C" __global__ void __launch_bounds__(hone::cuda::kMergeThreads)
    attention_merge(const __grid_constant__ hone::cuda::AttentionArguments args) {
  using namespace hone::cuda;
  __shared__ float factors[kMostSplits], shared[kMergeThreads / 32];
  enterInOrder();
  int64_t row = blockIdx.x;
  int split = threadIdx.x;
  bool isSplit = split < args.splits;
  const float *state = partialState(args, row, isSplit ? split : 0);
  float most = isSplit ? state[0] : -infinity(), total = isSplit ? state[1] : 0;
  float runningMax = blockMaximum(most, shared);
  float factor = probabilityOf(most, runningMax);
  factors[split] = factor;
  float sum = blockSum(factor * total, shared);
  int64_t query = row % args.queries, head = row / args.queries % args.queryHeads,
          sequence = row / args.queries / args.queryHeads;
  float scale = scaleOfRow(args, sequence, head, query, runningMax, sum, threadIdx.x == 0);
  int64_t to = args.out.offset(sequence, head, query);
  const float *values = partialValues(args, row, 0);
  for (int i = threadIdx.x; i < args.valueSize; i += kMergeThreads) {
    float value = 0;
#pragma unroll 16
    for (int other = 0; other < args.splits; ++other)
      value += factors[other] * values[int64_t{other} * args.valueSize + i];
    storeElement(args.out.data, to + i * args.out.strides[3], args.out.dtype, value * scale);
  }
}
