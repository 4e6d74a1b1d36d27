// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C functions that a program imports (hone/runtime/program.h documents them). Nothing with a destructor lives in
// them when they leave the call.

#include "core/call.h"

#include <algorithm>
#include <limits>
#include <omp.h>

namespace hone::rt {
namespace {

/// The call that generated code runs in: it runs in no thread that has none.
CallContext &currentCall() { return *CallContext::current(); }

void *serviceAlloc(uint64_t bytes) {
  void *memory = currentCall().allocate(bytes);
  if (!memory)
    currentCall().leaveThread();
  return memory;
}

void serviceArena(hone_call *call, int64_t count, const uint64_t *bytes, void **slots) {
  size_t number = static_cast<size_t>(count);
  if (!CallContext::of(call).placeSlots({bytes, number}, {slots, number}))
    CallContext::of(call).leave();
}

/// Below this, in operations on scalars, the work of a thread takes less time than waking it.
constexpr int64_t kWorkPerThread = 32768;
/// Ranges of more positions than this begin at multiples of a cache line's elements.
constexpr int64_t kLongRange = 4096, kLineElements = 64;

int64_t countThreads(int64_t count, int64_t cost) {
  int64_t work = 0;
  if (__builtin_mul_overflow(count, cost, &work))
    work = std::numeric_limits<int64_t>::max();
  int64_t most = std::min(count, work / kWorkPerThread); // of small loops, which are many, OpenMP is not asked
  return most <= 1 || omp_in_parallel() ? 1 : std::min<int64_t>(most, omp_get_max_threads());
}

void serviceParallel(hone_body_fn body, void *captures, int64_t count, int64_t cost) {
  if (count <= 0)
    return;
  int64_t threads = countThreads(count, cost);
  if (threads <= 1)
    return body(captures, 0, count);
  CallContext *context = CallContext::current(); // null for a loop outside of a call
#pragma omp parallel num_threads(static_cast<int>(threads))
  {
    int64_t parts = omp_get_num_threads(), step = (count + parts - 1) / parts;
    if (step > kLongRange)
      step = (step + kLineElements - 1) / kLineElements * kLineElements;
    int64_t begin = omp_get_thread_num() * step, end = std::min(begin + step, count);
    if (begin < end)
      context ? context->runPart(body, captures, begin, end) : body(captures, begin, end);
  }
  if (context && context->hasFailed())
    context->leaveThread();
}

void serviceFree(void *memory) { BlockPool::release(memory); }

void *serviceOutput(hone_call *call, int64_t index, int64_t rank, const int64_t *sizes) {
  void *memory = CallContext::of(call).createOutput(index, rank, sizes);
  if (!memory)
    CallContext::of(call).leave();
  return memory;
}

void serviceFailWith(const char *message, int64_t count, const int64_t *values) {
  currentCall().recordFailure(message, {values, static_cast<size_t>(count)});
  currentCall().leaveThread();
}

void serviceFail(const char *message) { serviceFailWith(message, 0, nullptr); }

void serviceStateAppend(hone_call *call, int64_t slot, const hone_tensor *fresh, hone_tensor *all) {
  if (!CallContext::of(call).appendState(slot, *fresh, *all))
    CallContext::of(call).leave();
}

void serviceStateView(hone_call *call, int64_t slot, hone_tensor *all) {
  if (!CallContext::of(call).viewState(slot, *all))
    CallContext::of(call).leave();
}

void serviceStateUpdate(hone_call *call, int64_t slot, hone_tensor *all) {
  if (!CallContext::of(call).updateState(slot, *all))
    CallContext::of(call).leave();
}

int64_t serviceStateLength(hone_call *call) {
  const State *state = CallContext::of(call).sessionState();
  return state ? state->length() : 0;
}

int64_t serviceStateLag(hone_call *call, int64_t sequence) {
  const State *state = CallContext::of(call).sessionState();
  return state ? state->lengths().lagOf(sequence) : 0;
}

int64_t serviceStatePadding(hone_call *call, int64_t sequence) {
  const State *state = CallContext::of(call).sessionState();
  return state ? state->padding(sequence) : 0;
}

int64_t serviceLogitsToKeep(hone_call *call, int64_t fresh) {
  const State *state = CallContext::of(call).sessionState();
  return state ? state->logitsToKeep(fresh) : fresh;
}

void serviceObserve(hone_call *call, int64_t site, const hone_tensor *values) {
  if (!CallContext::of(call).observe(site, *values))
    CallContext::of(call).leave();
}

const Service kServices[] = {
    {"hone_rt_alloc", reinterpret_cast<void *>(&serviceAlloc)},
    {"hone_rt_arena", reinterpret_cast<void *>(&serviceArena)},
    {"hone_rt_parallel", reinterpret_cast<void *>(&serviceParallel)},
    {"hone_rt_free", reinterpret_cast<void *>(&serviceFree)},
    {"hone_rt_output", reinterpret_cast<void *>(&serviceOutput)},
    {"hone_rt_fail", reinterpret_cast<void *>(&serviceFail)},
    {"hone_rt_fail_with", reinterpret_cast<void *>(&serviceFailWith)},
    {"hone_rt_state_append", reinterpret_cast<void *>(&serviceStateAppend)},
    {"hone_rt_state_view", reinterpret_cast<void *>(&serviceStateView)},
    {"hone_rt_state_update", reinterpret_cast<void *>(&serviceStateUpdate)},
    {"hone_rt_state_length", reinterpret_cast<void *>(&serviceStateLength)},
    {"hone_rt_state_lag", reinterpret_cast<void *>(&serviceStateLag)},
    {"hone_rt_state_padding", reinterpret_cast<void *>(&serviceStatePadding)},
    {"hone_rt_logits_to_keep", reinterpret_cast<void *>(&serviceLogitsToKeep)},
    {"hone_rt_observe", reinterpret_cast<void *>(&serviceObserve)},
};

} // namespace

void *findService(std::span<const Service> services, std::string_view name) {
  auto found = std::ranges::find(services, name, &Service::name);
  return found == services.end() ? nullptr : found->function;
}

void *findService(std::string_view name) { return findService(kServices, name); }

} // namespace hone::rt
