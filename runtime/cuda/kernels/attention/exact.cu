// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention in f32, for any sizes and strides: four warps share the keys of a row of queries. Also the sum over splits of keys.
//
// A warp takes 32 keys at a time: each lane multiplies one with the query, in shared memory, and then lanes have the numbers of a
// value side by side.

#include "../device/attention_rows.h"
#include "exact.h"

namespace hone::cuda {

class ExactAttention {
public:
  __device__ ExactAttention(const AttentionArguments &args, float *shared)
      : args(args), warp(threadIdx.x / 32), lane(threadIdx.x % 32), split(blockIdx.y),
        row(args, blockIdx.x / args.queries / args.queryHeads, blockIdx.x / args.queries % args.queryHeads,
            blockIdx.x % args.queries, blockIdx.y),
        query(shared), sums(shared + args.size) {}

  __device__ void run() {
    int64_t from = args.query.offset(row.sequence, row.head, row.query);
    for (int i = threadIdx.x; i < args.size; i += blockDim.x)
      query[i] = args.scale * loadNumber(args.query.data, from + i * args.query.strides[3], args.query.dtype);
    __syncthreads();
    for (int64_t first = row.visible.begin + 32 * warp; first < row.visible.end; first += 32 * kExactWarps)
      addKeys(first);
    leaveSums();
    __syncthreads();
    if (warp == 0)
      writeRow();
  }

private:
  __device__ void addKeys(int64_t first) {
    int64_t key = first + lane, head = row.head / (args.queryHeads / args.keyHeads);
    float logit = -infinity();
    if (key < row.visible.end)
      logit = logitOf(args, row, multiply(args.key.offset(row.sequence, head, key)), key);
    float now = larger(largest, warpMaximum(logit)), factor = weightOf(largest, now), weight = weightOf(logit, now);
    largest = now;
    sum = sum * factor + weight; // of this lane's keys
    int64_t from = args.value.offset(row.sequence, head, first);
    int count = row.visible.end - first < 32 ? static_cast<int>(row.visible.end - first) : 32;
#pragma unroll
    for (int part = 0; part < kExactParts; ++part) {
      int i = 32 * part + lane;
      if (32 * part >= args.valueSize)
        break;
      float value = values[part] * factor;
      for (int j = 0; j < count; ++j) {
        float w = __shfl_sync(~0u, weight, j);
        if (i < args.valueSize)
          value += w * loadNumber(args.value.data, from + j * args.value.strides[2] + i * args.value.strides[3],
                                  args.value.dtype);
      }
      values[part] = value;
    }
  }

  __device__ float multiply(int64_t from) const {
    float product = 0;
    for (int i = 0; i < args.size; ++i)
      product += query[i] * loadNumber(args.key.data, from + i * args.key.strides[3], args.key.dtype);
    return product;
  }

  /// sums[warp][largest, sum, values].
  __device__ void leaveSums() {
    float *own = sums + warp * (args.valueSize + 2);
    float total = warpSum(sum);
    if (lane == 0)
      own[0] = largest, own[1] = total;
#pragma unroll
    for (int part = 0; part < kExactParts; ++part)
      if (32 * part + lane < args.valueSize)
        own[2 + 32 * part + lane] = values[part];
  }

  /// Sinks count with the first split.
  __device__ void writeRow() {
    bool hasSink = args.sinks.data && split == 0;
    float most = hasSink ? args.sinks.at(row.head, 0) : -infinity(), total = hasSink ? 1 : 0, factors[kExactWarps];
    int stride = args.valueSize + 2;
    for (int i = 0; i < kExactWarps; ++i)
      most = larger(most, sums[i * stride]);
    if (hasSink)
      total = weightOf(args.sinks.at(row.head, 0), most);
#pragma unroll
    for (int i = 0; i < kExactWarps; ++i) {
      factors[i] = weightOf(sums[i * stride], most);
      total += factors[i] * sums[i * stride + 1];
    }
    float scale = args.splits > 1 ? 1 : total == 0 ? 0 : 1 / total;
    int64_t to = args.out.offset(row.sequence, row.head, row.query), number = row.number(args);
    for (int i = lane; i < args.valueSize; i += 32) {
      float value = 0;
#pragma unroll
      for (int j = 0; j < kExactWarps; ++j)
        value += factors[j] * sums[j * stride + 2 + i];
      if (args.splits > 1)
        partialValues(args, number, split)[i] = value;
      else
        storeNumber(args.out.data, to + i * args.out.strides[3], args.out.dtype, value * scale);
    }
    if (args.splits > 1 && lane == 0) {
      float *state = partialState(args, number, split);
      state[0] = most, state[1] = total;
    }
  }

  const AttentionArguments &args;
  const int warp, lane;
  const int64_t split;
  const QueryRow row;
  float *const query, *const sums;
  float largest = -infinity(), sum = 0, values[kExactParts] = {};
};

} // namespace hone::cuda

extern "C" __global__ void __launch_bounds__(32 * hone::cuda::kExactWarps, 8)
    attention_exact(const __grid_constant__ hone::cuda::AttentionArguments args) {
  extern __shared__ float exactShared[];
  hone::cuda::ExactAttention(args, exactShared).run();
}

/// A warp joins the splits of a row.
extern "C" __global__ void __launch_bounds__(128)
    attention_join(const __grid_constant__ hone::cuda::AttentionArguments args) {
  using namespace hone::cuda;
  int64_t row = int64_t{4} * blockIdx.x + threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  if (row >= args.rows())
    return;
  const float *state = partialState(args, row, 0);
  float largest = -infinity(), sum = 0;
  for (int i = lane; i < args.splits; i += 32)
    largest = larger(largest, state[2 * i]);
  largest = warpMaximum(largest);
  for (int i = lane; i < args.splits; i += 32)
    sum += weightOf(state[2 * i], largest) * state[2 * i + 1];
  sum = warpSum(sum);
  float scale = sum == 0 ? 0 : 1 / sum;
  int64_t query = row % args.queries, head = row / args.queries % args.queryHeads;
  int64_t to = args.out.offset(row / args.queries / args.queryHeads, head, query);
  for (int i = lane; i < args.valueSize; i += 32) {
    float value = 0;
    for (int split = 0; split < args.splits; ++split)
      value += weightOf(state[2 * split], largest) * partialValues(args, row, split)[i];
    storeNumber(args.out.data, to + i * args.out.strides[3], args.out.dtype, value * scale);
  }
}
