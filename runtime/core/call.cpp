// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running an entry, and what its services do.

#include "core/call.h"

#include "core/communicator.h"

#include <ranges>
#include <utility>

namespace hone::rt {
namespace {

using io::cat;
using io::invalid;

thread_local CallContext *currentCall = nullptr;

bool fits(const io::TensorInfo &info, std::span<const int64_t> sizes) {
  if (sizes.size() != info.shape.size())
    return false;
  for (size_t axis = 0; axis < sizes.size(); ++axis)
    if (info.shape[axis].isFixed() && info.shape[axis].size != sizes[axis])
      return false;
  return true;
}

absl::Status outOfMemory(uint64_t bytes) {
  return absl::ResourceExhaustedError(cat("cannot allocate ", bytes, " bytes: out of memory"));
}

} // namespace

CallContext::CallContext(const io::EntryInfo &entry, const BoundInputs &inputs, const uint8_t *weights, Memory &memory,
                         State *state, const Followers &followers)
    : entry(entry), memory(memory), state(state), followers(followers), inputs(inputs.tensors),
      versions(inputs.versions), symbols(inputs.symbols), outputs(entry.outputs.size()) {
  call.inputs = inputs.tensors.data();
  call.weights = weights;
  call.runtime = this;
}

CallContext *CallContext::current() { return currentCall; }

absl::StatusOr<std::vector<io::Array>> CallContext::run(hone_entry_fn function) {
  CallContext *outer = std::exchange(currentCall, this);
  if (followers.profile)
    followers.profile->beginCall(entry, inputs);
  if (state)
    state->begin(symbols);
  runProgram(function);
  if (followers.profile)
    followers.profile->endCall();
  currentCall = outer;
  memory.pool.endCall();
  absl::Status status = finish();
  if (!status.ok()) {
    failRanks();
    if (state)
      state->rollback();
    return status;
  }
  if (state)
    HONE_RETURN_IF_ERROR(state->commit(symbols));
  std::vector<io::Array> results;
  if (followers.choice)
    return results;
  for (std::optional<io::Array> &output : outputs)
    results.push_back(*std::move(output));
  return results;
}

void CallContext::runProgram(hone_entry_fn function) {
  if (!queue())
    return enter(function);
  LaunchReceiver receiver;
  if (Profile *profile = followers.profile)
    receiver = [profile](const char *name, Profile::Clock::time_point begin) {
      profile->addKernel(name, {}, begin, Profile::Clock::now());
    };
  if (absl::Status begun = queue()->begin(inputs, std::move(receiver)); !begun.ok())
    return record(std::move(begun));
  enter(function);
  if (followers.choice && failure.ok())
    record(choose());
  if (absl::Status ended = queue()->end(); failure.ok())
    record(std::move(ended));
}

absl::Status CallContext::choose() {
  HONE_RETURN_IF_ERROR(finish());
  return queue()->choose(0, outputs[0]->shape(), followers.choice->number, followers.choice->token);
}

/// A frame of its own, without variables that a longjmp could leave undefined.
void CallContext::enter(hone_entry_fn function) {
  if (setjmp(exit) == 0)
    function(&call);
}

/// Program and manifest disagree; a file may be the fault of anybody.
template <typename... Words>
static absl::Status mismatch(const Words &...words) {
  return absl::DataLossError(cat(words..., "; the artefact is damaged or mixed from two"));
}

absl::Status CallContext::finish() {
  HONE_RETURN_IF_ERROR(failure);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i])
      return mismatch("the program left output '", entry.outputs[i].name, "' out");
  return absl::OkStatus();
}

void CallContext::recordFailure(std::string_view message, std::span<const int64_t> values) {
  std::string text(message);
  size_t end = text.size(); // from the last: what comes before, a node's name, may have braces too
  for (int64_t value : values | std::views::reverse) {
    size_t place = text.rfind("{}", end);
    if (place == std::string::npos)
      break;
    text.replace(place, 2, std::to_string(value));
    if (place < 2)
      break;
    end = place - 2;
  }
  record(absl::InvalidArgumentError(text));
}

void *CallContext::allocate(uint64_t bytes) {
  void *block = memory.pool.allocate(bytes);
  if (!block)
    record(outOfMemory(bytes));
  return block;
}

bool CallContext::placeSlots(std::span<const uint64_t> bytes, std::span<void *> slots) {
  bool placed = memory.arena.place(bytes, slots);
  if (!placed)
    record(outOfMemory(Arena::totalBytes(bytes)));
  return placed;
}

absl::StatusOr<io::Array *> CallContext::makeOutput(int64_t index, int64_t rank, const int64_t *sizes) {
  bool known = index >= 0 && index < static_cast<int64_t>(outputs.size()) && rank >= 0 && rank <= HONE_MAX_RANK;
  if (!known || outputs[static_cast<size_t>(index)])
    return mismatch("the program made output ", index, " of rank ", rank, " of '", entry.name, "'");
  const io::TensorInfo &info = entry.outputs[static_cast<size_t>(index)];
  std::vector<int64_t> shape(sizes, sizes + rank);
  if (!fits(info, shape))
    return mismatch("the program gave output '", info.name, "' the shape ", io::shapeText(shape),
                    ", but the manifest says ", io::shapeText(info.shape));
  HONE_ASSIGN_OR_RETURN(io::Array array, io::Array::create(info.dtype, std::move(shape)));
  return &outputs[static_cast<size_t>(index)].emplace(std::move(array));
}

void *CallContext::createOutput(int64_t index, int64_t rank, const int64_t *sizes) {
  absl::StatusOr<io::Array *> array = makeOutput(index, rank, sizes);
  if (array.ok())
    return (*array)->data();
  record(array.status());
  return nullptr;
}

absl::StatusOr<void *> CallContext::createDeviceOutput(int64_t index, int64_t rank, const int64_t *sizes) {
  HONE_ASSIGN_OR_RETURN(io::Array * array, makeOutput(index, rank, sizes));
  return queue()->output(static_cast<size_t>(index), array->data(), static_cast<uint64_t>(array->bytes()));
}

absl::StatusOr<void *> CallContext::deviceInput(int64_t index) {
  if (index < 0 || index >= static_cast<int64_t>(inputs.size()))
    return mismatch("the program reads input ", index, " of '", entry.name, "', which has ", inputs.size());
  auto input = static_cast<size_t>(index);
  return queue()->input(input, inputs[input], versions[input]);
}

Slot *CallContext::findSlot(int64_t index) {
  if (!state) {
    record(invalid("entry '", entry.name, "' keeps state: it can only be called in a session"));
    return nullptr;
  }
  if (index >= 0 && index < static_cast<int64_t>(state->slots().size()))
    return &state->slots()[static_cast<size_t>(index)];
  record(mismatch("the program uses state ", index, ", which the manifest does not have"));
  return nullptr;
}

bool CallContext::assign(absl::StatusOr<hone_tensor> view, hone_tensor &target) {
  if (view.ok())
    target = *view;
  else
    record(view.status());
  return view.ok();
}

bool CallContext::appendState(int64_t index, const hone_tensor &fresh, hone_tensor &all) {
  Slot *slot = findSlot(index);
  return slot && assign(slot->append(fresh, state->length()), all);
}

bool CallContext::extendState(int64_t index, std::span<const int64_t> sizes, hone_tensor &fresh) {
  Slot *slot = findSlot(index);
  return slot && assign(slot->extend(sizes, state->length()), fresh);
}

bool CallContext::viewState(int64_t index, hone_tensor &all) {
  Slot *slot = findSlot(index);
  return slot && assign(slot->view(state->length(), symbols), all);
}

bool CallContext::observe(int64_t site, const hone_tensor &values) {
  if (followers.observer)
    record(queue() ? observeDevice(site, values) : (*followers.observer)(site, values));
  return failure.ok();
}

absl::Status CallContext::observeDevice(int64_t site, const hone_tensor &values) {
  HONE_ASSIGN_OR_RETURN(StateBuffer dense, queue()->stateMemory().copyOf(values));
  std::span<const int64_t> sizes(values.sizes, static_cast<size_t>(values.rank));
  HONE_ASSIGN_OR_RETURN(io::Array host,
                        io::Array::create(static_cast<hone_dtype>(values.dtype), {sizes.begin(), sizes.end()}));
  HONE_RETURN_IF_ERROR(queue()->fetch(host.data(), dense.view.data, static_cast<uint64_t>(host.bytes())));
  return (*followers.observer)(site, host.view());
}

} // namespace hone::rt
