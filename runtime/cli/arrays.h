// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays of .npz files as inputs and as expectations of entries.

#ifndef HONE_RUNTIME_CLI_ARRAYS_H
#define HONE_RUNTIME_CLI_ARRAYS_H

#include "core/inputs.h"
#include "hone/io/npy.h"

#include <functional>
#include <map>
#include <set>

namespace hone::cli {

using NamedArrays = std::map<std::string, io::Array>;

/// Fails for the name of an array that nobody asked for.
using NameCheck = std::function<absl::Status(std::string_view name)>;

/// The arrays whose names begin with `prefix`, by what follows it, which is checked before the array is read.
absl::StatusOr<NamedArrays> readArrays(const io::NpzReader &file, std::string_view prefix, const NameCheck &check);

/// Those that are inputs of the entry, of its types. Fails where one is not.
absl::StatusOr<NamedArrays> readInputs(const io::NpzReader &file, std::string_view prefix, const io::EntryInfo &entry);

/// For a call; valid while the arrays are.
std::vector<rt::NamedTensor> viewsOf(const NamedArrays &arrays);

/// What a member of an archive is called that holds the output `name`: a name without folders, so that who extracts the archive gets a file
/// beside the others. It is not in `taken`, and then is.
std::string memberName(std::string_view name, std::set<std::string> &taken);

/// Gives arrays the types of `infos` that numpy cannot say: u16 read as bf16, u8 as an 8-bit float, u8 and i8 as narrower integers.
void adoptTypes(NamedArrays &arrays, const std::vector<io::TensorInfo> &infos);

struct Tolerance {
  double relative = 1e-4, absolute = 1e-4;
};

/// How an output compares with what was expected. Elements equal where both are NaN or the same infinity.
struct Comparison {
  bool equal = true;
  int64_t worst = -1; // element whose |Δ| is the largest part of what it may be; -1 for no elements
  double actual = 0, expected = 0;
};

/// Fails where types or shapes differ.
absl::StatusOr<Comparison> compare(const std::string &name, const io::Array &actual, const io::Array &expected,
                                   const Tolerance &tolerance);

/// The index of an element, as "[0, 3]".
std::string indexText(std::span<const int64_t> shape, int64_t element);

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_ARRAYS_H
