// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program relies on that stands in other files: the compiler writes it into program.so, and the loader compares it with what
// it finds in the manifest and in the weights. A line for each thing, so that a difference has a name.

#ifndef HONE_IO_SIGNATURE_H
#define HONE_IO_SIGNATURE_H

#include "hone/io/manifest.h"
#include "hone/io/safetensors.h"

namespace hone::io {

/// The lines about a manifest: target, features of the CPU, ranks, device, and everything about entries.
std::string signatureOf(const Manifest &manifest);

/// The lines about the weights, which follow those about the manifest: name, type, shape and place of each.
std::string signatureOf(std::span<const StoredTensor> tensors);

/// Takes the lines `found` from the beginning of `compiled`. Fails with the first line that differs, in a sentence about `file`.
absl::Status takeSignature(std::string_view &compiled, std::string_view found, const std::string &file);

} // namespace hone::io

#endif // HONE_IO_SIGNATURE_H
