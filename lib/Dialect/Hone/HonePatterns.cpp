//===- HonePatterns.cpp - which keys a query sees ---------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The predicate of each pattern in IR and in C++, and its bounds.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/HoneTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <algorithm>

using namespace mlir;
using namespace hone;

using Point = AttentionPoint<int64_t>;
using PointValues = AttentionPoint<Value>;

static Value compare(OpBuilder &builder, Location loc, arith::CmpIPredicate predicate, Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, predicate, a, b);
}

static Value buildIsNotAfter(OpBuilder &builder, Location loc, const PointValues &point) {
  return compare(builder, loc, arith::CmpIPredicate::sle, point.key, point.query);
}

static PositionRange intersect(PositionRange a, PositionRange b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

//===- #hone.full -------------------------------------------------------------------------------------------------===//

Value FullAttr::buildIsVisible(OpBuilder &, Location, const PointValues &) const { return nullptr; }

bool FullAttr::isVisible(const Point &) const { return true; }

std::string FullAttr::getKernelSuffix() const { return "full"; }

//===- #hone.causal -----------------------------------------------------------------------------------------------===//

Value CausalAttr::buildIsVisible(OpBuilder &builder, Location loc, const PointValues &point) const {
  return buildIsNotAfter(builder, loc, point);
}

bool CausalAttr::isVisible(const Point &point) const { return point.key <= point.query; }

PositionRange CausalAttr::getKeyRange(PositionRange queries, int64_t keyCount, int64_t) const {
  return intersect({0, keyCount}, {0, queries.end});
}

bool CausalAttr::isCausal() const { return true; }

std::string CausalAttr::getKernelSuffix() const { return "causal"; }

//===- #hone.sliding ----------------------------------------------------------------------------------------------===//

LogicalResult SlidingAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t window) {
  if (window <= 0) // sliding C1
    return emitError() << "expected the window to be positive, but got " << window;
  return success();
}

Value SlidingAttr::buildIsVisible(OpBuilder &builder, Location loc, const PointValues &point) const {
  Value window = arith::ConstantIndexOp::create(builder, loc, getWindow());
  Value reach = arith::AddIOp::create(builder, loc, point.key, window);
  Value near = compare(builder, loc, arith::CmpIPredicate::sgt, reach, point.query);
  return arith::AndIOp::create(builder, loc, buildIsNotAfter(builder, loc, point), near);
}

bool SlidingAttr::isVisible(const Point &point) const {
  return point.key <= point.query && point.query - point.key < getWindow();
}

PositionRange SlidingAttr::getKeyRange(PositionRange queries, int64_t keyCount, int64_t) const {
  return intersect({0, keyCount}, {queries.begin - getWindow() + 1, queries.end});
}

bool SlidingAttr::isCausal() const { return true; }

std::string SlidingAttr::getKernelSuffix() const { return "sliding"; }

//===- #hone.prefix_causal ----------------------------------------------------------------------------------------===//

Value PrefixCausalAttr::buildIsVisible(OpBuilder &builder, Location loc, const PointValues &point) const {
  Value inPrefix = compare(builder, loc, arith::CmpIPredicate::slt, point.key, point.prefix);
  return arith::OrIOp::create(builder, loc, inPrefix, buildIsNotAfter(builder, loc, point));
}

bool PrefixCausalAttr::isVisible(const Point &point) const {
  return point.key < point.prefix || point.key <= point.query;
}

PositionRange PrefixCausalAttr::getKeyRange(PositionRange queries, int64_t keyCount, int64_t prefix) const {
  return intersect({0, keyCount}, {0, std::max(queries.end, prefix)});
}

bool PrefixCausalAttr::needsPrefix() const { return true; }

std::string PrefixCausalAttr::getKernelSuffix() const { return "prefix_causal"; }

//===- #hone.all_of -----------------------------------------------------------------------------------------------===//

LogicalResult AllOfAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<AttentionPatternInterface> patterns) {
  if (patterns.size() < 2) // all_of C1
    return emitError() << "expected at least 2 patterns, but got " << patterns.size();
  return success();
}

Value AllOfAttr::buildIsVisible(OpBuilder &builder, Location loc, const PointValues &point) const {
  Value all;
  for (AttentionPatternInterface pattern : getPatterns()) {
    Value visible = pattern.buildIsVisible(builder, loc, point);
    all = all && visible ? arith::AndIOp::create(builder, loc, all, visible).getResult() : all ? all : visible;
  }
  return all;
}

bool AllOfAttr::isVisible(const Point &point) const {
  return llvm::all_of(getPatterns(), [&](AttentionPatternInterface pattern) { return pattern.isVisible(point); });
}

PositionRange AllOfAttr::getKeyRange(PositionRange queries, int64_t keyCount, int64_t prefix) const {
  PositionRange range{0, keyCount};
  for (AttentionPatternInterface pattern : getPatterns())
    range = intersect(range, pattern.getKeyRange(queries, keyCount, prefix));
  return range;
}

bool AllOfAttr::isCausal() const {
  return llvm::any_of(getPatterns(), [](AttentionPatternInterface pattern) { return pattern.isCausal(); });
}

bool AllOfAttr::needsPrefix() const {
  return llvm::any_of(getPatterns(), [](AttentionPatternInterface pattern) { return pattern.needsPrefix(); });
}

std::string AllOfAttr::getKernelSuffix() const {
  std::string suffix = "all_of";
  for (AttentionPatternInterface pattern : getPatterns())
    suffix += "_" + pattern.getKernelSuffix();
  return suffix;
}
