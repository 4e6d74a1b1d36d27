// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The grouping of rows by expert, and the weighted sum of the experts' results.

#include "../device/elements.h"
#include "experts.h"

namespace hone::cuda {

__device__ inline int64_t chosenExpert(const RowView &ids, int64_t row, int64_t choice) {
  int64_t index = ids.offset(row) + choice * ids.inner;
  return ids.dtype == HONE_I64 ? reinterpret_cast<const int64_t *>(ids.data)[index]
                               : reinterpret_cast<const int32_t *>(ids.data)[index];
}

/// A warp scans all pairs for its expert, 32 at a time, twice: it counts those of smaller experts and its own, and
/// then writes its own. No warp waits for another, and pairs keep their order.
__device__ inline void groupPairs(const GroupsArguments &args) {
  int32_t lane = threadIdx.x % 32;
  int64_t expert = int64_t{kGroupsThreads / 32} * blockIdx.x + threadIdx.x / 32;
  if (expert >= args.experts)
    return;
  auto idOf = [&](int64_t pair) { // -1 past the end
    auto p = static_cast<uint32_t>(pair), choices = static_cast<uint32_t>(args.ids.count);
    return pair < args.pairs ? chosenExpert(args.ids, p / choices, p % choices) : -1;
  };
  int32_t smaller = 0, own = 0;
  for (int64_t first = 0; first < args.pairs; first += 32) {
    int64_t id = idOf(first + lane);
    smaller += __popc(__ballot_sync(~0u, id >= 0 && id < expert));
    own += __popc(__ballot_sync(~0u, id == expert));
  }
  if (lane == 0) {
    args.groups[expert] = smaller;
    if (expert + 1 == args.experts)
      args.groups[args.experts] = smaller + own;
  }
  int32_t *to = args.groups + args.experts + 1 + smaller;
  for (int64_t first = 0; first < args.pairs; first += 32) {
    bool isOwn = idOf(first + lane) == expert;
    uint32_t all = __ballot_sync(~0u, isOwn);
    if (isOwn)
      to[__popc(all & ((1u << lane) - 1))] = static_cast<int32_t>(first + lane);
    to += __popc(all);
  }
}

/// Adds choices in order, so that the result is deterministic.
__device__ inline void sumExperts(const ExpertSumArguments &args) {
  int64_t column = int64_t{kExpertSumThreads} * blockIdx.x + threadIdx.x;
  if (column >= args.y.count)
    return;
  for (int64_t row = blockIdx.y; row < args.rows; row += gridDim.y) {
    float sum = 0;
    for (int32_t choice = 0; choice < args.choices; ++choice) {
      int64_t expert = chosenExpert(args.ids, row, choice);
      if (expert < 0 || expert >= args.experts)
        continue;
      float weight =
          loadElement(args.weights.data, args.weights.offset(row) + choice * args.weights.inner, args.weights.dtype);
      sum += weight * args.parts[(row * args.choices + choice) * args.y.count + column];
    }
    storeElement(args.y.data, args.y.offset(row) + column * args.y.inner, args.y.dtype, sum);
  }
}

} // namespace hone::cuda

extern "C" __global__ void __launch_bounds__(hone::cuda::kGroupsThreads)
    expert_groups(const __grid_constant__ hone::cuda::GroupsArguments args) {
  hone::cuda::groupPairs(args);
}

extern "C" __global__ void __launch_bounds__(hone::cuda::kExpertSumThreads)
    expert_sum(const __grid_constant__ hone::cuda::ExpertSumArguments args) {
  hone::cuda::sumExperts(args);
}
