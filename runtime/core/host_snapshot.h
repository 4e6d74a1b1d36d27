// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Snapshots of a session's state in the host's memory.

#ifndef HONE_RUNTIME_CORE_HOST_SNAPSHOT_H
#define HONE_RUNTIME_CORE_HOST_SNAPSHOT_H

#include "core/state_memory.h"

namespace hone::rt {

/// A file without a name that sessions map privately: a page is theirs alone once they write to it. Positions after those of the snapshot
/// are holes of the file, which read as zeros and take no memory.
class HostSnapshot final : public StateSnapshot {
public:
  /// Dense tensors, with room for as many positions again as are used. Null where the runs of positions that lie together are shorter
  /// than a few pages, or where the system gives no such file.
  static std::shared_ptr<const HostSnapshot> create(std::span<const HeldTensor> tensors, int64_t used);
  HostSnapshot(const HostSnapshot &) = delete;
  HostSnapshot &operator=(const HostSnapshot &) = delete;
  ~HostSnapshot() override;

  /// The tensors, in memory of the caller's own.
  absl::StatusOr<std::vector<StateBuffer>> map() const;

private:
  struct Part {
    hone_dtype dtype;
    std::vector<int64_t> sizes;
    uint64_t offset;
  };

  HostSnapshot() = default;
  static std::optional<uint64_t> plan(std::span<const HeldTensor> tensors, int64_t used, std::vector<Part> &parts);
  bool write(std::span<const HeldTensor> tensors, int64_t used) const;

  int file = -1;
  uint64_t bytes = 0;
  std::vector<Part> parts;
};

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_HOST_SNAPSHOT_H
