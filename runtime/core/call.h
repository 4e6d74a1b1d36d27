// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One call of an entry: what the services do that generated code imports.

#ifndef HONE_RUNTIME_CORE_CALL_H
#define HONE_RUNTIME_CORE_CALL_H

#include "core/arena.h"
#include "core/block_pool.h"
#include "core/device.h"
#include "core/inputs.h"
#include "core/profile.h"
#include "core/state.h"

#include <csetjmp>
#include <functional>
#include <mutex>

namespace hone::rt {

/// What calls leave for those that follow. Used by one call at a time.
struct Memory {
  Arena arena;
  BlockPool pool;
  std::unique_ptr<DeviceQueue> queue; // of a module that is on a device
};

/// Gets what a program observes: the number of the site, and rows, the last dimension of `values`, which are valid until it
/// returns. Where it fails, the call ends with its status.
using Observer = std::function<absl::Status(int64_t site, const hone_tensor &values)>;

/// A token to be sampled on the device from the last logits of a call's first output (DeviceQueue::sample).
struct SampledToken {
  uint64_t draw; // of the generator
  int64_t token = 0;
};

/// What a call reports to; each may be null.
struct CallHooks {
  Profile *profile = nullptr;
  const Observer *observer = nullptr;
  SampledToken *sampled = nullptr; // the call then returns nothing else
};

/// Runs once. Services that fail leave the program by longjmp to run(): they record the reason first, so that nothing
/// with a destructor is alive between the two. Programs have no tables for unwinding: nothing is thrown through them.
class CallContext {
public:
  /// `state` is null for a call without a session.
  CallContext(const io::EntryInfo &entry, const BoundInputs &inputs, const uint8_t *weights, Memory &memory,
              State *state, const CallHooks &hooks);

  /// Runs the program's function; commits or rolls back the state; returns outputs in the order of the manifest.
  absl::StatusOr<std::vector<io::Array>> run(hone_entry_fn function);

  /// The call that this thread is in, or null.
  static CallContext *current();
  static CallContext &of(hone_call *call) { return *static_cast<CallContext *>(call->runtime); }

  /// Ends the call with the status that was recorded. By the thread that began it, outside of parallel regions.
  [[noreturn]] void leave() { std::longjmp(exit, 1); }
  /// The same in any thread: within a parallel region this thread's part of it ends, and the call after the region.
  [[noreturn]] void leaveThread();
  /// This thread's part of a parallel region of the program.
  void runPart(hone_body_fn body, void *captures, int64_t begin, int64_t end);
  /// Records a check of the program that did not hold, with `values` in place of the last "{}" of the message.
  void recordFailure(std::string_view message, std::span<const int64_t> values);

  /// Keeps the first failure. By any thread of the call.
  void record(absl::Status status) {
    std::lock_guard lock(mutex);
    if (failure.ok())
      failure = std::move(status);
  }
  bool hasFailed() const { return !failure.ok(); }

  /// Whether the status that `work` returns is OK; else, or where it throws, the reason is recorded.
  template <typename Work> bool attempt(Work work) noexcept {
    try {
      absl::Status status = work();
      if (status.ok())
        return true;
      record(std::move(status));
    } catch (...) {
      record(io::statusOfException());
    }
    return false;
  }

  /// Null with the reason recorded. By any thread of the call.
  void *allocate(uint64_t bytes);
  /// False with the reason recorded.
  bool placeSlots(std::span<const uint64_t> bytes, std::span<void *> slots);
  /// Memory of an output, or null with the reason recorded.
  void *createOutput(int64_t index, int64_t rank, const int64_t *sizes);
  /// These four are false with the reason recorded.
  bool appendState(int64_t slot, const hone_tensor &fresh, hone_tensor &all);
  bool extendState(int64_t slot, std::span<const int64_t> sizes, hone_tensor &fresh);
  bool viewState(int64_t slot, hone_tensor &all);
  bool updateState(int64_t slot, hone_tensor &all);
  bool observe(int64_t site, const hone_tensor &values);

  /// Null for a module that is on no device.
  DeviceQueue *queue() const { return memory.queue.get(); }
  /// An input or an output on the device.
  absl::StatusOr<void *> deviceInput(int64_t index);
  absl::StatusOr<void *> createDeviceOutput(int64_t index, int64_t rank, const int64_t *sizes);

  const State *sessionState() const { return state; }
  Profile *profile() const { return hooks.profile; }

private:
  absl::StatusOr<Slot *> findSlot(int64_t index);
  void enter(hone_entry_fn function);
  absl::StatusOr<std::vector<io::Array>> runAndCommit(hone_entry_fn function);
  void runProgram(hone_entry_fn function);
  absl::Status sample();
  absl::StatusOr<io::Array *> makeOutput(int64_t index, int64_t rank, const int64_t *sizes);
  absl::Status observeDevice(int64_t site, const hone_tensor &values);
  absl::Status finish();

  const io::EntryInfo &entry;
  Memory &memory;
  State *state;
  CallHooks hooks;
  std::span<const hone_tensor> inputs;
  std::span<const uint64_t> versions; // of inputs
  const Symbols &symbols;
  hone_call call = {};
  std::mutex mutex; // of the failure
  absl::Status failure;
  std::vector<std::optional<io::Array>> outputs;
  std::jmp_buf exit;
};

/// Runs the host side of a kernel, which ends the call where it fails. Nothing with a destructor lives in `run` or in the caller.
template <typename Run> void runOrLeave(hone_call *call, Run run) {
  if (!CallContext::of(call).attempt(run))
    CallContext::of(call).leave();
}

/// A function that programs import.
struct Service {
  std::string_view name;
  void *function;
};

/// The function of that name, or null.
void *findService(std::span<const Service> services, std::string_view name);

/// A service of the runtime by its imported name, or null.
void *findService(std::string_view name);

/// A service that only programs for a device import (hone/runtime/device.h), or null.
void *findDeviceService(std::string_view name);

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_CALL_H
