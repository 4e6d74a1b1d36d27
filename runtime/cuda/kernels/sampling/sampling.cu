// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Choosing a token. `largest_logit` finds the largest logit, which is the choice where the temperature is 0; else `weigh_logits` gives
// each token its weight, and `pick_token`, one block, finds what top-k and top-p keep, digit by digit of the logits' order, and where the
// generator's number falls. Sums are of integers, so that they do not depend on who adds them up.

#include "sampling.h"
#include "text/sampling_arithmetic.h"

namespace hone::cuda {

using Wide = unsigned long long;

__device__ inline double logitAt(const ChoiceArguments &args, int64_t id) {
  double logit = args.logits[id];
  return args.seen && args.seen[id] ? text::penalized(logit, args.penalty) : logit;
}

//===- The largest logit ------------------------------------------------------------------------------------------===//

__device__ inline void take(LargestLogit &into, const LargestLogit &other) {
  if (other.logit > into.logit || (other.logit == into.logit && other.id < into.id)) {
    into.logit = other.logit;
    into.id = other.id;
  }
  into.bad = other.bad < into.bad ? other.bad : into.bad;
}

__device__ inline LargestLogit lowest() {
  return {__longlong_as_double(static_cast<long long>(0xfff0000000000000)), INT64_MAX, kNoBadLogit};
}

/// That of the block, in its first thread.
__device__ inline LargestLogit largestOfBlock(LargestLogit mine) {
  __shared__ LargestLogit shared[kLogitThreads / 32];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    LargestLogit other = {__shfl_xor_sync(~0u, mine.logit, distance),
                          __shfl_xor_sync(~0u, static_cast<Wide>(mine.id), distance),
                          __shfl_xor_sync(~0u, static_cast<Wide>(mine.bad), distance)};
    take(mine, other);
  }
  if (threadIdx.x % 32 == 0)
    shared[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int warp = 1; warp < kLogitThreads / 32; ++warp)
      take(mine, shared[warp]);
  __syncthreads();
  return mine;
}

__device__ inline LargestLogit largestOfShare(const ChoiceArguments &args) {
  LargestLogit mine = lowest();
  int64_t share = divideUp(args.vocabulary, gridDim.x), begin = blockIdx.x * share;
  int64_t end = begin + share < args.vocabulary ? begin + share : args.vocabulary;
  for (int64_t id = begin + threadIdx.x; id < end; id += kLogitThreads) {
    float given = args.logits[id];
    bool isNumber = given == given, isInfinite = given > 3.402823466e38f;
    if (!isNumber || isInfinite) {
      take(mine, {lowest().logit, INT64_MAX, 2 * id + isInfinite});
      continue;
    }
    take(mine, {logitAt(args, id), id, kNoBadLogit});
  }
  return mine;
}

/// What is wrong, or 0.
__device__ inline int64_t codeOf(const LargestLogit &largest) {
  if (largest.bad != kNoBadLogit)
    return -2 - largest.bad;
  return largest.logit == lowest().logit ? text::kNoFiniteLogit : 0;
}

__device__ inline void give(const ChoiceArguments &args, int64_t token) {
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

//===- Picking ----------------------------------------------------------------------------------------------------===//

struct PickMemory {
  Wide warps[kPickThreads / 32];
  Wide bins[256];
  Wide found[2];
};

/// The sum of what threads before this one have, and in `total` what all have.
__device__ inline Wide sumBefore(Wide mine, Wide &total, PickMemory &memory) {
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
  for (int warp = 0; warp < kPickThreads / 32; ++warp) {
    before += warp < threadIdx.x / 32 ? memory.warps[warp] : 0;
    total += memory.warps[warp];
  }
  __syncthreads();
  return before + sum - mine;
}

/// Which tokens are kept: those whose order without its lowest `shift` bits is above `order`, and of those where it is equal, whose
/// logits are, the first `ties`.
struct Cut {
  Wide order, ties;
  int shift;
};

/// The cut behind which counts, or weights, of the largest add up to `target`, which is at least 1 and at most their sum.
template <bool ByWeight>
__device__ inline Cut cutAt(const ChoiceArguments &args, Wide target, PickMemory &memory) {
  // Logits that are not penalized are f32: what is behind their first 35 bits follows from those.
  int last = args.seen ? 0 : 24;
  Wide prefix = 0, above = 0;
  for (int shift = 56; shift >= last; shift -= 8) {
    for (int bin = threadIdx.x; bin < 256; bin += kPickThreads)
      memory.bins[bin] = 0;
    __syncthreads();
    for (int64_t id = threadIdx.x; id < args.vocabulary; id += kPickThreads) {
      Wide order = text::orderOf(logitAt(args, id));
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

/// What is known of a token by a cut: kept, kept if it is among the first of those that are equal, or not.
enum class Keep { Not, Tie, Yes };

__device__ inline Keep keepOf(const ChoiceArguments &args, const Cut &cut, int64_t id) {
  Wide order = text::orderOf(logitAt(args, id)) >> cut.shift;
  return order > cut.order ? Keep::Yes : order == cut.order ? Keep::Tie : Keep::Not;
}

/// The weight of each of the tokens that are equal at a cut.
__device__ inline Wide tieWeight(const ChoiceArguments &args, const Cut &cut, PickMemory &memory) {
  for (int64_t id = threadIdx.x; id < args.vocabulary; id += kPickThreads)
    if (keepOf(args, cut, id) == Keep::Tie)
      memory.found[0] = args.weights[id]; // all write the same
  __syncthreads();
  Wide weight = memory.found[0];
  __syncthreads();
  return weight;
}

/// The sum of the weights of what a cut keeps.
__device__ inline Wide weightOfKept(const ChoiceArguments &args, const Cut &cut, PickMemory &memory) {
  Wide sum = 0, total = 0;
  for (int64_t id = threadIdx.x; id < args.vocabulary; id += kPickThreads)
    sum += keepOf(args, cut, id) == Keep::Yes ? args.weights[id] : 0;
  sumBefore(sum, total, memory);
  return total + cut.ties * tieWeight(args, cut, memory);
}

__device__ inline Cut cutOf(const ChoiceArguments &args, PickMemory &memory) {
  Cut cut = {0, 0, 0}; // keeps all: only NaN has this order
  if (args.topK > 0 && args.topK < args.vocabulary)
    cut = cutAt<false>(args, args.topK, memory);
  if (args.topP >= 1)
    return cut;
  Wide target = text::shareOf(weightOfKept(args, cut, memory), args.topP);
  cut = cutAt<true>(args, target > 0 ? target : 1, memory);
  cut.ties = divideUp(cut.ties, tieWeight(args, cut, memory));
  return cut;
}

/// Calls body(id, weight) for tokens of this thread's share that are kept, by id, until it is true. `ties` are the equals before.
template <typename Body>
__device__ inline void forEachKept(const ChoiceArguments &args, const Cut &cut, Wide ties, Wide least, Body body) {
  int64_t share = divideUp(args.vocabulary, kPickThreads), begin = threadIdx.x * share;
  for (int64_t id = begin; id < begin + share && id < args.vocabulary; ++id) {
    Keep keep = keepOf(args, cut, id);
    bool isKept = keep == Keep::Yes || (keep == Keep::Tie && ties++ < cut.ties);
    Wide weight = args.weights[id];
    if (isKept && weight >= least && body(id, weight))
      return;
  }
}

__device__ inline Wide tiesBefore(const ChoiceArguments &args, const Cut &cut, PickMemory &memory) {
  int64_t share = divideUp(args.vocabulary, kPickThreads), begin = threadIdx.x * share;
  Wide mine = 0, total = 0;
  for (int64_t id = begin; id < begin + share && id < args.vocabulary; ++id)
    mine += keepOf(args, cut, id) == Keep::Tie ? 1 : 0;
  return sumBefore(mine, total, memory);
}

} // namespace hone::cuda

extern "C" __global__ void __launch_bounds__(hone::cuda::kLogitThreads)
    largest_logit(const __grid_constant__ hone::cuda::ChoiceArguments args) {
  using namespace hone::cuda;
  __shared__ bool isLast;
  LargestLogit mine = largestOfBlock(largestOfShare(args));
  if (threadIdx.x == 0) {
    args.largest[blockIdx.x] = mine;
    __threadfence();
    isLast = atomicAdd(&args.state->arrived, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!isLast)
    return;
  __threadfence();
  LargestLogit all = threadIdx.x < gridDim.x ? args.largest[threadIdx.x] : lowest();
  all = largestOfBlock(all);
  if (threadIdx.x != 0)
    return;
  args.state->largest = all;
  args.state->arrived = 0; // for the next launch
  int64_t code = codeOf(all);
  if (code < 0 || args.temperature == 0)
    give(args, code < 0 ? code : all.id);
}

extern "C" __global__ void __launch_bounds__(hone::cuda::kLogitThreads)
    weigh_logits(const __grid_constant__ hone::cuda::ChoiceArguments args) {
  using namespace hone;
  if (cuda::codeOf(args.state->largest) < 0)
    return;
  double largest = args.state->largest.logit;
  int bits = text::weightBits(args.vocabulary);
  int64_t stride = int64_t{cuda::kLogitThreads} * gridDim.x;
  for (int64_t id = int64_t{cuda::kLogitThreads} * blockIdx.x + threadIdx.x; id < args.vocabulary; id += stride)
    args.weights[id] = text::weightOf(cuda::logitAt(args, id), largest, args.temperature, bits);
}

extern "C" __global__ void __launch_bounds__(hone::cuda::kPickThreads)
    pick_token(const __grid_constant__ hone::cuda::ChoiceArguments args) {
  using namespace hone::cuda;
  namespace text = hone::text;
  __shared__ PickMemory memory;
  if (codeOf(args.state->largest) < 0)
    return;
  Cut cut = cutOf(args, memory);
  Wide least = text::shareOf(Wide{1} << text::weightBits(args.vocabulary), args.minP);
  Wide ties = tiesBefore(args, cut, memory), mine = 0, total = 0;
  forEachKept(args, cut, ties, least, [&](int64_t, Wide weight) {
    mine += weight;
    return false;
  });
  Wide before = sumBefore(mine, total, memory), place = text::placeOf(args.number, total);
  if (place < before || place >= before + mine)
    return;
  place -= before;
  forEachKept(args, cut, ties, least, [&](int64_t id, Wide weight) {
    bool isChosen = place < weight;
    if (isChosen)
      give(args, id);
    place -= weight;
    return isChosen;
  });
}
