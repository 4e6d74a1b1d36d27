// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the host sides of kernels ask of the call that they are in. Nothing with a destructor lives in what leaves a call.

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
    runOrLeave(call, [&] { return queue().launch(function, shape, arguments); });
  }

  bool isConstant(const void *memory) const override { return queue().isWeight(memory); }

  bool multiply(const hone::cuda::MatrixProduct &product) override {
    bool isEnqueued = false;
    runOrLeave(call, [&]() -> absl::Status {
      HONE_ASSIGN_OR_RETURN(isEnqueued, queue().multiply(product));
      return absl::OkStatus();
    });
    return isEnqueued;
  }

  hone::cuda::StateLength stateLength() override {
    const State *state = CallContext::of(call).sessionState();
    hone::cuda::StateLength length;
    runOrLeave(call, [&]() -> absl::Status {
      HONE_ASSIGN_OR_RETURN(length, queue().stateLength(state ? state->length() : 0));
      return absl::OkStatus();
    });
    return length;
  }

  void *acquire(uint64_t bytes) override {
    void *memory = nullptr;
    runOrLeave(call, [&]() -> absl::Status {
      HONE_ASSIGN_OR_RETURN(memory, queue().allocate(bytes));
      return absl::OkStatus();
    });
    return memory;
  }

  void release(void *memory) override { queue().release(memory); }

  hone::cuda::TensorMap makeTensorMap(const hone::cuda::TensorBox &box) override {
    hone::cuda::TensorMap map;
    runOrLeave(call, [&]() -> absl::Status {
      HONE_ASSIGN_OR_RETURN(map, encodeTensorMap(queue().context(), box));
      return absl::OkStatus();
    });
    return map;
  }

  hone::cuda::DeviceLimits limits() const override {
    const Properties &gpu = queue().context().properties();
    return {gpu.capability, gpu.multiprocessors, static_cast<int32_t>(gpu.sharedBytes)};
  }

private:
  Queue &queue() const { return static_cast<Queue &>(*CallContext::of(call).queue()); }

  hone_call *call = nullptr;
};

} // namespace
} // namespace hone::rt::cuda

hone::cuda::KernelDevice &hone::cuda::kernelDevice(hone_call *call) {
  static thread_local rt::cuda::KernelSide side; // a thread is in one call at a time
  side.enter(call);
  return side;
}
