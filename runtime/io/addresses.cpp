// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One pass over the elements, and another for the message where one of them is wrong.

#include "hone/io/addresses.h"

#include "hone/io/file.h"

#include <cstring>

namespace hone::io {
namespace {

template <typename Element> Element load(std::span<const uint8_t> bytes, size_t index) {
  Element element;
  std::memcpy(&element, bytes.data() + index * sizeof element, sizeof element);
  return element;
}

absl::Status wrongStart(std::span<const uint8_t> bytes, int64_t bound, std::string_view name) {
  size_t count = bytes.size() / sizeof(int32_t);
  int64_t before = 0;
  for (size_t i = 0; i < count; ++i) {
    int64_t start = load<int32_t>(bytes, i);
    if (i == 0 && start != 0)
      return invalid("expected element 0 of '", name, "' to be 0, but got ", start);
    if (start < before || start > bound)
      return invalid("expected element ", i, " of '", name, "' to be from ", before, " to ", bound, ", but got ",
                     start);
    before = start;
  }
  return invalid("expected the last element of '", name, "' to be ", bound, ", but got ", before);
}

/// What does not fall from 0 to the bound is between them.
absl::Status checkStarts(std::span<const uint8_t> bytes, int64_t bound, std::string_view name) {
  size_t count = bytes.size() / sizeof(int32_t);
  if (count == 0)
    return invalid("expected '", name, "' to have elements");
  int32_t falls = 0; // without a branch, so that the loop is one of vectors
  for (size_t i = 1; i < count; ++i)
    falls |= load<int32_t>(bytes, i) < load<int32_t>(bytes, i - 1);
  if (falls == 0 && load<int32_t>(bytes, 0) == 0 && load<int32_t>(bytes, count - 1) == bound)
    return absl::OkStatus();
  return wrongStart(bytes, bound, name);
}

absl::Status checkBelow(std::span<const uint8_t> bytes, int64_t bound, std::string_view name) {
  size_t count = bytes.size() / sizeof(uint16_t);
  uint16_t largest = 0; // without a branch, so that the loop is one of vectors
  for (size_t i = 0; i < count; ++i) {
    auto element = load<uint16_t>(bytes, i);
    largest = element > largest ? element : largest;
  }
  if (count == 0 || largest < bound)
    return absl::OkStatus();
  for (size_t i = 0; i < count; ++i)
    if (auto element = load<uint16_t>(bytes, i); element >= bound)
      return invalid("expected element ", i, " of '", name, "' to be less than ", bound, ", but got ", element);
  return absl::OkStatus();
}

absl::Status checkKnown(std::span<const uint8_t> bytes, int64_t sum, std::string_view name) {
  int64_t found = crcOf({reinterpret_cast<const char *>(bytes.data()), bytes.size()});
  if (found != sum)
    return invalid("expected the CRC-32 of '", name, "' to be ", sum, ", but got ", found);
  return absl::OkStatus();
}

} // namespace

absl::Status checkAddresses(uint64_t rule, int64_t bound, std::span<const uint8_t> bytes, std::string_view name) {
  if (rule == HONE_ADDRESS_STARTS)
    return checkStarts(bytes, bound, name);
  if (rule == HONE_ADDRESS_BELOW)
    return checkBelow(bytes, bound, name);
  if (rule == HONE_ADDRESS_KNOWN)
    return checkKnown(bytes, bound, name);
  return invalid("unsupported rule ", rule, " of the addresses in '", name, "'");
}

} // namespace hone::io
