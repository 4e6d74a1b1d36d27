// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What operations say of their weights, rows and groups, and what passes ask of it.

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include "gmock/gmock.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class OpInterfaces : public testing::Test {
protected:
  OpInterfaces() { context.loadDialect<HoneDialect, mlir::func::FuncDialect>(); }

  /// The one operation of a function with these arguments, `%0` to `%N`.
  mlir::Operation *parse(const std::string &arguments, const std::string &op) {
    module = mlir::parseSourceString<mlir::ModuleOp>(
        "func.func @f(" + arguments + ") {\n  %result = " + op + "\n  return\n}\n", &context);
    return module ? &(*module->getOps<mlir::func::FuncOp>().begin()).getBody().front().front() : nullptr;
  }

  mlir::Operation *parseLinear() {
    return parse("%x: tensor<?x4xf32>, %w: tensor<6x4xf32>, %b: tensor<6xf32>",
                 "hone.linear %x, %w bias(%b) : (tensor<?x4xf32>, tensor<6x4xf32>, tensor<6xf32>) -> tensor<?x6xf32>");
  }
  mlir::Operation *parseEmbedding() {
    return parse("%ids: tensor<?xi64>, %t: tensor<6x4xf32>",
                 "hone.embedding %ids, %t : (tensor<?xi64>, tensor<6x4xf32>) -> tensor<?x4xf32>");
  }
  mlir::Operation *parseGatedMlp() {
    return parse(
        "%x: tensor<?x4xf32>, %g: tensor<6x4xf32>, %u: tensor<6x4xf32>, %d: tensor<4x6xf32>, %b: tensor<6xf32>",
        "hone.gated_mlp silu %x, gate(%g), up(%u, %b), down(%d) : (tensor<?x4xf32>, tensor<6x4xf32>, "
        "tensor<6x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<?x4xf32>");
  }
  mlir::Operation *parseMoe() {
    return parse("%x: tensor<?x4xf32>, %ids: tensor<?x2xi64>, %p: tensor<?x2xf32>, %g: tensor<48x4xf32>, "
                 "%u: tensor<48x4xf32>, %d: tensor<32x6xf32>",
                 "hone.moe silu %x, experts(%ids, %p), up(%u), down(%d) gate(%g) : (tensor<?x4xf32>, tensor<?x2xi64>, "
                 "tensor<?x2xf32>, tensor<48x4xf32>, tensor<32x6xf32>, tensor<48x4xf32>) -> tensor<?x4xf32>");
  }
  mlir::Operation *parseAttention(const std::string &bias) {
    return parse("%q: tensor<1x6x?x8xf32>, %k: tensor<1x2x?x8xf32>, %bias: " + bias,
                 "hone.attention %q, %k, %k pattern(#hone.full) scale(1.0) bias(%bias) : (tensor<1x6x?x8xf32>, "
                 "tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, " +
                     bias + ") -> tensor<1x6x?x8xf32>");
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// The number of an operand, or -1 for the result.
int numberOf(mlir::OpOperand *operand) { return operand ? static_cast<int>(operand->getOperandNumber()) : -1; }

std::vector<int> numbersOf(llvm::ArrayRef<WeightUse> weights) {
  std::vector<int> numbers;
  for (const WeightUse &weight : weights)
    numbers.push_back(numberOf(weight.weight));
  return numbers;
}

/// (operand, dimension, neighbours) of each.
std::vector<std::tuple<int, int64_t, int64_t>> list(llvm::ArrayRef<GroupDim> dims) {
  std::vector<std::tuple<int, int64_t, int64_t>> all;
  for (const GroupDim &dim : dims)
    all.emplace_back(numberOf(dim.operand), dim.dim, dim.each);
  return all;
}

TEST_F(OpInterfaces, SaysWhichDimensionsResultsHave) {
  mlir::Operation *op = parseEmbedding();
  ASSERT_TRUE(op);
  auto dims = llvm::cast<ComputeOpInterface>(op).getResultDims(op->getOperandTypes());
  ASSERT_TRUE(mlir::succeeded(dims));
  ASSERT_EQ(dims->size(), 2u);
  EXPECT_EQ((*dims)[0].operand, 0u);
  EXPECT_EQ((*dims)[1].operand, 1u);
  EXPECT_EQ((*dims)[1].dim, 1);
  EXPECT_TRUE(mlir::failed(llvm::cast<ComputeOpInterface>(op).getOtherDims(op->getOperandTypes(), 1)));
}

TEST_F(OpInterfaces, SaysThatLinearIsAProduct) {
  mlir::Operation *op = parseLinear();
  ASSERT_TRUE(op);
  std::optional<WeightUse> product = findProduct(op);
  ASSERT_TRUE(product);
  EXPECT_EQ(numberOf(product->weight), 1);
  EXPECT_EQ(numberOf(product->read), 0);
  ASSERT_EQ(product->bias.size(), 1u);
  EXPECT_EQ(numberOf(&product->bias[0]), 2);
  EXPECT_TRUE(findWriter(op));
  EXPECT_THAT(numbersOf(listReaders(op->getOpOperand(0))), ElementsAre(1));
  EXPECT_THAT(numbersOf(listReaders(op->getOpOperand(1))), IsEmpty());
  EXPECT_TRUE(findWeight(op->getOpOperand(1)));
  EXPECT_FALSE(findWeight(op->getOpOperand(2)));
  EXPECT_FALSE(findLookup(op) || findInnerGroups(op));
}

TEST_F(OpInterfaces, SaysThatAnEmbeddingLooksRowsUp) {
  mlir::Operation *op = parseEmbedding();
  ASSERT_TRUE(op);
  std::optional<WeightUse> lookup = findLookup(op);
  ASSERT_TRUE(lookup);
  EXPECT_EQ(numberOf(lookup->weight), 1);
  EXPECT_EQ(numberOf(lookup->read), 0);
  EXPECT_TRUE(isLookedUp(op->getOpOperand(1)));
  EXPECT_FALSE(isLookedUp(op->getOpOperand(0)));
  EXPECT_TRUE(findWriter(op));
  EXPECT_FALSE(findProduct(op));
  EXPECT_THAT(listReaders(op->getOpOperand(0)), IsEmpty());
}

TEST_F(OpInterfaces, SaysWhatABlockDoesWithItsHiddenChannels) {
  mlir::Operation *op = parseGatedMlp();
  ASSERT_TRUE(op);
  llvm::SmallVector<WeightUse> weights = llvm::cast<WeightedOpInterface>(op).listWeights();
  EXPECT_THAT(numbersOf(weights), ElementsAre(1, 2, 3)); // gate, up, down
  EXPECT_EQ(weights[0].outputs, WeightOutputs::Activated);
  EXPECT_EQ(weights[1].outputs, WeightOutputs::Hidden);
  EXPECT_EQ(weights[2].inputs, WeightInputs::Hidden);
  EXPECT_THAT(numbersOf(listReaders(op->getOpOperand(0))), ElementsAre(1, 2));
  EXPECT_EQ(numberOf(findWriter(op)->weight), 3);
  EXPECT_FALSE(findProduct(op));
  std::optional<InnerGroups> groups = findInnerGroups(op);
  ASSERT_TRUE(groups);
  EXPECT_EQ(groups->kind, GroupKind::Channels);
  EXPECT_EQ(groups->count(), 6);
  GroupRules rules = llvm::cast<GroupedOpInterface>(op).getGroupRules();
  ASSERT_EQ(rules.linked.size(), 1u);
  EXPECT_THAT(list(rules.linked[0]), testing::UnorderedElementsAre(std::tuple(1, 0, 1), std::tuple(2, 0, 1),
                                                                   std::tuple(3, 1, 1), std::tuple(4, 0, 1)));
}

TEST_F(OpInterfaces, SaysWhatExpertsShare) {
  mlir::Operation *op = parseMoe();
  ASSERT_TRUE(op);
  std::optional<WeightUse> up = findWeight(op->getOpOperand(3)), down = findWeight(op->getOpOperand(4)),
                           gate = findWeight(op->getOpOperand(5));
  ASSERT_TRUE(up && down && gate);
  EXPECT_EQ(up->experts, 8);
  EXPECT_EQ(up->choices, 2);
  EXPECT_EQ(up->partner, gate->weight);
  EXPECT_EQ(gate->partner, up->weight);
  EXPECT_FALSE(down->partner);
  // Rows choose among them: they are not multiplied with all of a weight.
  EXPECT_THAT(listReaders(op->getOpOperand(0)), IsEmpty());
  EXPECT_FALSE(findWriter(op) || findInnerGroups(op));
}

TEST_F(OpInterfaces, SaysWhatHeadsShare) {
  mlir::Operation *op = parseAttention("tensor<1x6x?x?xf32>");
  ASSERT_TRUE(op);
  std::optional<InnerGroups> groups = findInnerGroups(op);
  ASSERT_TRUE(groups);
  EXPECT_EQ(groups->kind, GroupKind::Heads);
  EXPECT_EQ(groups->count(), 2);
  GroupRules rules = llvm::cast<GroupedOpInterface>(op).getGroupRules();
  EXPECT_TRUE(rules.coverAll);
  ASSERT_EQ(rules.linked.size(), 1u);
  EXPECT_THAT(list(rules.linked[0]), ElementsAre(std::tuple(0, 1, 3), std::tuple(1, 1, 1), std::tuple(2, 1, 1),
                                                 std::tuple(3, 1, 3), std::tuple(-1, 1, 3)));
  // A bias that is the same for all heads is not cut.
  op = parseAttention("tensor<1x1x?x?xf32>");
  ASSERT_TRUE(op);
  rules = llvm::cast<GroupedOpInterface>(op).getGroupRules();
  ASSERT_EQ(rules.linked.size(), 1u);
  EXPECT_EQ(rules.linked[0].size(), 4u);
}

TEST_F(OpInterfaces, SaysThatNormsMixTheChannelsOfARow) {
  mlir::Operation *op =
      parse("%x: tensor<?x3x4xf32>, %w: tensor<4xf32>",
            "hone.rms_norm %x, %w epsilon(1.0e-6) unit_offset : (tensor<?x3x4xf32>, tensor<4xf32>) -> "
            "tensor<?x3x4xf32>");
  ASSERT_TRUE(op);
  auto norm = llvm::cast<NormOpInterface>(op);
  EXPECT_EQ(numberOf(norm.getNormParts().rows), 0);
  EXPECT_EQ(numberOf(norm.getNormParts().gain), 1);
  EXPECT_FALSE(norm.getNormParts().subtractsMean);
  EXPECT_TRUE(norm.getNormParts().hasUnitOffset);
  norm.dropUnitOffset();
  EXPECT_FALSE(norm.getNormParts().hasUnitOffset);
  GroupRules rules = llvm::cast<GroupedOpInterface>(op).getGroupRules();
  ASSERT_EQ(rules.linked.size(), 2u); // all dimensions but the last
  EXPECT_THAT(list(rules.linked[1]), ElementsAre(std::tuple(0, 1, 1), std::tuple(-1, 1, 1)));
}

} // namespace
} // namespace hone
