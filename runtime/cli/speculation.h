// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --speculate and the options beside it, for commands that write text.

#ifndef HONE_RUNTIME_CLI_SPECULATION_H
#define HONE_RUNTIME_CLI_SPECULATION_H

#include "cli/options.h"
#include "generate/model_drafter.h"
#include "generate/speculation.h"
#include "hone/io/output.h"

namespace hone::cli {

/// What these options say about themselves in the help of a command.
#define HONE_SPECULATION_HELP                                                                                          \
  "  --speculate DRAFTS        verify several drafted tokens in one pass, as many as pay: automaton (what followed "   \
  "the longest\n"                                                                                                      \
  "                            suffix of the text where it occurred before, in this prompt and answer or in those "    \
  "before),\n"                                                                                                         \
  "                            corpus (where it occurred in a corpus), lookup (what followed the last three tokens), " \
  "several\n"                                                                                                          \
  "                            of them with commas between (the longest match counts, and the first of those as "      \
  "long), model\n"                                                                                                     \
  "                            (what a draft model writes), or none (default)\n"                                       \
  "  --draft-corpus FILE       the corpus, as 'corpus build' makes it of texts and the model's tokenizer\n"            \
  "  --draft-tokens N          verify at most N drafted tokens in a pass (default 32)\n"                               \
  "  --draft-tree              draft several continuations at once, as a tree of at most 63 tokens: those that the "   \
  "drafts have\n"                                                                                                      \
  "                            seen, or that a draft model expects; for models of 'hone compile --speculate=tree'\n"   \
  "  --draft DRAFT.hone        with --speculate=model: the draft model, with the same tokens (default: the entry "     \
  "'draft' of\n"                                                                                                       \
  "                            MODEL.hone)\n"                                                                          \
  "  --draft-confidence P      with --speculate=model: end a draft where the product of the draft model's "            \
  "probabilities falls\n"                                                                                              \
  "                            below P (default 0.1; 0: never)\n"                                                      \
  "  --draft-branches K        with --speculate=model --draft-tree: up to K tokens follow one, and up to K of a "      \
  "depth "                                                                                                             \
  "are\n"                                                                                                              \
  "                            followed (default 4)\n"                                                                 \
  "  --draft-depth D           with --speculate=model --draft-tree: most tokens of a path (default 6)\n"               \
  "  --draft-shape K,L,…       with --speculate=model --draft-tree: a tree of this shape in place of the likeliest, "  \
  "K "                                                                                                                 \
  "tokens,\n"                                                                                                          \
  "                            after each of them L, and so on\n"                                                      \
  "  --draft-pruner FILE       with --speculate=model --draft-tree: leave out tokens that a classifier of 'speculate " \
  "train' expects\n"                                                                                                   \
  "                            to be refused\n"                                                                        \
  "  --draft-threshold B       with --draft-pruner: those that it gives less than B (default 0.3; 0: none, 1: all)\n"  \
  "  --accept RULE             with --speculate=model, the drafted tokens that are accepted: identical (default: "     \
  "those that are\n"                                                                                                   \
  "                            drawn without drafts too, so that the seed gives the same text), exact (by "            \
  "speculative sampling:\n"                                                                                            \
  "                            the same probabilities, but another text, which --draft-tokens changes too), or "       \
  "typical (lossy:\n"                                                                                                  \
  "                            those that are probable enough, by other probabilities)\n"

/// What drafts for one text after another: a draft model, if there is one, and drafters.
struct OpenSpeculation {
  rt::DraftModel draft;
  std::unique_ptr<rt::Speculation> drafters;
};

/// What the options say.
struct SpeculationFlags {
  rt::SpeculationOptions options; // without sources: none
  /// Where its `draftEntry` is, for drafts of a model.
  std::shared_ptr<const rt::Module> draft;
  std::string draftEntry = "draft";
  std::optional<std::string> drafts, corpus, draftFile, accept, shape, pruner; // as they were given
  int64_t branches = 0, depth = 0;                                             // 0: not given
  double threshold = -1;                                                       // less than 0: not given

  void declare(OptionParser &parser);
  /// After parsing: the sources, and what belongs to them. Fails for what does not go together.
  absl::Status read();
  void addInputs(io::InputFiles &inputs) const;
  bool takes(rt::DraftSource source) const;
  /// Finds the draft model, if one is needed, beside the model loaded from `path` or in it.
  absl::Status loadDraft(const std::string &path, std::shared_ptr<const rt::Module> model, rt::Profile *profile);
  /// Opens it, if one is needed, as `model`, which the options then draft with.
  absl::Status openDraft(rt::DraftModel &model, const rt::Session &target, int64_t threads);
  /// The same with drafters for `target`; null without sources.
  absl::StatusOr<std::unique_ptr<OpenSpeculation>> open(const rt::LanguageModel &target, int64_t threads);
};

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_SPECULATION_H
