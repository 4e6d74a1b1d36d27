// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lists of blocks of keys that an attention reads, as IR before it.

#ifndef HONE_LIB_TRANSFORMS_SPARSEATTENTION_BLOCKLISTS_H
#define HONE_LIB_TRANSFORMS_SPARSEATTENTION_BLOCKLISTS_H

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/IndexBuilder.h"
#include "hone/Transforms/Passes.h"

namespace hone {

/// Neighbours whose sums over antidiagonals are scored: the larger of the two that XAttention was measured with (Xu et al., 2025).
inline constexpr int64_t kAntidiagonalStride = 16;

/// The lists `[B or 1, Hk or 1, lists, T]` of an attention, one for each query or for some next to each other: the blocks with the first
/// keys of a sequence, those with the last before the queries, and of the others some that are selected. So the list of a single query
/// follows from its own position and the keys before it, whatever else is in the call.
class BlockLists {
public:
  BlockLists(AttentionOp op, const SparsifyAttentionOptions &options);

  /// Queries that share a list.
  int64_t getQueries() const { return perList; }

  /// Of sinks and window.
  mlir::Value build();
  /// With `blocks` more, by the rows of pooled keys.
  mlir::Value buildPooled(mlir::Value pooled);
  /// With those that have a share of the attention, by sums over antidiagonals.
  mlir::Value buildShares();
  /// With those that are needed by mean queries and mean keys, by the operand of select_means.
  mlir::Value buildMeans(mlir::Value thresholds);

  /// Lets calls of more queries than decoding and verification have select nothing: their lists are not used.
  void selectForFew();
  /// Lists for single queries: in calls with few queries those of `few`, and in others those of `many`, lists of this, each of which some
  /// queries share. They have as many places as what is chosen.
  mlir::Value mergeLists(mlir::Value few, mlir::Value many);

private:
  /// The blocks of the queries of a list, the own key of whose last is `own`, in the step of a computation: sinks are those from
  /// `sinkBegin` to `sinkEnd`, the window those from `end` on, and others may be selected from `begin` to `end`.
  struct Query {
    mlir::Value own, sinkBegin, sinkEnd, begin, end;
  };

  /// What the operands of attention say of a sequence, 0 where they are absent.
  struct Sequence {
    mlir::Value keyBegin, lag;
  };

  /// Sizes `[B, Hk, lists, places]`.
  mlir::SmallVector<mlir::OpFoldResult> getSizes(mlir::OpFoldResult places);
  /// The type of selected blocks with such sizes.
  mlir::RankedTensorType getType(mlir::ArrayRef<mlir::OpFoldResult> sizes);
  /// How many blocks there are.
  mlir::Value countBlocks();
  /// Whether a call is one of few queries.
  mlir::Value areFew();
  Query buildQuery(IndexBuilder &index, const Sequence &sequence, mlir::Value number);
  /// The i64 tensor of these sizes, sequences first, that `element` computes, where it is called with the loops.
  mlir::Value
  buildIntegers(mlir::ArrayRef<mlir::OpFoldResult> sizes,
                llvm::function_ref<mlir::Value(IndexBuilder &, mlir::ArrayRef<mlir::Value>, const Sequence &)> element);
  mlir::Value buildBegin();
  mlir::Value buildEnd();
  /// Lists whose last places are those of `selected`, of which there are `places`.
  mlir::Value buildSelected(mlir::Value selected, mlir::OpFoldResult places);
  /// The same where `selected` is null: there are none.
  mlir::Value buildLists(mlir::ArrayRef<mlir::OpFoldResult> sizes, mlir::Value selected);
  /// The block at a place of sinks and window, or -1.
  mlir::Value buildPlace(IndexBuilder &index, const Query &query, mlir::Value place);

  LocBuilder b;
  AttentionOp op;
  SparsifyAttentionOptions options;
  int64_t sinks, window, size;
  int64_t perList, sinkBlocks, windowBlocks;
  mlir::OpFoldResult sequences, lists;
  mlir::Value queries, keys, first; // how many there are, own key of query 0 of a sequence without a lag
  bool isForFew = false;
};

/// Makes `op` read the keys of `lists` alone, of which each is of so many queries, in blocks of `size`.
void setLists(AttentionOp op, mlir::Value lists, int64_t size, int64_t queries);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_SPARSEATTENTION_BLOCKLISTS_H
