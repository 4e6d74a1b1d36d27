// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where libraries of the runtime are.

#include "core/shared_library.h"

#include <dlfcn.h>
#include <filesystem>
#include <string>

namespace hone::rt {
namespace {

/// The path of the file where it is one of ours, or its name, which the system looks for.
std::string placeOf(const char *file) {
  Dl_info self = {};
  std::error_code error;
  if (!dladdr(reinterpret_cast<const void *>(&placeOf), &self) || !self.dli_fname)
    return file;
  std::filesystem::path folder = std::filesystem::canonical(self.dli_fname, error).parent_path();
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
