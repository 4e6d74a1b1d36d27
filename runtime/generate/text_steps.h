// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of a text, for routing between two models: who writes them, and what one model thinks of those of another.

#ifndef HONE_RUNTIME_GENERATE_TEXT_STEPS_H
#define HONE_RUNTIME_GENERATE_TEXT_STEPS_H

#include "core/language_model.h"
#include "hone/sampling/sampler.h"
#include "hone/text/tokenizer.h"
#include "speculate/block_router.h"

namespace hone::rt {

/// Tokens until a text that ends steps, or until one that ends the whole text.
struct TextStep {
  std::vector<int64_t> tokens;
  bool isLast = false;
};

struct StepOptions {
  std::string end = "\n\n";       // a step ends with the token in which this does
  int64_t mostTokens = 128;       // of a step
  std::vector<int64_t> endTokens; // of a whole text
  sampling::SamplingOptions sampling;
};

/// Writes steps with a model, and judges those of others. The model has all of the text but its last token at least, and what was given back
/// leaves it as if it had never been.
class StepWriter : public speculate::BlockGenerator<TextStep>, public speculate::BlockScorer<TextStep> {
public:
  /// How a step is judged, by the model's probabilities at temperature 1.
  enum class Judgement {
    Likelihood, // the mean of log p of its tokens
    Regret, // the mean of log p of the likeliest token beside it: how much better a step of the model's own would be, token by token
  };

  /// Goes on after `prompt`, at least one token. `model`, whose state begins anew, and `tokenizer` outlive it. Fails for options out of range.
  static absl::StatusOr<StepWriter> create(LanguageModel &model, const text::Tokenizer &tokenizer,
                                           std::span<const int64_t> prompt, const StepOptions &options,
                                           Judgement judgement);

  absl::StatusOr<TextStep> propose() override;
  absl::Status rollBack() override;
  absl::Status append(const TextStep &step) override;
  absl::StatusOr<double> score(const TextStep &step) override;

private:
  StepWriter(LanguageModel &model, const text::Tokenizer &tokenizer, std::span<const int64_t> prompt,
             StepOptions options, Judgement judgement, const sampling::Sampler &sampler)
      : model(&model), tokenizer(&tokenizer), options(std::move(options)), judgement(judgement), sampler(sampler) {
    extend(prompt);
    begin = text.size();
  }

  void extend(std::span<const int64_t> tokens);
  absl::Status feedText();
  absl::Status dropJudged();
  absl::StatusOr<int64_t> sampleNext();

  LanguageModel *model;
  const text::Tokenizer *tokenizer;
  StepOptions options;
  Judgement judgement;
  sampling::Sampler sampler; // draws of what was given back are used up
  std::vector<int64_t> text;
  std::vector<int32_t> history;     // the same
  size_t fed = 0, begin = 0;        // of the text: what the model has, and where the last proposal begins
  std::vector<float> last, atBegin; // logits after what is fed, and where the last proposal begins
  std::vector<int64_t> judged;      // a step that the model has after all of the text
  std::vector<float> afterJudged;   // logits
};

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_TEXT_STEPS_H
