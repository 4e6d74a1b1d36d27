// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the host sides of kernels meet the call that they are in. Nothing with a destructor lives in what leaves a call.

#include "core/call.h"
#include "cuda/queue.h"
#include "cuda/tensor_map.h"

namespace hone::rt::cuda {
namespace {

class KernelSide final : public hone::cuda::KernelDevice {
public:
  void enter(hone_call *next) { call = next; }

  void launch(const hone::cuda::DeviceFunction &function, const hone::cuda::LaunchShape &shape,
              void **arguments) override {
    if (!succeeded(queue().launch(function, shape, arguments)))
      context().leave();
  }

  bool multiply(const hone::cuda::MatrixProduct &product) override {
    bool isEnqueued = false;
    if (!tryMultiply(product, isEnqueued))
      context().leave();
    return isEnqueued;
  }

  void *acquire(uint64_t bytes) override {
    void *memory = allocate(bytes);
    if (!memory)
      context().leave();
    return memory;
  }

  void release(void *memory) override { queue().release(memory); }

  hone::cuda::TensorMap makeTensorMap(const hone::cuda::TensorBox &box) override {
    hone::cuda::TensorMap map;
    if (!encode(box, map))
      context().leave();
    return map;
  }

  hone::cuda::DeviceLimits limits() const override {
    const Properties &gpu = queue().context().properties();
    return {gpu.capability, gpu.multiprocessors, static_cast<int32_t>(gpu.sharedBytes)};
  }

private:
  CallContext &context() const { return CallContext::of(call); }
  Queue &queue() const { return static_cast<Queue &>(*context().queue()); }

  bool succeeded(absl::Status status) {
    if (status.ok())
      return true;
    context().record(std::move(status));
    return false;
  }

  /// Whatever has a destructor is gone when the caller leaves the call.
  bool tryMultiply(const hone::cuda::MatrixProduct &product, bool &isEnqueued) {
    absl::StatusOr<bool> result = queue().multiply(product);
    isEnqueued = result.ok() && *result;
    return succeeded(result.status());
  }

  void *allocate(uint64_t bytes) {
    absl::StatusOr<void *> memory = queue().allocate(bytes);
    return succeeded(memory.status()) ? *memory : nullptr;
  }

  bool encode(const hone::cuda::TensorBox &box, hone::cuda::TensorMap &map) {
    absl::StatusOr<hone::cuda::TensorMap> encoded = encodeTensorMap(queue().context(), box);
    if (!succeeded(encoded.status()))
      return false;
    map = *encoded;
    return true;
  }

  hone_call *call = nullptr;
};

} // namespace
} // namespace hone::rt::cuda

hone::cuda::KernelDevice &hone::cuda::kernelDevice(hone_call *call) {
  static thread_local rt::cuda::KernelSide side; // a thread is in one call at a time
  side.enter(call);
  return side;
}
