// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the slots of a session's state are kept: the host's memory, or a device's.

#ifndef HONE_RUNTIME_CORE_STATE_MEMORY_H
#define HONE_RUNTIME_CORE_STATE_MEMORY_H

#include "hone/io/array.h"

#include <memory>

namespace hone::rt {

/// A dense tensor and what keeps its memory alive. The default has neither.
struct StateBuffer {
  hone_tensor view = {};
  std::shared_ptr<void> owner;
};

/// Makes and copies tensors of one kind of memory. Used by one session.
class StateMemory {
public:
  virtual ~StateMemory() = default;

  /// Elements whose bits are 0. Fails where there is not so much memory.
  virtual absl::StatusOr<StateBuffer> zeros(hone_dtype dtype, std::vector<int64_t> sizes) = 0;

  /// Copies element by element between two views of one dtype and shape, which may have any strides.
  virtual absl::Status copy(const hone_tensor &from, const hone_tensor &to) = 0;

  /// A dense copy.
  virtual absl::StatusOr<StateBuffer> copyOf(const hone_tensor &tensor) = 0;
};

/// The host's memory.
StateMemory &hostStateMemory();

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_STATE_MEMORY_H
