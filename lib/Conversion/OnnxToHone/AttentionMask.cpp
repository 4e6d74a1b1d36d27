// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Masks by what they compute. Each is a predicate over (b, h, i, j) or a bias; the conjunction of the predicates is taken
// apart into what a pattern says, what bounds of keys say, and the rest.

#include "Attention.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace hone::raising {

using analysis::ExpressionKind;

/// A finite constant at most this, added to a logit, leaves nothing of its weight beside one that is not hidden.
static constexpr double kHidden = -1e4;

std::optional<Visibility> getVisibility(const Mask &mask, SymbolicAnalysis &analysis) {
  auto &e = analysis.expressions;
  const Expression *element = analysis.getBroadcastElement(mask.value, mask.shape, mask.indices);
  if (!element)
    return std::nullopt;
  if (mask.isCondition) {
    const Expression *flag = e.toFlag(element);
    return Visibility{mask.isInverted ? e.negate(flag) : flag, mask.hidden};
  }
  if (element->isReal(0))
    return Visibility{e.flag(true), -std::numeric_limits<double>::infinity()};
  bool hides = element->kind == ExpressionKind::Select && element->operands[1]->isReal(0) &&
               element->operands[2]->kind == ExpressionKind::Real && element->operands[2]->real <= kHidden;
  if (!hides)
    return std::nullopt;
  return Visibility{element->operands[0], element->operands[2]->real};
}

namespace {

/// A predicate that reads one flag or number for each sequence and key: `source[b, j]`.
struct KeyFlag {
  Value source;
  bool isInverted = false;
};

class MaskReader {
public:
  MaskReader(const LogitSpace &space, EmptyRow emptyRow, SymbolicAnalysis &analysis, OpBuilder &b, Location loc,
             Value keys)
      : space(space), emptyRow(emptyRow), analysis(analysis), b(b), onnx(b, loc), keys(keys) {}

  FailureOr<MaskMeaning> read(ArrayRef<Mask> masks, StringRef &reason);

private:
  void split(const Mask &mask, SmallVectorImpl<Mask> &leaves);
  bool readConjunct(const Expression *predicate);
  bool readBound(const Polynomial &polynomial);
  std::optional<KeyFlag> matchKeyFlag(const Expression *predicate);
  std::optional<Value> matchPerSequence(const Polynomial &polynomial);
  AttentionPatternInterface getPattern();
  Polynomial assume(const Polynomial &polynomial, ArrayRef<const Expression *> conjuncts);
  bool dependsOn(const Polynomial &polynomial, ArrayRef<analysis::Atom> variables);
  bool readAlibi(const Mask &mask, ArrayRef<const Expression *> conjuncts);
  Value buildKeyBias(ArrayRef<KeyFlag> flags);
  Value buildBias(const Mask &mask);
  Value withRankFour(Value value);
  bool isFlattened(const Mask &mask);

  const LogitSpace &space;
  EmptyRow emptyRow;
  SymbolicAnalysis &analysis;
  OpBuilder &b;
  OnnxBuilder onnx;
  Value keys;
  MaskMeaning meaning;
  bool isCausal = false, isPrefix = false;
  std::optional<int64_t> window;
};

} // namespace

/// A sum of tensors is several masks.
void MaskReader::split(const Mask &mask, SmallVectorImpl<Mask> &leaves) {
  Operation *sum = mask.isCondition ? nullptr : getDefiningOp(skipCasts(mask.value), "Add");
  if (!sum || getVisibility(mask, analysis)) {
    leaves.push_back(mask);
    return;
  }
  for (Value operand : sum->getOperands()) {
    Mask part = mask;
    part.value = operand;
    split(part, leaves);
  }
}

/// A tensor of one integer a sequence, where the polynomial is its element b.
std::optional<Value> MaskReader::matchPerSequence(const Polynomial &polynomial) {
  auto atom = polynomial.getAtom();
  const Expression *load = atom ? analysis.expressions.info(*atom).definition : nullptr;
  if (!load || load->kind != ExpressionKind::Load || load->indices.size() != 1 || load->indices[0] != space.b)
    return std::nullopt;
  auto type = getRankedType(load->source);
  bool fits = type && (type.getElementType().isInteger(32) || type.getElementType().isInteger(64));
  return fits ? std::optional<Value>(load->source) : std::nullopt;
}

/// `polynomial >= 0` as a bound of the keys that a query sees.
bool MaskReader::readBound(const Polynomial &polynomial) {
  if (polynomial == space.position() - space.j)
    return isCausal = true;
  Polynomial after = polynomial - space.j + space.position();
  if (auto reach = after.getConstant(); reach && *reach >= 0) {
    window = std::min(window.value_or(*reach + 1), *reach + 1);
    return true;
  }
  if (auto begin = matchPerSequence(space.j - polynomial); begin && !meaning.keyBegin) {
    meaning.keyBegin = *begin;
    return true;
  }
  if (auto end = matchPerSequence(polynomial + space.j + 1); end && !meaning.keyEnd) {
    meaning.keyEnd = *end;
    return true;
  }
  return false;
}

bool MaskReader::readConjunct(const Expression *predicate) {
  if (predicate->kind == ExpressionKind::NonNegative)
    return readBound(predicate->polynomial);
  if (predicate->kind != ExpressionKind::Or || predicate->operands.size() != 2 || isPrefix)
    return false;
  // j <= position or j < prefix[b].
  for (unsigned side : {0u, 1u}) {
    const Expression *causal = predicate->operands[side], *inside = predicate->operands[1 - side];
    if (causal->kind != ExpressionKind::NonNegative || inside->kind != ExpressionKind::NonNegative ||
        causal->polynomial != space.position() - space.j)
      continue;
    if (auto prefix = matchPerSequence(inside->polynomial + space.j + 1)) {
      meaning.patternOperands = {*prefix};
      return isPrefix = true;
    }
  }
  return false;
}

std::optional<KeyFlag> MaskReader::matchKeyFlag(const Expression *predicate) {
  bool inverted = predicate->kind == ExpressionKind::Not;
  const Expression *inner = inverted ? predicate->operands[0] : predicate;
  const Expression *load = inner;
  if (inner->kind == ExpressionKind::IsZero) {
    auto atom = inner->polynomial.getAtom();
    load = atom ? analysis.expressions.info(*atom).definition : nullptr;
    inverted = !inverted; // not zero is true
  }
  bool isLoad = load && (load->kind == ExpressionKind::Load || load->kind == ExpressionKind::LoadFlag);
  if (!isLoad || load->indices.size() != 2 || load->indices[0] != space.b || load->indices[1] != space.j ||
      !getRankedType(load->source))
    return std::nullopt;
  return KeyFlag{load->source, inverted};
}

/// The polynomial where all of `conjuncts` hold.
Polynomial MaskReader::assume(const Polynomial &polynomial, ArrayRef<const Expression *> conjuncts) {
  auto &e = analysis.expressions;
  // Whether `size >= 0` follows from one conjunct.
  auto isImplied = [&](const Polynomial &size) {
    return llvm::any_of(conjuncts, [&](const Expression *conjunct) {
      return conjunct->kind == ExpressionKind::NonNegative && e.isNonNegative(size - conjunct->polynomial);
    });
  };
  return polynomial.substitute([&](analysis::Atom atom) -> Polynomial {
    const Expression *definition = e.info(atom).definition;
    if (definition && llvm::is_contained(conjuncts, definition))
      return 1;
    bool isMax = definition && definition->isCall("Max") && definition->operands.size() == 2;
    if (isMax && definition->operands[1]->kind == ExpressionKind::Integer && definition->operands[1]->polynomial == 0 &&
        isImplied(definition->operands[0]->polynomial))
      return definition->operands[0]->polynomial;
    return Polynomial::of(atom);
  });
}

/// Whether the polynomial may depend on one of the index variables: by itself, or through what an atom of it stands for.
bool MaskReader::dependsOn(const Polynomial &polynomial, ArrayRef<analysis::Atom> variables) {
  for (const Polynomial::Term &term : polynomial.getTerms())
    for (analysis::Atom atom : term.atoms) {
      const Expression *definition = analysis.expressions.info(atom).definition;
      if (llvm::is_contained(variables, atom) || (definition && definition->kind != ExpressionKind::Load))
        return true;
      for (const Polynomial &index : definition ? ArrayRef<Polynomial>(definition->indices) : ArrayRef<Polynomial>())
        if (dependsOn(index, variables))
          return true;
    }
  return false;
}

/// Whether the mask adds a slope of the head times the position of the key, from any origin that the keys of a query
/// share: what the softmax makes of it does not depend on that.
bool MaskReader::readAlibi(const Mask &mask, ArrayRef<const Expression *> conjuncts) {
  const Expression *element = analysis.getBroadcastElement(mask.value, mask.shape, mask.indices);
  auto heads = space.heads.getConstant();
  auto head = space.h.getAtom(), key = space.j.getAtom();
  if (!element || !element->isCall("Mul") || !heads || !head || !key || meaning.alibi)
    return false;
  for (unsigned side : {0u, 1u}) {
    const Expression *slope = element->operands[side], *position = element->operands[1 - side];
    if (slope->kind != ExpressionKind::Load || !position->isCall("ToReal"))
      continue;
    Polynomial origin = assume(position->operands[0]->polynomial, conjuncts) - space.j;
    auto isHead = [&](const Polynomial &index) { return index == space.h; };
    bool isPerHead =
        llvm::count_if(slope->indices, isHead) == 1 &&
        llvm::all_of(slope->indices, [&](const Polynomial &index) { return isHead(index) || index.isConstant(0); });
    auto shape = analysis.getShape(slope->source);
    Polynomial count(1);
    for (const Polynomial &size : shape ? ArrayRef<Polynomial>(*shape) : ArrayRef<Polynomial>())
      count = count * size;
    if (!isPerHead || !count.isConstant(*heads) || dependsOn(origin, {*key, *head}))
      continue;
    meaning.alibi = onnx.reshape(onnx.cast(slope->source, b.getF32Type()), {*heads}, {*heads});
    return true;
  }
  return false;
}

AttentionPatternInterface MaskReader::getPattern() {
  MLIRContext *context = b.getContext();
  if (isPrefix)
    return PrefixCausalAttr::get(context);
  if (isCausal && window)
    return SlidingAttr::get(context, *window);
  return isCausal ? AttentionPatternInterface(CausalAttr::get(context))
                  : AttentionPatternInterface(FullAttr::get(context));
}

Value MaskReader::withRankFour(Value value) {
  int64_t rank = getRank(value);
  SmallVector<int64_t> axes;
  for (int64_t axis = 0; axis < 4 - rank; ++axis)
    axes.push_back(axis);
  return axes.empty() ? value : onnx.unsqueeze(value, axes);
}

static DenseElementsAttr minusInfinity(OpBuilder &b) {
  auto type = RankedTensorType::get({}, b.getF32Type());
  return DenseElementsAttr::get(type, -std::numeric_limits<float>::infinity());
}

/// `[B, 1, 1, Sk]`: 0 where all flags hold, minus infinity elsewhere.
Value MaskReader::buildKeyBias(ArrayRef<KeyFlag> flags) {
  Value all;
  for (const KeyFlag &flag : flags) {
    Value source = flag.source;
    auto shape = analysis.getShape(source);
    if (shape && (*shape)[1] != space.keys) { // longer than the keys: the front counts
      Value sizes = onnx.create("Shape", keys, RankedTensorType::get({4}, b.getI64Type()));
      Value count = onnx.create("Slice", {sizes, onnx.integers(2), onnx.integers(3), onnx.integers(int64_t(0))},
                                RankedTensorType::get({1}, b.getI64Type()));
      auto type = cast<RankedTensorType>(source.getType());
      source = onnx.create("Slice", {source, onnx.integers(int64_t(0)), count, onnx.integers(1)},
                           RankedTensorType::get({type.getDimSize(0), ShapedType::kDynamic}, type.getElementType()));
    }
    Value value = onnx.cast(source, b.getI1Type());
    if (flag.isInverted)
      value = onnx.create("Not", value, value.getType());
    all = all ? onnx.create("And", {all, value}, value.getType()) : value;
  }
  auto type = RankedTensorType::get(cast<RankedTensorType>(all.getType()).getShape(), b.getF32Type());
  Value rows = onnx.create("Where", {all, onnx.real(0), onnx.constant(minusInfinity(b))}, type);
  return onnx.unsqueeze(rows, {1, 2});
}

/// Whether the mask is `[B * H, 1, Sk]`: the batch and the heads in one dimension, the same for each query.
bool MaskReader::isFlattened(const Mask &mask) {
  auto shape = analysis.getShape(mask.value);
  return !mask.isCondition && shape && shape->size() == 3 && (*shape)[0] == space.batch * space.heads &&
         (*shape)[1].isConstant(1) && mask.shape.size() == 3 && mask.shape[0] == (*shape)[0] &&
         space.heads.getConstant();
}

/// The mask as it was: added as it is, or its condition selecting between 0 and what it puts in place of hidden logits.
Value MaskReader::buildBias(const Mask &mask) {
  Value value = mask.value;
  if (mask.shape.size() == 3) {
    int64_t heads = *space.heads.getConstant();
    auto shape = cast<RankedTensorType>(value.getType()).getShape();
    return onnx.unsqueeze(
        onnx.reshape(onnx.cast(value, b.getF32Type()), {-1, heads, 0}, {ShapedType::kDynamic, heads, shape[2]}), {2});
  }
  if (mask.isCondition) {
    value = onnx.cast(value, b.getI1Type());
    auto condition = cast<RankedTensorType>(value.getType());
    Value zero = onnx.real(0), hidden = onnx.real(mask.hidden);
    value = onnx.create("Where", mask.isInverted ? ValueRange{value, hidden, zero} : ValueRange{value, zero, hidden},
                        RankedTensorType::get(condition.getShape(), b.getF32Type()));
  }
  return withRankFour(onnx.cast(value, b.getF32Type()));
}

/// Whether the values are a count that the state keeps: rows before it are padding, which nobody reads.
static bool isStatePadding(Value value) { return value && value.getDefiningOp<tensor::GenerateOp>(); }

FailureOr<MaskMeaning> MaskReader::read(ArrayRef<Mask> masks, StringRef &reason) {
  SmallVector<Mask> leaves;
  for (const Mask &mask : masks)
    split(mask, leaves);
  auto &e = analysis.expressions;
  SmallVector<const Expression *> predicates;
  SmallVector<Mask> hiding, adding;
  bool isFinite = false;
  for (const Mask &leaf : leaves) {
    auto visibility = getVisibility(leaf, analysis);
    if (visibility) {
      predicates.push_back(visibility->predicate);
      isFinite |= std::isfinite(visibility->hidden);
      if (visibility->predicate->kind != ExpressionKind::True)
        hiding.push_back(leaf);
    } else {
      adding.push_back(leaf);
    }
  }
  for (const Mask &leaf : adding)
    if (leaf.shape.size() != 4 && !isFlattened(leaf)) {
      reason = "a bias has not the shape of the logits";
      return failure();
    }
  meaning.visible = e.conjoin(predicates);
  SmallVector<const Expression *> conjuncts{meaning.visible};
  if (meaning.visible->kind == ExpressionKind::And)
    conjuncts.assign(meaning.visible->operands.begin(), meaning.visible->operands.end());
  SmallVector<KeyFlag> flags;
  bool understood = true;
  for (const Expression *conjunct : conjuncts) {
    if (conjunct->kind == ExpressionKind::True || readConjunct(conjunct))
      continue;
    auto flag = matchKeyFlag(conjunct);
    understood &= flag.has_value();
    if (flag)
      flags.push_back(*flag);
  }
  // A window counts only with the causal bound; alone it is no pattern.
  understood &= (!window || isCausal) && !(isPrefix && (isCausal || window));
  bool mayBeEmpty =
      !flags.empty() || !understood || (meaning.keyBegin && !isStatePadding(meaning.keyBegin)) || meaning.keyEnd;
  // Finite hidden logits leave weights of a query without keys; infinite ones leave NaN, for which 0 is as good.
  bool differs = mayBeEmpty && isFinite && emptyRow != EmptyRow::Zero;
  if (differs || !understood) {
    for (const Mask &leaf : hiding)
      if (leaf.shape.size() != 4) {
        reason = "a mask that is no pattern has not the shape of the logits";
        return failure();
      }
    meaning.keyBegin = meaning.keyEnd = {};
    meaning.patternOperands.clear();
    isCausal &= !differs && understood;
    isPrefix = false;
    meaning.note = differs ? "a query without keys sees all of them in this model"
                           : "its mask is no pattern: " + e.toString(meaning.visible);
    for (const Mask &leaf : hiding)
      meaning.biases.push_back(buildBias(leaf));
  } else if (!flags.empty()) {
    meaning.biases.push_back(buildKeyBias(flags));
  }
  bool isExact = !differs && understood;
  for (const Mask &leaf : adding) {
    if (isExact && readAlibi(leaf, conjuncts))
      continue;
    const Expression *element = analysis.getBroadcastElement(leaf.value, leaf.shape, leaf.indices);
    meaning.note = "adds " + (element ? e.toString(element) : "a tensor whose sizes are not those of the logits");
    meaning.biases.push_back(buildBias(leaf));
  }
  meaning.pattern = getPattern();
  return meaning;
}

FailureOr<MaskMeaning> readMasks(ArrayRef<Mask> masks, const LogitSpace &space, EmptyRow emptyRow,
                                 SymbolicAnalysis &analysis, OpBuilder &b, Location loc, Value keys,
                                 StringRef &reason) {
  return MaskReader(space, emptyRow, analysis, b, loc, keys).read(masks, reason);
}

} // namespace hone::raising
