// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Division of a program into parts that threads can compile beside one another.

#ifndef HONE_LIB_TARGET_CPU_ENTRYPARTS_H
#define HONE_LIB_TARGET_CPU_ENTRYPARTS_H

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"

#include <vector>

namespace llvm {
class Module;
}

namespace hone {

/// Bitcode of each part of `module`: one for each function but the first in the table that the variable `table` is, with the functions that
/// only it reaches, and before them one with everything else. What parts share has hidden visibility: no part changes what the
/// linked object exports.
std::vector<llvm::SmallString<0>> splitByEntry(llvm::Module &module, llvm::StringRef table);

} // namespace hone

#endif // HONE_LIB_TARGET_CPU_ENTRYPARTS_H
