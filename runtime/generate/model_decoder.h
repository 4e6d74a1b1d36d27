// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decoding with the drafts of a second model.

#ifndef HONE_RUNTIME_GENERATE_MODEL_DECODER_H
#define HONE_RUNTIME_GENERATE_MODEL_DECODER_H

#include "generate/speculation.h"
#include "generate/text_sampler.h"

namespace hone::rt {

/// Drafts with the draft model of `speculation`, which outlives the decoder, and verifies in one pass of the model that it is given. How many
/// tokens are drafted follows from times, those of earlier texts too, for Acceptance::Identical. With the other rules the text depends on it, and
/// as many are drafted as the options allow.
std::unique_ptr<Decoder> createModelDecoder(TextSampler sampler, Speculation &speculation,
                                            std::span<const int64_t> prompt);

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_MODEL_DECODER_H
