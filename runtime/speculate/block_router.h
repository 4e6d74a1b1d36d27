// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Speculation above tokens: a small generator proposes a block of anything, a step of a text or a piece of a video, a scorer judges it, and
// either it stays or a large generator makes the block. Lossy: what is written is neither generator's own.

#ifndef HONE_RUNTIME_SPECULATE_BLOCK_ROUTER_H
#define HONE_RUNTIME_SPECULATE_BLOCK_ROUTER_H

#include "hone/io/status.h"

#include <cmath>
#include <cstdint>

namespace hone::speculate {

/// Goes on with a sequence, block by block.
template <typename Block> class BlockGenerator {
public:
  virtual ~BlockGenerator() = default;
  /// The block after those that it has, which it has from here on.
  virtual absl::StatusOr<Block> propose() = 0;
  /// Gives back what it proposed last: it is as if that had never been.
  virtual absl::Status rollBack() = 0;
  /// Has the block of another generator from here on.
  virtual absl::Status append(const Block &block) = 0;
};

/// Judges a block in the place after those that were accepted.
template <typename Block> class BlockScorer {
public:
  virtual ~BlockScorer() = default;
  virtual absl::StatusOr<double> score(const Block &block) = 0;
};

enum class RoutingRule {
  Quality, // a block stays where its score is the threshold at least (SDVG, 2026; reward-guided speculative decoding, Liao et al. 2025)
  Advantage, // where its score, how much better a block of the target is expected to be, is not above it (Arbitrage, Maheswaran et al. 2025)
  Oracle, // where the score of the target's own block is not better by more: both are always made, so that it shows what a rule could do
};

struct RoutingOptions {
  RoutingRule rule = RoutingRule::Advantage;
  double threshold = 0;
  bool forcesFirst = false; // the first block is the target's (SDVG)
};

struct RoutingCounts {
  int64_t blocks = 0, proposed = 0, escalated = 0; // blocks in all, of the draft, and of the target
  int64_t wasted = 0; // of those, blocks that were no better than the draft's; RoutingRule::Oracle alone knows
};

/// What became of a block.
template <typename Block> struct RoutedBlock {
  Block block;
  bool isEscalated;
};

/// Writes a sequence with two generators, which outlive it, as does the scorer.
template <typename Block> class BlockRouter {
public:
  BlockRouter(BlockGenerator<Block> &draft, BlockGenerator<Block> &target, BlockScorer<Block> &scorer,
              const RoutingOptions &options)
      : draft(draft), target(target), scorer(scorer), options(options) {}

  /// The next block, which both generators have. Fails as they do and where a score is not a number.
  absl::StatusOr<RoutedBlock<Block>> next() {
    ++counted.blocks;
    if (options.forcesFirst && counted.blocks == 1)
      return escalate();
    HONE_ASSIGN_OR_RETURN(Block proposed, draft.propose());
    ++counted.proposed;
    HONE_ASSIGN_OR_RETURN(double score, scoreOf(proposed));
    if (options.rule == RoutingRule::Oracle)
      return chooseBetter(proposed, score);
    bool stays = options.rule == RoutingRule::Quality ? score >= options.threshold : score <= options.threshold;
    if (stays) {
      HONE_RETURN_IF_ERROR(target.append(proposed));
      return RoutedBlock<Block>{std::move(proposed), false};
    }
    HONE_RETURN_IF_ERROR(draft.rollBack());
    return escalate();
  }

  const RoutingCounts &counts() const { return counted; }

private:
  absl::StatusOr<double> scoreOf(const Block &block) {
    HONE_ASSIGN_OR_RETURN(double score, scorer.score(block));
    if (std::isnan(score))
      return io::invalid("cannot judge block ", counted.blocks, ": its score is not a number");
    return score;
  }

  absl::StatusOr<RoutedBlock<Block>> escalate() {
    HONE_ASSIGN_OR_RETURN(Block own, target.propose());
    ++counted.escalated;
    HONE_RETURN_IF_ERROR(draft.append(own));
    return RoutedBlock<Block>{std::move(own), true};
  }

  absl::StatusOr<RoutedBlock<Block>> chooseBetter(const Block &proposed, double score) {
    HONE_ASSIGN_OR_RETURN(Block own, target.propose());
    HONE_RETURN_IF_ERROR(target.rollBack()); // blocks are judged where neither is
    HONE_ASSIGN_OR_RETURN(double ofOwn, scoreOf(own));
    if (ofOwn - score > options.threshold) {
      HONE_RETURN_IF_ERROR(draft.rollBack());
      HONE_RETURN_IF_ERROR(target.append(own));
      HONE_RETURN_IF_ERROR(draft.append(own));
      ++counted.escalated;
      counted.wasted += ofOwn <= score ? 1 : 0;
      return RoutedBlock<Block>{std::move(own), true};
    }
    HONE_RETURN_IF_ERROR(target.append(proposed));
    return RoutedBlock<Block>{proposed, false};
  }

  BlockGenerator<Block> &draft, &target;
  BlockScorer<Block> &scorer;
  RoutingOptions options;
  RoutingCounts counted;
};

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_BLOCK_ROUTER_H
