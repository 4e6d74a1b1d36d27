// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening cuBLASLt.

#include "cuda/blas/cublaslt.h"

#include "cuda/function_finder.h"

namespace hone::rt::cuda {

// The library counts 10000 · major + 100 · minor: what cublaslt_types.h declares holds for these.
static constexpr size_t kOldestVersion = 120000, kFirstUnknownVersion = 140000;

const CublasLt *CublasLt::get() {
  static CublasLt library;
  static const bool isOpen = [] {
    std::string reason;
    return library.open("libcublasLt.so.13", reason) || library.open("libcublasLt.so.12", reason);
  }();
  return isOpen ? &library : nullptr;
}

bool CublasLt::open(const char *file, std::string &reason) {
  void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    reason = dlerror();
    return false;
  }
  FunctionFinder functions(handle);
#define HONE_CUBLASLT_FUNCTION(result, name, parameters) functions.find(name, #name);
#include "cuda/blas/cublaslt_functions.def"
#undef HONE_CUBLASLT_FUNCTION
  if (functions.missing()) {
    reason = std::string(file) + " has no function " + functions.missing();
    return false;
  }
  size_t version = cublasLtGetVersion();
  if (version >= kOldestVersion && version < kFirstUnknownVersion)
    return true;
  reason = "unsupported version " + std::to_string(version) + " of " + file + "; supported: 12 and 13";
  return false;
}

} // namespace hone::rt::cuda
