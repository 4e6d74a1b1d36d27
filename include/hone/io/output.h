// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where outputs go, and what they may replace: never what the same command reads, and nothing that was not looked at.

#ifndef HONE_IO_OUTPUT_H
#define HONE_IO_OUTPUT_H

#include "hone/io/status.h"
#include "hone/io/temporary.h"

#include <functional>
#include <map>
#include <sys/types.h>
#include <utility>

namespace hone::io {

/// The files that a command reads. They are known by what they are and not by their names, so that links do not hide them.
class InputFiles {
public:
  /// A file, or a folder with the files in it. What does not exist, or has an empty name, is left out.
  void add(const std::string &path);
  /// Fails where `path`, or a file in the folder `path`, is one of them.
  absl::Status checkOutput(const std::string &path) const;

private:
  std::map<std::pair<dev_t, ino_t>, std::string> files;
};

/// The path of what writing to `path` writes: symbolic links at its end are followed, also to where nothing is yet, but not those of
/// /proc, which stand for open files. Fails where they do not end.
absl::StatusOr<std::string> followLinks(const std::string &path);

/// What `make` makes under a name beside `path` that nothing has: it returns false with EEXIST in errno where something has it, and is
/// called with another name. Empty, with errno, where it fails otherwise.
TemporaryPath makeBeside(const std::string &path, const std::function<bool(const std::string &name)> &make);

/// Says why what lies at a path must stay; OK where it may be replaced. It makes no TemporaryPath.
using ReplacementCheck = std::function<absl::Status(const std::string &path)>;

/// Renames the finished `output` to `path` and releases it. What is there makes way where `check` allows that, and is removed. It is looked
/// at again once it has another name, and what should have stayed is put back: what others put there meanwhile is never lost.
absl::Status putInPlace(TemporaryPath &output, const std::string &path, const ReplacementCheck &check);

} // namespace hone::io

#endif // HONE_IO_OUTPUT_H
