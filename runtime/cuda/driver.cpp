// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening the driver, and its errors in words.

#include "cuda/driver.h"

#include "cuda/function_finder.h"

#include <mutex>

namespace hone::rt::cuda {
namespace {

using io::cat;

/// The machine is at fault, not the caller; tools exit with 1 all the same.
template <typename... Words> absl::Status unusable(const Words &...words) {
  return absl::FailedPreconditionError(cat("cannot use an NVIDIA GPU: ", words...));
}

} // namespace

bool isFault(CUresult result) {
  switch (result) {
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_NVLINK_UNCORRECTABLE:
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_CONTEXT_IS_DESTROYED:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED:
    return true;
  default:
    return false;
  }
}

std::string versionText(int version) { return cat(version / 1000, ".", version % 1000 / 10); }

absl::StatusOr<const Driver *> Driver::get() {
  static std::mutex mutex;
  static std::unique_ptr<const Driver> machine;
  std::lock_guard lock(mutex);
  if (!machine) {
    HONE_ASSIGN_OR_RETURN(machine, open());
  }
  return machine.get();
}

absl::StatusOr<std::unique_ptr<const Driver>> Driver::open(const char *library) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return unusable("the driver is not installed: ", dlerror());
  std::unique_ptr<Driver> driver(new Driver());
  HONE_RETURN_IF_ERROR(driver->load(handle, library));
  HONE_RETURN_IF_ERROR(driver->initialise());
  return std::unique_ptr<const Driver>(std::move(driver));
}

absl::Status Driver::load(void *library, const char *name) {
  FunctionFinder functions(library);
#define HONE_DRIVER_FUNCTION(name, symbol, parameters) functions.find(name, #symbol);
#include "cuda/driver_functions.def"
#undef HONE_DRIVER_FUNCTION
  if (cuDriverGetVersion)
    HONE_RETURN_IF_ERROR(checkVersion()); // an old driver lacks functions
  return functions.missing() ? unusable(name, " has no function ", functions.missing()) : absl::OkStatus();
}

absl::Status Driver::checkVersion() const {
  int version = 0;
  if (cuDriverGetVersion(&version) == CUDA_SUCCESS && version < kOldestDriver)
    return unusable("expected a driver for CUDA ", versionText(kOldestDriver),
                    " or newer, but the installed one is for ", versionText(version));
  return absl::OkStatus();
}

absl::Status Driver::initialise() const {
  int count = 0;
  CUresult result = cuInit(0);
  if (result == CUDA_SUCCESS)
    result = cuDeviceGetCount(&count);
  if (result == CUDA_ERROR_NO_DEVICE || (result == CUDA_SUCCESS && count == 0))
    return unusable("the driver finds none");
  return result == CUDA_SUCCESS ? absl::OkStatus() : unusable("the driver does not start: ", textOf(result));
}

std::string Driver::textOf(CUresult result) const {
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  if (!name)
    return cat("error ", static_cast<int>(result), " of the driver");
  return text ? cat(name, " (", text, ")") : name;
}

absl::Status Driver::check(CUresult result, std::string_view what) const {
  if (result == CUDA_SUCCESS)
    return absl::OkStatus();
  return absl::UnavailableError(cat("cannot ", what, ": ", textOf(result)));
}

} // namespace hone::rt::cuda
