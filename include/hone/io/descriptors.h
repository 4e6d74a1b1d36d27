// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening what is there, without surprises.

#ifndef HONE_IO_DESCRIPTORS_H
#define HONE_IO_DESCRIPTORS_H

#include "hone/io/status.h"

#include <cstdint>

namespace hone::io {

/// Opens the file `path` for reading, and says how large it is; the caller closes the descriptor. Fails for what is no regular file: a
/// device or a pipe is not opened, as it may have no end or nobody who writes.
absl::StatusOr<int> openForReading(const std::string &path, uint64_t &size);

/// Fails where `path` is a symbolic link. What lies in an artefact's folder is not opened through one: it may lead to any file of the user.
absl::Status checkNoLink(const std::string &path);

/// Opens something in place of each standard stream that is closed, so that no file gets its number and is taken for it. Reading and
/// writing there fail as before. To be called by a program's `main` before it opens a file.
void keepStandardStreams();

} // namespace hone::io

#endif // HONE_IO_DESCRIPTORS_H
