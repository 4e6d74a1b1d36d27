// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every attention pattern: the predicate in IR, folded on constants, is the predicate in C++, and its bounds hide no key.

#include "hone/Dialect/Hone/HoneTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

constexpr int64_t Positions = 9;

/// The attribute that a value computed from constants folds to.
mlir::Attribute evaluate(mlir::Value value) {
  mlir::Operation *op = value.getDefiningOp();
  llvm::SmallVector<mlir::Attribute> operands;
  for (mlir::Value operand : op->getOperands())
    operands.push_back(evaluate(operand));
  llvm::SmallVector<mlir::OpFoldResult> results;
  if (failed(op->fold(operands, results)) || results.empty())
    return {};
  auto folded = llvm::dyn_cast<mlir::Attribute>(results.front());
  return folded ? folded : evaluate(llvm::cast<mlir::Value>(results.front()));
}

class Patterns : public testing::TestWithParam<const char *> {
protected:
  Patterns() : builder(&context), module(mlir::ModuleOp::create(builder.getUnknownLoc())) {
    context.loadDialect<HoneDialect, mlir::arith::ArithDialect>();
    builder.setInsertionPointToStart(module->getBody());
    pattern = llvm::cast<AttentionPatternInterface>(make(GetParam()));
  }

  mlir::Attribute make(llvm::StringRef name) {
    if (name == "full")
      return FullAttr::get(&context);
    if (name == "causal")
      return CausalAttr::get(&context);
    if (name == "prefix_causal")
      return PrefixCausalAttr::get(&context);
    if (name == "sliding_1")
      return SlidingAttr::get(&context, 1);
    if (name == "sliding_3")
      return SlidingAttr::get(&context, 3);
    return AllOfAttr::get(&context, {llvm::cast<AttentionPatternInterface>(make("prefix_causal")),
                                     llvm::cast<AttentionPatternInterface>(make("sliding_3"))});
  }

  bool foldsToVisible(const AttentionPoint<int64_t> &point) {
    auto constant = [&](int64_t value) -> mlir::Value {
      return mlir::arith::ConstantIndexOp::create(builder, builder.getUnknownLoc(), value);
    };
    AttentionPoint<mlir::Value> values{constant(0), constant(0), constant(point.query), constant(point.key),
                                       constant(point.prefix)};
    mlir::Value visible = pattern.buildIsVisible(builder, builder.getUnknownLoc(), values);
    return !visible || llvm::cast<mlir::BoolAttr>(evaluate(visible)).getValue();
  }

  /// Calls `check` at every query, key and prefix of a few positions.
  void forEachPoint(llvm::function_ref<void(const AttentionPoint<int64_t> &)> check) {
    for (int64_t prefix = 0; prefix <= Positions; prefix += 3)
      for (int64_t query = -2; query < Positions; ++query)
        for (int64_t key = 0; key < Positions; ++key)
          check({0, 0, query, key, prefix});
  }

  mlir::MLIRContext context;
  mlir::OpBuilder builder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  AttentionPatternInterface pattern;
};

TEST_P(Patterns, IrEqualsCpp) {
  forEachPoint([&](const AttentionPoint<int64_t> &point) {
    EXPECT_EQ(foldsToVisible(point), pattern.isVisible(point))
        << "query " << point.query << " key " << point.key << " prefix " << point.prefix;
  });
}

TEST_P(Patterns, RangeHoldsEveryVisibleKey) {
  for (int64_t begin = 0; begin < Positions; ++begin)
    for (int64_t end = begin + 1; end <= Positions; ++end)
      forEachPoint([&](const AttentionPoint<int64_t> &point) {
        if (point.query < begin || point.query >= end || !pattern.isVisible(point))
          return;
        PositionRange range = pattern.getKeyRange({begin, end}, Positions, point.prefix);
        EXPECT_TRUE(range.begin <= point.key && point.key < range.end)
            << "queries " << begin << " to " << end << " key " << point.key << " prefix " << point.prefix;
      });
}

TEST_P(Patterns, CausalSeesNothingAfter) {
  bool seesLater = false;
  forEachPoint(
      [&](const AttentionPoint<int64_t> &point) { seesLater |= point.key > point.query && pattern.isVisible(point); });
  EXPECT_NE(pattern.isCausal(), seesLater);
}

TEST_P(Patterns, PrefixIsReadOnlyIfNeeded) {
  bool matters = false;
  forEachPoint([&](AttentionPoint<int64_t> point) {
    bool visible = pattern.isVisible(point);
    point.prefix = 0;
    matters |= visible != pattern.isVisible(point);
  });
  // Within a window that ends at the query, the prefix of prefix_causal shows nothing more; it is an operand all the same.
  EXPECT_TRUE(!matters || pattern.needsPrefix());
}

INSTANTIATE_TEST_SUITE_P(All, Patterns,
                         testing::Values("full", "causal", "sliding_1", "sliding_3", "prefix_causal", "all_of"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
} // namespace hone
