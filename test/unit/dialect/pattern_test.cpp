// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every attention pattern: the predicate in IR, folded on constants, is what kernels take for it.

#include "hone/Dialect/Hone/HoneTypes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>
#include <random>

namespace hone {
namespace {

constexpr int64_t kBatch = 2, kHeads = 4, kKeyHeads = 2, kQueries = 5, kKeys = 9, kListed = 2;

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
    context.loadDialect<HoneDialect, mlir::arith::ArithDialect, mlir::tensor::TensorDialect>();
    builder.setInsertionPointToStart(module->getBody());
    pattern = llvm::cast<AttentionPatternInterface>(mlir::parseAttribute(GetParam(), &context));
    visibility = *pattern.getVisibility();
    for (auto *words : {&ancestors, &lists, &prefix})
      words->clear();
    std::mt19937 random(5);
    for (int64_t b = 0; b < kBatch; ++b) {
      prefix.push_back(3 * b);
      for (int64_t i = 0; i < kQueries; ++i)
        ancestors.push_back(static_cast<int64_t>(random() % 32));
    }
    blockCount = visibility.blockKeys > 0 ? (kKeys + visibility.blockKeys - 1) / visibility.blockKeys : 1;
    listQueries = visibility.blockQueries > 0 ? (kQueries + visibility.blockQueries - 1) / visibility.blockQueries : 1;
    for (int64_t list = 0; list < kBatch * kKeyHeads * listQueries; ++list) {
      auto first = static_cast<int64_t>(random() % static_cast<uint64_t>(blockCount));
      lists.push_back(first);
      lists.push_back(first + 1 < blockCount ? first + 1 : -1);
    }
  }

  mlir::Location loc() { return builder.getUnknownLoc(); }
  mlir::Value constant(int64_t value) { return mlir::arith::ConstantIndexOp::create(builder, loc(), value); }
  template <typename Element> mlir::Value constantTensor(llvm::ArrayRef<int64_t> shape,
                                                         llvm::ArrayRef<Element> values) {
    mlir::Type element = builder.getIntegerType(std::is_same_v<Element, bool> ? 1 : 64);
    auto type = mlir::RankedTensorType::get(shape, element);
    return mlir::arith::ConstantOp::create(builder, loc(), mlir::DenseElementsAttr::get(type, values));
  }

  /// What the predicate reads, as constants, for each operand of the pattern.
  llvm::SmallVector<mlir::Value> makeTables() {
    llvm::SmallVector<bool> isListed(static_cast<size_t>(kBatch * kKeyHeads * listQueries * blockCount), false);
    for (size_t i = 0; i < lists.size(); ++i)
      if (lists[i] >= 0)
        isListed[i / kListed * static_cast<size_t>(blockCount) + static_cast<size_t>(lists[i])] = true;
    llvm::SmallVector<mlir::Value> tables(pattern.getOperandCount(), constantTensor<int64_t>({kBatch}, prefix));
    if (visibility.blocks >= 0)
      tables[static_cast<size_t>(visibility.blocks)] =
          constantTensor<bool>({kBatch, kKeyHeads, listQueries, blockCount}, isListed);
    if (visibility.ancestors >= 0)
      tables[static_cast<size_t>(visibility.ancestors)] = constantTensor<int64_t>({kBatch, kQueries, 1}, ancestors);
    return tables;
  }

  kernels::Visibility makeVisibility(const std::vector<int64_t> &positions) {
    kernels::Visibility made = {};
    made.queries = kQueries, made.keys = kKeys;
    made.window = visibility.window, made.isCausal = visibility.isCausal;
    if (visibility.prefix >= 0)
      made.prefix = {prefix.data(), {1}};
    if (!positions.empty())
      made.keyPositions = {positions.data(), {kKeys, 1}};
    made.blockKeys = visibility.blockKeys, made.blockQueries = visibility.blockQueries;
    if (visibility.blocks >= 0) {
      made.blocks = {lists.data(), {kKeyHeads * listQueries * kListed, listQueries * kListed, kListed, 1}};
      made.listed = kListed, made.listHeads = kHeads / kKeyHeads;
    }
    if (visibility.ancestors >= 0)
      made.ancestors = {ancestors.data(), {kQueries, 0, 0}}, made.ancestors.strides[1] = 1;
    return made;
  }

  bool foldsToVisible(const kernels::Visibility &of, llvm::ArrayRef<mlir::Value> tables, int64_t b, int64_t h,
                      int64_t i, int64_t j) {
    AttentionPoint point;
    point.sizes = {constant(kBatch), constant(kHeads), constant(kKeyHeads), constant(kQueries), constant(kKeys)};
    point.batch = constant(b), point.head = constant(h), point.query = constant(i), point.key = constant(j);
    point.ownKey = constant(kernels::ownKeyOf(of, b, i));
    point.queryPosition = constant(kernels::queryPositionOf(of, b, i));
    point.keyPosition = constant(kernels::keyPositionOf(of, b, j));
    mlir::Value visible = pattern.buildIsVisible(builder, loc(), point, tables);
    return !visible || llvm::cast<mlir::BoolAttr>(evaluate(visible)).getValue();
  }

  /// Compares the predicate with `seesKey`, and that with the bits of `markVisible`.
  void compare(const std::vector<int64_t> &positions) {
    kernels::Visibility made = makeVisibility(positions);
    llvm::SmallVector<mlir::Value> tables = makeTables();
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t h = 0; h < kHeads; ++h)
        for (int64_t i = 0; i < kQueries; ++i) {
          uint64_t bits = 0;
          kernels::markVisible(made, b, h, i, {0, kKeys}, &bits);
          for (int64_t j = 0; j < kKeys; ++j) {
            bool isDead = kernels::keyPositionOf(made, b, j) < 0;
            bool expected = !isDead && foldsToVisible(made, tables, b, h, i, j);
            EXPECT_EQ(kernels::seesKey(made, b, h, i, j), expected)
                << "sequence " << b << " head " << h << " query " << i << " key " << j;
            EXPECT_EQ((bits >> j & 1) != 0, expected) << "bit of query " << i << " key " << j;
          }
        }
  }

  mlir::MLIRContext context;
  mlir::OpBuilder builder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  AttentionPatternInterface pattern;
  kernels::PatternVisibility visibility;
  std::vector<int64_t> prefix, lists, ancestors;
  int64_t blockCount = 1, listQueries = 1;
};

TEST_P(Patterns, IrEqualsWhatKernelsTake) { compare({}); }

TEST_P(Patterns, IrEqualsWhatKernelsTakeByPositions) {
  compare({4, -1, 7, 8, 2, -1, 10, 11, 12, /**/ 0, 1, 2, 3, 4, 9, 9, -1, 20});
}

TEST(PatternsOfKernels, TwoListsAreNoDescription) {
  mlir::MLIRContext context;
  context.loadDialect<HoneDialect>();
  auto get = [&](llvm::StringRef text) {
    return llvm::cast<AttentionPatternInterface>(mlir::parseAttribute(text, &context)).getVisibility();
  };
  EXPECT_FALSE(get("#hone.all_of<#hone.blocks<size = 16>, #hone.blocks<size = 64>>").has_value());
  EXPECT_FALSE(get("#hone.all_of<#hone.tree, #hone.tree>").has_value());
  EXPECT_EQ(get("#hone.all_of<#hone.full, #hone.sliding<window = 5>, #hone.sliding<window = 3>>")->window, 3);
}

INSTANTIATE_TEST_SUITE_P(All, Patterns,
                         testing::Values("#hone.full", "#hone.causal", "#hone.sliding<window = 1>",
                                         "#hone.sliding<window = 3>", "#hone.prefix_causal", "#hone.blocks<size = 1>",
                                         "#hone.blocks<size = 4, queries = 2>", "#hone.tree",
                                         "#hone.all_of<#hone.prefix_causal, #hone.sliding<window = 3>>",
                                         "#hone.all_of<#hone.sliding<window = 4>, #hone.tree, #hone.blocks<size = 2>>",
                                         "#hone.all_of<#hone.blocks<size = 2, queries = 5>, #hone.prefix_causal>"));

} // namespace
} // namespace hone
