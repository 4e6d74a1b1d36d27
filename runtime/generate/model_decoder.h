// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decoding with the drafts of a second model.

#ifndef HONE_RUNTIME_GENERATE_MODEL_DECODER_H
#define HONE_RUNTIME_GENERATE_MODEL_DECODER_H

#include "generate/speculation.h"
#include "generate/text_sampler.h"

namespace hone::rt {

/// Drafts with `options.draft`, and verifies in one pass of the model that it is given. How many tokens are drafted follows from times for
/// Acceptance::Identical. With the other rules the text depends on it, and as many are drafted as `options` allow.
std::unique_ptr<Decoder> createModelDecoder(TextSampler sampler, const SpeculationOptions &options,
                                            std::span<const int64_t> prompt);

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_MODEL_DECODER_H
