// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of weights that are places: kernels, generated code and unpacking read and write where they say, so that a file that
// somebody else wrote is checked before.

#ifndef HONE_IO_ADDRESSES_H
#define HONE_IO_ADDRESSES_H

#include "hone/io/status.h"
#include "hone/runtime/signature.h"

#include <span>

namespace hone::io {

/// Checks the elements in `bytes`, which need not be aligned, by a rule and bound as of hone_addresses. The error names the first
/// that is wrong, and `name` as the array's.
absl::Status checkAddresses(uint64_t rule, int64_t bound, std::span<const uint8_t> bytes, std::string_view name);

} // namespace hone::io

#endif // HONE_IO_ADDRESSES_H
