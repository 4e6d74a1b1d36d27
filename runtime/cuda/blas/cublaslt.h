// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NVIDIA's library of matrix products, opened when it is first wanted. Nothing needs it: kernels of our own multiply where there is none.

#ifndef HONE_RUNTIME_CUDA_BLAS_CUBLASLT_H
#define HONE_RUNTIME_CUDA_BLAS_CUBLASLT_H

#include "cuda/blas/cublaslt_types.h"

#include <string>

namespace hone::rt::cuda {

/// The functions of the library, under their names. Never closed. Thread-safe, as the library is.
class CublasLt {
public:
#define HONE_CUBLASLT_FUNCTION(result, name, parameters) result(*name) parameters = nullptr;
#include "cuda/blas/cublaslt_functions.def"
#undef HONE_CUBLASLT_FUNCTION

  /// The library that the loader finds as libcublasLt.so.13 or .12, looked for once in a process; null where there is none that can be
  /// used.
  static const CublasLt *get();

  /// Opens one of that name, or says in `reason` why it cannot be used and returns false.
  bool open(const char *file, std::string &reason);
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_BLAS_CUBLASLT_H
