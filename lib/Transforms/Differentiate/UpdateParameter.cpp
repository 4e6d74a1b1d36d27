// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers of a step are computed in f64, and elements in f32.

#include "UpdateParameter.h"
#include "EntryState.h"
#include "Orthogonalize.h"
#include "Products.h"
#include "ProjectWeight.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

/// What PyTorch adds to a norm before it divides by it.
static constexpr double kNormOffset = 1e-6;
/// What of adamw's usual step the elements of an orthogonal matrix are made to be (Liu et al. 2025).
static constexpr double kMuonScale = 0.2;
/// Most inputs of a group, as hone-prune-nm has it.
static constexpr int64_t kMostGroup = 128;

/// Whether masked decay enters between the moments, which AdamW alone has.
static bool isOfMoment(const AddOptimizerOptions &options) {
  return options.sparseMode == kAst || options.sparseMode == kCast;
}

LogicalResult checkOptimizer(Location loc, const AddOptimizerOptions &options) {
  if (!llvm::is_contained({kSgd, kMomentum, kAdamW, kMuon}, StringRef(options.optimizer)))
    return emitError(loc) << "unsupported optimizer '" << options.optimizer << "'; supported: " << kSgd << ", "
                          << kMomentum << ", " << kAdamW << ", " << kMuon;
  if (!options.sparseMode.empty() && !llvm::is_contained({kSrSte, kAst, kCast, kSSte}, StringRef(options.sparseMode)))
    return emitError(loc) << "unsupported sparse mode '" << options.sparseMode << "'; supported: " << kSrSte << ", "
                          << kAst << ", " << kCast << ", " << kSSte;
  if (isOfMoment(options) && options.optimizer != kAdamW)
    return emitError(loc) << "expected the optimizer " << kAdamW << " for the sparse mode " << options.sparseMode
                          << ", but got " << options.optimizer;
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
                 failed(check("mask-decay", options.maskDecay, false)) ||
                 failed(check("momentum", options.momentum, true)) || failed(check("beta1", options.beta1, true)) ||
                 failed(check("beta2", options.beta2, true)) || failed(check("epsilon", options.epsilon, false)));
}

ArrayRef<llvm::StringLiteral> listMoments(StringRef optimizer) {
  static constexpr llvm::StringLiteral kVelocity[] = {"velocity"}, kMoments[] = {"first_moment", "second_moment"};
  if (optimizer == kSgd)
    return {};
  return optimizer == kAdamW ? ArrayRef<llvm::StringLiteral>(kMoments) : ArrayRef<llvm::StringLiteral>(kVelocity);
}

//===- Numbers ----------------------------------------------------------------------------------------------------===//

static Value toF64(LocBuilder &b, Value value) { return arith::ExtFOp::create(b, b.getF64Type(), value); }
static Value toF32(LocBuilder &b, Value value) { return arith::TruncFOp::create(b, b.getF32Type(), value); }

/// An element of a gradient, which may be bf16, as f32.
static Value extendGradient(LocBuilder &b, Value value) {
  return value.getType().isF32() ? value : arith::ExtFOp::create(b, b.getF32Type(), value).getResult();
}

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
    Value element = extendGradient(nested, args[0]);
    return arith::MulFOp::create(nested, element, element);
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
  Value copySign(Value x, Value y) const { return math::CopySignOp::create(b, x, y); }
  Value isEqual(Value x, Value y) const { return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, x, y); }
  Value select(Value condition, Value x, Value y) const { return arith::SelectOp::create(b, condition, x, y); }
  /// `after`, or 0 where `before` is 0.
  Value keepZero(Value before, Value after) const {
    Value zero = (*this)(0);
    return select(isEqual(before, zero), zero, after);
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

/// `amend` gives what is used of the first moment, or is null.
static SmallVector<Value> updateAdamW(const Element &at, const AddOptimizerOptions &options,
                                      const AdamWNumbers &numbers, ValueRange args,
                                      llvm::function_ref<Value(Value)> amend) {
  Value first = at.mix(args[2], args[1], options.beta1);
  Value direction = amend ? amend(first) : first, squared = amend ? direction : args[1];
  Value second = at.mix(args[3], at.multiply(squared, squared), options.beta2);
  Value divisor = at.add(at.multiply(at.sqrt(second), numbers.scale), at(options.epsilon));
  Value move = at.multiply(numbers.step, at.divide(direction, divisor));
  return {at.subtract(at.multiply(args[0], numbers.kept), move), first, second};
}

/// With and without momentum.
static SmallVector<Value> updateSgd(const Element &at, StringRef optimizer, const AddOptimizerOptions &options,
                                    Value rate, double weightDecay, ValueRange args) {
  Value velocity = args[1];
  if (weightDecay > 0)
    velocity = at.add(velocity, at.multiply(at(weightDecay), args[0]));
  if (optimizer == kSgd)
    return {at.subtract(args[0], at.multiply(rate, velocity))};
  velocity = at.add(at.multiply(at(options.momentum), args[2]), velocity);
  return {at.subtract(args[0], at.multiply(rate, velocity)), velocity};
}

namespace {
/// What an update reads of one element of a gradient.
struct GradientReader {
  const AddOptimizerOptions &options;
  const UpdateFactors &factors;

  /// κ (p - projected).
  Value decay(const Element &at, Value parameter, Value projected) const {
    return at.multiply(factors.maskDecay, at.subtract(parameter, projected));
  }
  /// Clipped, with the mask decay of sr-ste; `read` is the gradient, and the projection if there is one.
  Value gradient(const Element &at, Value parameter, ValueRange read) const {
    Value element = extendGradient(at.b, read[0]),
          clipped = factors.clip ? at.multiply(element, factors.clip) : element;
    bool isDecayed = read.size() > 1 && options.sparseMode == kSrSte;
    return isDecayed ? at.add(clipped, decay(at, parameter, read[1])) : clipped;
  }
  /// What ast and cast use of AdamW's first moment.
  Value moment(const Element &at, Value parameter, Value projected, Value first) const {
    if (options.sparseMode == kAst)
      return at.add(first, decay(at, parameter, projected));
    Value zero = at(0), target = at.copySign(at.multiply(factors.maskDecay, at(options.maskDecay)), parameter);
    Value kept = at.multiply(factors.momentKept, first);
    Value amended = at.add(kept, at.select(at.isEqual(parameter, zero), zero, target));
    return at.select(at.isEqual(projected, zero), amended, first);
  }
};
} // namespace

/// `inputs` are the gradient, and the projection if there is one.
static SmallVector<Value> updateMuon(LocBuilder &b, const AddOptimizerOptions &options, const GradientReader &reader,
                                     ValueRange held, ValueRange inputs) {
  SmallVector<int64_t> loops = loopRange(0, 2);
  Sizes sizes = tensor::getMixedSizes(b, b.getLoc(), held[0]);
  SmallVector<Operand> operands = {{held[0], loops}};
  for (Value input : inputs)
    operands.push_back({input, loops});
  Value gradient = buildMap(b, sizes, b.getF32Type(), operands, [&](LocBuilder &inner, ValueRange args) {
    Element at{inner};
    return reader.gradient(at, args[0], args.drop_front());
  });
  auto mix = [&](LocBuilder &inner, ValueRange old, ValueRange fresh) {
    return SmallVector<Value>{Element{inner}.mix(old[0], fresh[0], options.momentum)};
  };
  Value velocity = updateElements(b, held[1], gradient, mix).front();
  Value ahead = buildMap(b, sizes, b.getF32Type(), {{velocity, loops}, {gradient, loops}},
                         [&](LocBuilder &inner, ValueRange args) -> Value {
                           return Element{inner}.mix(args[0], args[1], options.momentum);
                         });
  ArrayRef<int64_t> shape = cast<RankedTensorType>(held[0].getType()).getShape();
  double scale = kMuonScale * std::sqrt(static_cast<double>(std::max(shape[0], shape[1])));
  Value rate = toF64(b, reader.factors.rate);
  Value kept = toF32(b, arith::SubFOp::create(b, constantF64(b, 1),
                                              arith::MulFOp::create(b, rate, constantF64(b, options.weightDecay))));
  Value step = toF32(b, arith::MulFOp::create(b, rate, constantF64(b, scale)));
  auto move = [&](LocBuilder &inner, ValueRange old, ValueRange fresh) {
    Element at{inner};
    Value updated = at.subtract(at.multiply(old[0], kept), at.multiply(step, fresh[0]));
    return SmallVector<Value>{options.keepZeros ? at.keepZero(old[0], updated) : updated};
  };
  return {updateElements(b, held[0], buildOrthogonalized(b, ahead), move).front(), velocity};
}

SmallVector<Value> buildUpdate(LocBuilder &b, StringRef optimizer, const AddOptimizerOptions &options,
                               const UpdateFactors &factors, ValueRange held, Value gradient, Value projected) {
  GradientReader reader{options, factors};
  SmallVector<Value> inputs = {gradient};
  if (projected)
    inputs.push_back(projected);
  if (optimizer == kMuon)
    return updateMuon(b, options, reader, held, inputs);
  int64_t rank = cast<RankedTensorType>(held.front().getType()).getRank();
  double weightDecay = rank >= 2 ? options.weightDecay : 0;
  AdamWNumbers numbers;
  if (optimizer == kAdamW)
    numbers = buildAdamWNumbers(b, factors, weightDecay);
  bool keepsZeros = options.keepZeros && rank >= 2;
  return updateElements(b, held, inputs, [&](LocBuilder &inner, ValueRange old, ValueRange read) {
    Element at{inner};
    SmallVector<Value> args = {old.front(), reader.gradient(at, old.front(), read)};
    llvm::append_range(args, old.drop_front());
    auto amend = [&](Value first) { return reader.moment(at, old.front(), read[1], first); };
    llvm::function_ref<Value(Value)> amendOrNull;
    if (projected && isOfMoment(options))
      amendOrNull = amend;
    SmallVector<Value> updated = optimizer == kAdamW
                                     ? updateAdamW(at, options, numbers, args, amendOrNull)
                                     : updateSgd(at, optimizer, options, factors.rate, weightDecay, args);
    if (keepsZeros)
      updated.front() = at.keepZero(old.front(), updated.front());
    return updated;
  });
}

} // namespace hone
