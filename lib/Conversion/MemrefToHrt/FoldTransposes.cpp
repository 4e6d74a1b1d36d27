// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels, state and loops over all elements take strided operands: what is only transposed for them, or by kernels, need not be
// copied.

#include "Aliases.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/kernels/descriptions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace hone {
#define GEN_PASS_DEF_FOLDTRANSPOSES
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Whether the innermost of the loops around `generic` goes along the last dimension of what `use` reads.
bool readsRows(linalg::GenericOp generic, OpOperand &use) {
  AffineMap map = generic.getMatchingIndexingMap(&use);
  return generic.isDpsInput(&use) && generic.getNumLoops() == generic.getNumParallelLoops() &&
         map.getNumResults() > 0 && map.getResults().back() == getAffineDimExpr(map.getNumDims() - 1, map.getContext());
}

/// Whether `use` reads its buffer through strides and nothing else.
bool readsStrided(OpOperand &use) {
  if (auto kernel = dyn_cast<hrt::KernelOp>(use.getOwner()))
    return !kernel.isDpsInit(&use);
  if (auto generic = dyn_cast<linalg::GenericOp>(use.getOwner()))
    return readsRows(generic, use);
  return isa<hrt::StateAppendOp>(use.getOwner());
}

/// The last dimension stays where it is: kernels are fast where it is contiguous.
bool keepsLast(linalg::TransposeOp transpose) {
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  return !permutation.empty() && permutation.back() == static_cast<int64_t>(permutation.size()) - 1;
}

/// Whether `use` is a matrix of a dense product, which takes column-major ones as they are, or brings their rows into order itself.
bool readsMatrix(OpOperand &use) {
  auto kernel = dyn_cast<hrt::KernelOp>(use.getOwner());
  const kernels::KernelInfo *info = kernel ? kernels::findKernelInfo(kernel.getName().str()) : nullptr;
  if (!info || kernel.isDpsInit(&use))
    return false;
  std::string_view signature = info->signature.name;
  auto is = [&](std::string_view operand) { return use.get() == kernel.getInputs()[kernels::indexOf(*info, operand)]; };
  return signature == "Matmul" || (signature == "PlainLinear" && is("weight")) ||
         (info->name.starts_with("cuda.linear.") && (is("x") || is("weight")));
}

/// The result is matrices that are column-major in what is transposed, and all that reads it are dense products.
bool makesMatrices(linalg::TransposeOp transpose) {
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  size_t rank = permutation.size();
  return rank >= 2 && permutation[rank - 2] == static_cast<int64_t>(rank) - 1 &&
         llvm::all_of(transpose.getInit().getUses(), [&](OpOperand &use) {
           return use.getOwner() == transpose || isa<memref::DimOp>(use.getOwner()) || readsMatrix(use);
         });
}

Value createView(OpBuilder &b, Location loc, Value buffer, ArrayRef<int64_t> permutation) {
  SmallVector<unsigned> dims(permutation.begin(), permutation.end());
  auto map = AffineMap::getPermutationMap(dims, b.getContext());
  return memref::TransposeOp::create(b, loc, buffer, AffineMapAttr::get(map));
}

class Folder {
public:
  explicit Folder(func::FuncOp function) : function(function) {}

  /// Why it cannot be folded, or nothing if it was.
  StringRef fold(linalg::TransposeOp transpose) {
    if (makesMatrices(transpose))
      return foldIntoReaders(transpose);
    if (!keepsLast(transpose))
      return "elements would not be contiguous";
    if (isMadeByKernel(transpose))
      return foldIntoMaker(transpose);
    return foldIntoReaders(transpose);
  }

private:
  StringRef foldIntoReaders(linalg::TransposeOp transpose) {
    Value copy = transpose.getInit();
    Operation *last = transpose;
    if (!copy.getDefiningOp<memref::AllocOp>())
      return "its result is not a buffer of its own";
    for (OpOperand &use : copy.getUses()) {
      Operation *user = use.getOwner();
      if (user == transpose || isa<memref::DimOp>(user))
        continue;
      if (!readsStrided(use) || user->getBlock() != transpose->getBlock() || user->isBeforeInBlock(transpose))
        return "others than kernels and loops along its rows read it";
      if (last->isBeforeInBlock(user))
        last = user;
    }
    if (isWritten(transpose.getInput(), transpose, last))
      return "what it reads is written before the last of them reads it";
    OpBuilder b(transpose);
    Value view = createView(b, transpose.getLoc(), transpose.getInput(), transpose.getPermutation());
    copy.replaceUsesWithIf(view, [](OpOperand &use) { return readsStrided(use); });
    transpose.erase();
    return "";
  }

  /// Whether an operation after `begin` and up to `end`, in their block, may write memory that `buffer` is a view of.
  bool isWritten(Value buffer, Operation *begin, Operation *end) {
    for (Value alias : Aliases(function).getAll(buffer)) // what was folded before has made other views
      for (Operation *user : alias.getUsers()) {
        Operation *op = begin->getBlock()->findAncestorOpInBlock(*user);
        bool isBetween = op && begin->isBeforeInBlock(op) && !end->isBeforeInBlock(op);
        if (isBetween && !onlyReads(user, alias))
          return true;
      }
    return false;
  }

  static bool onlyReads(Operation *op, Value buffer) {
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    if (isa<ViewLikeOpInterface, memref::TransposeOp, hrt::StateAppendOp>(op))
      return true;
    if (!effects)
      return false;
    SmallVector<MemoryEffects::EffectInstance> instances;
    effects.getEffectsOnValue(buffer, instances);
    return effects.hasNoEffect() || (!instances.empty() && llvm::all_of(instances, [](const auto &instance) {
             return isa<MemoryEffects::Read>(instance.getEffect());
           }));
  }

  /// The kernel that writes what is transposed, if nothing else uses that.
  static hrt::KernelOp getMaker(linalg::TransposeOp transpose) {
    hrt::KernelOp maker;
    for (OpOperand &use : transpose.getInput().getUses()) {
      auto kernel = dyn_cast<hrt::KernelOp>(use.getOwner());
      if (kernel && kernel.isDpsInit(&use) && !maker)
        maker = kernel;
      else if (use.getOwner() != transpose && !isa<memref::DimOp>(use.getOwner()))
        return {};
    }
    return maker;
  }

  static bool isMadeByKernel(linalg::TransposeOp transpose) {
    return transpose.getInput().getDefiningOp<memref::AllocOp>() && getMaker(transpose);
  }

  StringRef foldIntoMaker(linalg::TransposeOp transpose) {
    hrt::KernelOp maker = getMaker(transpose);
    auto target = transpose.getInit().getDefiningOp<memref::AllocOp>();
    if (!target || maker->getBlock() != transpose->getBlock() || target->getBlock() != transpose->getBlock())
      return "its result is not a buffer of its own";
    for (Operation *user : target->getUsers())
      if (transpose->getBlock()->findAncestorOpInBlock(*user)->isBeforeInBlock(transpose) && !isa<memref::DimOp>(user))
        return "its result is used before";
    for (Value size : target.getDynamicSizes())
      if (Operation *op = size.getDefiningOp();
          op && op->getBlock() == maker->getBlock() && !op->isBeforeInBlock(maker))
        return "its size is only known after the kernel";
    if (maker->isBeforeInBlock(target))
      target->moveBefore(maker);
    OpBuilder b(maker);
    SmallVector<int64_t> inverse = invertPermutationVector(transpose.getPermutation());
    Value view = createView(b, transpose.getLoc(), target, inverse);
    Value made = transpose.getInput();
    maker->replaceUsesOfWith(made, view);
    transpose.erase();
    return "";
  }

  func::FuncOp function;
};

struct FoldTransposes : impl::FoldTransposesBase<FoldTransposes> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    SmallVector<linalg::TransposeOp> transposes;
    function.walk([&](linalg::TransposeOp op) {
      if (op.hasPureBufferSemantics())
        transposes.push_back(op);
    });
    Folder folder(function);
    auto options = remark::RemarkOpts::name("Folded").category("hone-fold-transposes");
    for (linalg::TransposeOp transpose : transposes) {
      Location loc = transpose.getLoc();
      StringRef blocker = folder.fold(transpose);
      if (!blocker.empty()) {
        remark::missed(loc, options) << ("a transposition copies: " + blocker).str();
        continue;
      }
      ++numFolded;
      remark::passed(loc, options) << "a transposition became strides";
    }
  }
};

} // namespace
} // namespace hone
