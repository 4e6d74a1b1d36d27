// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is accepted of a call moves to the end of what was held, for all tensors and sequences of a state in one launch. A thread has the
// same bytes of every position, and goes through the moves.

#include "move_positions.h"

namespace hone::cuda {
namespace {

template <typename Element> __device__ void moveElements(const PositionBytes &part, const PositionPair *moves) {
  for (int64_t at = threadIdx.x * sizeof(Element); at < part.bytes; at += kMoveThreads * sizeof(Element))
    for (int64_t i = 0; i < part.moves; ++i) {
      const PositionPair &move = moves[part.firstMove + i];
      *reinterpret_cast<Element *>(part.first + move.to * part.stride + at) =
          *reinterpret_cast<const Element *>(part.first + move.from * part.stride + at);
    }
}

} // namespace

extern "C" __global__ void __launch_bounds__(kMoveThreads) move_positions(MovePositionsArguments args) {
  const PositionBytes &part = args.parts[blockIdx.x];
  bool isWide = (reinterpret_cast<uint64_t>(part.first) | part.stride | part.bytes) % sizeof(uint4) == 0;
  if (isWide)
    moveElements<uint4>(part, args.moves);
  else
    moveElements<uint8_t>(part, args.moves);
}

} // namespace hone::cuda
