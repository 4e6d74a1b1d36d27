// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NVIDIA's driver, opened when it is first needed, so that what needs none runs where there is none.

#ifndef HONE_RUNTIME_CUDA_DRIVER_H
#define HONE_RUNTIME_CUDA_DRIVER_H

#include "cuda/driver_types.h"
#include "hone/io/status.h"

#include <memory>

namespace hone::rt::cuda {

/// The driver's library is never closed: it keeps threads and exit handlers.
constexpr const char *kDriverLibrary = "libcuda.so.1";

/// The oldest version that has all that the runtime uses: 12.4, as cuDriverGetVersion counts.
constexpr int kOldestDriver = 12040;

/// The functions of the driver, under their names. Thread-safe, as the driver is.
class Driver {
public:
#define HONE_DRIVER_FUNCTION(name, symbol, parameters) CUresult(*name) parameters = nullptr;
#include "cuda/driver_functions.def"
#undef HONE_DRIVER_FUNCTION

  /// The machine's driver, initialised. Opened by the first call that succeeds, once in a process.
  static absl::StatusOr<const Driver *> get();

  /// Opens and initialises a library. Fails, in one sentence, without the library, with one that is too old, and without a GPU.
  static absl::StatusOr<std::unique_ptr<const Driver>> open(const char *library = kDriverLibrary);

  /// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)".
  std::string textOf(CUresult result) const;

  /// OK, or "cannot <what>: <result>".
  absl::Status check(CUresult result, std::string_view what) const;

private:
  Driver() = default;
  absl::Status load(void *library, const char *name);
  absl::Status checkVersion() const;
  absl::Status initialise() const;
};

/// True for errors after which a context is of no more use: a kernel's fault, or one of the GPU.
bool isFault(CUresult result);

/// "12.4".
std::string versionText(int version);

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_DRIVER_H
