// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where libraries of the runtime are.

#include "core/shared_library.h"

#include <cstdio>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <string>

namespace hone::rt {
namespace {

/// The file that this code is in, a library or the program: as the system has it mapped, since the loader knows it by the name it was
/// given, which may be relative to a folder that was the current one then.
std::string fileOfRuntime() {
  std::ifstream maps("/proc/self/maps");
  auto here = reinterpret_cast<uintptr_t>(&fileOfRuntime);
  for (std::string line; std::getline(maps, line);) {
    // "begin-end permissions offset device inode   path", numbers in base 16 (proc_pid_maps(5))
    unsigned long begin = 0, end = 0;
    int path = 0;
    bool isRead = std::sscanf(line.c_str(), "%lx-%lx %*s %*s %*s %*s %n", &begin, &end, &path) == 2;
    if (isRead && here >= begin && here < end)
      return line.substr(static_cast<size_t>(path));
  }
  return {};
}

/// The path of the file where it is one of ours, or its name, which the system looks for in places of its own.
std::string placeOf(const char *file) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::path(fileOfRuntime()).parent_path();
  if (!folder.is_absolute())
    return file;
  for (const std::filesystem::path &place : {folder / file, folder.parent_path() / "lib" / file})
    if (std::filesystem::exists(place, error))
      return place.string();
  return file;
}

} // namespace

absl::StatusOr<void *> findInLibrary(const char *file, const char *symbol, SymbolScope scope) {
  void *library = dlopen(placeOf(file).c_str(), RTLD_NOW | (scope == SymbolScope::Global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (!library)
    return absl::NotFoundError(io::cat("cannot load ", dlerror()));
  void *address = dlsym(library, symbol);
  if (!address)
    return io::invalid(file, ": has no symbol ", symbol);
  return address;
}

} // namespace hone::rt
