// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices and their contexts: memory, modules, streams, events, and the error that ends a context.

#pragma once

#include "driver/chip.h"
#include "driver/counters.h"
#include "driver/environment.h"
#include "driver/queue.h"
#include "ptx/memory.h"
#include "ptx/module.h"

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>

namespace hone::emulation {

struct LoadedModule;

/// A kernel of a module, as programs hold it.
struct Function {
  LoadedModule *module;
  const Kernel *kernel;
  int mostDynamicShared = kPlainSharedBytes;
};

struct LoadedModule {
  Context *context;
  std::unique_ptr<PtxModule> ptx;
  std::map<std::string, std::unique_ptr<Function>> functions;
};

/// A pool: only its identity matters, memory is that of the device.
struct Pool {
  Context *context;
  uint64_t attributes[16] = {};
};

struct Graph {
  Context *context;
  std::vector<std::unique_ptr<Operation>> nodes; // in an order in which they can be done
};

/// A graph that can be launched. Launches that are enqueued keep the operations that it had then.
struct ExecutableGraph {
  Context *context;
  std::vector<const void *> nodes; // of the graph that it was made of
  std::shared_ptr<const std::vector<Operation>> operations;
};

class Context {
public:
  Context(int device, const Environment &environment);
  ~Context();

  /// Objects that programs hold a pointer to; find() knows whether it is one.
  template <class T> using Objects = std::unordered_map<const void *, std::unique_ptr<T>>;

  const int device;
  const Chip &chip;
  DeviceMemory memory;
  int error =
      kSuccess; // of a fault: nothing works any more, neither here nor in a context that the process makes afterwards
  Stream defaultStream;
  Objects<Stream> streams;
  Objects<Event> events;
  Objects<LoadedModule> modules;
  Objects<Pool> pools;
  Objects<Graph> graphs;
  Objects<ExecutableGraph> executables;
  std::unordered_map<const void *, Function *> functions;
  Pool defaultPool;

  /// Does everything that was enqueued.
  void synchronize();
  /// Whether one of the streams records in a mode that forbids what waits for the device; the recording is then lost.
  bool forbidsWaiting();
  /// Memory for a program; waits for what is to be freed where there is too little.
  std::optional<uint64_t> allocate(uint64_t bytes);
};

/// The whole emulated driver: one lock around it all.
class Driver {
public:
  static Driver &get();

  std::recursive_mutex mutex;
  const Environment environment = Environment::read();
  Counters counters;
  bool initialized = false;

  /// The context of a device; null while nobody retains it.
  Context *context(int device) { return contexts[static_cast<size_t>(device)].get(); }
  Context *retain(int device);
  /// Of a fault, after which the process has no context of the device any more.
  int faultOf(int device) const;
  void release(int device);
  /// Frees everything that the device's context has. Who retains it has an empty one from then on.
  void reset(int device);
  bool isLive(const Context *context) const;
  bool hasDevice(int device) const { return device >= 0 && device < environment.devices; }

  /// Pinned memory of the host; `owner` is the context that allocated it and frees it with itself, null where it was registered.
  struct Pinned {
    uint64_t bytes;
    const Context *owner;
  };
  std::map<uint64_t, Pinned> pinned; // by its beginning
  bool isPinned(const void *host) const;

  void report() const;
  /// Does what is enqueued, and reports.
  ~Driver();

private:
  Driver();
  void freePinned(const Context *owner);
  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<int> retains, errors; // errors: of faults of contexts that are gone
};

/// The contexts that the calling thread has made current, the last one on top.
std::vector<Context *> &currentContexts();

/// Enters the driver: takes its lock, and finds the current context. `status` is what the call returns where it cannot go on.
struct Call {
  explicit Call(bool needsContext = true);
  Driver &driver = Driver::get();
  std::lock_guard<std::recursive_mutex> lock{driver.mutex};
  Context *context = nullptr;
  int status = kSuccess;

  explicit operator bool() const { return status == kSuccess; }
  /// The stream of a handle: null and 1 are the default stream, and 2 too, as all threads share it here.
  Stream *stream(void *handle);
};

template <class T> T *find(const Context::Objects<T> &objects, const void *handle) {
  auto found = objects.find(handle);
  return found == objects.end() ? nullptr : found->second.get();
}

/// Keeps an object, and returns what programs hold.
template <class T> T *keep(Context::Objects<T> &objects, std::unique_ptr<T> object) {
  T *handle = object.get();
  objects.emplace(handle, std::move(object));
  return handle;
}

} // namespace hone::emulation
