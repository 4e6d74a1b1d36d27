// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of the driver that parity tests need.

#include "test_device.h"
#include "cuda/kernels/kernel_table.h"
#include "cuda/launch_config.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

namespace hone::test {

// Pointers of the driver's own types are passed as void *, device addresses as 64 bits, error codes as int.
struct DriverFunctions {
  int (*cuInit)(unsigned);
  int (*cuDeviceGet)(int *, int);
  int (*cuDeviceGetAttribute)(int *, int, int);
  int (*cuDevicePrimaryCtxRetain)(void **, int);
  int (*cuCtxSetCurrent)(void *);
  int (*cuCtxSynchronize)();
  int (*cuModuleLoadData)(void **, const void *);
  int (*cuModuleGetFunction)(void **, void *, const char *);
  int (*cuFuncSetAttribute)(void *, int, int);
  int (*cuLaunchKernelEx)(const rt::cuda::CUlaunchConfig *, void *, void **, void **);
  int (*cuTensorMapEncodeTiled)(void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const unsigned *,
                                const unsigned *, int, int, int, int);
  int (*cuMemAllocAsync)(uint64_t *, size_t, void *);
  int (*cuMemFreeAsync)(uint64_t, void *);
  int (*cuMemcpyHtoD_v2)(uint64_t, const void *, size_t);
  int (*cuMemcpyDtoH_v2)(void *, uint64_t, size_t);
  int (*cuGetErrorName)(int, const char **);
  int (*cuEventCreate)(void **, unsigned);
  int (*cuEventRecord)(void *, void *);
  int (*cuEventSynchronize)(void *);
  int (*cuEventElapsedTime)(float *, void *, void *);
};

static bool openDriver(DriverFunctions &driver, std::string &reason) {
  const char *name = std::getenv("HONE_TEST_CUDA_DRIVER");
  name = name ? name : HONE_EMULATED_DRIVER;
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    reason = std::string("cannot open the CUDA driver: ") + dlerror();
    return false;
  }
  auto find = [&](auto &function, const char *symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (!function && reason.empty())
      reason = std::string(name) + ": no function " + symbol;
  };
#define HONE_FIND(function) find(driver.function, #function)
  HONE_FIND(cuInit), HONE_FIND(cuDeviceGet), HONE_FIND(cuDeviceGetAttribute), HONE_FIND(cuDevicePrimaryCtxRetain);
  HONE_FIND(cuCtxSetCurrent), HONE_FIND(cuCtxSynchronize), HONE_FIND(cuModuleLoadData), HONE_FIND(cuModuleGetFunction);
  HONE_FIND(cuFuncSetAttribute), HONE_FIND(cuLaunchKernelEx), HONE_FIND(cuTensorMapEncodeTiled),
      HONE_FIND(cuMemAllocAsync), HONE_FIND(cuMemFreeAsync);
  HONE_FIND(cuMemcpyHtoD_v2), HONE_FIND(cuMemcpyDtoH_v2), HONE_FIND(cuGetErrorName), HONE_FIND(cuEventCreate);
  HONE_FIND(cuEventRecord), HONE_FIND(cuEventSynchronize), HONE_FIND(cuEventElapsedTime);
#undef HONE_FIND
  if (reason.empty() && driver.cuInit(0) != 0)
    reason = std::string(name) + ": no device that can be used";
  return reason.empty();
}

TestDevice *TestDevice::get(std::string &reason) {
  static DriverFunctions driver;
  static std::string why;
  static TestDevice *device = openDriver(driver, why) ? new TestDevice(driver) : nullptr;
  reason = why;
  return device;
}

TestDevice::TestDevice(const DriverFunctions &driver) : driver(driver) {
  void *context = nullptr;
  check(driver.cuDeviceGet(&device, 0), "cuDeviceGet");
  check(driver.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR, _MULTIPROCESSOR_COUNT, _MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
  deviceLimits = {10 * attribute(75) + attribute(76), attribute(16), attribute(97)};
}

void TestDevice::check(int result, const char *what) const {
  if (result == 0)
    return;
  const char *name = "unknown error";
  driver.cuGetErrorName(result, &name);
  std::fprintf(stderr, "%s failed: %s (%d)\n", what, name, result);
  std::exit(1);
}

int32_t TestDevice::attribute(int number) const {
  int value = 0;
  check(driver.cuDeviceGetAttribute(&value, number, device), "cuDeviceGetAttribute");
  return value;
}

void *TestDevice::functionOf(const void *image, const char *name) {
  void *&module = modules[image], *found = nullptr;
  if (!module)
    check(driver.cuModuleLoadData(&module, image), "cuModuleLoadData");
  check(driver.cuModuleGetFunction(&found, module, name), name);
  return found;
}

void TestDevice::launch(const cuda::DeviceFunction &function, const cuda::LaunchShape &shape, void **arguments) {
  names.insert(function.name);
  const cuda::Fatbin &fatbin = cuda::fatbins()[function.fatbin];
  launch(functionOf(fatbin.bytes.data(), function.name), function.name, shape, arguments, fatbin.isDependent);
}

void TestDevice::launch(const char *ptx, const char *name, const cuda::LaunchShape &shape, void **arguments) {
  launch(functionOf(ptx, name), name, shape, arguments, /*isDependent=*/false);
}

void TestDevice::launch(void *function, const char *name, const cuda::LaunchShape &shape, void **arguments,
                        bool isDependent) {
  if (shape.shared > 48 * 1024) // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    check(driver.cuFuncSetAttribute(function, 8, static_cast<int>(shape.shared)), "cuFuncSetAttribute");
  rt::cuda::LaunchConfig config(shape, nullptr, isDependent, deviceLimits.chip);
  check(driver.cuLaunchKernelEx(&config.all, function, arguments, nullptr), name);
}

bool TestDevice::useLibrary(bool isUsed) {
  if (isUsed && !library) {
    if (!std::getenv("HONE_TEST_CUDA_DRIVER")) // the loader finds it by its name from now on
      dlopen(HONE_EMULATED_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
    library = rt::cuda::Products::create();
  }
  isLibraryUsed = isUsed;
  return !isUsed || library != nullptr;
}

bool TestDevice::multiply(const cuda::MatrixProduct &product) {
  std::shared_ptr<rt::cuda::ProductPlan> plan = isLibraryUsed && library ? library->plan(product) : nullptr;
  if (!plan)
    return false;
  void *workspace = plan->workspaceBytes > 0 ? acquire(plan->workspaceBytes) : nullptr;
  rt::cuda::cublasStatus_t status = library->enqueue(*plan, product, workspace, nullptr);
  if (status != rt::cuda::CUBLAS_STATUS_SUCCESS) {
    std::fprintf(stderr, "cublasLtMatmul failed: %s\n", library->textOf(status));
    std::exit(1);
  }
  if (workspace)
    release(workspace);
  ++products;
  return true;
}

cuda::TensorMap TestDevice::makeTensorMap(const cuda::TensorBox &box) {
  constexpr int kFloat16 = 6, kBFloat16 = 9, kSwizzle64 = 2, kSwizzle128 = 3, kPromotion256 = 3; // CU_TENSOR_MAP_…
  const unsigned shape[] = {box.columns, box.rows, 1, 1}, ones[] = {1, 1, 1, 1};
  cuda::TensorMap map;
  check(driver.cuTensorMapEncodeTiled(map.bytes, box.dtype == HONE_F16 ? kFloat16 : kBFloat16, 4, box.data, box.sizes,
                                      box.strides, shape, ones, 0,
                                      box.columns == cuda::kBoxColumns ? kSwizzle128 : kSwizzle64, kPromotion256, 0),
        "cuTensorMapEncodeTiled");
  return map;
}

cuda::StateLength TestDevice::stateLength() {
  if (!length) {
    std::vector<uint8_t> bytes(sizeof(int64_t));
    bytes[0] = kStateLength;
    length = upload(bytes);
    --acquired; // lives as long as this
  }
  return {kStateLength, static_cast<const int64_t *>(length)};
}

void *TestDevice::acquire(uint64_t bytes) {
  uint64_t memory = 0;
  check(driver.cuMemAllocAsync(&memory, bytes, nullptr), "cuMemAllocAsync");
  ++acquired;
  return reinterpret_cast<void *>(memory);
}

void TestDevice::release(void *memory) {
  check(driver.cuMemFreeAsync(reinterpret_cast<uint64_t>(memory), nullptr), "cuMemFreeAsync");
  uploaded.erase(static_cast<const char *>(memory));
  --acquired;
}

void TestDevice::call(std::string_view kernel, const std::vector<hone_tensor> &operands,
                      const std::vector<int64_t> &ints, const std::vector<double> &floats) {
  hone_kernel_fn function = cuda::findKernel(kernel);
  if (!function) {
    std::fprintf(stderr, "no kernel %s\n", std::string(kernel).c_str());
    std::exit(1);
  }
  hone_call call = {};
  call.runtime = this;
  function(&call, operands.data(), ints.data(), floats.data());
}

void TestDevice::wait() { check(driver.cuCtxSynchronize(), "what was enqueued"); }

void TestDevice::beginMeasurement() {
  for (void *&event : events)
    if (!event)
      check(driver.cuEventCreate(&event, 0), "cuEventCreate");
  check(driver.cuEventRecord(events[0], nullptr), "cuEventRecord");
}

double TestDevice::endMeasurement() {
  float milliseconds = 0;
  check(driver.cuEventRecord(events[1], nullptr), "cuEventRecord");
  check(driver.cuEventSynchronize(events[1]), "what was enqueued");
  check(driver.cuEventElapsedTime(&milliseconds, events[0], events[1]), "cuEventElapsedTime");
  return 1000.0 * milliseconds;
}

void *TestDevice::upload(const std::vector<uint8_t> &bytes) {
  void *memory = acquire(std::max<size_t>(bytes.size(), 1));
  if (!bytes.empty())
    check(driver.cuMemcpyHtoD_v2(reinterpret_cast<uint64_t>(memory), bytes.data(), bytes.size()), "cuMemcpyHtoD");
  uploaded[static_cast<const char *>(memory)] = bytes.size();
  return memory;
}

bool TestDevice::isConstant(const void *memory) const {
  const char *address = static_cast<const char *>(memory);
  auto next = uploaded.upper_bound(address);
  return next != uploaded.begin() && static_cast<size_t>(address - std::prev(next)->first) < std::prev(next)->second;
}

void TestDevice::download(void *memory, std::vector<uint8_t> &bytes) {
  if (!bytes.empty())
    check(driver.cuMemcpyDtoH_v2(bytes.data(), reinterpret_cast<uint64_t>(memory), bytes.size()), "cuMemcpyDtoH");
}

} // namespace hone::test

namespace hone::cuda {
KernelDevice &kernelDevice(hone_call *call) { return *static_cast<test::TestDevice *>(call->runtime); }
} // namespace hone::cuda
