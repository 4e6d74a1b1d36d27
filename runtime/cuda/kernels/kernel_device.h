// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The device as the host side of kernels sees it. Kernels do not know the driver: whoever runs calls (the runtime, or
// a test) provides the device.

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
  bool isDependent; // its kernels wait for those before them, so they may be launched before these end
};

/// Chips that launch a dependent kernel early; others launch it when the kernels before it have ended.
constexpr int32_t kFirstChipOfDependentLaunch = 90;

/// All fatbins; DeviceFunction::fatbin is an index into them.
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

/// What launch plans depend on.
struct DeviceLimits {
  int32_t chip;            // 10 · major + minor of the compute capability: 90
  int32_t multiprocessors; // of the device
  int32_t sharedBytes;     // limit of a block
};

/// How many positions the state had when the call began, here and in the device's memory. Arguments that grow with the state
/// are passed less that number, which the kernel adds: then a step of decoding launches what the one before did, and its
/// graph needs no change.
struct StateLength {
  int64_t here = 0;
  const int64_t *onDevice = nullptr;
};

/// The device of one call. Everything is enqueued on the call's stream, in order. Members that fail end the call as
/// hone_rt_fail does, so that nothing with a destructor may live across them.
class KernelDevice {
public:
  /// `arguments` as cuLaunchKernel takes them: one pointer a parameter.
  virtual void launch(const DeviceFunction &function, const LaunchShape &shape, void **arguments) = 0;

  /// Whether nothing writes to this memory while the call runs, as to the weights of an artefact.
  virtual bool isConstant(const void *memory) const = 0;

  /// Enqueues a product of the machine's BLAS library. False, and nothing enqueued, where there is no library or it
  /// does not support this product.
  virtual bool multiply(const MatrixProduct &product) = 0;

  virtual StateLength stateLength() = 0;

  /// Device memory for what is enqueued until `release`, aligned to 256 bytes, uninitialised.
  virtual void *acquire(uint64_t bytes) = 0;
  virtual void release(void *memory) = 0;

  /// A tensor map for TMA loads; on sm_90.
  virtual TensorMap makeTensorMap(const TensorBox &box) = 0;

  virtual DeviceLimits limits() const = 0;

protected:
  ~KernelDevice() = default;
};

/// The device that `call` runs on. This library declares it and whoever runs calls defines it.
KernelDevice &kernelDevice(hone_call *call);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_KERNEL_DEVICE_H
