// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Strided tensors as rows.

#include "row_view.h"

#include <algorithm>

namespace hone::cuda {

bool isAbsent(const hone_tensor &tensor) {
  return tensor.rank == 0 || std::any_of(tensor.sizes, tensor.sizes + tensor.rank, [](int64_t n) { return n == 0; });
}

int64_t countRows(const hone_tensor &tensor) {
  int64_t rows = 1;
  for (int32_t axis = 0; axis + 1 < tensor.rank; ++axis)
    rows *= tensor.sizes[axis];
  return rows;
}

static bool startRowsAligned(const RowView &view) {
  int64_t bytes = bytesOf(view.dtype);
  return view.inner == 1 && reinterpret_cast<uintptr_t>(view.data) % 16 == 0 &&
         std::all_of(view.strides, view.strides + 3, [&](int64_t stride) { return stride * bytes % 16 == 0; });
}

RowView rowsOf(const hone_tensor &tensor) {
  RowView view = {};
  view.dtype = tensor.dtype;
  view.sizes[0] = view.sizes[1] = 1;
  if (isAbsent(tensor))
    return view;
  int32_t last = tensor.rank - 1;
  view.data = static_cast<char *>(tensor.data);
  view.count = tensor.sizes[last];
  view.inner = view.count == 1 ? 1 : tensor.strides[last];
  int64_t sizes[3] = {1, 1, 1}; // from the last leading axis on
  int64_t strides[3] = {0, 0, 0};
  int32_t used = -1;
  for (int32_t axis = last; axis-- > 0;) {
    if (tensor.sizes[axis] == 1)
      continue;
    if (used >= 0 && tensor.strides[axis] == sizes[used] * strides[used]) {
      sizes[used] *= tensor.sizes[axis];
      continue;
    }
    ++used;
    sizes[used] = tensor.sizes[axis];
    strides[used] = tensor.strides[axis];
  }
  view.sizes[1] = sizes[0];
  view.sizes[0] = sizes[1];
  std::reverse_copy(strides, strides + 3, view.strides);
  view.isVector = startRowsAligned(view);
  return view;
}

MatrixView matricesOf(const hone_tensor &tensor) {
  return {rowsOf(tensor), isAbsent(tensor) ? 0 : tensor.strides[tensor.rank - 2]};
}

} // namespace hone::cuda
