// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exceptions of the C++ library as statuses.

#include "hone/io/status.h"

#include <new>
#include <stdexcept>

namespace hone::io {
namespace {

constexpr std::string_view kOutOfMemory = "out of memory";

/// A status without a message takes no memory.
absl::Status statusOf(absl::StatusCode code, std::string_view message) noexcept {
  try {
    return absl::Status(code, {message.data(), message.size()});
  } catch (...) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

} // namespace

absl::Status statusOfException() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc &) {
    return statusOf(absl::StatusCode::kResourceExhausted, kOutOfMemory);
  } catch (const std::length_error &) { // of a size that no memory has
    return statusOf(absl::StatusCode::kResourceExhausted, kOutOfMemory);
  } catch (const std::exception &error) {
    return statusOf(absl::StatusCode::kInternal, error.what());
  } catch (...) {
    return statusOf(absl::StatusCode::kInternal, "unknown exception");
  }
}

std::string_view messageOf(const absl::Status &status) {
  absl::string_view message = status.message();
  return message.empty() ? kOutOfMemory : std::string_view(message.data(), message.size());
}

} // namespace hone::io
