// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's own device code, as PTX that the driver compiles for its GPU.

#ifndef HONE_RUNTIME_CUDA_DEVICE_IMAGES_H
#define HONE_RUNTIME_CUDA_DEVICE_IMAGES_H

namespace hone::rt::cuda {

/// PTX of strided_copy.cu, for Context::function.
const void *stridedCopyImage();

/// The kernel that copies elements of `width` bytes: 1, 2, 4, 8 or 16.
const char *stridedCopyName(int width);

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_DEVICE_IMAGES_H
