// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading the library of the target `cuda`.

#include "core/device.h"
#include "core/device_interface.h"
#include "core/shared_library.h"

namespace hone::rt {

absl::StatusOr<const DeviceLibrary *> loadCudaLibrary() {
  constexpr const char *file = "libhone_cuda.so", *own = HONE_VERSION "+" HONE_DEVICE_INTERFACE;
  HONE_ASSIGN_OR_RETURN(void *symbol, findInLibrary(file, "hone_device_library", SymbolScope::Local));
  const auto *library = static_cast<const DeviceLibrary *>(symbol);
  if (std::string_view(library->version) != own)
    return io::invalid("unsupported version ", library->version, " of ", file, "; supported: ", own);
  return library;
}

} // namespace hone::rt
