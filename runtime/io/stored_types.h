// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What safetensors calls types of elements.

#ifndef HONE_RUNTIME_IO_STORED_TYPES_H
#define HONE_RUNTIME_IO_STORED_TYPES_H

#include "hone/io/dtype.h"

namespace hone::io {

/// The format's word for elements of the type, or an empty one. Elements of fewer than 8 bits are stored as bytes.
std::string_view storedTypeName(hone_dtype dtype);

} // namespace hone::io

#endif // HONE_RUNTIME_IO_STORED_TYPES_H
