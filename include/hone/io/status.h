// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text of messages and the two macros that pass a failure on. What is thrown below the runtime's C ABI is the C++ library's: that there
// is no memory.

#ifndef HONE_IO_STATUS_H
#define HONE_IO_STATUS_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <string>
#include <string_view>
#include <type_traits>

namespace hone::io {

namespace detail {
inline void append(std::string &text, std::string_view part) { text.append(part); }
/// Debian's Abseil has a string_view of its own.
template <typename View>
  requires(std::is_same_v<View, absl::string_view> && !std::is_same_v<View, std::string_view>)
void append(std::string &text, View part) {
  text.append(part.data(), part.size());
}
template <typename Number>
  requires std::is_arithmetic_v<Number>
void append(std::string &text, Number part) {
  text += std::to_string(part);
}
} // namespace detail

/// The parts one after the other; numbers in decimal.
template <typename... Parts> std::string cat(const Parts &...parts) {
  std::string text;
  (detail::append(text, parts), ...);
  return text;
}

/// The caller, or a file the caller named, is at fault: tools exit with 1.
template <typename... Parts> absl::Status invalid(const Parts &...parts) {
  return absl::InvalidArgumentError(cat(parts...));
}

/// Within a catch block, what the exception that is handled says: that there is no memory (ResourceExhausted), or a bug. Throws nothing;
/// where there is no memory for a message either, the message is empty.
absl::Status statusOfException() noexcept;

/// The message of a failure, also where statusOfException() had no memory for one.
std::string_view messageOf(const absl::Status &status);

} // namespace hone::io

#define HONE_CONCAT_INNER(a, b) a##b
#define HONE_CONCAT(a, b) HONE_CONCAT_INNER(a, b)

/// Leaves the function with the status unless it is OK.
#define HONE_RETURN_IF_ERROR(expression)                                                                               \
  do {                                                                                                                 \
    if (absl::Status honeStatus = (expression); !honeStatus.ok())                                                      \
      return honeStatus;                                                                                               \
  } while (false)

/// Declares or assigns `target` from a StatusOr, or leaves the function with its status.
#define HONE_ASSIGN_OR_RETURN(target, expression)                                                                      \
  HONE_ASSIGN_OR_RETURN_INNER(HONE_CONCAT(honeResult, __LINE__), target, expression)
#define HONE_ASSIGN_OR_RETURN_INNER(result, target, expression)                                                        \
  auto result = (expression);                                                                                          \
  if (!result.ok())                                                                                                    \
    return result.status();                                                                                            \
  target = *std::move(result)

#endif // HONE_IO_STATUS_H
