// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the next tokens come to be: sampled by the host from logits, or where the model is on a device, there; one a pass, or several that
// were drafted and verified.

#ifndef HONE_RUNTIME_GENERATE_DECODER_H
#define HONE_RUNTIME_GENERATE_DECODER_H

#include "generate/speculation.h"

namespace hone::rt {

/// Of texts that begin with `prompt`; tokens are sampled as hone/sampling/sampler.h says wherever it is done. On a device whose model fixes the size
/// of its vocabulary, logits stay there, but not with speculation or rules for
/// tokens. `speculation` is of the same model and outlives the decoder, or is null.
/// Unless it has another rule of acceptance, each token is sampled from the model's logits, after a verified draft as without one. Fails for options
/// out of their ranges. For one text at a time
/// of a session.
absl::StatusOr<std::unique_ptr<Decoder>> createDecoder(LanguageModel &model, const sampling::SamplingOptions &sampling,
                                                       const GenerationOptions &generation, Speculation *speculation,
                                                       std::span<const int64_t> prompt);

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_DECODER_H
