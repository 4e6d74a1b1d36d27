// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several texts that one model writes at once: a pass feeds what comes next of all of them, with drafts of a width of its own for each.

#ifndef HONE_RUNTIME_GENERATE_BATCH_H
#define HONE_RUNTIME_GENERATE_BATCH_H

#include "generate/text_writer.h"

namespace hone::rt {

struct BatchTexts {
  std::vector<std::vector<int64_t>> tokens; // new ones, by prompt
  GenerationStatistics statistics;          // of all together
};

/// Goes on after each prompt, at least one, as writeText() does after it alone: the tokens are the same. Prompts are read one after the other
/// in sessions of their own, which are then joined; what a text drafts, and how much, is its own affair, and a pass is as wide as the widest
/// draft. `session`, of the model and without context, is not changed. `tokenizer` may be null where `options.stop` is empty. `drafts` has
/// those of each text in place of `options.speculation`, or is empty. Fails where the entry does not take sequences of different lengths, or
/// for drafts that are trees no tree for each.
absl::StatusOr<BatchTexts> generateBatch(Session &session, const text::Tokenizer *tokenizer,
                                         std::span<const std::vector<int64_t>> prompts, const WritingOptions &options,
                                         std::span<Speculation *const> drafts);

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_BATCH_H
