// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The blocks of keys that matter most to a query: `score_blocks` multiplies it with pooled keys, where that is not done
// by `select_blocks`, which adds the softmaxes of the heads of a group and lists the greatest sums. What a query
// selects is computed alone, whatever else is in the call.

#include "../device/elements.h"
#include "../device/overlap.h"
#include "../device/reduce.h"
#include "select_blocks.h"

namespace hone::cuda {

using Wide = unsigned long long;

/// How far element `d` of a pooled key is from its first.
__device__ inline int64_t offsetOf(const PooledView &pooled, int d) {
  return d / pooled.width * pooled.matrices.rowStride + d % pooled.width * pooled.matrices.rows.inner;
}

/// The pooled keys of a matrix, that of block 0 first.
__device__ inline const float *firstOf(const PooledView &pooled, int64_t matrix) {
  return reinterpret_cast<const float *>(pooled.matrices.rows.data) +
         pooled.matrices.rows.offset(matrix * pooled.rows) + pooled.firstRow * pooled.matrices.rowStride;
}

/// One row: a query of a KV head, and the blocks that it selects from.
struct SelectionRow {
  int64_t number; // within the launch
  int64_t sequence, head, query;
  int64_t first; // of the blocks
  int64_t count; // none where it is not positive

  __device__ explicit SelectionRow(const SelectBlocksArguments &args) : number(blockIdx.x) {
    auto row = static_cast<uint32_t>(args.firstRow + number), queries = static_cast<uint32_t>(args.queries),
         heads = static_cast<uint32_t>(args.heads);
    query = row % queries;
    head = row / queries % heads;
    sequence = row / queries / heads;
    first = kernels::elementOf(args.begin, sequence, query);
    count = kernels::elementOf(args.end, sequence, query) - first;
  }
};

/// Multiplies queries of a row with pooled keys.
class BlockScores {
public:
  __device__ BlockScores(const SelectBlocksArguments &args, const SelectionRow &row, char *shared)
      : args(args), row(row), offsets(reinterpret_cast<int64_t *>(shared)),
        queries(reinterpret_cast<float *>(offsets + args.size)),
        keys(firstOf(args.pooled, row.sequence * args.heads + row.head)),
        keyStride(args.pooled.blockRows * args.pooled.matrices.rowStride) {
    for (int d = threadIdx.x; d < args.size; d += blockDim.x)
      offsets[d] = offsetOf(args.pooled, d);
  }

  /// Stages up to kHeadsAtOnce queries from that of head `firstHead` of the group on; others are 0.
  __device__ void stageQueries(int firstHead) {
    for (int i = threadIdx.x; i < kHeadsAtOnce * args.size; i += blockDim.x) {
      int head = firstHead + i / args.size, d = i % args.size;
      int64_t number = (row.sequence * args.queryHeads + row.head * args.group + head) * args.queries + row.query;
      queries[i] = head < args.group
                       ? args.scale * loadElement(args.query.data, args.query.offset(number) + d * args.query.inner,
                                                  args.query.dtype)
                       : 0;
    }
  }

  /// Scores of the staged queries, of `split` of so many parts of the blocks; those of a head follow `room` after those
  /// of the head before.
  __device__ void write(float *scores, int heads, int split, int splits) const {
    int lane = threadIdx.x % 32;
    for (int64_t i = kPooledAtOnce * int64_t{split * kSelectWarps + threadIdx.x / 32}; i < row.count;
         i += kPooledAtOnce * kSelectWarps * int64_t{splits}) {
      float sums[kHeadsAtOnce * kPooledAtOnce] = {};
      multiply(sums, i);
      float sum = scatteredSum<kHeadsAtOnce * kPooledAtOnce>(sums);
      int head = lane / 8;
      int64_t block = i + lane / 2 % kPooledAtOnce;
      if (lane % 2 == 0 && head < heads && block < row.count)
        scores[head * args.room + block] = sum;
    }
  }

private:
  /// The lane's part of the products with the pooled keys from block `i` on; of blocks from the end on, of the last again.
  __device__ void multiply(float (&sums)[kHeadsAtOnce * kPooledAtOnce], int64_t i) const {
    const float *pooled[kPooledAtOnce];
#pragma unroll
    for (int k = 0; k < kPooledAtOnce; ++k) {
      pooled[k] = keys + (row.first + (i + k < row.count ? i + k : row.count - 1)) * keyStride;
    }
    for (int d = threadIdx.x % 32; d < args.size; d += 32) {
      int64_t offset = offsets[d];
      float elements[kPooledAtOnce];
#pragma unroll
      for (int k = 0; k < kPooledAtOnce; ++k)
        elements[k] = pooled[k][offset];
#pragma unroll
      for (int head = 0; head < kHeadsAtOnce; ++head) {
        float query = queries[head * args.size + d];
#pragma unroll
        for (int k = 0; k < kPooledAtOnce; ++k)
          sums[head * kPooledAtOnce + k] += query * elements[k];
      }
    }
  }

  const SelectBlocksArguments &args;
  const SelectionRow &row;
  int64_t *offsets; // of the elements of a pooled key
  float *queries;
  const float *keys;
  int64_t keyStride;
};

/// Makes exponentials of a head's scores, relative to their maximum. A warp does; returns their sum.
__device__ inline float expOfScores(float *scores, int64_t count) {
  float most = -infinity(), sum = 0;
  for (int64_t i = threadIdx.x % 32; i < count; i += 32)
    most = maxNan(most, scores[i]);
  most = warpMaximum(most);
  for (int64_t i = threadIdx.x % 32; i < count; i += 32) {
    float e = expf(scores[i] - most);
    scores[i] = e;
    sum += e;
  }
  return warpSum(sum);
}

/// Adds the softmaxes of up to kHeadsAtOnce heads, which a warp has one of.
__device__ inline void addSoftmax(float *importance, float *scores, int heads, int64_t room, int64_t count,
                                  bool isFirst) {
  __shared__ float factors[kSelectWarps];
  static_assert(kSelectWarps == kHeadsAtOnce);
  int warp = threadIdx.x / 32;
  if (warp < heads)
    factors[warp] = 1 / expOfScores(scores + warp * room, count); // all lanes write the same
  __syncthreads();
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    float sum = isFirst ? 0 : importance[i];
    for (int head = 0; head < heads; ++head)
      sum += scores[head * room + i] * factors[head];
    importance[i] = sum;
  }
  __syncthreads();
}

/// The order in which blocks are listed: by importance, of equal ones the earlier is the greater. 0: it is taken.
__device__ inline Wide orderOf(float importance, int64_t i) {
  if (importance < 0)
    return 0;
  Wide bits = __float_as_uint(importance) & 0x7fffffff;
  return (bits + 1) << 32 | (0xffffffff - static_cast<uint32_t>(i));
}

__device__ inline Wide greatestOfThread(const float *importance, int64_t count) {
  Wide greatest = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    Wide order = orderOf(importance[i], i);
    greatest = order > greatest ? order : greatest;
  }
  return greatest;
}

/// Each thread has the greatest of its own blocks at hand, and looks for the next where that is listed.
__device__ inline void listGreatest(const SelectBlocksArguments &args, const SelectionRow &row, float *importance) {
  __shared__ Wide warps[2][kSelectWarps];
  int64_t *list = args.blocks + row.sequence * args.blockStrides[0] + row.head * args.blockStrides[1] +
                  row.query * args.blockStrides[2];
  Wide own = greatestOfThread(importance, row.count);
  for (int place = 0; place < args.places; ++place) {
    Wide greatest = own;
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      Wide other = __shfl_xor_sync(~0u, greatest, distance);
      greatest = other > greatest ? other : greatest;
    }
    Wide *found = warps[place % 2]; // the one before may still be read
    if (threadIdx.x % 32 == 0)
      found[threadIdx.x / 32] = greatest;
    __syncthreads();
#pragma unroll
    for (int warp = 0; warp < kSelectWarps; ++warp)
      greatest = found[warp] > greatest ? found[warp] : greatest;
    int64_t block = 0xffffffff - static_cast<uint32_t>(greatest & 0xffffffff);
    if (threadIdx.x == 0)
      list[place * args.blockStrides[3]] = greatest == 0 ? -1 : row.first + block;
    if (greatest == own && own != 0) {
      importance[block] = -1;
      own = greatestOfThread(importance, row.count);
    }
  }
}

} // namespace hone::cuda

extern "C" __global__ void __launch_bounds__(hone::cuda::kGatherThreads)
    gather_pooled(const __grid_constant__ hone::cuda::GatherPooledArguments args) {
  using namespace hone::cuda;
  enterInOrder();
  int64_t number = int64_t{kGatherThreads} * blockIdx.x + threadIdx.x, key = number / args.size;
  if (key >= args.matrices * args.blocks)
    return;
  int64_t block = key % args.blocks * args.from.blockRows * args.from.matrices.rowStride;
  args.to[number] =
      firstOf(args.from, key / args.blocks)[block + offsetOf(args.from, static_cast<int>(number % args.size))];
}

extern "C" __global__ void __launch_bounds__(32 * hone::cuda::kSelectWarps)
    score_blocks(const __grid_constant__ hone::cuda::SelectBlocksArguments args) {
  using namespace hone::cuda;
  enterInOrder();
  extern __shared__ char shared[];
  SelectionRow row(args);
  BlockScores scores(args, row, shared);
  for (int head = 0; head < args.group; head += kHeadsAtOnce) {
    scores.stageQueries(head);
    __syncthreads();
    scores.write(args.scores + (row.number * args.group + head) * args.room, args.group - head, blockIdx.y, gridDim.y);
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(32 * hone::cuda::kSelectWarps)
    select_blocks(const __grid_constant__ hone::cuda::SelectBlocksArguments args) {
  using namespace hone::cuda;
  enterInOrder();
  extern __shared__ char shared[];
  SelectionRow row(args);
  float *importance = args.scores ? args.importance + row.number * args.room
                                  : reinterpret_cast<float *>(shared + scoringSharedBytes(args.size));
  for (int head = 0; head < args.group && row.count > 0; head += kHeadsAtOnce) {
    int heads = args.group - head < kHeadsAtOnce ? args.group - head : kHeadsAtOnce;
    float *scores = args.scores ? args.scores + (row.number * args.group + head) * args.room : importance + args.room;
    if (!args.scores) {
      BlockScores own(args, row, shared);
      own.stageQueries(head);
      __syncthreads();
      own.write(scores, heads, 0, 1);
      __syncthreads();
    }
    addSoftmax(importance, scores, heads, args.room, row.count, head == 0);
  }
  listGreatest(args, row, importance);
}
