// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stream of a GPU, and memory that is allocated and freed in its order.

#ifndef HONE_RUNTIME_CUDA_STREAM_H
#define HONE_RUNTIME_CUDA_STREAM_H

#include "cuda/step.h"
#include "hone/io/dtype.h"

#include <optional>
#include <set>
#include <utility>

namespace hone::rt::cuda {

/// What pointers to device memory are aligned to, in bytes; the driver aligns to as much at least.
constexpr uint64_t kDeviceAlignment = 256;

/// Bytes of a dense tensor, or more than there can be where that is no number.
uint64_t bytesOf(hone_dtype dtype, std::span<const int64_t> sizes);

/// Functions that enqueue need the context to be current (Context::Scope).
class Stream {
public:
  /// With `ranks`, what it runs may wait for other processes.
  static absl::StatusOr<std::shared_ptr<Stream>> create(std::shared_ptr<Context> context, GpuRanks *ranks = nullptr);
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;
  ~Stream();

  Context &context() const { return *owner; }
  const std::shared_ptr<Context> &shareContext() const { return owner; }
  const Driver &driver() const { return owner->driver(); }
  CUstream handle() const { return stream; }
  GpuRanks *ranks() const { return others; }

  /// From now on, work is collected until submit(), wait() or stop(), and memory that is freed is given to the next that fits.
  void collect() { isCollecting = true; }
  bool collects() const { return isCollecting; }
  /// Enqueues what was collected; `isWhole` where it is all of a call.
  absl::Status submit(bool isWhole);
  /// Ends collecting. What was not submitted is forgotten, and memory that was taken and given back is kept for the next time: a step
  /// that takes the same again gets the same addresses, and is the same graph.
  void stop();

  /// These enqueue, or collect.
  absl::Status launch(const Kernel &kernel, const hone::cuda::LaunchShape &shape, void **arguments);
  absl::Status move(Work::Kind kind, uint64_t to, uint64_t from, uint64_t bytes);
  /// False where the machine has no library for products, or that has no way to compute this one.
  absl::StatusOr<bool> multiply(const hone::cuda::MatrixProduct &product);

  /// Submits, and waits for all that was enqueued. A fault loses the context. Fails where another rank is gone.
  absl::Status wait();
  /// Waits for an event of this stream, in the same way.
  absl::Status wait(CUevent event, std::string_view what);

  /// Memory from the context's pool, uninitialised. `what` is what it is for, in the error where there is not so much.
  absl::StatusOr<CUdeviceptr> allocate(uint64_t bytes, std::string_view what);
  void free(CUdeviceptr memory);

private:
  Stream(std::shared_ptr<Context> context, GpuRanks *ranks) : owner(std::move(context)), others(ranks) {}
  template <typename Query, typename Wait> absl::Status waitBy(Query query, Wait wait, std::string_view what);
  void giveBack(CUdeviceptr memory);

  std::shared_ptr<Context> owner;
  GpuRanks *others;
  CUstream stream = nullptr;
  std::optional<StepGraph> graph;
  std::optional<std::unique_ptr<Products>> products; // null where there is no library; once it was looked for
  bool isCollecting = false;
  std::vector<Work> collected;
  std::map<CUdeviceptr, uint64_t> sizes;               // of memory that was allocated
  std::set<std::pair<uint64_t, CUdeviceptr>> released; // memory of steps that nobody has, by size
  std::set<CUdeviceptr> taken;                         // since collecting began
};

/// Memory in the order of a stream that only grows. What it held is gone when it does.
class DeviceBuffer {
public:
  explicit DeviceBuffer(std::shared_ptr<Stream> stream) : stream(std::move(stream)) {}
  DeviceBuffer(DeviceBuffer &&other) noexcept
      : stream(std::move(other.stream)), memory(std::exchange(other.memory, 0)),
        capacity(std::exchange(other.capacity, 0)) {}
  DeviceBuffer &operator=(DeviceBuffer &&) = delete;
  ~DeviceBuffer() { clear(); }

  /// Has at least `bytes` afterwards, and half more where it grew and there is so much, for the next calls.
  absl::Status reserve(uint64_t bytes, std::string_view what);

  CUdeviceptr address() const { return memory; }
  void *data() const { return reinterpret_cast<void *>(memory); }

private:
  void clear();

  std::shared_ptr<Stream> stream;
  CUdeviceptr memory = 0;
  uint64_t capacity = 0;
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_STREAM_H
