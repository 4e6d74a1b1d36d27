// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sampling on the host and on a device.

#include "generate/sampling_step.h"

#include "hone/sampling/arithmetic.h"
#include "hone/sampling/sampler.h"

namespace hone::rt {
namespace {

std::vector<int32_t> asHistory(std::span<const int64_t> tokens) {
  std::vector<int32_t> history;
  for (int64_t token : tokens)
    history.push_back(static_cast<int32_t>(token));
  return history;
}

/// Copies logits from wherever they are.
class HostSampling {
public:
  HostSampling(sampling::Sampler sampler, std::vector<int32_t> history)
      : sampler(std::move(sampler)), history(std::move(history)) {}

  absl::StatusOr<int64_t> operator()(LanguageModel &model, std::span<const int64_t> tokens) {
    HONE_ASSIGN_OR_RETURN(io::Array logits, model.feed(tokens, /*logitsToKeep=*/1));
    std::span<const float> row = lastRow(logits);
    HONE_ASSIGN_OR_RETURN(int32_t token, sampler.sample({row.data(), row.size()}, history));
    history.push_back(token);
    return token;
  }

private:
  sampling::Sampler sampler;
  std::vector<int32_t> history;
};

/// Has the device sample, which the session has told how.
class DeviceSampling {
public:
  DeviceSampling(sampling::Sampler sampler, bool isGreedy) : sampler(std::move(sampler)), isGreedy(isGreedy) {}

  absl::StatusOr<int64_t> operator()(LanguageModel &model, std::span<const int64_t> tokens) {
    HONE_ASSIGN_OR_RETURN(int64_t token, model.sample(tokens, isGreedy ? 0 : sampler.draw()));
    return token >= 0 ? token : absl::StatusOr<int64_t>(sampling::badLogits(token, model.vocabulary().value_or(0)));
  }

private:
  sampling::Sampler sampler; // its generator
  bool isGreedy;
};

} // namespace

absl::StatusOr<SamplingStep> createSamplingStep(LanguageModel &model, const sampling::SamplingOptions &options,
                                                std::span<const int64_t> prompt) {
  HONE_ASSIGN_OR_RETURN(sampling::Sampler sampler, sampling::Sampler::create(options));
  std::vector<int32_t> history = asHistory(prompt);
  std::optional<int64_t> vocabulary = model.vocabulary(); // memory of the device has its size
  if (!model.session().isOnDevice() || !vocabulary)
    return HostSampling(std::move(sampler), std::move(history));
  if (options.repetitionPenalty != 1)
    HONE_RETURN_IF_ERROR(sampling::checkHistory(history, *vocabulary));
  model.session().beginSampling(options, std::move(history));
  return DeviceSampling(std::move(sampler), options.temperature == 0);
}

} // namespace hone::rt
