// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a .npy file says before its data, for readers that get it in pieces.

#ifndef HONE_RUNTIME_IO_NPY_HEADER_H
#define HONE_RUNTIME_IO_NPY_HEADER_H

#include "hone/io/npy.h"

namespace hone::io {

struct NpyHeader {
  hone_dtype dtype;
  std::vector<int64_t> shape;
  uint64_t bytes; // of the file before the data
};

/// The header of a file of `total` bytes that begins with `bytes`. Fails where `bytes` end in it, or the data is not as long as it says.
absl::StatusOr<NpyHeader> parseNpyHeader(std::string_view bytes, uint64_t total, const std::string &name);

/// Room for the data.
absl::StatusOr<Array> createNpyArray(const NpyHeader &header, const std::string &name);

} // namespace hone::io

#endif // HONE_RUNTIME_IO_NPY_HEADER_H
