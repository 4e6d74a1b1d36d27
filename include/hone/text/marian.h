// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tokenizers of Marian models, which come as a SentencePiece model and a vocabulary.

#ifndef HONE_TEXT_MARIAN_H
#define HONE_TEXT_MARIAN_H

#include "hone/io/status.h"

#include <string>
#include <string_view>

namespace hone::text {

/// The text of a tokenizer.json that gives the ids of a Marian model: `pieces` are the bytes of source.spm, a SentencePiece ModelProto of unigrams
/// (Kudo 2018), which cuts texts, and `vocabulary` those of vocab.json, an object of ids 0, 1, ... by piece, of both languages. A piece that only
/// the target's language has stands for a character that the source's does not know. `name` begins errors. Fails where either is damaged, or the
/// vocabulary lacks `</s>` or `<unk>`.
absl::StatusOr<std::string> makeMarianTokenizer(std::string_view pieces, std::string_view vocabulary,
                                                const std::string &name);

} // namespace hone::text

#endif // HONE_TEXT_MARIAN_H
