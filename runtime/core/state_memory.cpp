// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// State in the host's memory.

#include "core/state_memory.h"

namespace hone::rt {
namespace {

class HostStateMemory final : public StateMemory {
public:
  absl::StatusOr<StateBuffer> zeros(hone_dtype dtype, std::vector<int64_t> sizes) override {
    return own(io::Array::zeros(dtype, std::move(sizes)));
  }

  absl::Status copy(const hone_tensor &from, const hone_tensor &to) override {
    io::copyElements(from, to);
    return absl::OkStatus();
  }

  absl::StatusOr<StateBuffer> copyOf(const hone_tensor &tensor) override { return own(io::Array::copyOf(tensor)); }

private:
  static absl::StatusOr<StateBuffer> own(absl::StatusOr<io::Array> array) {
    if (!array.ok())
      return array.status();
    auto owner = std::make_shared<io::Array>(*std::move(array));
    hone_tensor view = owner->view();
    return StateBuffer{view, std::move(owner)};
  }
};

} // namespace

StateMemory &hostStateMemory() {
  static HostStateMemory memory;
  return memory;
}

} // namespace hone::rt
