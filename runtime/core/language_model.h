// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A session whose entry maps tokens to logits, and the loop that writes with it.

#ifndef HONE_RUNTIME_CORE_LANGUAGE_MODEL_H
#define HONE_RUNTIME_CORE_LANGUAGE_MODEL_H

#include "core/module.h"

#include <functional>
#include <optional>
#include <vector>

namespace hone::rt {

/// A session as a language model of one sequence, or of several that are fed at once: its entry takes tokens (i64 or i32 [batch, sequence]) and context, and
/// gives logits (f32 [batch, sequence, vocabulary], or [batch, 1, vocabulary] of the last token) first. The session, which outlives it, has the context.
class LanguageModel {
public:
  /// Fails where the session's entry has another signature. Where it reads features of an encoder and has none, texts have none.
  static absl::StatusOr<LanguageModel> over(Session &session);

  Session &session() const { return *memory; }
  int64_t length() const { return memory->state().length(); }

  /// Size of the vocabulary, or nothing where the manifest does not fix it.
  std::optional<int64_t> vocabulary() const;

  /// Fails where the model has no rows for the positions of so many more tokens.
  absl::Status checkRoom(int64_t tokens) const;

  /// A prompt to feed next, with as many tokens in place of each one that stands for features (io::FeatureInfo) as the features of the session's
  /// context are divided among them; a model without features has the prompt as it is. Fails where they cannot be divided so.
  absl::StatusOr<std::vector<int64_t>> placeFeatures(std::span<const int64_t> prompt);

  /// Makes room for tokens that are going to be fed, so that the state is not copied as it grows.
  void reserve(int64_t promptTokens, int64_t newTokens);

  /// Appends tokens; returns logits [1, rows, vocabulary]: a row for the token after each of the last `logitsToKeep` tokens, where
  /// that is 0 after each token. A program without logits_to_keep gives a row for each, and one that only knows the
  /// last gives that.
  absl::StatusOr<io::Array> feed(std::span<const int64_t> tokens, int64_t logitsToKeep = 0);

  /// Appends as many tokens to each of `sequences` sequences, those of one after those of another; returns logits
  /// [sequences, rows, vocabulary], a row for each token.
  absl::StatusOr<io::Array> feedBatch(std::span<const int64_t> tokens, int64_t sequences);

  /// The same for tokens that are a tree: bit j of `ancestors[i]` is set iff token j is token i or comes before it. Each is at the position
  /// after the one that it follows. By the entry `verify` beside `forward`, `draft_verify` beside `draft`, which checkTrees() has found.
  absl::StatusOr<io::Array> feedTree(std::span<const int64_t> tokens, std::span<const int64_t> ancestors,
                                     int64_t logitsToKeep = 0);

  /// The same for as many tokens of each of `sequences` sequences, each of which has a tree of its own; returns logits
  /// [sequences, rows, vocabulary], a row for each token. By an entry that checkTrees(sequences) has found.
  absl::StatusOr<io::Array> feedTrees(std::span<const int64_t> tokens, std::span<const int64_t> ancestors,
                                      int64_t sequences);

  /// Fails where the module has no such entry of tokens and ancestors over the session's state, or for several sequences none that takes a tree
  /// for each.
  absl::Status checkTrees(int64_t sequences = 1) const;

  /// Appends tokens and samples the one after them on the device that the session is on (Session::sample).
  absl::StatusOr<int64_t> sample(std::span<const int64_t> tokens, uint64_t draw);

private:
  explicit LanguageModel(Session &session) : memory(&session) {}
  absl::Status checkSignature() const;
  absl::Status checkTokens(std::span<const int64_t> tokens) const;
  std::optional<int64_t> findFeature(int64_t position) const;
  std::vector<int64_t> withFeatures(std::span<const int64_t> tokens) const;
  absl::StatusOr<io::Array> tokensAsInput(std::span<const int64_t> tokens, int64_t sequences = 1) const;
  absl::StatusOr<io::Array> callVerifier(std::span<const int64_t> tokens, std::span<const int64_t> ancestors,
                                         int64_t logitsToKeep, int64_t sequences);
  absl::StatusOr<io::Array> takeLogits(absl::StatusOr<std::vector<io::Array>> outputs, int64_t tokens,
                                       int64_t logitsToKeep, int64_t sequences = 1) const;

  Session *memory;
  std::vector<int64_t> places; // of the features, positions in ascending order
};

/// What the artefact's decoder begins a text with, of which there is none yet: of a choice the token that the model finds likeliest after those
/// before. The session has its context, and afterwards no tokens.
absl::StatusOr<std::vector<int64_t>> chooseStart(LanguageModel &model);

/// A session of the entry `forward` of a module. `threads` 0 leaves the number to OpenMP. `offload` is the folder of offloadedStateMemory.
absl::StatusOr<std::unique_ptr<Session>> openLanguageSession(std::shared_ptr<const Module> module, int threads = 0,
                                                             const std::optional<std::string> &offload = {});

struct GenerationOptions {
  int64_t maximalNewTokens = 128;
  std::vector<int64_t> endTokens; // generation ends after one of these
  io::TokenRules rules;
  int64_t prefillChunk = 512;                      // most prompt tokens fed at a time
  int64_t promptHeld = 0;                          // tokens of the prompt that the model has already; fewer than it has
  std::function<void(int64_t tokens)> onPromptFed; // called after every piece with the tokens fed so far, or empty
};

/// What became of drafts, and where the time of their passes went.
struct SpeculationStatistics {
  int64_t drafted = 0, accepted = 0; // tokens
  double draftSeconds = 0;           // until the tokens were drafted
  double verifySeconds = 0;          // in the pass over them, and until it was known which are accepted
  double commitSeconds = 0;          // in taking back what was refused

  /// What was added since `before`.
  SpeculationStatistics since(const SpeculationStatistics &before) const;
};

struct GenerationStatistics {
  int64_t promptTokens = 0, newTokens = 0;
  int64_t passes = 0;                // of the model after the prompt, which gave all new tokens but the first
  double firstTokenSeconds = 0;      // from the start until the first new token is sampled
  double decodeSeconds = 0;          // from there to the end
  SpeculationStatistics speculation; // of these passes
};

/// Continues a text.
class Decoder {
public:
  virtual ~Decoder() = default;
  /// Feeds `tokens`, the end of the text that the model does not have yet, and returns the 1 to `most` tokens that come after them, of which
  /// all but the last are fed too. Fails with all that comes after `tokens` taken back.
  virtual absl::StatusOr<std::vector<int64_t>> decode(LanguageModel &model, std::span<const int64_t> tokens,
                                                      int64_t most) = 0;
  /// Of all that it decoded.
  virtual SpeculationStatistics statistics() const { return {}; }
};

/// Feeds a prompt in pieces but for the last of them, which it returns.
absl::StatusOr<std::span<const int64_t>> feedPieces(LanguageModel &model, std::span<const int64_t> prompt,
                                                    const GenerationOptions &options);

/// Receives a new token; false ends the generation.
using TokenReceiver = std::function<absl::StatusOr<bool>(int64_t token)>;

/// Feeds the prompt, at least one token, and then what the decoder gives. Afterwards the model has the prompt and all tokens that were received
/// but the last.
absl::StatusOr<GenerationStatistics> generate(LanguageModel &model, std::span<const int64_t> prompt,
                                              const GenerationOptions &options, Decoder &decoder,
                                              const TokenReceiver &receive);

/// Logits of the last position.
std::span<const float> lastRow(const io::Array &logits);

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_LANGUAGE_MODEL_H
