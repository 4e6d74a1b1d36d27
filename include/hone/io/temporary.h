// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files and folders under construction, which must not stay where they are not finished.

#ifndef HONE_IO_TEMPORARY_H
#define HONE_IO_TEMPORARY_H

#include <functional>
#include <string>

namespace hone::io {

/// A path that is removed, a folder with all that is in it, unless it was released: with the object, or when an interrupt
/// ends the process.
class TemporaryPath {
public:
  TemporaryPath() = default;
  /// Of what `make` makes at `path`; an interrupt comes before both or after both. Empty where `make` returns false.
  static TemporaryPath made(std::string path, const std::function<bool()> &make);
  TemporaryPath(TemporaryPath &&other) noexcept { *this = std::move(other); }
  TemporaryPath &operator=(TemporaryPath &&other) noexcept;
  ~TemporaryPath();

  /// Empty once released.
  const std::string &path() const { return name; }
  /// What is there stays, or has another name by now.
  void release();

private:
  std::string name;
};

/// From here on SIGINT, SIGTERM and SIGHUP, unless they are ignored, remove all temporary paths before they end the process,
/// and a file that passes the limit of the process is a failed write instead of SIGXFSZ. To be called by a program's `main`
/// before it starts a thread; `alsoRemove` may remove what others made.
void removeTemporariesOnInterrupt(void (*alsoRemove)() = nullptr);

/// Removes all temporary paths of a process that is about to end without destructors; nothing new begins any more, where no other thread
/// is about to begin it just now.
void removeTemporaries();

} // namespace hone::io

#endif // HONE_IO_TEMPORARY_H
