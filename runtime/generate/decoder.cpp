// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sampling on the host and on a device, and verification of drafts.

#include "generate/decoder.h"

#include "generate/model_decoder.h"
#include "generate/verification.h"
#include "hone/sampling/arithmetic.h"
#include "speculate/drafter.h"

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

/// Verifies what a drafter proposes: of the drafted tokens those are accepted that the sampler draws too, up to the first that it does
/// not. So tokens, their probabilities and the draws that they take are those of decoding without drafts.
class SpeculativeDecoder : public Decoder {
public:
  SpeculativeDecoder(TextSampler sampler, Speculation &speculation, std::span<const int64_t> prompt)
      : sampler(std::move(sampler)), speculation(speculation) {
    speculation.beginText(prompt);
  }

  absl::StatusOr<std::vector<int64_t>> decode(LanguageModel &model, std::span<const int64_t> tokens,
                                              int64_t most) override {
    SpeculationClock clock(counted);
    speculate::Draft draft = speculation.draft(most - 1);
    auto chosen = static_cast<size_t>(chooseWidth(model, tokens, draft));
    clock.endDraft(chosen);
    DraftedTokens drafted = {draft.first(static_cast<int64_t>(chosen))};
    HONE_ASSIGN_OR_RETURN(Verification verified,
                          verifyDraft(model, tokens, drafted, Acceptance::Identical, sampler, clock));
    if (tokens.size() == 1)
      speculation.record(draft, static_cast<int64_t>(chosen), verified, verified.seconds);
    speculation.append(verified.next);
    clock.endCommit();
    return verified.next;
  }

  SpeculationStatistics statistics() const override { return counted; }

private:
  /// None where the model has no room for as many, or a call for so many tokens of a tree.
  int64_t chooseWidth(const LanguageModel &model, std::span<const int64_t> tokens,
                      const speculate::Draft &draft) const {
    int64_t count = speculation.chooseWidth(draft), all = std::ssize(tokens) + count;
    if (count == 0 || (all > speculate::kMostTreeTokens && !draft.isChain()))
      return 0;
    return model.checkRoom(all).ok() ? count : 0;
  }

  TextSampler sampler;
  Speculation &speculation;
  SpeculationStatistics counted;
};

} // namespace

absl::StatusOr<std::unique_ptr<Decoder>> createDecoder(LanguageModel &model, const sampling::SamplingOptions &options,
                                                       const GenerationOptions &generation, Speculation *speculation,
                                                       std::span<const int64_t> prompt) {
  if (speculation && model.session().isBounded())
    return io::invalid(
        model.session().module().folder(),
        ": unsupported speculation with a bounded number of keys: which are evicted depends on the calls");
  HONE_ASSIGN_OR_RETURN(sampling::Sampler sampler, sampling::Sampler::create(options));
  auto ofText = [&] { return TextSampler(std::move(sampler), prompt, generation.rules, generation.maximalNewTokens); };
  if (speculation && speculation->usesModel())
    return createModelDecoder(ofText(), *speculation, prompt);
  if (speculation)
    return std::make_unique<SpeculativeDecoder>(ofText(), *speculation, prompt);
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
