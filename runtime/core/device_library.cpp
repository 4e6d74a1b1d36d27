// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading the library of a target.

#include "core/device.h"
#include "core/device_interface.h"
#include "core/shared_library.h"

namespace hone::rt {

absl::StatusOr<const DeviceLibrary *> loadDeviceLibrary(std::string_view target) {
  constexpr const char *own = HONE_VERSION "+" HONE_DEVICE_INTERFACE;
  const std::string file = io::cat("libhone_", target, ".so");
  HONE_ASSIGN_OR_RETURN(void *symbol, findInLibrary(file.c_str(), "hone_device_library", SymbolScope::Local));
  const auto *library = static_cast<const DeviceLibrary *>(symbol);
  if (std::string_view(library->version) != own)
    return io::invalid("unsupported version ", library->version, " of ", file, "; supported: ", own);
  return library;
}

} // namespace hone::rt
