// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Libraries of the runtime that only some artefacts need, opened with the first of those.

#ifndef HONE_RUNTIME_CORE_SHARED_LIBRARY_H
#define HONE_RUNTIME_CORE_SHARED_LIBRARY_H

#include "hone/io/status.h"

namespace hone::rt {

/// Whether only dlsym of the library finds its symbols, or libraries that are opened later do too (RTLD_LOCAL, RTLD_GLOBAL).
enum class SymbolScope { Local, Global };

/// The address of `symbol` in the library of that file name, which stays open until the process ends. It is looked for beside the
/// library or the program that this code is in, in `lib` beside its folder, and where the system looks for libraries. Fails, with the
/// file's name, where it is nowhere, cannot be loaded or lacks the symbol.
absl::StatusOr<void *> findInLibrary(const char *file, const char *symbol, SymbolScope scope);

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_SHARED_LIBRARY_H
