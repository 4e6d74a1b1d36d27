// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From tensors by name, as callers give them, to checked dense tensors in the order of the manifest.

#ifndef HONE_RUNTIME_CORE_INPUTS_H
#define HONE_RUNTIME_CORE_INPUTS_H

#include "hone/io/array.h"
#include "hone/io/manifest.h"

#include <map>

namespace hone::rt {

struct NamedTensor {
  std::string_view name;
  hone_tensor tensor;
  /// Where not 0: tensors of this name that have the same version in calls of one session are the same.
  uint64_t version = 0;
};

/// Sizes that symbolic dimensions have in a call, and which tensor said so first.
struct Symbol {
  int64_t size;
  std::string origin;
};
using Symbols = std::map<std::string, Symbol>;

/// Inputs as an entry wants them. Strided or misaligned tensors were copied.
struct BoundInputs {
  std::vector<hone_tensor> tensors;
  std::vector<uint64_t> versions; // of the tensors
  std::vector<io::Array> copies;
  Symbols symbols;
};

/// Fails for a name that no input of the entry has.
absl::Status checkInputName(const io::EntryInfo &entry, std::string_view name);

/// Checks type, rank and fixed sizes of an input, and that equal symbols are equal sizes.
absl::Status checkInput(const io::TensorInfo &input, const hone_tensor &tensor, Symbols &symbols);

/// Checks that there are rows for all positions of a call with these sizes, of a session that held so many before. Sizes that are
/// not among the symbols count as 0.
absl::Status checkLimits(const io::EntryInfo &entry, const Symbols &symbols, int64_t held);

/// Checks names, types, ranks, fixed sizes, that equal symbols are equal sizes, that row numbers are those of rows, and limits.
/// `symbols` holds those fixed before the call by a session, which held so many positions.
absl::StatusOr<BoundInputs> bindInputs(const io::EntryInfo &entry, std::span<const NamedTensor> inputs,
                                       Symbols symbols = {}, int64_t held = 0);

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_INPUTS_H
