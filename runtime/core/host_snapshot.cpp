// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private mappings of one file without a name.

#include "core/host_snapshot.h"
#include "hone/io/file.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <sys/mman.h>
#include <unistd.h>

namespace hone::rt {
namespace {

/// Pages of a run of positions from which on it pays to map them: the first write after the end of a run copies one of them.
constexpr int64_t kLeastPages = 4;
constexpr int64_t kMostBytes = int64_t{1} << 46; // of a file: less than there are addresses

int64_t pageBytes() {
  static const int64_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}

bool writeAll(int file, const char *data, uint64_t bytes, uint64_t offset) {
  while (bytes > 0) {
    ssize_t written = pwrite(file, data, bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    data += written, bytes -= static_cast<uint64_t>(written), offset += static_cast<uint64_t>(written);
  }
  return true;
}

/// Of a tensor whose positions are in blocks, those of the last one count as well.
int64_t usedOf(const HeldTensor &held, int64_t used) { return roundUp(used, held.multiple); }

} // namespace

HostSnapshot::~HostSnapshot() {
  if (file >= 0)
    close(file);
}

/// The bytes of the file, or none where it does not pay.
std::optional<uint64_t> HostSnapshot::plan(std::span<const HeldTensor> tensors, int64_t used,
                                           std::vector<Part> &parts) {
  int64_t offset = 0, runs = 0, shared = 0;
  for (const HeldTensor &held : tensors) {
    Part part = {held.tensor.dtype, held.tensor.sizes, static_cast<uint64_t>(offset)};
    int64_t &positions = part.sizes[held.tensor.axis];
    if (used > kMostBytes || positions > kMostBytes)
      return std::nullopt;
    positions = roundUp(std::max(positions, 2 * used), held.multiple);
    std::optional<int64_t> bytes = io::tensorBytes(part.dtype, part.sizes);
    if (!bytes || *bytes > kMostBytes - offset)
      return std::nullopt;
    Runs own(part.dtype, part.sizes, held.tensor.axis);
    runs += own.count;
    shared += own.count * own.positionBytes * usedOf(held, used);
    offset = roundUp(offset + *bytes, pageBytes());
    parts.push_back(std::move(part));
  }
  bool pays = runs > 0 && shared / runs >= kLeastPages * pageBytes();
  return pays ? std::optional(static_cast<uint64_t>(offset)) : std::nullopt;
}

/// What is used of each run. False where there is not so much memory.
bool HostSnapshot::write(std::span<const HeldTensor> tensors, int64_t used) const {
  for (size_t i = 0; i < tensors.size(); ++i) {
    size_t axis = tensors[i].tensor.axis;
    const hone_tensor &held = tensors[i].buffer.view;
    Runs runs(parts[i].dtype, parts[i].sizes, axis);
    const auto *data = static_cast<const char *>(held.data);
    for (int64_t run = 0; run < runs.count; ++run)
      if (!writeAll(file, data + run * held.sizes[axis] * runs.positionBytes,
                    static_cast<uint64_t>(usedOf(tensors[i], used) * runs.positionBytes),
                    parts[i].offset + static_cast<uint64_t>(run * parts[i].sizes[axis] * runs.positionBytes)))
        return false;
  }
  return true;
}

std::shared_ptr<const HostSnapshot> HostSnapshot::create(std::span<const HeldTensor> tensors, int64_t used) {
  std::vector<Part> parts;
  std::optional<uint64_t> bytes = plan(tensors, used, parts);
  if (!bytes || !io::mayHaveBytes(*bytes))
    return nullptr;
  std::shared_ptr<HostSnapshot> snapshot(new HostSnapshot);
  snapshot->bytes = *bytes;
  snapshot->parts = std::move(parts);
  snapshot->file = memfd_create("hone-state", MFD_CLOEXEC);
  bool isWritten = snapshot->file >= 0 && ftruncate(snapshot->file, static_cast<off_t>(*bytes)) == 0 &&
                   snapshot->write(tensors, used);
  return isWritten ? snapshot : nullptr;
}

absl::StatusOr<std::vector<StateBuffer>> HostSnapshot::map() const {
  void *address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  if (address == MAP_FAILED)
    return absl::ResourceExhaustedError(io::cat("cannot map ", bytes, " bytes of a session's state: out of memory"));
  std::shared_ptr<void> region(address, [size = bytes](void *mapped) { munmap(mapped, size); });
  std::vector<StateBuffer> buffers;
  for (const Part &part : parts)
    buffers.push_back({io::denseView(static_cast<char *>(address) + part.offset, part.dtype, part.sizes), region});
  return buffers;
}

} // namespace hone::rt
