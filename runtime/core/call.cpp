// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running an entry, and what its services do.

#include "core/call.h"

#include "core/communicator.h"
#include "cpu/cache_prefetch.h"
#include "cpu/scratch_memory.h"

#include <ranges>
#include <utility>

namespace hone::rt {
namespace {

using io::cat;
using io::invalid;

thread_local CallContext *currentCall = nullptr;
thread_local std::jmp_buf *partExit = nullptr; // of the part of a parallel region that this thread is in

/// Makes a call the thread's own while it lives.
class CurrentCall {
public:
  explicit CurrentCall(CallContext *context)
      : outer(std::exchange(currentCall, context)), outerExit(std::exchange(partExit, nullptr)) {}
  ~CurrentCall() {
    currentCall = outer;
    partExit = outerExit;
  }
  CurrentCall(const CurrentCall &) = delete;
  CurrentCall &operator=(const CurrentCall &) = delete;

private:
  CallContext *outer;
  std::jmp_buf *outerExit;
};

bool fits(const io::TensorInfo &info, std::span<const int64_t> sizes) {
  if (sizes.size() != info.shape.size())
    return false;
  for (size_t axis = 0; axis < sizes.size(); ++axis)
    if (info.shape[axis].isFixed() && info.shape[axis].size != sizes[axis])
      return false;
  return true;
}

absl::Status outOfMemory(uint64_t bytes, std::string_view purpose) {
  return absl::ResourceExhaustedError(cat("cannot allocate ", bytes, " bytes for ", purpose, ": out of memory"));
}

} // namespace

CallContext::CallContext(const io::EntryInfo &entry, const BoundInputs &inputs, const uint8_t *weights, Memory &memory,
                         State *state, const CallHooks &hooks)
    : entry(entry), memory(memory), state(state), hooks(hooks), inputs(inputs.tensors), versions(inputs.versions),
      symbols(inputs.symbols), outputs(entry.outputs.size()) {
  call.inputs = inputs.tensors.data();
  call.weights = weights;
  call.runtime = this;
}

CallContext *CallContext::current() { return currentCall; }

absl::StatusOr<std::vector<io::Array>> CallContext::run(hone_entry_fn function) {
  absl::StatusOr<std::vector<io::Array>> results;
  try {
    results = runAndCommit(function);
  } catch (...) {
    results = io::statusOfException();
  }
  memory.pool.endCall();
  if (!results.ok()) {
    failRanks();
    if (state)
      state->rollback();
  }
  return results;
}

absl::StatusOr<std::vector<io::Array>> CallContext::runAndCommit(hone_entry_fn function) {
  CurrentCall current(this);
  if (hooks.profile)
    hooks.profile->beginCall(entry, inputs);
  if (state)
    state->begin(symbols);
  runProgram(function);
  if (hooks.profile)
    hooks.profile->endCall();
  HONE_RETURN_IF_ERROR(finish());
  std::vector<io::Array> results;
  if (!hooks.sampled) {
    results.reserve(outputs.size());
    for (std::optional<io::Array> &output : outputs)
      results.push_back(*std::move(output));
  }
  // Last, as what fails has to leave the state as it was.
  if (state)
    HONE_RETURN_IF_ERROR(state->commit(symbols));
  return results;
}

void CallContext::runProgram(hone_entry_fn function) {
  if (!queue())
    return enter(function);
  LaunchReceiver receiver;
  if (Profile *profile = hooks.profile)
    receiver = [profile](const char *name, Profile::Clock::time_point begin) {
      profile->addKernel(name, {}, begin, Profile::Clock::now());
    };
  if (!attempt([&] { return queue()->begin(inputs, std::move(receiver)); }))
    return;
  enter(function);
  if (hooks.sampled && failure.ok())
    attempt([&] { return sample(); });
  attempt([&] { return queue()->end(); });
}

absl::Status CallContext::sample() {
  HONE_RETURN_IF_ERROR(finish());
  return queue()->sample(0, outputs[0]->shape(), hooks.sampled->draw, hooks.sampled->token);
}

/// A frame of its own, without variables that a longjmp could leave undefined.
void CallContext::enter(hone_entry_fn function) {
  cpu::ScratchScope scope;
  cpu::CachePrefetchScope prefetch(state ? state->prefetcher() : nullptr);
  if (setjmp(scope.exit) != 0) {
    attempt([&] { return outOfMemory(scope.lackingBytes(), "a kernel"); });
    return;
  }
  if (setjmp(exit) == 0)
    function(&call);
}

void CallContext::leaveThread() { std::longjmp(partExit ? *partExit : exit, 1); }

/// A frame of its own, as above.
void CallContext::runPart(hone_body_fn body, void *captures, int64_t begin, int64_t end) {
  CurrentCall current(this);
  std::jmp_buf exitOfPart;
  partExit = &exitOfPart;
  if (setjmp(exitOfPart) == 0)
    body(captures, begin, end);
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

/// `message` with `values` in place of its last "{}": what comes before, a node's name, may have braces too.
static std::string withValues(std::string_view message, std::span<const int64_t> values) {
  std::string text(message);
  size_t end = text.size();
  for (int64_t value : values | std::views::reverse) {
    size_t place = text.rfind("{}", end);
    if (place == std::string::npos)
      break;
    text.replace(place, 2, std::to_string(value));
    if (place < 2)
      break;
    end = place - 2;
  }
  return text;
}

void CallContext::recordFailure(std::string_view message, std::span<const int64_t> values) {
  attempt([&] { return absl::InvalidArgumentError(withValues(message, values)); });
}

void *CallContext::allocate(uint64_t bytes) {
  void *block = memory.pool.allocate(bytes);
  if (!block)
    attempt([&] { return outOfMemory(bytes, "a tensor within the program"); });
  return block;
}

bool CallContext::placeSlots(std::span<const uint64_t> bytes, std::span<void *> slots) {
  return attempt([&] {
    return memory.arena.place(bytes, slots) ? absl::OkStatus()
                                            : outOfMemory(Arena::totalBytes(bytes), "the tensors of the program");
  });
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
  absl::StatusOr<io::Array> array = io::Array::create(info.dtype, std::move(shape));
  if (!array.ok())
    return absl::Status(array.status().code(), cat("output '", info.name, "': ", array.status().message()));
  return &outputs[static_cast<size_t>(index)].emplace(*std::move(array));
}

void *CallContext::createOutput(int64_t index, int64_t rank, const int64_t *sizes) {
  void *data = nullptr;
  attempt([&]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(io::Array * array, makeOutput(index, rank, sizes));
    data = array->data();
    return absl::OkStatus();
  });
  return data;
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

absl::StatusOr<Slot *> CallContext::findSlot(int64_t index) {
  if (!state && !entry.state.empty())
    return invalid("entry '", entry.name, "' keeps state: it can only be called in a session");
  if (state && index >= 0 && index < static_cast<int64_t>(state->slots().size()))
    return &state->slots()[static_cast<size_t>(index)];
  return mismatch("the program uses state ", index, ", which the manifest does not have");
}

bool CallContext::appendState(int64_t index, const hone_tensor &fresh, hone_tensor &all) {
  return attempt([&]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(Slot * slot, findSlot(index));
    HONE_ASSIGN_OR_RETURN(all, slot->append(fresh, state->lengths()));
    return absl::OkStatus();
  });
}

bool CallContext::extendState(int64_t index, std::span<const int64_t> sizes, hone_tensor &fresh) {
  return attempt([&]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(Slot * slot, findSlot(index));
    HONE_ASSIGN_OR_RETURN(fresh, slot->extend(sizes, state->lengths()));
    return absl::OkStatus();
  });
}

bool CallContext::viewState(int64_t index, hone_tensor &all) {
  return attempt([&]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(Slot * slot, findSlot(index));
    HONE_ASSIGN_OR_RETURN(all, slot->view(state->length(), symbols));
    return absl::OkStatus();
  });
}

bool CallContext::updateState(int64_t index, hone_tensor &all) {
  return attempt([&]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(Slot * slot, findSlot(index));
    HONE_ASSIGN_OR_RETURN(all, slot->update(symbols));
    return absl::OkStatus();
  });
}

bool CallContext::observe(int64_t site, const hone_tensor &values) {
  return !hooks.observer ||
         attempt([&] { return queue() ? observeDevice(site, values) : (*hooks.observer)(site, values); });
}

absl::Status CallContext::observeDevice(int64_t site, const hone_tensor &values) {
  HONE_ASSIGN_OR_RETURN(StateBuffer dense, queue()->stateMemory().copyOf(values));
  std::span<const int64_t> sizes(values.sizes, static_cast<size_t>(values.rank));
  HONE_ASSIGN_OR_RETURN(io::Array host,
                        io::Array::create(static_cast<hone_dtype>(values.dtype), {sizes.begin(), sizes.end()}));
  HONE_RETURN_IF_ERROR(queue()->fetch(host.data(), dense.view.data, static_cast<uint64_t>(host.bytes())));
  return (*hooks.observer)(site, host.view());
}

} // namespace hone::rt
