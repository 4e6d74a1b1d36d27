// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A device for parity tests and benchmarks: the driver of the machine, or an emulated one, without the rest of the
// runtime.

#ifndef HONE_TEST_UNIT_CUDA_TEST_DEVICE_H
#define HONE_TEST_UNIT_CUDA_TEST_DEVICE_H

#include "cuda/blas/products.h"
#include "cuda/kernels/kernel_device.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hone::test {

struct DriverFunctions;

/// Runs kernels in order. An error ends the test program with a message: after a fault nothing else would run.
class TestDevice final : public cuda::KernelDevice {
public:
  /// The device of the driver that the environment variable HONE_TEST_CUDA_DRIVER names (a path, or a name that the
  /// loader finds), else of the emulated driver. Null where there is none, and `reason` says why.
  static TestDevice *get(std::string &reason);

  void launch(const cuda::DeviceFunction &function, const cuda::LaunchShape &shape, void **arguments) override;
  /// The same with a kernel of PTX, which ends with a zero and lives as long as this.
  void launch(const char *ptx, const char *name, const cuda::LaunchShape &shape, void **arguments);
  /// Of what was uploaded.
  bool isConstant(const void *memory) const override;
  /// By cuBLASLt, where `useLibrary` says so.
  bool multiply(const cuda::MatrixProduct &product) override;
  /// That of a session with `kStateLength` positions.
  cuda::StateLength stateLength() override;
  void *acquire(uint64_t bytes) override;
  void release(void *memory) override;
  cuda::TensorMap makeTensorMap(const cuda::TensorBox &box) override;
  cuda::DeviceLimits limits() const override { return deviceLimits; }

  /// Sets the number of SMs that launch plans see, so that small problems fill the device; returns the previous one.
  int32_t pretendMultiprocessors(int32_t count) { return std::exchange(deviceLimits.multiprocessors, count); }

  /// Names of the functions that were launched since this was last called.
  std::set<std::string> takeLaunched() { return std::exchange(names, {}); }

  /// Enqueues a kernel of the table.
  void call(std::string_view kernel, const std::vector<hone_tensor> &operands, const std::vector<int64_t> &ints,
            const std::vector<double> &floats);
  void wait();

  /// Whether products are cuBLASLt's from now on; false where the machine has none that the loader finds.
  bool useLibrary(bool isUsed);

  /// Products that the library computed.
  int64_t productsOfLibrary() const { return products; }

  /// Microseconds that the device takes for what `enqueue` enqueues.
  template <typename Enqueue> double measure(Enqueue enqueue) {
    beginMeasurement();
    enqueue();
    return endMeasurement();
  }

  /// The number of allocations that are not released.
  int64_t piecesHeld() const { return acquired; }

  void *upload(const std::vector<uint8_t> &bytes);
  void download(void *memory, std::vector<uint8_t> &bytes);

  static constexpr int64_t kStateLength = 5;

private:
  void beginMeasurement();
  double endMeasurement();
  explicit TestDevice(const DriverFunctions &driver);
  void check(int result, const char *what) const;
  int32_t attribute(int number) const;
  void *functionOf(const void *image, const char *name);
  void launch(void *function, const char *name, const cuda::LaunchShape &shape, void **arguments, bool isDependent);

  const DriverFunctions &driver;
  int device = 0;
  cuda::DeviceLimits deviceLimits = {};
  std::map<const void *, void *> modules; // by their images
  int64_t acquired = 0, products = 0;
  void *length = nullptr; // of the state
  std::unique_ptr<rt::cuda::Products> library;
  bool isLibraryUsed = false;
  std::map<const char *, size_t> uploaded; // bytes, by address
  std::set<std::string> names;
  void *events[2] = {};
};

} // namespace hone::test

#endif // HONE_TEST_UNIT_CUDA_TEST_DEVICE_H
