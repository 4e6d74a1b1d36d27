// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parts of tensors that ranks have.

#ifndef HONE_RUNTIME_CORE_PARTS_H
#define HONE_RUNTIME_CORE_PARTS_H

#include "hone/io/array.h"

namespace hone::rt {

/// Part number `rank`, of `size` positions along `axis`, of a view.
inline hone_tensor partOf(hone_tensor tensor, int64_t axis, int64_t size, int64_t rank) {
  int64_t offset = rank * size * tensor.strides[axis] * io::dtypeBytes(static_cast<hone_dtype>(tensor.dtype));
  tensor.data = static_cast<char *>(tensor.data) + offset;
  tensor.sizes[axis] = size;
  return tensor;
}

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_PARTS_H
