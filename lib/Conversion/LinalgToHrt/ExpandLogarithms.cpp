// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Natural logarithms of f32 as arithmetic, within two units in the last place for all numbers, subnormal ones too.

#include "ExpandLogarithms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace hone {
namespace {

/// Arithmetic on f32 and on the integers of their bits.
struct Arithmetic {
  OpBuilder &b;
  Location loc;

  Value real(float value) const { return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value)); }
  Value bits(int32_t value) const { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value)); }
  Value bitsOf(Value x) const { return arith::BitcastOp::create(b, loc, b.getI32Type(), x); }
  Value ofBits(Value x) const { return arith::BitcastOp::create(b, loc, b.getF32Type(), x); }
  Value add(Value x, Value y) const { return arith::AddFOp::create(b, loc, x, y); }
  Value subtract(Value x, Value y) const { return arith::SubFOp::create(b, loc, x, y); }
  Value multiply(Value x, Value y) const { return arith::MulFOp::create(b, loc, x, y); }
  Value fma(Value x, Value y, Value z) const { return math::FmaOp::create(b, loc, x, y, z); }
  Value select(arith::CmpFPredicate predicate, Value x, Value y, Value then, Value otherwise) const {
    Value holds = arith::CmpFOp::create(b, loc, predicate, x, y);
    return arith::SelectOp::create(b, loc, holds, then, otherwise);
  }
};

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// log(m · 2^e) = e log 2 + log(1 + f) with m in [√½, √2) and f = m - 1; the polynomial is that of Cephes (Moshier, 1992, logf).
Value buildLog(const Arithmetic &a, Value x) {
  constexpr int32_t kHalfRoot = 0x3f3504f3, kMantissaBits = 23; // the bits of √½
  constexpr float kSmallestNormal = 0x1p-126f, kScale = 0x1p23f;
  Value zero = a.real(0);
  // A subnormal number is scaled to a normal one.
  auto whereSubnormal = [&](Value then, Value otherwise) {
    return a.select(arith::CmpFPredicate::OLT, x, a.real(kSmallestNormal), then, otherwise);
  };
  Value bits = a.bitsOf(whereSubnormal(a.multiply(x, a.real(kScale)), x));
  Value from = arith::SubIOp::create(a.b, a.loc, bits, a.bits(kHalfRoot));
  Value exponent = arith::ShRSIOp::create(a.b, a.loc, from, a.bits(kMantissaBits));
  Value shifted = arith::ShLIOp::create(a.b, a.loc, exponent, a.bits(kMantissaBits));
  Value f = a.subtract(a.ofBits(arith::SubIOp::create(a.b, a.loc, bits, shifted)), a.real(1));
  Value e = arith::SIToFPOp::create(a.b, a.loc, a.b.getF32Type(), exponent);
  e = a.add(e, whereSubnormal(a.real(-kMantissaBits), zero));
  constexpr float kCoefficients[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                     -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                     2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  Value sum = a.real(kCoefficients[0]);
  for (float coefficient : ArrayRef(kCoefficients).drop_front())
    sum = a.fma(sum, f, a.real(coefficient));
  constexpr float kLog2High = 0.693359375f, kLog2Low = -2.12194440e-4f; // log 2; e · high is exact
  Value square = a.multiply(f, f);
  Value rest = a.fma(a.multiply(square, f), sum, a.multiply(e, a.real(kLog2Low)));
  rest = a.fma(square, a.real(-0.5f), rest);
  Value result = a.fma(e, a.real(kLog2High), a.add(f, rest));
  result = a.select(arith::CmpFPredicate::OEQ, x, a.real(kInfinity), x, result);
  Value outside =
      a.select(arith::CmpFPredicate::OEQ, x, zero, a.real(-kInfinity), a.real(std::numeric_limits<float>::quiet_NaN()));
  return a.select(arith::CmpFPredicate::OGT, x, zero, result, outside);
}

struct ExpandLog : OpRewritePattern<math::LogOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::LogOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "not of f32");
    rewriter.replaceOp(op, buildLog({rewriter, op.getLoc()}, op.getOperand()));
    return success();
  }
};

/// log(1 + x) with u = 1 + x rounded: log u, and what rounding took from u over u (Kahan; Goldberg, 1991, theorem 4).
struct ExpandLog1p : OpRewritePattern<math::Log1pOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::Log1pOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "not of f32");
    Arithmetic a = {rewriter, op.getLoc()};
    Value x = op.getOperand(), one = a.real(1), u = a.add(x, one), log = buildLog(a, u);
    Value lost = a.subtract(x, a.subtract(u, one));
    Value result = a.add(log, arith::DivFOp::create(rewriter, op.getLoc(), lost, u));
    // At both ends of its range log u is exact, and the quotient is not a number.
    Value distance = math::AbsFOp::create(rewriter, op.getLoc(), log);
    result = a.select(arith::CmpFPredicate::OEQ, distance, a.real(kInfinity), log, result);
    rewriter.replaceOp(op, a.select(arith::CmpFPredicate::OEQ, u, one, x, result));
    return success();
  }
};

} // namespace

void populateLogarithmPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandLog, ExpandLog1p>(patterns.getContext());
}

} // namespace hone
