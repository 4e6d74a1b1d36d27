// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A GPU in use: its primary context, which this process shares with other users of CUDA in it, and a pool of its memory.

#ifndef HONE_RUNTIME_CUDA_CONTEXT_H
#define HONE_RUNTIME_CUDA_CONTEXT_H

#include "cuda/kernels/kernel_device.h"
#include "cuda/page_pool.h"

#include <atomic>
#include <map>
#include <mutex>

namespace hone::rt::cuda {

/// A kernel. A dependent one waits for those before it (cuda/kernels/device/overlap.h).
struct Kernel {
  const char *name;
  CUfunction function;
  bool isDependent;
};

/// What a GPU is and has.
struct Properties {
  std::string name;   // "NVIDIA H100"
  int capability = 0; // 90 for sm_90
  int multiprocessors = 0;
  uint64_t memoryBytes = 0;
  int64_t sharedBytes = 0; // most shared memory of a block
};

/// A GPU that the driver shows; CUDA_VISIBLE_DEVICES chooses them. Thread-safe.
///
/// A fault of a kernel ends a context: its memory, streams and modules are lost, and none of its functions works any more. It shows
/// in the result of any function that comes later, so all results go through `check`. Objects of a lost context give nothing back
/// to the driver, and `get` fails from then on: only another process can use the GPU.
class Context {
public:
  /// The GPU of that number, from 0.
  static absl::StatusOr<std::shared_ptr<Context>> get(int number);

  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;
  ~Context();

  const Driver &driver() const { return functions; }
  const Properties &properties() const { return description; }
  CUmemoryPool pool() const { return memoryPool; }
  PagePool &pages() { return pagePool; }

  /// The context is the calling thread's current one while this lives.
  class Scope {
  public:
    explicit Scope(const Context &context);
    ~Scope();
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    const Driver &driver;
    bool entered;
  };

  /// A function of a fat binary that lives as long as the process, and is loaded once.
  absl::StatusOr<CUfunction> function(const void *fatbin, const char *name);

  /// Enqueues a kernel: a dependent one may be launched before the work before it has ended (programmatic dependent launch), where
  /// the chip has that.
  absl::Status launch(const Kernel &kernel, const hone::cuda::LaunchShape &shape, CUstream stream, void **arguments);

  /// Lets blocks of a kernel have so many bytes of dynamic shared memory, or more where that was asked for before: launches that are
  /// enqueued later may need it still.
  absl::Status allowShared(const Kernel &kernel, uint32_t bytes);

  /// After a fault, whose text is kept.
  bool isLost() const { return isGone; }
  std::string faultText() const;

  /// "cannot allocate <bytes> bytes of GPU memory for <what>: <free> of <total> bytes are free".
  absl::Status outOfMemory(uint64_t bytes, std::string_view what) const;

  /// OK, or what went wrong, and the context is lost where that was a fault.
  absl::Status check(CUresult result, std::string_view what);

private:
  Context(const Driver &functions, CUdevice device) : functions(functions), device(device), pagePool(*this) {}
  absl::Status open();
  absl::Status describe();
  absl::Status createPool();
  void release();
  void unloadAll();
  absl::StatusOr<CUmodule> moduleOf(const void *fatbin, const char *name);

  const Driver &functions;
  CUdevice device;
  Properties description;
  CUcontext handle = nullptr;
  bool isRetained = false;
  CUmemoryPool memoryPool = nullptr;
  PagePool pagePool;
  std::atomic<bool> isGone = false;
  std::mutex moduleMutex;
  std::map<const void *, CUmodule> modules; // by their fat binaries
  std::mutex sharedMutex;
  std::map<CUfunction, uint32_t> sharedBytes; // that kernels were allowed
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_CONTEXT_H
