// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What slots of a state begin with: weights where calls read them, which nobody changes.

#include "core/module.h"

#include <algorithm>

namespace hone::rt {

using io::invalid;

absl::Status Module::checkBeginnings() const {
  for (const io::StateInfo &state : description.states)
    for (const io::TensorInfo &slot : state.slots) {
      if (slot.beginning.empty())
        continue;
      const io::StoredTensor *tensor = weightFile.find(slot.beginning);
      bool fits = tensor && tensor->dtype == slot.dtype &&
                  std::ranges::equal(tensor->shape, slot.shape, {}, {}, &io::Dim::size);
      if (!fits)
        return invalid(file(weightsName), ": expected a weight '", slot.beginning, "' of ", io::dtypeName(slot.dtype),
                       " ", io::shapeText(slot.shape), ", which state '", slot.name, "' begins with");
    }
  return absl::OkStatus();
}

std::vector<StateBuffer> Module::beginningsOf(const std::shared_ptr<const Module> &module, const io::EntryInfo &entry,
                                              const Memory &memory) {
  const uint8_t *weights = memory.queue ? memory.queue->weights() : module->weightFile.data();
  std::vector<StateBuffer> beginnings;
  for (const io::TensorInfo &slot : module->description.slotsOf(entry)) {
    StateBuffer &beginning = beginnings.emplace_back();
    if (slot.beginning.empty())
      continue;
    const io::StoredTensor &tensor = *module->weightFile.find(slot.beginning);
    auto *bytes = const_cast<uint8_t *>(weights + tensor.offset); // views of states are only read
    beginning = {io::denseView(bytes, tensor.dtype, tensor.shape), std::shared_ptr<void>(module, bytes),
                 /*isMapped=*/!memory.queue};
  }
  return beginnings;
}

} // namespace hone::rt
