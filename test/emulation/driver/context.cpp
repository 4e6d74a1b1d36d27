// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contexts, and who is current.

#include "driver/context.h"

#include <cstdlib>

namespace hone::emulation {

Context::Context(int device, const Environment &environment)
    : device(device), chip(chipOf(environment.chip)), memory(environment.memoryBytes) {
  defaultStream.context = this;
  defaultPool.context = this;
}

Context::~Context() {
  // What is enqueued is done before its memory goes; modules free memory of their own.
  synchronize();
  modules.clear();
}

void Context::synchronize() {
  runAll(defaultStream);
  for (auto &[handle, stream] : streams)
    runAll(*stream);
}

bool Context::forbidsWaiting() {
  bool forbids = false;
  for (auto &[handle, stream] : streams) {
    if (!stream->capture)
      continue;
    Capture &capture = *stream->capture;
    bool mine = capture.mode == Capture::Mode::Global || capture.thread == std::this_thread::get_id();
    if (capture.mode == Capture::Mode::Relaxed || !mine)
      continue;
    capture.invalidated = true;
    forbids = true;
  }
  return forbids;
}

std::optional<uint64_t> Context::allocate(uint64_t bytes) {
  std::optional<uint64_t> address = memory.allocate(bytes);
  if (address)
    return address;
  synchronize();
  return memory.allocate(bytes);
}

Driver::Driver()
    : contexts(static_cast<size_t>(environment.devices)), retains(static_cast<size_t>(environment.devices)),
      errors(static_cast<size_t>(environment.devices)) {}

Driver::~Driver() {
  contexts.clear();
  report();
}

Driver &Driver::get() {
  static Driver driver;
  return driver;
}

Context *Driver::retain(int device) {
  auto index = static_cast<size_t>(device);
  if (!contexts[index])
    contexts[index] = std::make_unique<Context>(device, environment);
  ++retains[index];
  return contexts[index].get();
}

int Driver::faultOf(int device) const {
  auto index = static_cast<size_t>(device);
  return contexts[index] ? contexts[index]->error : errors[index];
}

void Driver::release(int device) {
  auto index = static_cast<size_t>(device);
  if (retains[index] == 0 || --retains[index] > 0)
    return;
  const Context *owner = contexts[index].get();
  errors[index] = owner->error;
  contexts[index].reset();
  freePinned(owner);
  report();
}

void Driver::reset(int device) {
  auto index = static_cast<size_t>(device);
  if (!contexts[index])
    return;
  // Handles of the context stay what they are, as they do in the driver: the new one lies where the old one lay.
  Context *context = contexts[index].get();
  int error = context->error;
  context->~Context();
  freePinned(context);
  new (context) Context(device, environment);
  context->error = error;
}

bool Driver::isLive(const Context *context) const {
  for (const auto &live : contexts)
    if (live && live.get() == context)
      return true;
  return false;
}

bool Driver::isPinned(const void *host) const {
  auto at = reinterpret_cast<uint64_t>(host);
  auto next = pinned.upper_bound(at);
  if (next == pinned.begin())
    return false;
  auto [begin, memory] = *std::prev(next);
  return at < begin + memory.bytes;
}

void Driver::freePinned(const Context *owner) {
  std::erase_if(pinned, [owner](const auto &entry) {
    if (entry.second.owner != owner)
      return false;
    std::free(reinterpret_cast<void *>(entry.first));
    return true;
  });
}

void Driver::report() const {
  if (!environment.report.empty())
    counters.write(environment.report);
}

std::vector<Context *> &currentContexts() {
  static thread_local std::vector<Context *> contexts;
  return contexts;
}

Call::Call(bool needsContext) {
  if (!driver.initialized) {
    status = kNotInitialized;
    return;
  }
  std::vector<Context *> &current = currentContexts();
  if (!current.empty() && driver.isLive(current.back()))
    context = current.back();
  if (!needsContext)
    return;
  if (context == nullptr)
    status = kInvalidContext;
  else
    status = context->error;
}

Stream *Call::stream(void *handle) {
  if (reinterpret_cast<uintptr_t>(handle) <= 2)
    return &context->defaultStream;
  Stream *stream = find(context->streams, handle);
  if (stream == nullptr)
    status = kInvalidHandle;
  return stream;
}

} // namespace hone::emulation
