// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver of the process that an emulated library is in.

#pragma once

#include "cuda/function_finder.h"

namespace hone::emulation {

/// Functions of the driver that the process has already, which `list` finds; null where one of them is missing. Looked for once for
/// each type.
template <typename Functions> const Functions *findDriver(void (*list)(Functions &, rt::cuda::FunctionFinder &)) {
  static Functions functions;
  static const bool areFound = [list] {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return false;
    rt::cuda::FunctionFinder finder(library);
    list(functions, finder);
    return !finder.missing();
  }();
  return areFound ? &functions : nullptr;
}

} // namespace hone::emulation
