// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the next tokens come to be: sampled by the host from logits, or where the model is on a device, there; one a pass, or several that
// were drafted and verified.

#ifndef HONE_RUNTIME_GENERATE_DECODER_H
#define HONE_RUNTIME_GENERATE_DECODER_H

#include "core/language_model.h"
#include "hone/sampling/options.h"

namespace hone::rt {

/// Speculative decoding. Each token is sampled from the model's logits, after a verified draft as without one.
struct SpeculationOptions {
  enum class Drafts {
    None,
    Automaton, // what followed the longest suffix of the text where it occurred before
  };
  Drafts drafts = Drafts::None;
  int64_t mostDrafted = 32; // tokens verified in one pass, besides the last one of the text
};

/// Of texts that begin with `prompt`; tokens are sampled as hone/sampling/sampler.h says wherever it is done. On a device whose model fixes the size
/// of its vocabulary, logits stay there, but not with speculation. Fails for options out of their ranges, and for speculation with a model
/// that cannot take back tokens or gives logits of the last one alone. For one text at a time of a session.
absl::StatusOr<std::unique_ptr<Decoder>> createDecoder(LanguageModel &model, const sampling::SamplingOptions &sampling,
                                                       const SpeculationOptions &speculation,
                                                       std::span<const int64_t> prompt);

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_DECODER_H
