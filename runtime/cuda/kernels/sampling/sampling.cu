// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sampling. `argmax_logits` finds the maximum, which is the token at temperature 0. Otherwise `exp_logits` gives each
// token its weight, and `sample_token`, one block, finds the top-k and top-p thresholds by radix select and draws the
// token with the given random draw. Sums are of integers, so that they do not depend on the order of additions.

#include "hone/sampling/arithmetic.h"
#include "sampling.h"

namespace hone::cuda {

using Wide = unsigned long long;

__device__ inline double logitAt(const SamplingArguments &args, int64_t id) {
  double logit = args.logits[id];
  return args.seen && args.seen[id] ? sampling::penalized(logit, args.penalty) : logit;
}

//===- Argmax -------- ------------------------------------------------------------------------------------------===//

__device__ inline void reduceMax(MaxLogit &into, const MaxLogit &other) {
  if (other.logit > into.logit || (other.logit == into.logit && other.id < into.id)) {
    into.logit = other.logit;
    into.id = other.id;
  }
  into.bad = other.bad < into.bad ? other.bad : into.bad;
}

__device__ inline MaxLogit noLogit() {
  return {__longlong_as_double(static_cast<long long>(0xfff0000000000000)), INT64_MAX, kNoBadLogit};
}

/// The maximum of the block, in its first thread.
__device__ inline MaxLogit maxOfBlock(MaxLogit mine) {
  __shared__ MaxLogit shared[kLogitThreads / 32];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    MaxLogit other = {__shfl_xor_sync(~0u, mine.logit, distance),
                      __shfl_xor_sync(~0u, static_cast<Wide>(mine.id), distance),
                      __shfl_xor_sync(~0u, static_cast<Wide>(mine.bad), distance)};
    reduceMax(mine, other);
  }
  if (threadIdx.x % 32 == 0)
    shared[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int warp = 1; warp < kLogitThreads / 32; ++warp)
      reduceMax(mine, shared[warp]);
  __syncthreads();
  return mine;
}

__device__ inline MaxLogit maxOfThread(const SamplingArguments &args) {
  MaxLogit mine = noLogit();
  int64_t share = divideUp(args.vocabulary, gridDim.x), begin = blockIdx.x * share;
  int64_t end = begin + share < args.vocabulary ? begin + share : args.vocabulary;
  for (int64_t id = begin + threadIdx.x; id < end; id += kLogitThreads) {
    float given = args.logits[id];
    bool isNumber = given == given, isInfinite = given > 3.402823466e38f;
    if (!isNumber || isInfinite) {
      reduceMax(mine, {noLogit().logit, INT64_MAX, 2 * id + isInfinite});
      continue;
    }
    reduceMax(mine, {logitAt(args, id), id, kNoBadLogit});
  }
  return mine;
}

/// The error code of bad logits, or 0.
__device__ inline int64_t codeOf(const MaxLogit &max) {
  if (max.bad != kNoBadLogit)
    return -2 - max.bad;
  return max.logit == noLogit().logit ? sampling::kNoFiniteLogit : 0;
}

__device__ inline void storeToken(const SamplingArguments &args, int64_t token) {
  *args.token = token;
  if (token < 0)
    return;
  if (args.seen)
    args.seen[token] = 1;
  if (args.input && args.inputBytes == 8)
    *static_cast<int64_t *>(args.input) = token;
  else if (args.input)
    *static_cast<int32_t *>(args.input) = static_cast<int32_t>(token);
}

//===- Sampling ---------------------------------------------------------------------------------------------------===//

struct SampleMemory {
  Wide warps[kSampleThreads / 32];
  Wide bins[256];
  Wide found[2];
};

/// The exclusive prefix sum over the threads of the block, and in `total` the sum of all.
__device__ inline Wide sumBefore(Wide mine, Wide &total, SampleMemory &memory) {
  Wide sum = mine;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    Wide other = __shfl_up_sync(~0u, sum, distance);
    sum += threadIdx.x % 32 >= distance ? other : 0;
  }
  if (threadIdx.x % 32 == 31)
    memory.warps[threadIdx.x / 32] = sum;
  __syncthreads();
  Wide before = 0;
  total = 0;
  for (int warp = 0; warp < kSampleThreads / 32; ++warp) {
    before += warp < threadIdx.x / 32 ? memory.warps[warp] : 0;
    total += memory.warps[warp];
  }
  __syncthreads();
  return before + sum - mine;
}

/// The tokens that top-k or top-p keep: those whose order without its lowest `shift` bits is above `order`, and of
/// equal ones, whose logits are equal, the first `ties`.
struct Threshold {
  Wide order, ties;
  int shift;
};

/// The threshold at which the counts, or weights, of the largest logits add up to `target`, at least 1 and at most
/// their sum. Radix select, eight bits a pass.
template <bool ByWeight>
__device__ inline Threshold thresholdAt(const SamplingArguments &args, Wide target, SampleMemory &memory) {
  // Logits without a penalty are f32: bits after the first 35 are determined by those.
  int last = args.seen ? 0 : 24;
  Wide prefix = 0, above = 0;
  for (int shift = 56; shift >= last; shift -= 8) {
    for (int bin = threadIdx.x; bin < 256; bin += kSampleThreads)
      memory.bins[bin] = 0;
    __syncthreads();
    for (int64_t id = threadIdx.x; id < args.vocabulary; id += kSampleThreads) {
      Wide order = sampling::orderOf(logitAt(args, id));
      if (shift == 56 || order >> (shift + 8) == prefix)
        atomicAdd(&memory.bins[255 - (order >> shift & 255)], ByWeight ? args.weights[id] : 1);
    }
    __syncthreads();
    Wide mine = threadIdx.x < 256 ? memory.bins[threadIdx.x] : 0, total = 0;
    Wide before = above + sumBefore(mine, total, memory);
    if (before < target && before + mine >= target) {
      memory.found[0] = 255 - threadIdx.x;
      memory.found[1] = before;
    }
    __syncthreads();
    prefix = prefix << 8 | memory.found[0];
    above = memory.found[1];
    __syncthreads();
  }
  return {prefix, target - above, last};
}

/// A token by a threshold: kept, kept if it is among the first of the ties, or not.
enum class Keep { Not, Tie, Yes };

__device__ inline Keep keepOf(const SamplingArguments &args, const Threshold &threshold, int64_t id) {
  Wide order = sampling::orderOf(logitAt(args, id)) >> threshold.shift;
  return order > threshold.order ? Keep::Yes : order == threshold.order ? Keep::Tie : Keep::Not;
}

/// The weight of a token that ties at a threshold.
__device__ inline Wide tieWeight(const SamplingArguments &args, const Threshold &threshold, SampleMemory &memory) {
  for (int64_t id = threadIdx.x; id < args.vocabulary; id += kSampleThreads)
    if (keepOf(args, threshold, id) == Keep::Tie)
      memory.found[0] = args.weights[id]; // all write the same
  __syncthreads();
  Wide weight = memory.found[0];
  __syncthreads();
  return weight;
}

/// The sum of the weights that a threshold keeps.
__device__ inline Wide weightOfKept(const SamplingArguments &args, const Threshold &threshold, SampleMemory &memory) {
  Wide sum = 0, total = 0;
  for (int64_t id = threadIdx.x; id < args.vocabulary; id += kSampleThreads)
    sum += keepOf(args, threshold, id) == Keep::Yes ? args.weights[id] : 0;
  sumBefore(sum, total, memory);
  return total + threshold.ties * tieWeight(args, threshold, memory);
}

__device__ inline Threshold thresholdOf(const SamplingArguments &args, SampleMemory &memory) {
  Threshold threshold = {0, 0, 0}; // keeps all: only NaN has this order
  if (args.topK > 0 && args.topK < args.vocabulary)
    threshold = thresholdAt<false>(args, args.topK, memory);
  if (args.topP >= 1)
    return threshold;
  Wide target = sampling::shareOf(weightOfKept(args, threshold, memory), args.topP);
  threshold = thresholdAt<true>(args, target > 0 ? target : 1, memory);
  threshold.ties = divideUp(threshold.ties, tieWeight(args, threshold, memory));
  return threshold;
}

/// Calls body(id, weight) for the kept tokens of this thread's range, by id, until it returns true. `ties` counts the
/// ties before.
template <typename Body>
__device__ inline void forEachKept(const SamplingArguments &args, const Threshold &threshold, Wide ties, Wide least,
                                   Body body) {
  int64_t share = divideUp(args.vocabulary, kSampleThreads), begin = threadIdx.x * share;
  for (int64_t id = begin; id < begin + share && id < args.vocabulary; ++id) {
    Keep keep = keepOf(args, threshold, id);
    bool isKept = keep == Keep::Yes || (keep == Keep::Tie && ties++ < threshold.ties);
    Wide weight = args.weights[id];
    if (isKept && weight >= least && body(id, weight))
      return;
  }
}

__device__ inline Wide tiesBefore(const SamplingArguments &args, const Threshold &threshold, SampleMemory &memory) {
  int64_t share = divideUp(args.vocabulary, kSampleThreads), begin = threadIdx.x * share;
  Wide mine = 0, total = 0;
  for (int64_t id = begin; id < begin + share && id < args.vocabulary; ++id)
    mine += keepOf(args, threshold, id) == Keep::Tie ? 1 : 0;
  return sumBefore(mine, total, memory);
}

} // namespace hone::cuda

extern "C" __global__ void __launch_bounds__(hone::cuda::kLogitThreads)
    argmax_logits(const __grid_constant__ hone::cuda::SamplingArguments args) {
  using namespace hone::cuda;
  __shared__ bool isLast;
  MaxLogit mine = maxOfBlock(maxOfThread(args));
  if (threadIdx.x == 0) {
    args.blockMax[blockIdx.x] = mine;
    __threadfence();
    isLast = atomicAdd(&args.state->arrived, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!isLast)
    return;
  __threadfence();
  MaxLogit all = threadIdx.x < gridDim.x ? args.blockMax[threadIdx.x] : noLogit();
  all = maxOfBlock(all);
  if (threadIdx.x != 0)
    return;
  args.state->max = all;
  args.state->arrived = 0; // for the next launch
  int64_t code = codeOf(all);
  if (code < 0 || args.temperature == 0)
    storeToken(args, code < 0 ? code : all.id);
}

extern "C" __global__ void __launch_bounds__(hone::cuda::kLogitThreads)
    exp_logits(const __grid_constant__ hone::cuda::SamplingArguments args) {
  using namespace hone;
  if (cuda::codeOf(args.state->max) < 0)
    return;
  double max = args.state->max.logit;
  int bits = sampling::weightBits(args.vocabulary);
  int64_t stride = int64_t{cuda::kLogitThreads} * gridDim.x;
  for (int64_t id = int64_t{cuda::kLogitThreads} * blockIdx.x + threadIdx.x; id < args.vocabulary; id += stride)
    args.weights[id] = sampling::weightOf(cuda::logitAt(args, id), max, args.temperature, bits);
}

extern "C" __global__ void __launch_bounds__(hone::cuda::kSampleThreads)
    sample_token(const __grid_constant__ hone::cuda::SamplingArguments args) {
  using namespace hone::cuda;
  namespace sampling = hone::sampling;
  __shared__ SampleMemory memory;
  if (codeOf(args.state->max) < 0)
    return;
  Threshold threshold = thresholdOf(args, memory);
  Wide least = sampling::shareOf(Wide{1} << sampling::weightBits(args.vocabulary), args.minP);
  Wide ties = tiesBefore(args, threshold, memory), mine = 0, total = 0;
  forEachKept(args, threshold, ties, least, [&](int64_t, Wide weight) {
    mine += weight;
    return false;
  });
  Wide before = sumBefore(mine, total, memory), place = sampling::placeOf(args.draw, total);
  if (place < before || place >= before + mine)
    return;
  place -= before;
  forEachKept(args, threshold, ties, least, [&](int64_t id, Wide weight) {
    bool isChosen = place < weight;
    if (isChosen)
      storeToken(args, id);
    place -= weight;
    return isChosen;
  });
}
