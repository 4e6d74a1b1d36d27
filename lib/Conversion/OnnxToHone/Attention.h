// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an attention is made of while it is being recognised: its products, its scale, its masks and its heads.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_ATTENTION_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_ATTENTION_H

#include "OnnxMatch.h"

namespace hone::raising {

using analysis::Expression;

/// The symbolic place of one logit: sizes and index variables of batch, head, query, key, and elements of a head.
struct LogitSpace {
  Polynomial batch, heads, queries, keys;
  Polynomial b, h, i, j;

  /// The position of the query among the keys.
  Polynomial position() const { return keys - queries + i; }
  SmallVector<Polynomial> shape() const { return {batch, heads, queries, keys}; }
  SmallVector<Polynomial> indices() const { return {b, h, i, j}; }
};

LogitSpace makeLogitSpace(SymbolicAnalysis &analysis, ArrayRef<Polynomial> shape);

/// Something that is added to the logits or decides which of them count.
struct Mask {
  Value value;
  /// A boolean that says which logits count; else it is added.
  bool isCondition = false;
  /// A condition that is true where the logit does not count.
  bool isInverted = false;
  /// What takes the place of a logit that does not count.
  double hidden = 0;
  /// Shape of the logits where the mask was found, and where in it the logit of the space is.
  SmallVector<Polynomial> shape, indices;
};

/// Logits, from their product up to the softmax.
struct Logits {
  Value query, key;               // operands of the product
  bool isQueryTransposed = false; // the product reads query as [.., D, queries]
  bool isKeyTransposed = true;    // the product reads key as [.., D, keys]
  double scale = 1;
  std::optional<double> softcap;
  SmallVector<Mask> masks;
  /// Indices of the product's leading dimensions.
  SmallVector<Polynomial> leading;
};

/// Follows the logits from `value`, of shape [B, H, Sq, Sk], to their product. Fails with a reason.
FailureOr<Logits> matchLogits(Value value, const LogitSpace &space, SymbolicAnalysis &analysis, StringRef &reason);

/// Logits, and a further one of each head that its queries share: `perHead` has as many elements as there are heads.
struct SinkLogits {
  Value logits, perHead;
};

/// Finds the sinks in the input of a softmax; nothing where it has none.
std::optional<SinkLogits> matchSinks(Value input, SymbolicAnalysis &analysis);

/// Whether `op` takes the probabilities of the keys, and leaves out that of the sink after them.
bool cutsSinksOff(Operation *op, const LogitSpace &space, SymbolicAnalysis &analysis);

/// The sinks `[heads]` of f32.
Value buildSinks(Value perHead, int64_t heads, OpBuilder &b, Location loc);

/// What a query that sees no key gives in the source program: 0; 0 where its weights came out as NaN; or whatever its
/// softmax gives.
enum class EmptyRow { Zero, ZeroIfNaN, AsComputed };

/// What becomes of the probabilities.
struct ProbabilityUse {
  Operation *product = nullptr; // the probabilities are its left operand
  /// Indices of the product's leading dimensions.
  SmallVector<Polynomial> leading;
  EmptyRow emptyRow = EmptyRow::AsComputed;
  /// What hides keys after the softmax, the others being divided by their sum again.
  std::optional<Mask> mask;
};

/// Follows the probabilities of the space, and none of their other uses, to the product with the values.
std::optional<ProbabilityUse> matchProbabilities(Value probabilities, const LogitSpace &space,
                                                 SymbolicAnalysis &analysis);

/// A tensor [B, heads, rows, size] whose elements are those that a product reads, times `factor`.
struct HeadRows {
  Value value;
  double factor = 1;
  enum Layout { BHSD, BSHD, Packed } layout = BHSD;
  int64_t heads = 0, size = 0;
};

/// Finds what `operand` reads its rows from: element (leading..., row, d), or (leading..., d, row) if `isTransposed`.
std::optional<HeadRows> matchHeadRows(Value operand, bool isTransposed, ArrayRef<Polynomial> leading,
                                      const LogitSpace &space, const Polynomial &rows, const Polynomial &row,
                                      SymbolicAnalysis &analysis);

/// The rows in the layout [B, heads, S, size].
Value buildHeadRows(const HeadRows &rows, OpBuilder &b, Location loc);

/// What the masks of an attention mean.
struct MaskMeaning {
  AttentionPatternInterface pattern;
  SmallVector<Value> patternOperands;
  Value keyBegin, keyEnd;
  /// The slope of each head, times the distance of the key; null without one.
  Value alibi;
  /// Added to the logits: tensors that broadcast to [B, H, Sq, Sk].
  SmallVector<Value> biases;
  /// The predicate as a function of the logit, if there is one; null where all logits count.
  const Expression *visible = nullptr;
  /// Why a bias stayed, for the remark.
  std::string note;
};

/// Understands `masks`. Biases that must be built are built with `b`. Fails with a reason, before anything was built.
FailureOr<MaskMeaning> readMasks(ArrayRef<Mask> masks, const LogitSpace &space, EmptyRow emptyRow,
                                 SymbolicAnalysis &analysis, OpBuilder &b, Location loc, Value keys, StringRef &reason);

/// The predicate over logits that a mask computes, with the value of hidden ones; nothing if it adds anything else.
struct Visibility {
  const Expression *predicate;
  double hidden;
};
std::optional<Visibility> getVisibility(const Mask &mask, SymbolicAnalysis &analysis);

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_ATTENTION_H
