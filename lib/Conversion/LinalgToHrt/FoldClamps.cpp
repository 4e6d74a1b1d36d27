// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass: limits of what a kernel computes (Relu, Clip), which alone read it. A kernel that takes `least` and `most` limits its results
// as it stores them.

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/kernels/descriptions.h"
#include "hone/kernels/limits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

namespace hone {
#define GEN_PASS_DEF_FOLDCLAMPS
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

namespace {
struct Limits {
  double least, most;

  void raise(double bound) { least = std::max(least, bound), most = std::max(most, bound); }
  void lower(double bound) { least = std::min(least, bound), most = std::min(most, bound); }
};
} // namespace

/// The value as a constant, in either order of the operands; nothing where it is not one, or one that kernels do not take as a limit.
static std::optional<double> getBound(Value a, Value b, Value limited) {
  Value bound = a == limited ? b : b == limited ? a : Value();
  APFloat number(0.0f);
  if (!bound || !matchPattern(bound, m_ConstantFloat(&number)) ||
      !(std::abs(number.convertToDouble()) < kernels::kNoLimit))
    return std::nullopt;
  return number.convertToDouble();
}

/// Applies what the body does to its first argument; false where it is anything but limits.
static bool apply(Block &body, Limits &limits) {
  Value limited = body.getArgument(0);
  for (Operation &op : body.without_terminator()) {
    if (isa<arith::ConstantOp>(op))
      continue;
    bool isGreater = isa<arith::MaximumFOp>(op);
    auto bound = isGreater || isa<arith::MinimumFOp>(op) ? getBound(op.getOperand(0), op.getOperand(1), limited)
                                                         : std::optional<double>();
    if (!bound)
      return false;
    isGreater ? limits.raise(*bound) : limits.lower(*bound);
    limited = op.getResult(0);
  }
  return body.getTerminator()->getOperand(0) == limited && limited != body.getArgument(0);
}

/// The number of the float of this name; -1 where the kernel has none.
static int64_t findFloat(hrt::KernelOp kernel, std::string_view name) {
  const kernels::KernelInfo *info = kernels::findKernelInfo(kernel.getName().str());
  auto names = info ? kernels::floatsOf(*info) : std::vector<std::string_view>();
  auto found = llvm::find(names, name);
  return found == names.end() ? -1 : found - names.begin();
}

static bool fold(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 || op.getNumParallelLoops() != op.getNumLoops() ||
      !llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }))
    return false;
  Value input = op.getInputs()[0];
  auto kernel = input.getDefiningOp<hrt::KernelOp>();
  if (!kernel || !input.hasOneUse() || input.getType() != op.getResult(0).getType())
    return false;
  int64_t least = findFloat(kernel, "least"), most = findFloat(kernel, "most");
  if (least < 0 || most < 0)
    return false;
  SmallVector<double> floats(kernel.getFloats());
  Limits limits{floats[least], floats[most]};
  if (!apply(op.getRegion().front(), limits))
    return false;
  floats[least] = limits.least;
  floats[most] = limits.most;
  kernel.setFloats(floats);
  op.getResult(0).replaceAllUsesWith(input);
  op.erase();
  return true;
}

namespace {
struct FoldClamps : impl::FoldClampsBase<FoldClamps> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> all;
    getOperation().walk([&](linalg::GenericOp op) { all.push_back(op); });
    for (linalg::GenericOp op : all)
      numFolded += fold(op);
  }
};
} // namespace

} // namespace hone
