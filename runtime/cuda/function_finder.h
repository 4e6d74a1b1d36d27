// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of libraries that are opened while a program runs.

#ifndef HONE_RUNTIME_CUDA_FUNCTION_FINDER_H
#define HONE_RUNTIME_CUDA_FUNCTION_FINDER_H

#include <dlfcn.h>

namespace hone::rt::cuda {

/// Finds functions of a library that dlopen gave, and notes the first that it lacks.
class FunctionFinder {
public:
  explicit FunctionFinder(void *library) : library(library) {}

  /// The address of `symbol`, or null.
  template <typename Function> void find(Function &function, const char *symbol) {
    function = reinterpret_cast<Function>(dlsym(library, symbol));
    if (!function && !lacking)
      lacking = symbol;
  }

  /// Null where there was everything.
  const char *missing() const { return lacking; }

private:
  void *library;
  const char *lacking = nullptr;
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_FUNCTION_FINDER_H
