// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the system says of files, in words.

#ifndef HONE_RUNTIME_IO_SYSTEM_H
#define HONE_RUNTIME_IO_SYSTEM_H

#include "hone/io/status.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>

namespace hone::io {

/// "cannot <verb> <path>: <reason>", with the reason that errno has.
inline absl::Status systemError(std::string_view verb, const std::string &path) {
  int reason = errno;
  std::string message = cat("cannot ", verb, " ", path, ": ", std::strerror(reason));
  return reason == ENOENT ? absl::NotFoundError(message) : absl::InvalidArgumentError(message);
}

/// What a file is that has the mode `mode`: "a folder", "a pipe".
inline std::string_view kindOf(mode_t mode) {
  switch (mode & S_IFMT) {
  case S_IFREG:
    return "a file";
  case S_IFDIR:
    return "a folder";
  case S_IFIFO:
    return "a pipe";
  case S_IFSOCK:
    return "a socket";
  case S_IFLNK:
    return "a symbolic link";
  default:
    return "a device";
  }
}

} // namespace hone::io

#endif // HONE_RUNTIME_IO_SYSTEM_H
