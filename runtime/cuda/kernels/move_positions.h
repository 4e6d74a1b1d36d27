// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Moves of positions within the state: kernel arguments.

#ifndef HONE_RUNTIME_CUDA_KERNELS_MOVE_POSITIONS_H
#define HONE_RUNTIME_CUDA_KERNELS_MOVE_POSITIONS_H

#include <cstdint>

namespace hone::cuda {

/// What a tensor has of a position of a sequence: contiguous bytes, those of the next position so many bytes after them. Its moves are those
/// with numbers from `firstMove` on.
struct PositionBytes {
  uint8_t *first; // of position 0
  int64_t stride, bytes;
  int64_t firstMove, moves;
};

struct PositionPair {
  int64_t from, to;
};

/// A block for each of `parts`. Moves of a part are done in their order: what one writes another may read.
struct MovePositionsArguments {
  const PositionBytes *parts;
  const PositionPair *moves;
};

constexpr uint32_t kMoveThreads = 256; // of a block

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_MOVE_POSITIONS_H
