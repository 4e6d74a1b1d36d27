// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trees that a draft model grows along a text that a target wrote: what a classifier of drafted tokens learns from.

#ifndef HONE_RUNTIME_GENERATE_TREE_RECORDING_H
#define HONE_RUNTIME_GENERATE_TREE_RECORDING_H

#include "core/language_model.h"
#include "speculate/classifier_training.h"

namespace hone::rt {

/// Adds a tree for each pass that would verify one, to the end of the text: `written` is what a model wrote after `prompt`. What agrees with that is
/// accepted. `draft` is over a session that can verify trees and begins anew.
absl::Status recordTrees(LanguageModel &draft, std::span<const int64_t> prompt, std::span<const int64_t> written,
                         const speculate::TreeShape &shape, std::vector<speculate::RecordedTree> &trees);

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_TREE_RECORDING_H
