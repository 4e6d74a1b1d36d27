// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the host and the GPU say to each other about a copy between two views.

#ifndef HONE_RUNTIME_CUDA_DEVICE_STRIDED_COPY_H
#define HONE_RUNTIME_CUDA_DEVICE_STRIDED_COPY_H

namespace hone::rt::cuda {

constexpr int kCopyRank = 8; // HONE_MAX_RANK
constexpr unsigned kCopyThreads = 256;

/// Elements of 1, 2, 4, 8 or 16 bytes. Sizes and strides count them, from the outermost dimension to the innermost; what is
/// behind `rank` has no meaning.
struct StridedCopy {
  void *to;
  const void *from;
  unsigned count; // product of the sizes
  int rank;
  unsigned sizes[kCopyRank];
  long long toStrides[kCopyRank], fromStrides[kCopyRank];
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_DEVICE_STRIDED_COPY_H
