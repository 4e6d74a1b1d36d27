// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calls of one session on a GPU, one after the other.

#ifndef HONE_RUNTIME_CUDA_QUEUE_H
#define HONE_RUNTIME_CUDA_QUEUE_H

#include "core/device.h"
#include "cuda/copy_plan.h"
#include "cuda/image.h"
#include "cuda/kernels/kernel_device.h"
#include "cuda/session_state.h"
#include "cuda/staging.h"
#include "cuda/token_sampler.h"

#include <optional>
#include <set>

namespace hone::rt::cuda {

/// One stream, and what calls leave on the GPU for those that follow.
class Queue final : public DeviceQueue {
public:
  /// `ranks` is null for an artefact that runs alone.
  static absl::StatusOr<std::unique_ptr<Queue>> create(std::shared_ptr<const LoadedImage> image, GpuRanks *ranks);
  ~Queue() override;

  absl::Status begin(std::span<const hone_tensor> tensors, LaunchReceiver launchReceiver) override;
  absl::Status end() override;
  bool isUsable() const override { return !context().isLost(); }
  bool isWeight(const void *memory) const { return image->isWeight(reinterpret_cast<CUdeviceptr>(memory)); }
  const uint8_t *weights() const override { return reinterpret_cast<const uint8_t *>(image->weights()); }
  absl::StatusOr<void *> input(size_t index, const hone_tensor &tensor, uint64_t version) override;
  absl::StatusOr<void *> output(size_t index, void *host, uint64_t bytes) override;
  absl::Status placeSlots(std::span<const uint64_t> bytes, std::span<void *> slots) override;
  absl::StatusOr<void *> allocate(uint64_t bytes) override;
  void release(void *memory) override;
  absl::Status launch(int64_t kernel, std::span<const int64_t, 7> shape, void **arguments) override;
  absl::Status copy(void *to, const void *from, uint64_t bytes) override;
  absl::Status upload(void *to, const void *from, uint64_t bytes) override;
  absl::Status fetch(void *to, const void *from, uint64_t bytes) override;
  void beginSampling(const sampling::SamplingOptions &options, std::vector<int32_t> history) override;
  absl::Status sample(size_t output, std::span<const int64_t> shape, uint64_t draw, int64_t &token) override;
  StateMemory &stateMemory() override { return state; }

  Context &context() const { return stream->context(); }
  const std::shared_ptr<Stream> &order() const { return stream; }

  /// Enqueues a kernel of the table.
  absl::Status launch(const hone::cuda::DeviceFunction &function, const hone::cuda::LaunchShape &shape,
                      void **arguments);

  /// Enqueues a product by the machine's library; false where it has none, or no way to compute it.
  absl::StatusOr<bool> multiply(const hone::cuda::MatrixProduct &product);

  /// Enqueues what all ranks do together: AllReduce or AllGather.
  absl::Status exchange(Work::Kind kind, CUdeviceptr to, CUdeviceptr from, uint64_t bytes);

  /// Stores the number of positions that the state had when the call began on the device, once a call.
  absl::StatusOr<hone::cuda::StateLength> stateLength(int64_t length);

  /// The number of this process among the ranks.
  int64_t rank() const { return stream->ranks()->rank(); }

  /// Runs `work`, which enqueues copies between calls, and waits for them.
  absl::Status betweenCalls(absl::FunctionRef<absl::Status()> work);

  /// Enqueues a copy between two views of one dtype and shape.
  absl::Status copyElements(const hone_tensor &from, const hone_tensor &to, CopyMeans means);

private:
  struct Output {
    size_t index;
    void *host;
    CUdeviceptr from;
    uint64_t bytes;
  };

  Queue(std::shared_ptr<const LoadedImage> image, std::shared_ptr<Stream> stream);
  absl::Status checkUsable() const;
  absl::Status createProgress();
  absl::Status enqueue(const Kernel &kernel, const hone::cuda::LaunchShape &shape, void **arguments);
  absl::StatusOr<Kernel> kernelOf(const hone::cuda::DeviceFunction &function);
  DeviceBuffer &bufferOf(std::vector<DeviceBuffer> &buffers, size_t index);
  absl::Status send(CUdeviceptr to, const void *from, uint64_t bytes);
  absl::Status follow(const char *name, std::chrono::steady_clock::time_point begin);
  absl::Status explain(absl::Status status) const;
  absl::Status waitForAll();

  std::shared_ptr<const LoadedImage> image;
  std::shared_ptr<Stream> stream;
  SessionState state;
  std::map<const char *, CUfunction> functions; // of the table, by the addresses of their names
  Staging staging;
  DeviceBuffer arena;
  DeviceBuffer lengthOnDevice;
  bool isLengthOnDevice = false;             // in this call
  std::vector<DeviceBuffer> inputs, outputs; // by their numbers in the manifest; kept between calls
  std::vector<bool> isGiven;                 // inputs that this call has on the GPU
  std::vector<uint64_t> versions;            // of inputs, as they are on the GPU; 0 of those that are not or may change
  std::vector<int64_t> latestSizes;          // of the inputs of the call before
  std::vector<Output> results;
  TokenSampler sampler;
  const int64_t *sampled = nullptr; // where the token goes that this call samples and writes to input 0
  std::optional<int64_t> held;      // the only token of input 0 on the GPU, which the call before sampled
  int32_t tokenBytes = 0;           // of a token there; 0 where it holds something else
  std::set<CUdeviceptr> allocations;
  std::optional<Context::Scope> scope;   // of the call
  LaunchReceiver receiver;               // of the call, or empty
  std::vector<const char *> launched;    // since the last wait
  volatile uint32_t *progress = nullptr; // how many of them have ended; pinned, written by the GPU
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_QUEUE_H
