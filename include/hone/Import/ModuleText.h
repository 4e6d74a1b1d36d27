// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is checked of MLIR text before MLIR's parser sees it.

#ifndef HONE_IMPORT_MODULETEXT_H
#define HONE_IMPORT_MODULETEXT_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace hone {

/// Why `text`, of a module, a type or an attribute, is not for MLIR's parser, or an empty string. It ends inside of a string, which
/// the lexer reads beyond; it is nested deeper than `kMaxNesting`, also by aliases, or by operators of an affine expression; a tensor
/// has more than `kMaxRank` dimensions; aliases stand for more than `kMaxAliasParts` parts; or a resource has no alignment, or one above
/// `kMaxResourceAlignment`.
std::string checkModuleText(llvm::StringRef text);

/// The same of all modules in `text`, which `marker` divides unless it is empty.
std::string checkModuleTexts(llvm::StringRef text, llvm::StringRef marker);

} // namespace hone

#endif // HONE_IMPORT_MODULETEXT_H
