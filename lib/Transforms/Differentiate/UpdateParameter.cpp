// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers of a step are computed in f64, and elements in f32.

#include "UpdateParameter.h"
#include "EntryState.h"
#include "Products.h"
#include "ProjectWeight.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

/// What PyTorch adds to a norm before it divides by it.
static constexpr double kNormOffset = 1e-6;
/// Most inputs of a group, as hone-prune-nm has it.
static constexpr int64_t kMostGroup = 128;

LogicalResult checkOptimizer(Location loc, const AddOptimizerOptions &options) {
  if (!llvm::is_contained({kSgd, kMomentum, kAdamW}, StringRef(options.optimizer)))
    return emitError(loc) << "unsupported optimizer '" << options.optimizer << "'; supported: " << kSgd << ", "
                          << kMomentum << ", " << kAdamW;
  if (!options.sparseMode.empty() && !llvm::is_contained({kSrSte, kAst, kSSte}, StringRef(options.sparseMode)))
    return emitError(loc) << "unsupported sparse mode '" << options.sparseMode << "'; supported: " << kSrSte << ", "
                          << kAst << ", " << kSSte;
  if (options.sparseMode == kAst && options.optimizer != kAdamW)
    return emitError(loc) << "expected the optimizer " << kAdamW << " for the sparse mode " << kAst << ", but got "
                          << options.optimizer;
  if (!options.sparseMode.empty() && options.keepZeros)
    return emitError(loc) << "expected no keep-zeros with a sparse mode, which chooses the zeros anew";
  if (options.sparseMode.empty() != options.sparse.empty())
    return emitError(loc) << "expected a sparse mode and the names of sparse weights, but got one of them";
  if (options.m < 2 || options.m > kMostGroup || options.n < 1 || options.n >= options.m)
    return emitError(loc) << "expected n of m inputs to be 1 to m - 1 of 2 to " << kMostGroup << ", but got "
                          << options.n << " of " << options.m;
  if (options.accumulate < 1)
    return emitError(loc) << "expected accumulate to be 1 or more, but got " << options.accumulate;
  auto check = [&](StringRef name, double value, bool isBelowOne) -> LogicalResult {
    if (value >= 0 && (!isBelowOne || value < 1) && std::isfinite(value))
      return success();
    return emitError(loc) << "expected " << name << " to be " << (isBelowOne ? "at least 0 and below 1" : "0 or more")
                          << ", but got " << value;
  };
  return failure(failed(check("weight-decay", options.weightDecay, false)) ||
                 failed(check("max-norm", options.maxNorm, false)) ||
                 failed(check("momentum", options.momentum, true)) || failed(check("beta1", options.beta1, true)) ||
                 failed(check("beta2", options.beta2, true)) || failed(check("epsilon", options.epsilon, false)));
}

ArrayRef<llvm::StringLiteral> listMoments(StringRef optimizer) {
  static constexpr llvm::StringLiteral kVelocity[] = {"velocity"}, kMoments[] = {"first_moment", "second_moment"};
  if (optimizer == kSgd)
    return {};
  return optimizer == kMomentum ? ArrayRef<llvm::StringLiteral>(kVelocity) : ArrayRef<llvm::StringLiteral>(kMoments);
}

//===- Numbers ----------------------------------------------------------------------------------------------------===//

static Value toF64(LocBuilder &b, Value value) { return arith::ExtFOp::create(b, b.getF64Type(), value); }
static Value toF32(LocBuilder &b, Value value) { return arith::TruncFOp::create(b, b.getF32Type(), value); }

Value mixF64(LocBuilder &b, Value old, Value fresh, double decay) {
  Value kept = arith::MulFOp::create(b, old, constantF64(b, decay));
  return arith::AddFOp::create(b, kept, arith::MulFOp::create(b, fresh, constantF64(b, 1 - decay)));
}

/// The sum of two tensors of one f64.
static Value addNumbers(LocBuilder &b, Value x, Value y) {
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(0));
  auto add = [](OpBuilder &nested, Location loc, ValueRange args) {
    linalg::YieldOp::create(nested, loc, ValueRange(arith::AddFOp::create(nested, loc, args[1], args[0])));
  };
  return linalg::GenericOp::create(b, x.getType(), y, x, maps, ArrayRef<utils::IteratorType>(), add).getResult(0);
}

/// The sums stay tensors until the last of them, which is all that a host waits for.
Value buildNorm(LocBuilder &b, ArrayRef<Value> tensors) {
  auto square = [](LocBuilder &nested, ValueRange args) -> Value {
    return arith::MulFOp::create(nested, args[0], args[0]);
  };
  Value total;
  for (Value tensor : tensors) {
    Value sum = sumAll(b, tensor, square);
    total = total ? addNumbers(b, total, sum) : sum;
  }
  Value squared = total ? tensor::ExtractOp::create(b, total, ValueRange()).getResult() : constantF64(b, 0);
  return toF32(b, math::SqrtOp::create(b, squared));
}

Value buildClipFactor(LocBuilder &b, Value norm, double maxNorm) {
  Value divisor = arith::AddFOp::create(b, toF64(b, norm), constantF64(b, kNormOffset));
  Value factor = arith::DivFOp::create(b, constantF64(b, maxNorm), divisor);
  return toF32(b, arith::MinimumFOp::create(b, factor, constantF64(b, 1)));
}

//===- Elements ---------------------------------------------------------------------------------------------------===//

namespace {
/// The scalar code of one element.
struct Element {
  LocBuilder &b;
  Value operator()(double value) const { return constantF32(b, static_cast<float>(value)); }
  Value add(Value x, Value y) const { return arith::AddFOp::create(b, x, y); }
  Value subtract(Value x, Value y) const { return arith::SubFOp::create(b, x, y); }
  Value multiply(Value x, Value y) const { return arith::MulFOp::create(b, x, y); }
  Value divide(Value x, Value y) const { return arith::DivFOp::create(b, x, y); }
  Value sqrt(Value x) const { return math::SqrtOp::create(b, x); }
  /// `after`, or 0 where `before` is 0.
  Value keepZero(Value before, Value after) const {
    Value zero = (*this)(0), isZero = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, before, zero);
    return arith::SelectOp::create(b, isZero, zero, after);
  }
  /// decay · x + (1 - decay) · y.
  Value mix(Value x, Value y, double decay) const {
    return add(multiply((*this)(decay), x), multiply((*this)(1 - decay), y));
  }
};

/// Numbers of AdamW for one parameter, of f32.
struct AdamWNumbers {
  Value kept, step, scale; // 1 - η λ, η / c1, 1 / √c2
};
} // namespace

static AdamWNumbers buildAdamWNumbers(LocBuilder &b, const UpdateFactors &factors, double weightDecay) {
  Value rate = toF64(b, factors.rate), one = constantF64(b, 1);
  Value decay = arith::MulFOp::create(b, rate, constantF64(b, weightDecay));
  Value scale = arith::DivFOp::create(b, one, math::SqrtOp::create(b, factors.secondCorrection));
  return {toF32(b, arith::SubFOp::create(b, one, decay)),
          toF32(b, arith::DivFOp::create(b, rate, factors.firstCorrection)), toF32(b, scale)};
}

/// `decay` is added to the first moment where it is used, or null.
static SmallVector<Value> updateAdamW(const Element &at, const AddOptimizerOptions &options,
                                      const AdamWNumbers &numbers, ValueRange args, Value decay) {
  Value first = at.mix(args[2], args[1], options.beta1);
  Value direction = decay ? at.add(first, decay) : first, squared = decay ? direction : args[1];
  Value second = at.mix(args[3], at.multiply(squared, squared), options.beta2);
  Value divisor = at.add(at.multiply(at.sqrt(second), numbers.scale), at(options.epsilon));
  Value move = at.multiply(numbers.step, at.divide(direction, divisor));
  return {at.subtract(at.multiply(args[0], numbers.kept), move), first, second};
}

/// With and without momentum.
static SmallVector<Value> updateSgd(const Element &at, const AddOptimizerOptions &options, Value rate,
                                    double weightDecay, ValueRange args) {
  Value velocity = args[1];
  if (weightDecay > 0)
    velocity = at.add(velocity, at.multiply(at(weightDecay), args[0]));
  if (options.optimizer == kSgd)
    return {at.subtract(args[0], at.multiply(rate, velocity))};
  velocity = at.add(at.multiply(at(options.momentum), args[2]), velocity);
  return {at.subtract(args[0], at.multiply(rate, velocity)), velocity};
}

SmallVector<Value> buildUpdate(LocBuilder &b, const AddOptimizerOptions &options, const UpdateFactors &factors,
                               ValueRange held, Value gradient, Value projected) {
  int64_t rank = cast<RankedTensorType>(held.front().getType()).getRank();
  double weightDecay = rank >= 2 ? options.weightDecay : 0;
  AdamWNumbers numbers;
  if (options.optimizer == kAdamW)
    numbers = buildAdamWNumbers(b, factors, weightDecay);
  bool keepsZeros = options.keepZeros && rank >= 2;
  SmallVector<Value> inputs = {gradient};
  if (projected)
    inputs.push_back(projected);
  return updateElements(b, held, inputs, [&](LocBuilder &inner, ValueRange old, ValueRange read) {
    Element at{inner};
    SmallVector<Value> args = {old.front(), factors.clip ? at.multiply(read.front(), factors.clip) : read.front()};
    llvm::append_range(args, old.drop_front());
    Value decay;
    if (projected)
      decay = at.multiply(factors.maskDecay, at.subtract(old.front(), read.back()));
    if (decay && options.sparseMode == kSrSte)
      args[1] = at.add(args[1], std::exchange(decay, Value()));
    SmallVector<Value> updated = options.optimizer == kAdamW ? updateAdamW(at, options, numbers, args, decay)
                                                             : updateSgd(at, options, factors.rate, weightDecay, args);
    if (keepsZeros)
      updated.front() = at.keepZero(old.front(), updated.front());
    return updated;
  });
}

} // namespace hone
