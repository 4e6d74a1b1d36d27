// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looking at a place and renaming to it are two steps, between which others may change it. So nothing is replaced that the kernel
// was not told to expect there: a rename goes where nothing is, or it swaps two files, and what came out is looked at.

#include "hone/io/output.h"

#include "interrupts.h"
#include "system.h"

#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <linux/magic.h>
#include <optional>
#include <random>
#include <sys/vfs.h>
#include <unistd.h>

namespace hone::io {
namespace {

/// As the kernel has it (path_resolution(7)).
constexpr int kMostLinks = 40;
/// Of which every one is taken.
constexpr int kMostNames = 10;
/// Of turns with others that put their outputs at the same place.
constexpr int kMostTurns = 1000;

/// Whether a link of procfs is at `path`: its text is no path, but says what a process has open.
bool isOpenFile(const std::filesystem::path &path) {
  struct statfs system = {};
  std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  return statfs(folder.c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

/// Renames with RENAME_NOREPLACE or RENAME_EXCHANGE; 0, or why not.
int renameBy(unsigned flag, const std::string &from, const std::string &to) {
  return renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flag) == 0 ? 0 : errno;
}

/// Whether a file system cannot do what was asked of renameat2.
bool isUnsupported(int reason) { return reason == EINVAL || reason == ENOSYS || reason == ENOTSUP; }

absl::Status cannotWrite(const std::string &path, int reason) {
  errno = reason;
  return systemError("write", path);
}

/// Of what came out when `name` and `path` were swapped and should have stayed: puts it back.
absl::Status putBack(const std::string &name, const std::string &path, absl::Status why, bool &isKept) {
  isKept = renameBy(RENAME_EXCHANGE, name, path) != 0 && renameBy(RENAME_NOREPLACE, name, path) != 0;
  return isKept ? invalid(why.message(), "; it is now at ", name) : why;
}

/// For file systems that cannot swap: for a moment there is neither. A file takes the place of a file at once.
absl::Status replaceInTwoSteps(const std::string &name, const std::string &path, const ReplacementCheck &check) {
  std::error_code error;
  if (!std::filesystem::is_directory(name, error))
    return std::rename(name.c_str(), path.c_str()) == 0 ? absl::OkStatus() : systemError("write", path);
  std::string old = name + ".old";
  if (std::rename(path.c_str(), old.c_str()) != 0)
    return systemError("write", path);
  absl::Status status = check(old);
  // Neither of these replaces a folder that has something in it.
  if (status.ok() && std::rename(name.c_str(), path.c_str()) != 0)
    status = systemError("write", path);
  if (!status.ok())
    return std::rename(old.c_str(), path.c_str()) == 0 ? status : invalid(status.message(), "; it is now at ", old);
  return std::rename(old.c_str(), name.c_str()) == 0 ? status : systemError("rename", old);
}

/// One turn: done, or failed, or nothing where the place has changed meanwhile.
std::optional<absl::Status> replaceOnce(const std::string &name, const std::string &path, const ReplacementCheck &check,
                                        bool &isKept) {
  int reason = renameBy(RENAME_NOREPLACE, name, path);
  if (reason == 0)
    return absl::OkStatus();
  struct stat there = {};
  bool exists = lstat(path.c_str(), &there) == 0;
  if (isUnsupported(reason) && !exists)
    return std::rename(name.c_str(), path.c_str()) == 0 ? absl::OkStatus() : systemError("write", path);
  if (reason != EEXIST && !isUnsupported(reason))
    return cannotWrite(path, reason);
  if (!exists)
    return std::nullopt;
  if (absl::Status status = check(path); !status.ok()) {
    struct stat now = {};
    bool isSame = lstat(path.c_str(), &now) == 0 && now.st_ino == there.st_ino && now.st_dev == there.st_dev;
    return isSame ? std::optional(status) : std::nullopt; // else it was another's that was being replaced
  }
  reason = renameBy(RENAME_EXCHANGE, name, path);
  if (reason == ENOENT)
    return std::nullopt;
  if (isUnsupported(reason))
    return replaceInTwoSteps(name, path, check);
  if (reason != 0)
    return cannotWrite(path, reason);
  absl::Status status = check(name);
  return status.ok() ? status : putBack(name, path, std::move(status), isKept);
}

} // namespace

void InputFiles::add(const std::string &path) {
  struct stat information = {};
  if (path.empty() || stat(path.c_str(), &information) != 0)
    return;
  if (!S_ISDIR(information.st_mode)) {
    files.emplace(std::pair(information.st_dev, information.st_ino), path);
    return;
  }
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    if (struct stat inside = {}; stat(it->path().c_str(), &inside) == 0 && !S_ISDIR(inside.st_mode))
      files.emplace(std::pair(inside.st_dev, inside.st_ino), it->path().string());
}

absl::Status InputFiles::checkOutput(const std::string &path) const {
  struct stat information = {};
  if (stat(path.c_str(), &information) != 0)
    return absl::OkStatus();
  // What is written as it comes (a pipe, a terminal) replaces nothing.
  if (!S_ISREG(information.st_mode) && !S_ISDIR(information.st_mode))
    return absl::OkStatus();
  if (auto input = files.find({information.st_dev, information.st_ino}); input != files.end())
    return invalid("cannot write ", path, ": it is the input ", input->second);
  std::error_code error;
  if (!S_ISDIR(information.st_mode))
    return absl::OkStatus();
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    if (struct stat inside = {}; stat(it->path().c_str(), &inside) == 0)
      if (auto input = files.find({inside.st_dev, inside.st_ino}); input != files.end())
        return invalid("cannot write ", path, ": the input ", input->second, " is in it");
  return absl::OkStatus();
}

absl::StatusOr<std::string> followLinks(const std::string &path) {
  std::filesystem::path place = path;
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code error;
    if (!std::filesystem::is_symlink(std::filesystem::symlink_status(place, error)) || isOpenFile(place))
      return place.string();
    std::filesystem::path target = std::filesystem::read_symlink(place, error);
    if (error)
      return invalid("cannot write ", path, ": ", error.message());
    place = target.is_absolute() ? target : place.parent_path() / target;
  }
  return invalid("cannot write ", path, ": ", std::strerror(ELOOP));
}

TemporaryPath makeBeside(const std::string &path, const std::function<bool(const std::string &name)> &make) {
  std::random_device random;
  for (int attempt = 0; attempt < kMostNames; ++attempt) {
    // Not of the process's number: another process had it before, and may have been killed.
    char suffix[2 * sizeof(uint64_t) + 1];
    std::snprintf(suffix, sizeof suffix, "%08x%08x", random(), random());
    std::string name = path + ".tmp-" + suffix;
    TemporaryPath result = TemporaryPath::made(name, [&] { return make(name); });
    if (!result.path().empty() || errno != EEXIST)
      return result;
  }
  return {};
}

absl::Status putInPlace(TemporaryPath &output, const std::string &path, const ReplacementCheck &check) {
  std::string name = output.path();
  std::optional<absl::Status> result;
  bool isKept = false; // what is at `name` then has no other place
  for (int turn = 0; !result && turn < kMostTurns; ++turn)
    withoutInterrupt([&] { result = replaceOnce(name, path, check, isKept); });
  if (isKept)
    output.release();
  if (!result)
    return invalid("cannot write ", path, ": others replace it all the time");
  // What was replaced has the temporary name now, and goes with it.
  if (result->ok())
    output = TemporaryPath();
  return *result;
}

} // namespace hone::io
