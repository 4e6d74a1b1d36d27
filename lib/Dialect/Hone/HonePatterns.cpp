//===- HonePatterns.cpp - which keys a query sees ---------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The predicate of each pattern in IR, and what kernels know of it.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Verify.h"

#include "hone/Dialect/Hone/HoneTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <algorithm>

using namespace mlir;
using namespace hone;

using EmitError = llvm::function_ref<InFlightDiagnostic()>;
using kernels::PatternVisibility;
using Predicate = arith::CmpIPredicate;

static Value compare(OpBuilder &builder, Location loc, Predicate predicate, Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, predicate, a, b);
}

static Value buildIsNotAfter(OpBuilder &builder, Location loc, const AttentionPoint &point) {
  return compare(builder, loc, Predicate::sle, point.keyPosition, point.queryPosition);
}

static Value constantIndex(ImplicitLocOpBuilder &b, int64_t value) { return arith::ConstantIndexOp::create(b, value); }

static ArrayRef<int64_t> sizesOf(Type type) { return cast<RankedTensorType>(type).getShape(); }

/// The index of a sequence along the first axis of `tensor`, which may be repeated.
static Value sequenceOf(ImplicitLocOpBuilder &b, Value tensor, const AttentionPoint &point) {
  return sizesOf(tensor.getType())[0] == 1 ? constantIndex(b, 0) : point.batch;
}

static LogicalResult requireRank(EmitError emitError, StringRef what, Type type, size_t rank) {
  if (sizesOf(type).size() == rank)
    return success();
  return emitError() << "expected " << what << " to be a " << rank << "D tensor, but got " << type;
}

static LogicalResult requireSequences(EmitError emitError, StringRef what, Type type, int64_t batch) {
  int64_t size = sizesOf(type)[0];
  if (size == 1 || mayEqual(size, batch))
    return success();
  return emitError() << "expected the first dimension of " << what << " to be 1 or " << batch << ", but got " << size;
}

static LogicalResult requireSize(EmitError emitError, const Twine &what, int64_t actual, int64_t expected) {
  if (mayEqual(actual, expected))
    return success();
  return emitError() << "expected " << what << " to be " << expected << ", but got " << actual;
}

/// `size` in parts of `part`, rounded up; dynamic where it is.
static int64_t countParts(int64_t size, int64_t part) {
  return ShapedType::isDynamic(size) ? size : llvm::divideCeil(size, part);
}

//===- #hone.full -------------------------------------------------------------------------------------------------===//

Value FullAttr::buildIsVisible(OpBuilder &, Location, const AttentionPoint &, ValueRange) const { return nullptr; }

std::optional<PatternVisibility> FullAttr::getVisibility() const { return PatternVisibility{}; }

//===- #hone.causal -----------------------------------------------------------------------------------------------===//

Value CausalAttr::buildIsVisible(OpBuilder &builder, Location loc, const AttentionPoint &point, ValueRange) const {
  return buildIsNotAfter(builder, loc, point);
}

std::optional<PatternVisibility> CausalAttr::getVisibility() const { return PatternVisibility{.isCausal = true}; }

//===- #hone.sliding ----------------------------------------------------------------------------------------------===//

LogicalResult SlidingAttr::verify(EmitError emitError, int64_t window) {
  if (window <= 0) // sliding C1
    return emitError() << "expected the window to be positive, but got " << window;
  return success();
}

Value SlidingAttr::buildIsVisible(OpBuilder &builder, Location loc, const AttentionPoint &point, ValueRange) const {
  Value window = arith::ConstantIndexOp::create(builder, loc, getWindow());
  Value reach = arith::AddIOp::create(builder, loc, point.keyPosition, window);
  Value near = compare(builder, loc, Predicate::sgt, reach, point.queryPosition);
  return arith::AndIOp::create(builder, loc, buildIsNotAfter(builder, loc, point), near);
}

std::optional<PatternVisibility> SlidingAttr::getVisibility() const {
  return PatternVisibility{.isCausal = true, .window = getWindow()};
}

//===- #hone.prefix_causal ----------------------------------------------------------------------------------------===//

unsigned PrefixCausalAttr::getOperandCount() const { return 1; }

LogicalResult PrefixCausalAttr::verifyOperands(EmitError emitError, const AttentionSizes<int64_t> &sizes,
                                               TypeRange types) const {
  if (failed(requireRank(emitError, "the prefix", types[0], 1)))
    return failure();
  return requireSize(emitError, "the size of the prefix", sizesOf(types[0])[0], sizes.batch); // prefix_causal C1
}

Value PrefixCausalAttr::buildIsVisible(OpBuilder &builder, Location loc, const AttentionPoint &point,
                                       ValueRange tables) const {
  Value length = tensor::ExtractOp::create(builder, loc, tables[0], point.batch);
  Value prefix = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), length);
  Value inPrefix = compare(builder, loc, Predicate::slt, point.keyPosition, prefix);
  return arith::OrIOp::create(builder, loc, inPrefix, buildIsNotAfter(builder, loc, point));
}

std::optional<PatternVisibility> PrefixCausalAttr::getVisibility() const {
  return PatternVisibility{.isCausal = true, .prefix = 0};
}

//===- #hone.blocks -----------------------------------------------------------------------------------------------===//

LogicalResult BlocksAttr::verify(EmitError emitError, int64_t size, int64_t queries) {
  if (size <= 0 || queries <= 0) // blocks C1
    return emitError() << "expected size and queries to be positive, but got " << size << " and " << queries;
  return success();
}

unsigned BlocksAttr::getOperandCount() const { return 1; }

LogicalResult BlocksAttr::verifyOperands(EmitError emitError, const AttentionSizes<int64_t> &sizes,
                                         TypeRange types) const {
  Type type = types[0];
  if (failed(requireRank(emitError, "the blocks", type, 4)) ||              // blocks C2
      failed(requireSequences(emitError, "the blocks", type, sizes.batch))) // blocks C3
    return failure();
  int64_t heads = sizesOf(type)[1];
  bool isScope = heads == 1 || mayEqual(heads, sizes.keyHeads) || mayEqual(heads, sizes.heads);
  if (ShapedType::isDynamic(heads) || !isScope) // blocks C4
    return emitError()
           << "expected the second dimension of the blocks to be 1 or the number of heads of key or query, but got "
           << type;
  return requireSize(emitError, "the third dimension of the blocks", sizesOf(type)[2],
                     countParts(sizes.queries, getQueries())); // blocks C5
}

/// Whether each block is in a list: `[B or 1, H, Q, blocks of keys]`.
SmallVector<Value> BlocksAttr::buildTables(OpBuilder &builder, Location loc, ValueRange operands,
                                           const AttentionSizes<Value> &sizes) const {
  ImplicitLocOpBuilder b(loc, builder);
  Value lists = operands[0];
  SmallVector<OpFoldResult> shape = tensor::getMixedSizes(b, loc, lists);
  Value blocks = arith::CeilDivUIOp::create(b, sizes.keys, constantIndex(b, getSize()));
  shape.back() = getAsOpFoldResult(blocks);
  Value init = tensor::EmptyOp::create(b, shape, b.getI1Type());
  init = linalg::FillOp::create(b, arith::ConstantOp::create(b, b.getBoolAttr(false)).getResult(), init).getResult(0);
  MLIRContext *context = b.getContext();
  auto map = [&](ArrayRef<unsigned> loops) { return AffineMap::getMultiDimMapWithTargets(5, loops, context); };
  SmallVector<utils::IteratorType> loops(5, utils::IteratorType::parallel);
  loops.back() = utils::IteratorType::reduction;
  auto step = [](OpBuilder &nested, Location at, ValueRange args) {
    Value block = linalg::IndexOp::create(nested, at, 3);
    Value listed = arith::IndexCastOp::create(nested, at, nested.getIndexType(), args[0]);
    Value isBlock = compare(nested, at, Predicate::eq, listed, block);
    linalg::YieldOp::create(nested, at, arith::OrIOp::create(nested, at, args[1], isBlock).getResult());
  };
  return {linalg::GenericOp::create(b, init.getType(), lists, init, {map({0, 1, 2, 4}), map({0, 1, 2, 3})}, loops, step)
              .getResult(0)};
}

Value BlocksAttr::buildIsVisible(OpBuilder &builder, Location loc, const AttentionPoint &point,
                                 ValueRange tables) const {
  ImplicitLocOpBuilder b(loc, builder);
  Value table = tables[0], listHeads = constantIndex(b, sizesOf(table.getType())[1]);
  auto divide = [&](Value a, Value by) -> Value { return arith::DivUIOp::create(b, a, by); };
  Value head = divide(point.head, divide(point.sizes.heads, listHeads));
  return tensor::ExtractOp::create(b, table,
                                   ValueRange{sequenceOf(b, table, point), head,
                                              divide(point.query, constantIndex(b, getQueries())),
                                              divide(point.key, constantIndex(b, getSize()))});
}

std::optional<PatternVisibility> BlocksAttr::getVisibility() const {
  return PatternVisibility{.blockKeys = getSize(), .blockQueries = getQueries(), .blocks = 0};
}

//===- #hone.tree -------------------------------------------------------------------------------------------------===//

/// Draft tokens of a word.
static constexpr int64_t kWordTokens = 64;

unsigned TreeAttr::getOperandCount() const { return 1; }

LogicalResult TreeAttr::verifyOperands(EmitError emitError, const AttentionSizes<int64_t> &sizes,
                                       TypeRange types) const {
  Type type = types[0];
  if (failed(requireRank(emitError, "the ancestors", type, 3))) // tree C1
    return failure();
  if (!cast<RankedTensorType>(type).getElementType().isInteger(64))
    return emitError() << "expected the ancestors to be words of i64, but got " << type;
  if (failed(requireSequences(emitError, "the ancestors", type, sizes.batch)) || // tree C2
      failed(requireSize(emitError, "the second dimension of the ancestors", sizesOf(type)[1],
                         sizes.queries))) // tree C3
    return failure();
  return requireSize(emitError, "the third dimension of the ancestors", sizesOf(type)[2],
                     countParts(sizes.queries, kWordTokens));
}

Value TreeAttr::buildIsVisible(OpBuilder &builder, Location loc, const AttentionPoint &point, ValueRange tables) const {
  ImplicitLocOpBuilder b(loc, builder);
  Value words = tables[0], zero = constantIndex(b, 0), size = constantIndex(b, kWordTokens);
  Value firstDraft = arith::SubIOp::create(b, point.ownKey, point.query);
  Value distance = arith::SubIOp::create(b, point.key, firstDraft);
  Value isEarlier = compare(b, loc, Predicate::slt, distance, zero);
  Value draft = arith::MaxSIOp::create(b, distance, zero);
  Value place = arith::DivUIOp::create(b, draft, size), bit = arith::RemUIOp::create(b, draft, size);
  Value word = tensor::ExtractOp::create(b, words, ValueRange{sequenceOf(b, words, point), point.query, place});
  Value shifted = arith::ShRUIOp::create(b, word, arith::IndexCastOp::create(b, b.getI64Type(), bit));
  Value isAncestor = arith::TruncIOp::create(b, b.getI1Type(), shifted);
  return arith::OrIOp::create(b, isEarlier, isAncestor);
}

std::optional<PatternVisibility> TreeAttr::getVisibility() const { return PatternVisibility{.ancestors = 0}; }

//===- #hone.all_of -----------------------------------------------------------------------------------------------===//

LogicalResult AllOfAttr::verify(EmitError emitError, ArrayRef<AttentionPatternInterface> patterns) {
  if (patterns.size() < 2) // all_of C1
    return emitError() << "expected at least 2 patterns, but got " << patterns.size();
  return success();
}

unsigned AllOfAttr::getOperandCount() const {
  unsigned count = 0;
  for (AttentionPatternInterface pattern : getPatterns())
    count += pattern.getOperandCount();
  return count;
}

LogicalResult AllOfAttr::verifyOperands(EmitError emitError, const AttentionSizes<int64_t> &sizes,
                                        TypeRange types) const {
  for (AttentionPatternInterface pattern : getPatterns()) {
    if (failed(pattern.verifyOperands(emitError, sizes, types.take_front(pattern.getOperandCount()))))
      return failure();
    types = types.drop_front(pattern.getOperandCount());
  }
  return success();
}

SmallVector<Value> AllOfAttr::buildTables(OpBuilder &builder, Location loc, ValueRange operands,
                                          const AttentionSizes<Value> &sizes) const {
  SmallVector<Value> tables;
  for (AttentionPatternInterface pattern : getPatterns()) {
    llvm::append_range(tables,
                       pattern.buildTables(builder, loc, operands.take_front(pattern.getOperandCount()), sizes));
    operands = operands.drop_front(pattern.getOperandCount());
  }
  return tables;
}

Value AllOfAttr::buildIsVisible(OpBuilder &builder, Location loc, const AttentionPoint &point,
                                ValueRange tables) const {
  Value all;
  for (AttentionPatternInterface pattern : getPatterns()) {
    Value visible = pattern.buildIsVisible(builder, loc, point, tables.take_front(pattern.getOperandCount()));
    tables = tables.drop_front(pattern.getOperandCount());
    all = all && visible ? arith::AndIOp::create(builder, loc, all, visible).getResult() : all ? all : visible;
  }
  return all;
}

/// `pattern` with its operands after `count` others.
static PatternVisibility afterOperands(PatternVisibility pattern, int count) {
  for (int *operand : {&pattern.prefix, &pattern.blocks, &pattern.ancestors})
    *operand += *operand < 0 ? 0 : count;
  return pattern;
}

/// What both show; none where kernels would need two operands of a kind.
static std::optional<PatternVisibility> intersect(const PatternVisibility &a, const PatternVisibility &b) {
  if ((a.prefix >= 0 && b.prefix >= 0) || (a.blocks >= 0 && b.blocks >= 0) || (a.ancestors >= 0 && b.ancestors >= 0))
    return std::nullopt;
  PatternVisibility both = a;
  both.isCausal |= b.isCausal;
  // A pattern that hides all keys after the query hides those of the other's prefix.
  bool hidesPrefix = (a.isCausal && a.prefix < 0) || (b.isCausal && b.prefix < 0);
  both.prefix = hidesPrefix ? -1 : std::max(a.prefix, b.prefix);
  both.window = a.window < 0 || b.window < 0 ? std::max(a.window, b.window) : std::min(a.window, b.window);
  both.blockKeys = std::max(a.blockKeys, b.blockKeys);
  both.blockQueries = std::max(a.blockQueries, b.blockQueries);
  both.blocks = std::max(a.blocks, b.blocks);
  both.ancestors = std::max(a.ancestors, b.ancestors);
  return both;
}

std::optional<PatternVisibility> AllOfAttr::getVisibility() const {
  std::optional<PatternVisibility> all = PatternVisibility{};
  int count = 0;
  for (AttentionPatternInterface pattern : getPatterns()) {
    std::optional<PatternVisibility> visibility = pattern.getVisibility();
    all = all && visibility ? intersect(*all, afterOperands(*visibility, count)) : std::nullopt;
    count += static_cast<int>(pattern.getOperandCount());
  }
  return all;
}
