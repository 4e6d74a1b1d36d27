// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the host side of kernels asks of the device that a call runs on. Kernels know nothing of the driver: whoever runs
// calls (the runtime, or a test) gives them a device.

#ifndef HONE_RUNTIME_CUDA_KERNELS_KERNEL_DEVICE_H
#define HONE_RUNTIME_CUDA_KERNELS_KERNEL_DEVICE_H

#include "hone/runtime/program.h"
#include "matrix_product.h"
#include "tensor_map.h"

#include <cstdint>
#include <span>

namespace hone::cuda {

/// A fatbin of this library: cubins and PTX, as cuModuleLoadData takes them, to be loaded when it is first needed.
struct Fatbin {
  const char *name;
  std::span<const unsigned char> bytes;
};

/// All of them; a DeviceFunction says its fatbin by the index.
std::span<const Fatbin> fatbins();

/// A function of device code.
struct DeviceFunction {
  uint32_t fatbin;
  const char *name;
};

/// `shared`: bytes of dynamic shared memory; above 48 KiB the device raises the function's limit first.
struct LaunchShape {
  uint32_t grid[3], block[3], shared;
};

/// What planners decide by.
struct DeviceLimits {
  int32_t chip;            // 10 · major + minor of the compute capability: 90
  int32_t multiprocessors; // of the device
  int32_t sharedBytes;     // the most that a block may ask for
};

/// The device of one call. Everything is enqueued on the call's stream, in order. Members that fail end the call as
/// hone_rt_fail does, so that nothing with a destructor may live across them.
class KernelDevice {
public:
  /// `arguments` as cuLaunchKernel takes them: one pointer a parameter.
  virtual void launch(const DeviceFunction &function, const LaunchShape &shape, void **arguments) = 0;

  /// Enqueues a product by a library that the machine has. False where there is none, or it has no way to compute this; then nothing
  /// was enqueued.
  virtual bool multiply(const MatrixProduct &product) = 0;

  /// Device memory for what is enqueued until `release`, aligned to 256 bytes, uninitialised.
  virtual void *acquire(uint64_t bytes) = 0;
  virtual void release(void *memory) = 0;

  /// What the copy engine needs to know of a tensor; on sm_90.
  virtual TensorMap mapOf(const TensorBox &box) = 0;

  virtual DeviceLimits limits() const = 0;

protected:
  ~KernelDevice() = default;
};

/// The device that `call` runs on. This library declares it and whoever runs calls defines it.
KernelDevice &kernelDevice(hone_call *call);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_KERNEL_DEVICE_H
