// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sampling on the host and on a device, and verification of drafts.

#include "generate/decoder.h"

#include "generate/text_drafter.h"
#include "generate/verification.h"
#include "hone/sampling/arithmetic.h"

namespace hone::rt {
namespace {

/// Copies logits from wherever they are.
class HostDecoder : public Decoder {
public:
  explicit HostDecoder(TextSampler sampler) : sampler(std::move(sampler)) {}

  absl::StatusOr<std::vector<int64_t>> decode(LanguageModel &model, std::span<const int64_t> tokens, int64_t) override {
    HONE_ASSIGN_OR_RETURN(io::Array logits, model.feed(tokens, /*logitsToKeep=*/1));
    HONE_ASSIGN_OR_RETURN(int64_t token, sampler.sample(lastRow(logits)));
    return std::vector{token};
  }

private:
  TextSampler sampler;
};

/// Has the device sample, which the session has told how.
class DeviceDecoder : public Decoder {
public:
  DeviceDecoder(sampling::Sampler sampler, bool isGreedy) : sampler(std::move(sampler)), isGreedy(isGreedy) {}

  absl::StatusOr<std::vector<int64_t>> decode(LanguageModel &model, std::span<const int64_t> tokens, int64_t) override {
    HONE_ASSIGN_OR_RETURN(int64_t token, model.sample(tokens, isGreedy ? 0 : sampler.draw()));
    if (token < 0)
      return sampling::badLogits(token, model.vocabulary().value_or(0));
    return std::vector{token};
  }

private:
  sampling::Sampler sampler; // its generator
  bool isGreedy;
};

/// Verifies what a drafter proposes.
class SpeculativeDecoder : public Decoder {
public:
  SpeculativeDecoder(TextSampler sampler, std::unique_ptr<TextDrafter> drafter)
      : sampler(std::move(sampler)), drafter(std::move(drafter)) {}

  absl::StatusOr<std::vector<int64_t>> decode(LanguageModel &model, std::span<const int64_t> tokens,
                                              int64_t most) override {
    SpeculationClock clock(counted);
    HONE_ASSIGN_OR_RETURN(DraftedTokens drafted, drafter->draft(model, std::ssize(tokens), most - 1, sampler));
    clock.endDraft(drafted.tokens.size());
    HONE_ASSIGN_OR_RETURN(Verification verified, verifyDraft(model, tokens, drafted, drafter->rule(), sampler, clock));
    drafter->take(verified, verified.vocabulary, tokens.size() == 1 ? std::optional(verified.seconds) : std::nullopt);
    clock.endCommit();
    return verified.next;
  }

  SpeculationStatistics statistics() const override { return counted; }

private:
  TextSampler sampler;
  std::unique_ptr<TextDrafter> drafter;
  SpeculationStatistics counted;
};

} // namespace

absl::StatusOr<std::unique_ptr<Decoder>> createDecoder(LanguageModel &model, const sampling::SamplingOptions &options,
                                                       const GenerationOptions &generation, Speculation *speculation,
                                                       std::span<const int64_t> prompt) {
  HONE_ASSIGN_OR_RETURN(sampling::Sampler sampler, sampling::Sampler::create(options));
  auto ofText = [&] { return TextSampler(std::move(sampler), prompt, generation.rules, generation.maximalNewTokens); };
  if (speculation) {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<TextDrafter> drafter, createTextDrafter(model, *speculation, prompt));
    return std::make_unique<SpeculativeDecoder>(ofText(), std::move(drafter));
  }
  std::optional<int64_t> vocabulary = model.vocabulary(); // memory of the device has its size
  if (!model.session().isOnDevice() || !vocabulary || !generation.rules.isEmpty())
    return std::make_unique<HostDecoder>(ofText());
  std::vector<int32_t> history(prompt.begin(), prompt.end());
  if (options.repetitionPenalty != 1)
    HONE_RETURN_IF_ERROR(sampling::checkHistory(history, *vocabulary));
  model.session().beginSampling(options, std::move(history));
  return std::make_unique<DeviceDecoder>(std::move(sampler), options.temperature == 0);
}

} // namespace hone::rt
