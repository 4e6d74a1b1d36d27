// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which keys the attention of a compiled model reads. What the pass takes is bound to its own options.

#ifndef HONE_LIB_DRIVER_OPTIONS_ATTENTION_H
#define HONE_LIB_DRIVER_OPTIONS_ATTENTION_H

#include "Options/Target.h"
#include "hone/Transforms/Passes.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace hone {

struct AttentionOptions {
  static constexpr int64_t kSmallestBlock = 16, kLargestBlock = 128; // keys
  std::string pattern; // sinks-window, top-blocks, quest, xattention, sparge, skip-softmax, or empty: that of the model
  std::string decode;  // top-blocks or quest beside a pattern of prompts, or empty: all keys
  int64_t blocks = 16;
  SparsifyAttentionOptions pass;
  std::optional<double> share, least, similarity; // as the pass has them
  std::optional<double> skip;                     // SkipSoftmaxOptions::factor

  bool isMeasured = false; // by entries of their own, and not in the model

  bool isAsked() const { return !pattern.empty() && !isMeasured; }
  bool isListed() const { return isAsked() && !isFiltered(); }
  bool isFiltered() const { return isAsked() && pattern == "skip-softmax"; }
  bool isQuest() const { return pattern == "quest" || decode == "quest"; }
  bool isOfMeans() const { return pattern == "sparge"; }
  bool isOfShare() const { return pattern == "xattention" || isOfMeans(); }
  /// Whether attention leaves out what its own logits say, with or without lists.
  bool skips() const { return isFiltered() || (isAsked() && skip.has_value()); }
  bool isOfBlocks() const { return pattern == "top-blocks" || isQuest() || !decode.empty(); }
  SparsifyAttentionOptions getPassOptions() const {
    SparsifyAttentionOptions options = pass;
    options.blocks = isOfBlocks() ? blocks : 0;
    options.bounds = isQuest();
    options.share = isOfShare() ? share.value_or(0.9) : 0;
    options.means = isOfMeans();
    options.least = least.value_or(options.least);
    options.similarity = similarity.value_or(options.similarity);
    return options;
  }
  /// All that what is read follows from, but for what the file of thresholds says.
  std::string describe() const {
    SparsifyAttentionOptions numbers = getPassOptions();
    return llvm::formatv("{0} {1} {2} {3} {4} {5} {6} {7} {8} {9} {10}", pattern, decode, numbers.sinks, numbers.window,
                         numbers.block, numbers.blocks, numbers.share, numbers.least, numbers.similarity,
                         numbers.thresholds, skip.value_or(0));
  }

  MeasureSelectionOptions getMeasureOptions() const { return {pass.sinks, pass.window, pass.block}; }
  SkipSoftmaxOptions getFilterOptions() const {
    SkipSoftmaxOptions options;
    options.factor = skip.value_or(options.factor);
    return options;
  }

  /// Declares all; the row of --attention.
  OptionRow &declare(OptionSet &set, const TargetOptions &target) {
    constexpr llvm::StringLiteral kListed = "--attention=sinks-window, top-blocks, quest, xattention or sparge";
    auto isSparse = [this] { return isListed(); };
    OptionRow &row = set.add(
        "attention", pattern, "PATTERN",
        "Let causal attention read a part of the keys: sinks-window, the first of the text and those shortly "
        "before each token; top-blocks, those and the blocks between them that matter most to the token; quest, "
        "likewise by bounds of their keys; xattention, in prompts those that hold most of the attention by sums "
        "over antidiagonals; sparge, likewise by mean queries and mean keys; skip-softmax, what is not far below "
        "the running maximum of the softmax");
    row.oneOf({"sinks-window", "top-blocks", "quest", "xattention", "sparge", "skip-softmax"})
        .needs("--target=cpu",
               [this, &target] { return !(isFiltered() || isQuest() || isOfShare()) || !target.isCuda(); })
        .check([this, &target]() -> std::string {
          return (isOfBlocks() || isOfShare()) && target.ranks > 1
                     ? "expected --tensor-parallel=1 with --attention=" + pattern
                     : "";
        });
    set.add("attention-sinks", pass.sinks, "N", "With --attention, how many keys are the first (default: 64)")
        .needs(kListed, isSparse)
        .check([this] {
          return pass.sinks < 0 || pass.sinks > kMostListedKeys
                     ? "expected --attention-sinks to be a whole number from 0 to " + std::to_string(kMostListedKeys) +
                           ", but got " + std::to_string(pass.sinks)
                     : "";
        });
    set.add("attention-window", pass.window, "N",
            "With --attention, how many keys up to its own a token sees (default: 1024)")
        .needs(kListed, isSparse)
        .upTo(kMostListedKeys)
        .check([this] {
          return isOfBlocks() && pass.window < 2 * pass.block
                     ? "expected --attention-window to be at least " + std::to_string(2 * pass.block) +
                           " with --attention" + (decode.empty() ? "=" + pattern : "-decode=" + decode) + ", but got " +
                           std::to_string(pass.window)
                     : "";
        });
    set.add("attention-decode", decode, "PATTERN",
            "With --attention=xattention or sparge, which blocks tokens after a prompt see: top-blocks or quest, as "
            "--attention has them (default: all)")
        .oneOf({"top-blocks", "quest"})
        .needs("--attention=xattention or --attention=sparge", [this] { return isOfShare(); });
    set.add("attention-blocks", blocks, "N",
            "With --attention=top-blocks or quest, or --attention-decode, how many blocks between them a token sees "
            "(default: 16)")
        .needs("--attention=top-blocks, --attention=quest or --attention-decode", [this] { return isOfBlocks(); })
        .upTo(kMostListedKeys / kLargestBlock);
    set.add("attention-block-size", pass.block, "N",
            "With --attention, how many keys a block has: 16, 32, 64 or 128 (default: 64)")
        .needs(kListed, isSparse)
        .check([this] {
          bool isTaken = pass.block >= kSmallestBlock && pass.block <= kLargestBlock &&
                         llvm::has_single_bit(static_cast<uint64_t>(pass.block));
          return isTaken
                     ? ""
                     : "expected --attention-block-size to be 16, 32, 64 or 128, but got " + std::to_string(pass.block);
        });
    set.add(
           "attention-share", share, "SHARE",
           "With --attention=xattention or sparge, which share of their attention the tokens of a prompt see (default: "
           "0.9)")
        .needs("--attention=xattention or --attention=sparge", [this] { return isOfShare(); })
        .check([this] {
          return *share > 0 && *share <= 1 ? "" : "expected --attention-share to be above 0 and at most 1";
        });
    set.add("attention-top-k", least, "SHARE",
            "With --attention=sparge, which share of the blocks the tokens of a prompt see at least (default: 0)")
        .needs("--attention=sparge", [this] { return isOfMeans(); })
        .check([this] {
          return *least >= 0 && *least <= 1 ? "" : "expected --attention-top-k to be a number from 0 to 1";
        });
    set.add("attention-similarity", similarity, "COSINE",
            "With --attention=sparge, the mean cosine of keys, and of queries, below which a block does not count as "
            "its "
            "mean, and all see it, or see all (default: 0.1)")
        .needs("--attention=sparge", [this] { return isOfMeans(); })
        .check([this] {
          return *similarity >= -1 && *similarity <= 1 ? ""
                                                       : "expected --attention-similarity to be a number from -1 to 1";
        });
    set.add("attention-thresholds", pass.thresholds, "FILE",
            "With --attention=sparge, take share, top-k and similarity of each KV head from the file that hone "
            "calibrate "
            "--attention-error writes")
        .needs("--attention=sparge", [this] { return isOfMeans(); })
        .check([this]() -> std::string {
          for (auto [isGiven, name] : {std::pair(share.has_value(), "share"), std::pair(least.has_value(), "top-k"),
                                       std::pair(similarity.has_value(), "similarity")})
            if (isGiven)
              return "expected --attention-thresholds or --attention-" + std::string(name) + ", but got both";
          return "";
        });
    set.add("attention-skip", skip, "FACTOR",
            "With --attention=skip-softmax, or sparge, how much attention probability a token may leave out, over what "
            "it "
            "keeps (default: 1, and nothing with sparge)")
        .needs("--attention=skip-softmax or --attention=sparge", [this] { return isFiltered() || isOfMeans(); })
        .check([this] {
          auto factor = static_cast<float>(*skip);
          return factor > 0 && std::isfinite(factor) ? "" : "expected --attention-skip to be a positive number";
        });
    return row;
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_ATTENTION_H
