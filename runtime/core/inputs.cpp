// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Validation of a call's inputs against the manifest.

#include "core/inputs.h"

#include <algorithm>

namespace hone::rt {
namespace {

using io::cat;
using io::invalid;

std::string inputNames(const io::EntryInfo &entry) {
  std::string names;
  for (const io::TensorInfo &input : entry.inputs)
    names += (names.empty() ? "" : ", ") + input.name;
  return names.empty() ? "(none)" : names;
}

absl::Status checkNames(const io::EntryInfo &entry, std::span<const NamedTensor> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string_view name = inputs[i].name;
    HONE_RETURN_IF_ERROR(checkInputName(entry, name));
    if (std::ranges::find(inputs.first(i), name, &NamedTensor::name) != inputs.begin() + i)
      return invalid("input '", name, "' is given twice");
  }
  return absl::OkStatus();
}

/// Of sizes that io::elementCount takes.
bool isSmallEnough(std::span<const int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= std::max<int64_t>(size, 1);
  return product <= HONE_MAX_ELEMENTS;
}

absl::Status checkView(const io::TensorInfo &input, const hone_tensor &tensor) {
  if (!io::isDtype(tensor.dtype))
    return invalid("input '", input.name, "': ", tensor.dtype, " is no element type");
  if (tensor.rank < 0 || tensor.rank > HONE_MAX_RANK)
    return invalid("input '", input.name, "': unsupported rank ", tensor.rank, "; supported: up to ", HONE_MAX_RANK);
  std::span<const int64_t> sizes(tensor.sizes, static_cast<size_t>(tensor.rank));
  if (!io::elementCount(sizes))
    return invalid("input '", input.name, "': ", io::shapeText(sizes), " is no shape");
  if (!isSmallEnough(sizes))
    return invalid("unsupported shape ", io::shapeText(sizes), " of input '", input.name, "'; supported: up to ",
                   HONE_MAX_ELEMENTS, " elements, sizes of 0 counted as 1");
  if (!tensor.data && *io::elementCount(sizes) > 0)
    return invalid("input '", input.name, "' has no data");
  if (tensor.dtype != input.dtype)
    return invalid("expected input '", input.name, "' to be ", io::dtypeName(input.dtype), ", but got ",
                   io::dtypeName(static_cast<hone_dtype>(tensor.dtype)));
  return absl::OkStatus();
}

absl::Status checkShape(const io::TensorInfo &input, const hone_tensor &tensor, Symbols &symbols) {
  std::span<const int64_t> sizes(tensor.sizes, static_cast<size_t>(tensor.rank));
  auto mismatch = [&] {
    return cat("expected input '", input.name, "' to have shape ", io::shapeText(input.shape), ", but got ",
               io::shapeText(sizes));
  };
  if (sizes.size() != input.shape.size())
    return invalid(mismatch());
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const io::Dim &dim = input.shape[axis];
    if (dim.isFixed() && dim.size != sizes[axis])
      return invalid(mismatch());
    if (dim.isFixed() || dim.symbol.empty())
      continue;
    auto [known, fresh] = symbols.try_emplace(dim.symbol, Symbol{sizes[axis], cat("input '", input.name, "'")});
    if (known->second.size != sizes[axis])
      return invalid(mismatch(), ": ", dim.symbol, " is ", known->second.size, " in ", known->second.origin);
  }
  return absl::OkStatus();
}

/// Whether the elements of a dense tensor, plus `input.rowOffset`, number rows of a table that has `input.rows`.
template <typename Element>
absl::Status checkRows(const io::TensorInfo &input, const hone_tensor &tensor) {
  std::span<const int64_t> sizes(tensor.sizes, static_cast<size_t>(tensor.rank));
  std::span ids(static_cast<const Element *>(tensor.data), static_cast<size_t>(*io::elementCount(sizes)));
  int64_t first = -input.rows - input.rowOffset, end = input.rows - input.rowOffset;
  auto wrong = std::ranges::find_if(ids, [&](Element id) { return id < first || id >= end; });
  if (wrong == ids.end())
    return absl::OkStatus();
  std::vector<int64_t> position(sizes.size());
  for (int64_t axis = tensor.rank - 1, left = wrong - ids.begin(); axis >= 0; left /= sizes[axis--])
    position[axis] = left % sizes[axis];
  return invalid("expected the elements of input '", input.name, "' to be at least ", first, " and less than ", end,
                 ", but got ", *wrong, " at ", io::shapeText(position));
}

bool isAligned(const hone_tensor &tensor) {
  auto address = reinterpret_cast<uintptr_t>(tensor.data);
  return address % static_cast<uintptr_t>(io::dtypeBytes(static_cast<hone_dtype>(tensor.dtype))) == 0;
}

absl::Status addDense(BoundInputs &bound, const hone_tensor &tensor) {
  std::span<const int64_t> sizes(tensor.sizes, static_cast<size_t>(tensor.rank));
  if (io::isDense(tensor) && isAligned(tensor)) {
    bound.tensors.push_back(io::denseView(tensor.data, static_cast<hone_dtype>(tensor.dtype), sizes));
    return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(io::Array copy, io::Array::copyOf(tensor));
  bound.tensors.push_back(copy.view());
  bound.copies.push_back(std::move(copy));
  return absl::OkStatus();
}

absl::Status missing(const io::EntryInfo &entry, const io::TensorInfo &input) {
  if (input.isContext)
    return invalid("missing context '", input.name, "' of '", entry.name,
                   "': the session must be given it before its first call");
  return invalid("missing input '", input.name, "'; the inputs of '", entry.name, "' are: ", inputNames(entry));
}

} // namespace

absl::Status checkInputName(const io::EntryInfo &entry, std::string_view name) {
  if (std::ranges::find(entry.inputs, name, &io::TensorInfo::name) != entry.inputs.end())
    return absl::OkStatus();
  return invalid("unknown input '", name, "'; the inputs of '", entry.name, "' are: ", inputNames(entry));
}

absl::Status checkInput(const io::TensorInfo &input, const hone_tensor &tensor, Symbols &symbols) {
  HONE_RETURN_IF_ERROR(checkView(input, tensor));
  return checkShape(input, tensor, symbols);
}

absl::Status checkLimits(const io::EntryInfo &entry, const Symbols &symbols, int64_t held) {
  for (const io::LimitInfo &limit : entry.limits) {
    int64_t fresh = 0;
    std::string sum;
    for (const std::string &size : limit.sizes) {
      auto known = symbols.find(size);
      if (known != symbols.end() && __builtin_add_overflow(fresh, known->second.size, &fresh))
        fresh = INT64_MAX;
      sum += cat(sum.empty() ? "" : " + ", size);
    }
    int64_t before = limit.countsHeld ? held : 0;
    if (before <= limit.most && fresh <= limit.most - before)
      continue;
    if (!limit.countsHeld)
      return invalid("expected ", sum, " to be at most ", limit.most, ", for which '", limit.table,
                     "' has rows, but got ", fresh);
    return invalid("expected at most ", limit.most, " positions in a session, for which '", limit.table,
                   "' has rows, but got ", before, " and ", fresh, " more");
  }
  return absl::OkStatus();
}

absl::StatusOr<BoundInputs> bindInputs(const io::EntryInfo &entry, std::span<const NamedTensor> inputs, Symbols symbols,
                                       int64_t held) {
  HONE_RETURN_IF_ERROR(checkNames(entry, inputs));
  BoundInputs bound;
  bound.symbols = std::move(symbols);
  for (const io::TensorInfo &input : entry.inputs) {
    auto given = std::ranges::find(inputs, input.name, &NamedTensor::name);
    if (given == inputs.end())
      return missing(entry, input);
    HONE_RETURN_IF_ERROR(checkInput(input, given->tensor, bound.symbols));
    HONE_RETURN_IF_ERROR(addDense(bound, given->tensor));
    if (input.rows > 0)
      HONE_RETURN_IF_ERROR(input.dtype == HONE_I32 ? checkRows<int32_t>(input, bound.tensors.back())
                                                   : checkRows<int64_t>(input, bound.tensors.back()));
    bound.versions.push_back(given->version);
  }
  HONE_RETURN_IF_ERROR(checkLimits(entry, bound.symbols, held));
  return bound;
}

} // namespace hone::rt
