// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Index arithmetic in a normal form: sizes are polynomials over sizes that are known only at run time, and equal
// polynomials are one SSA value, so that "past + sequence" and "sequence + past" are visibly the same dimension.

#ifndef HONE_LIB_CONVERSION_ONNXTOLINALG_INDEXMATH_H
#define HONE_LIB_CONVERSION_ONNXTOLINALG_INDEXMATH_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"

#include <map>

namespace hone::lowering {

/// A size: a constant (IntegerAttr) or an `index` value.
using Size = mlir::OpFoldResult;

class IndexMath {
public:
  explicit IndexMath(mlir::ImplicitLocOpBuilder &builder) : b(builder) {}

  Size constant(int64_t value) { return b.getIndexAttr(value); }
  Size add(Size lhs, Size rhs);
  Size sub(Size lhs, Size rhs);
  Size mul(Size lhs, Size rhs);
  /// Quotient rounded down; exact where the division of the polynomials is. A divisor below 1 counts as 1.
  Size floorDiv(Size lhs, Size rhs);
  Size ceilDiv(Size lhs, Size rhs);
  /// lhs / rhs if the division of the polynomials is exact. Builds no operation otherwise.
  std::optional<Size> divide(Size lhs, Size rhs);
  Size min(Size lhs, Size rhs);
  Size max(Size lhs, Size rhs);

  /// `condition` may be anything of type i1.
  Size select(mlir::Value condition, Size ifTrue, Size ifFalse);

  static std::optional<int64_t> getConstant(Size size);
  bool equal(Size lhs, Size rhs);
  /// lhs - rhs if it is a constant.
  std::optional<int64_t> difference(Size lhs, Size rhs);
  /// True if the value is at least `least` whatever the run-time sizes, which are never negative.
  bool isAtLeast(Size size, int64_t least);
  /// True if lhs <= rhs whatever the run-time sizes.
  bool isLessOrEqual(Size lhs, Size rhs);
  /// True if `size` is min(`of`, c) for a constant c above 1: where it is 1, so is `of`.
  bool isClampOf(Size size, Size of);
  /// `lhs` compared with `rhs`: one value for equal comparisons, a constant where sizes decide it.
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, Size lhs, Size rhs);
  /// What an i1 is whatever the run-time sizes: comparisons of sizes, and logic over them.
  std::optional<bool> decide(mlir::Value condition);
  /// The constant that a scalar is whatever the run-time sizes, else the scalar itself.
  mlir::Value simplify(mlir::Value scalar);

  /// The size as an `index` value.
  mlir::Value value(Size size);
  /// The size as a value of an integer type.
  mlir::Value scalar(Size size, mlir::Type type);
  /// The size that an integer or index value stands for, seen through casts and arithmetic. Sizes fit 32 bits wherever
  /// the model says they do: a narrowing of sizes is taken to lose nothing.
  Size fromScalar(mlir::Value value);
  /// The same size built from values that are defined outside `scope`; none if it is made of something inside.
  std::optional<Size> hoist(Size size, mlir::Operation *scope);
  /// Declares that an index value is never negative (a dimension).
  void markNonNegative(mlir::Value value);
  /// Declares that a size is at least `least` from here on, as a check has said so. Nothing is remembered of regions, since it
  /// would be believed outside of them.
  void assume(Size size, int64_t least);
  /// Takes a size apart: `constant`, which is multiplied by its constant factor or saturates, and the other factors. A sum is
  /// one factor.
  void factor(Size size, int64_t &constant, llvm::SmallVectorImpl<mlir::Value> &factors);

  /// What was built inside a region cannot be used after it.
  class RegionScope {
  public:
    explicit RegionScope(IndexMath &math) : math(math), saved(math.values) {}
    ~RegionScope() { math.values = std::move(saved); }

  private:
    IndexMath &math;
    std::map<std::string, mlir::Value> saved;
  };

private:
  /// A product of run-time sizes, as sorted numbers of atoms.
  using Monomial = std::vector<unsigned>;
  /// Coefficients of monomials; zero coefficients are absent.
  using Polynomial = std::map<Monomial, int64_t>;

  Polynomial get(Size size);
  Polynomial getScalar(mlir::Value value, unsigned depth);
  std::optional<Polynomial> seeThrough(mlir::Value value, unsigned depth);
  std::optional<Polynomial> seeThroughChoice(mlir::Value value, unsigned depth);
  std::optional<bool> decideComparison(mlir::arith::CmpIOp compare);
  Size build(const Polynomial &polynomial);
  mlir::Value buildMonomial(const Monomial &monomial, int64_t coefficient);
  mlir::Value getIndex(unsigned atom);
  unsigned getAtom(mlir::Value value);
  bool isAtLeast(const Polynomial &polynomial, int64_t least) const;
  bool isBounded(Polynomial polynomial, int64_t least) const;
  template <typename Op>
  Size buildBinary(const char *name, Size lhs, Size rhs, bool nonNegative);

  static Polynomial getConstantPolynomial(int64_t value);
  static Polynomial plus(Polynomial lhs, const Polynomial &rhs, int64_t factor);
  static Polynomial times(const Polynomial &lhs, const Polynomial &rhs);
  static std::optional<int64_t> getConstant(const Polynomial &polynomial);
  static std::string getKey(const Polynomial &polynomial);
  static std::optional<Polynomial> divideExactly(Polynomial lhs, const Polynomial &rhs);

  mlir::ImplicitLocOpBuilder &b;
  /// Integer and index values that are taken as they are.
  std::vector<mlir::Value> atoms;
  llvm::DenseMap<mlir::Value, unsigned> atomNumbers;
  llvm::DenseMap<mlir::Value, Polynomial> known;
  llvm::DenseSet<mlir::Value> nonNegative;
  /// Of polynomials without a constant term, what they are at least.
  std::map<Polynomial, int64_t> bounds;
  /// Values already built, by the text of what they are.
  std::map<std::string, mlir::Value> values;
};

} // namespace hone::lowering

#endif // HONE_LIB_CONVERSION_ONNXTOLINALG_INDEXMATH_H
