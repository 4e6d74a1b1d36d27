// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is done to the copy of an entry before its adjoints are built.

#include "Prepare.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/DecomposedParts.h"
#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace hone {

//===- State ------------------------------------------------------------------------------------------------------===//

/// What an operation of the state gives where that is empty; null of one that reads what it holds.
static Value getWithoutState(OpBuilder &b, Operation *op) {
  if (auto append = dyn_cast<KvAppendOp>(op))
    return append.getFresh();
  if (auto kept = dyn_cast<LogitsToKeepOp>(op))
    return kept.getFresh();
  if (isa<KvLengthOp, KvLagOp, KvPaddingOp>(op))
    return arith::ConstantIndexOp::create(b, op->getLoc(), 0);
  return {};
}

static LogicalResult emptyStateOf(Operation *op) {
  OpBuilder b(op);
  if (auto replacement = dyn_cast<KvReplaceOp>(op)) {
    replacement.getNext().replaceAllUsesWith(replacement.getState());
    return op->erase(), success();
  }
  Value value = getWithoutState(b, op);
  if (!value)
    return op->emitError() << "cannot differentiate " << op->getName() << ": it reads the state";
  if (auto append = dyn_cast<KvAppendOp>(op))
    append.getNext().replaceAllUsesWith(append.getState());
  Value held = op->getResult(op->getNumResults() - 1);
  if (value.getType() != held.getType() && isa<RankedTensorType>(value.getType()) &&
      getElementTypeOrSelf(value.getType()) == getElementTypeOrSelf(held.getType()) &&
      !cast<RankedTensorType>(held.getType()).getEncoding())
    value = tensor::CastOp::create(b, op->getLoc(), held.getType(), value);
  held.replaceAllUsesWith(value);
  return op->erase(), success();
}

LogicalResult emptyState(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (llvm::any_of(op->getOperandTypes(), [](Type type) { return isa<KvType>(type); }) && !isa<func::ReturnOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops)
    if (failed(emptyStateOf(op)))
      return failure();
  Operation *ret = function.getBody().front().getTerminator();
  BitVector returned(ret->getNumOperands()), taken(function.getNumArguments());
  for (OpOperand &operand : ret->getOpOperands())
    returned[operand.getOperandNumber()] = isa<KvType>(operand.get().getType());
  for (BlockArgument argument : function.getArguments())
    taken[argument.getArgNumber()] = isa<KvType>(argument.getType());
  ret->eraseOperands(returned);
  return failure(failed(function.eraseResults(returned)) || failed(function.eraseArguments(taken)));
}

//===- Operations -------------------------------------------------------------------------------------------------===//

void splitForAdjoints(func::FuncOp function) {
  IRRewriter rewriter(function.getContext());
  function.walk([&](Operation *op) {
    rewriter.setInsertionPoint(op);
    if (auto moe = dyn_cast<MoeOp>(op))
      return groupExperts(rewriter, moe);
    if (splitIntoProducts(rewriter, op))
      return;
    if (auto named = dyn_cast<linalg::LinalgOp>(op);
        named && !isa<linalg::GenericOp, linalg::FillOp, linalg::TransposeOp>(op))
      (void)linalg::generalizeNamedOp(rewriter, named); // one without a body of numbers is refused later, by its name
    else if (auto concat = dyn_cast<tensor::ConcatOp>(op))
      if (FailureOr<SmallVector<Value>> parts = concat.decomposeOperation(rewriter); succeeded(parts))
        rewriter.replaceOp(concat, *parts);
  });
}

/// The operations of the block that what it returns is computed with.
static llvm::SetVector<Operation *> findNeeded(Block &block) {
  llvm::SetVector<Operation *> needed;
  auto need = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (Operation *inBlock = op ? block.findAncestorOpInBlock(*op) : nullptr)
      needed.insert(inBlock);
  };
  llvm::for_each(block.getTerminator()->getOperands(), need);
  for (size_t i = 0; i < needed.size(); ++i) {
    Operation *op = needed[i];
    llvm::for_each(op->getOperands(), need);
    visitUsedValuesDefinedAbove(op->getRegions(), [&](OpOperand *use) { need(use->get()); });
  }
  return needed;
}

/// Those whose results `adjoints` wants; fails after an error at one of other floats than f32 and f64.
static FailureOr<SmallVector<DifferentiableOpInterface>> findOnTheWay(Block &block, const Adjoints &adjoints) {
  SmallVector<DifferentiableOpInterface> found;
  for (Operation *op : findNeeded(block)) {
    auto wanted = llvm::find_if(op->getResults(), [&](Value value) { return adjoints.isWanted(value); });
    if (wanted == op->result_end())
      continue;
    Type element = getElementTypeOrSelf((*wanted).getType());
    if (!element.isF32() && !element.isF64())
      return op->emitError() << "cannot differentiate " << op->getName() << " of " << element
                             << "; supported: f32, f64";
    if (auto differentiable = dyn_cast<DifferentiableOpInterface>(op))
      found.push_back(differentiable);
  }
  return found;
}

LogicalResult prepareForAdjoints(Block &block, llvm::function_ref<Adjoints()> want) {
  Adjoints adjoints = want();
  FailureOr<SmallVector<DifferentiableOpInterface>> before = findOnTheWay(block, adjoints);
  if (failed(before))
    return failure();
  SmallVector<Operation *> decomposed;
  for (DifferentiableOpInterface op : *before)
    if (!op.hasAdjoint(adjoints))
      decomposed.push_back(op);
  RewritePatternSet patterns(block.getParentOp()->getContext());
  populateDecompositions(patterns);
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingOps).enableFolding(false).enableConstantCSE(false);
  if (failed(applyOpPatternsGreedily(decomposed, std::move(patterns), config)))
    return failure();
  FailureOr<SmallVector<DifferentiableOpInterface>> after = findOnTheWay(block, want());
  if (failed(after))
    return failure();
  IRRewriter rewriter(block.getParentOp()->getContext());
  for (DifferentiableOpInterface op : *after)
    op.saveForAdjoint(rewriter);
  return success();
}

/// The numbers of carried values that the results which are read, or what has effects, depend on.
static llvm::SetVector<unsigned> findUsedCarried(scf::ForOp loop) {
  Block &body = *loop.getBody();
  llvm::SetVector<unsigned> used;
  llvm::SetVector<Value> needed;
  auto need = [&](Operation *op) {
    needed.insert(op->operand_begin(), op->operand_end());
    visitUsedValuesDefinedAbove(op->getRegions(), [&](OpOperand *use) { needed.insert(use->get()); });
  };
  for (Operation &op : body.without_terminator())
    if (!isMemoryEffectFree(&op))
      need(&op);
  auto use = [&](unsigned number) {
    if (used.insert(number))
      needed.insert(loop.getYieldedValues()[number]);
  };
  for (OpResult result : loop.getResults())
    if (!result.use_empty())
      use(result.getResultNumber());
  for (size_t i = 0; i < needed.size(); ++i) {
    Value value = needed[i];
    if (auto argument = dyn_cast<BlockArgument>(value); argument && argument.getOwner() == &body) {
      if (argument.getArgNumber() > 0)
        use(argument.getArgNumber() - 1);
    } else if (Operation *op = value.getDefiningOp(); op && loop->isProperAncestor(op)) {
      need(body.findAncestorOpInBlock(*op));
    }
  }
  return used;
}

void keepUnusedCarried(func::FuncOp function) {
  function.walk([](scf::ForOp loop) {
    llvm::SetVector<unsigned> used = findUsedCarried(loop);
    Operation *yield = loop.getBody()->getTerminator();
    for (auto [number, carried] : llvm::enumerate(loop.getRegionIterArgs()))
      if (!used.contains(number))
        yield->setOperand(number, carried);
  });
}

void eraseUnused(func::FuncOp function) {
  RewritePatternSet patterns(function.getContext());
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  (void)applyPatternsGreedily(function, std::move(patterns));
}

} // namespace hone
