// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where libraries of the runtime are.

#include "core/shared_library.h"

#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <string>

namespace hone::rt {
namespace {

/// The file that this code is in: a library, or the program, which the loader knows by the word that a shell was given, so that one on
/// the PATH has no folder there.
std::string fileOfRuntime() {
  Dl_info self = {};
  link_map *map = nullptr;
  if (!dladdr1(reinterpret_cast<const void *>(&fileOfRuntime), &self, reinterpret_cast<void **>(&map),
               RTLD_DL_LINKMAP) ||
      !map)
    return {};
  return *map->l_name ? map->l_name : "/proc/self/exe";
}

/// The path of the file where it is one of ours, or its name, which the system looks for.
std::string placeOf(const char *file) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::canonical(fileOfRuntime(), error).parent_path();
  if (error)
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
