// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The hidden channels of the experts of a mixture. Each expert keeps as many, and its own.

#ifndef HONE_LIB_TRANSFORMS_PRUNE_EXPERTCHANNELS_H
#define HONE_LIB_TRANSFORMS_PRUNE_EXPERTCHANNELS_H

#include "hone/Transforms/GroupAnalysis.h"
#include "hone/Transforms/MeasuredInputs.h"

namespace hone::prune {

/// Mixtures of experts that read the same weights: one in each function that does.
struct ExpertBlock {
  /// Follows the weights of `moe` to all that reads them; `blocker` says why they cannot be cut, or is empty.
  ExpertBlock(MoeOp moe, const prunable::SharedUses &shared, const mlir::SymbolTable &symbols);

  int64_t experts() const { return MoeOp(ops.front()).getExpertCount(); }
  /// Hidden channels of each expert.
  int64_t channels() const { return MoeOp(ops.front()).getHiddenSize(); }
  /// Elements of parameters that one channel of every expert has.
  int64_t countElements() const;

  llvm::SmallVector<MoeOp> ops;
  ParamOp up, down, gate; // gate may be null
  std::string blocker;
};

/// How channels are chosen: by the smallest score that `magnitude` gives them, or where `method` is "energy" or "obs" by what was
/// measured of the inputs of `down`; experts that no row chose by magnitude then. OBS goes in `rounds` rounds at most.
struct ExpertChoice {
  llvm::StringRef method;
  int64_t removed; // channels of each expert
  int64_t rounds;
};

/// Removes channels: rows of up and gate, with their biases, and columns of down, with error compensation in the others where the
/// method is "obs". Parameters keep in `hone.inputs` which ones stay. Returns what a remark says of down. Fails after an error.
llvm::FailureOr<std::string> removeChannels(const ExpertBlock &block, const ExpertChoice &choice,
                                            const prunable::SharedUses &shared, MeasuredInputs &inputs);

} // namespace hone::prune

#endif // HONE_LIB_TRANSFORMS_PRUNE_EXPERTCHANNELS_H
