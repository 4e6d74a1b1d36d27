// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the next token is sampled: by the host from logits, or where the model is on a device, there.

#ifndef HONE_RUNTIME_GENERATE_SAMPLING_STEP_H
#define HONE_RUNTIME_GENERATE_SAMPLING_STEP_H

#include "core/language_model.h"
#include "hone/sampling/options.h"

namespace hone::rt {

/// Tokens that continue `prompt`, which are sampled as hone/sampling/sampler.h says wherever it is done. On a device whose model fixes the size of
/// its vocabulary, logits stay there. Fails for options out of their ranges. For one text at a time of a session.
absl::StatusOr<SamplingStep> createSamplingStep(LanguageModel &model, const sampling::SamplingOptions &options,
                                                std::span<const int64_t> prompt);

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_SAMPLING_STEP_H
