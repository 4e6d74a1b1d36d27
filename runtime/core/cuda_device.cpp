// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading the library of the target `cuda`.

#include "core/device.h"
#include "core/shared_library.h"

namespace hone::rt {

absl::StatusOr<const DeviceLibrary *> loadCudaLibrary() {
  constexpr const char *file = "libhone_cuda.so";
  HONE_ASSIGN_OR_RETURN(void *symbol, findInLibrary(file, "hone_device_library", SymbolScope::Local));
  const auto *library = static_cast<const DeviceLibrary *>(symbol);
  if (std::string_view(library->version) != HONE_VERSION)
    return io::invalid("unsupported version ", library->version, " of ", file, "; supported: " HONE_VERSION);
  return library;
}

} // namespace hone::rt
