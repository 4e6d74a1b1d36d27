// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entries of hone-measure-selection.

#ifndef HONE_DIALECT_HONE_ATTENTIONTHRESHOLDS_H
#define HONE_DIALECT_HONE_ATTENTIONTHRESHOLDS_H

#include "llvm/ADT/StringRef.h"

namespace hone {

/// What attention over all keys gives.
inline constexpr llvm::StringLiteral kAttentionOutputs = "attention_outputs";
/// How far from that it is over selected blocks.
inline constexpr llvm::StringLiteral kSelectionErrors = "selection_errors";

} // namespace hone

#endif // HONE_DIALECT_HONE_ATTENTIONTHRESHOLDS_H
