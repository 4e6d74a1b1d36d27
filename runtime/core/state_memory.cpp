// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// State in the host's memory.

#include "core/host_snapshot.h"
#include "hone/io/file.h"
#include "hone/io/pages.h"

#include <algorithm>

namespace hone::rt {
namespace {

constexpr uint64_t kPlaceAlignment = 64;
constexpr uint64_t kMostPlaces = uint64_t{1} << 62; // bytes: more than any memory, and a line more is still a number
constexpr int64_t kFirstPositions = 64;             // room of a tensor for which nobody reserved

class HostStateMemory final : public StateMemory {
public:
  /// `folder` is where room goes that extend() makes; without one it is memory as the rest.
  explicit HostStateMemory(std::string folder = {}) : folder(std::move(folder)) {}

  absl::StatusOr<StateBuffer> zeros(hone_dtype dtype, std::vector<int64_t> sizes) override {
    return own(io::Array::zeros(dtype, std::move(sizes)));
  }

  std::vector<std::shared_ptr<void>> makePlaces(std::span<const uint64_t> bytes) override {
    std::vector<uint64_t> offsets;
    uint64_t total = 0;
    for (uint64_t each : bytes) {
      offsets.push_back(total);
      if (each > kMostPlaces - total)
        return {};
      total += (each + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment;
    }
    std::vector<std::shared_ptr<void>> places;
    if (std::shared_ptr<char> all = io::mapHugePages(total))
      for (uint64_t offset : offsets)
        places.emplace_back(all.get() + offset, [all](void *) {}); // counted one by one
    return places;
  }

  absl::Status copy(const hone_tensor &from, const hone_tensor &to) override {
    io::copyElements(from, to);
    return absl::OkStatus();
  }

  absl::Status move(std::span<const Positions> tensors, std::span<const PositionMove> moves) override {
    for (const Positions &tensor : tensors)
      for (const PositionMove &move : moves)
        io::copyElements(positionOf(tensor, move.sequence, move.from), positionOf(tensor, move.sequence, move.to));
    return absl::OkStatus();
  }

  absl::StatusOr<StateBuffer> copyOf(const hone_tensor &tensor) override { return own(io::Array::copyOf(tensor)); }

  absl::StatusOr<StateBuffer> upload(const hone_tensor &tensor) override { return copyOf(tensor); }

  absl::StatusOr<StateBuffer> download(const StateBuffer &buffer) override { return buffer; }

  void plan(std::vector<GrowingTensor>) override {}

  absl::StatusOr<StateBuffer> extend(const GrowingTensor &needed, int64_t multiple, const StateBuffer &held,
                                     int64_t used) override {
    std::vector<int64_t> sizes = needed.sizes;
    int64_t &positions = sizes[needed.axis];
    if (positions > 0)
      positions = std::max({positions, held.owner ? 2 * held.view.sizes[needed.axis] : 0, kFirstPositions});
    positions = (positions + multiple - 1) / multiple * multiple;
    HONE_ASSIGN_OR_RETURN(StateBuffer grown, room(needed.dtype, std::move(sizes)));
    if (used > 0)
      io::copyElements(sliceOf(held.view, needed.axis, 0, used), sliceOf(grown.view, needed.axis, 0, used));
    return grown;
  }

  absl::StatusOr<std::shared_ptr<const StateSnapshot>> snapshot(std::span<HeldTensor> tensors, int64_t,
                                                                int64_t used) override {
    std::shared_ptr<const HostSnapshot> made = folder.empty() ? HostSnapshot::create(tensors, used) : nullptr;
    if (!made)
      return nullptr;
    HONE_ASSIGN_OR_RETURN(std::vector<StateBuffer> mapped, made->map());
    for (size_t i = 0; i < tensors.size(); ++i)
      tensors[i].buffer = std::move(mapped[i]);
    return made;
  }

  absl::StatusOr<std::vector<StateBuffer>> open(const StateSnapshot &snapshot) override {
    return static_cast<const HostSnapshot &>(snapshot).map();
  }

  /// The operating system copies pages as they are written to.
  absl::Status makeWritable(std::span<HeldTensor>, int64_t) override { return absl::OkStatus(); }

  std::unique_ptr<PagePrefetcher> makePrefetcher() override {
    return folder.empty() ? nullptr : std::make_unique<PagePrefetcher>();
  }

  absl::Status betweenCalls(absl::FunctionRef<absl::Status()> work) override { return work(); }

  bool keepsRoom() const override { return true; }

private:
  /// Zeros, in a file where there is a folder.
  absl::StatusOr<StateBuffer> room(hone_dtype dtype, std::vector<int64_t> sizes) {
    std::optional<int64_t> bytes = io::tensorBytes(dtype, sizes);
    if (folder.empty() || !bytes || *bytes == 0)
      return zeros(dtype, std::move(sizes));
    HONE_ASSIGN_OR_RETURN(io::ScratchFile file,
                          io::ScratchFile::create(folder + "/hone-state", static_cast<uint64_t>(*bytes)));
    auto owner = std::make_shared<io::ScratchFile>(std::move(file));
    io::adviseRandom(owner->data(), owner->size()); // readahead would evict blocks of other heads and layers
    return StateBuffer{io::denseView(owner->data(), dtype, sizes), owner};
  }

  static absl::StatusOr<StateBuffer> own(absl::StatusOr<io::Array> array) {
    HONE_RETURN_IF_ERROR(array.status());
    return bufferOf(*std::move(array));
  }

  std::string folder;
};

} // namespace

StateMemory &hostStateMemory() {
  static HostStateMemory memory;
  return memory;
}

absl::StatusOr<std::shared_ptr<StateMemory>> offloadedStateMemory(const std::string &folder) {
  HONE_RETURN_IF_ERROR(io::ScratchFile::create(folder + "/hone-state", 1).status());
  return std::make_shared<HostStateMemory>(folder);
}

} // namespace hone::rt
