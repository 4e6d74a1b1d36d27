// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass: limits (Relu, Clip) and activation functions of what a kernel computes, which alone read it. A kernel that takes `least` and
// `most` limits its results as it stores them, one that takes `activation` applies that before.

#include "ScalarActivation.h"

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

namespace {
/// The attributes of a kernel that say what becomes of its results.
class Epilogue {
public:
  explicit Epilogue(hrt::KernelOp kernel)
      : kernel(kernel), info(kernels::findKernelInfo(kernel.getName().str())), ints(kernel.getInts()),
        floats(kernel.getFloats()) {}

  /// Appends what the body does to its first argument; false where the kernel cannot.
  bool append(Block &body) { return appendLimits(body) || appendActivation(body); }
  void write() {
    kernel.setInts(ints);
    kernel.setFloats(floats);
  }

private:
  /// The attribute of this name; null where the kernel has none.
  double *findFloat(std::string_view name) { return find(floats, info ? kernels::floatsOf(*info) : Names(), name); }
  int64_t *findInt(std::string_view name) { return find(ints, info ? kernels::integersOf(*info) : Names(), name); }

  bool appendLimits(Block &body) {
    double *least = findFloat("least"), *most = findFloat("most");
    if (!least || !most)
      return false;
    Limits limits{*least, *most};
    if (!apply(body, limits))
      return false;
    *least = limits.least;
    *most = limits.most;
    return true;
  }

  bool appendActivation(Block &body) {
    int64_t *activation = findInt("activation");
    double *scale = findFloat("scale"), *shift = findFloat("shift"), *least = findFloat("least"),
           *most = findFloat("most");
    if (!activation || *activation != 0 || !scale || !shift || !least || !most || *least > -kernels::kNoLimit ||
        *most < kernels::kNoLimit)
      return false;
    auto found = ScalarActivation::match(body.getTerminator()->getOperand(0), body.getArgument(0));
    if (!found)
      return false;
    *activation = found->number;
    *scale = found->scale;
    *shift = found->shift;
    return true;
  }

  using Names = std::vector<std::string_view>;
  template <typename T> static T *find(SmallVector<T> &values, const Names &names, std::string_view name) {
    auto found = llvm::find(names, name);
    return found == names.end() ? nullptr : &values[found - names.begin()];
  }

  hrt::KernelOp kernel;
  const kernels::KernelInfo *info;
  SmallVector<int64_t> ints;
  SmallVector<double> floats;
};
} // namespace

static bool fold(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 || op.getNumParallelLoops() != op.getNumLoops() ||
      !llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }))
    return false;
  Value input = op.getInputs()[0];
  auto kernel = input.getDefiningOp<hrt::KernelOp>();
  if (!kernel || !input.hasOneUse() || input.getType() != op.getResult(0).getType())
    return false;
  Epilogue epilogue(kernel);
  if (!epilogue.append(op.getRegion().front()))
    return false;
  epilogue.write();
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
