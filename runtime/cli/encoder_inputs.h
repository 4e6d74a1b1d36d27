// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the encoder of an encoder-decoder reads, and what its decoder begins with.

#ifndef HONE_RUNTIME_CLI_ENCODER_INPUTS_H
#define HONE_RUNTIME_CLI_ENCODER_INPUTS_H

#include "cli/arrays.h"
#include "cli/generate.h"

namespace hone::cli {

/// What an entry of an encoder reads of a text without padding: tokens, all of them kept, all of the first segment. Fails for an input that is
/// none of these, i64 [batch, sequence].
absl::StatusOr<NamedArrays> makeTextInputs(const io::EntryInfo &entry, std::span<const int64_t> tokens);

/// One text of a model: what its encoder reads, nothing where there is none, and the tokens that the text begins with; where there are none
/// of an encoder-decoder, the artefact's (rt::chooseStart).
struct TextBeginning {
  std::optional<NamedArrays> encoder;
  std::vector<int64_t> tokens;
};

/// Whether the module has an encoder that is going to run.
bool runsEncoder(const rt::Module &module, const GenerateOptions &options);

/// Those of --prompt, --prompt-file or the rows of --tokens, or of --encoder-inputs, which goes with a prompt where the model reads features in it. Fails where an option goes with another kind of model.
absl::StatusOr<std::vector<TextBeginning>> readBeginnings(const rt::Module &module, const text::Tokenizer *tokenizer,
                                                          const GenerateOptions &options);

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_ENCODER_INPUTS_H
