// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expressions for one element of a tensor: integers are polynomials, predicates are comparisons of polynomials with 0
// under and, or and not, floats are trees. All are made through `Expressions`, which brings them into a normal form and
// makes equal ones the same object: what a mask computes is compared by pointer.

#ifndef HONE_ANALYSIS_EXPRESSIONS_H
#define HONE_ANALYSIS_EXPRESSIONS_H

#include "hone/Analysis/Polynomial.h"

#include "mlir/IR/Value.h"
#include "llvm/ADT/FoldingSet.h"
#include "llvm/ADT/StringMap.h"

#include <deque>

namespace hone::analysis {

enum class ExpressionKind {
  Integer, // a polynomial
  True,    // predicates from here …
  False,
  NonNegative, // polynomial >= 0
  IsZero,      // polynomial == 0
  LoadFlag,    // an element of a boolean tensor
  Not,         // of an IsZero, a LoadFlag or a CallFlag
  And,         // of predicates that are no And
  Or,
  CallFlag, // a named predicate over expressions; … to here
  Real,     // a floating-point constant
  Load,     // an element of a floating-point tensor
  Select,   // predicate, value if true, value if false
  Call      // a named function of expressions
};

struct Expression : llvm::FoldingSetNode {
  ExpressionKind kind;
  Polynomial polynomial;                 // Integer, NonNegative, IsZero
  double real = 0;                       // Real
  mlir::Value source;                    // Load, LoadFlag
  llvm::StringRef name;                  // Call, CallFlag; outlives the expression
  llvm::SmallVector<Polynomial> indices; // Load, LoadFlag
  llvm::SmallVector<const Expression *, 3> operands;
  unsigned number = 0; // in order of creation

  bool isFlag() const { return kind >= ExpressionKind::True && kind <= ExpressionKind::CallFlag; }
  bool isReal(double value) const { return kind == ExpressionKind::Real && real == value; }
  bool isCall(llvm::StringRef function) const { return kind == ExpressionKind::Call && name == function; }
  void Profile(llvm::FoldingSetNodeID &id) const;
};

/// What is known of an atom.
struct AtomInfo {
  bool nonNegative = false;
  /// The atom is at most this.
  std::optional<Polynomial> upper;
  /// The expression whose integer value the atom is; null for sizes and indices.
  const Expression *definition = nullptr;
};

/// Makes and owns expressions and atoms. Real results are rounded to f32 at each step, as the model computes them.
class Expressions {
public:
  // Atoms.
  Atom freshSize();
  Atom boundedSize(const Polynomial &upper);
  Atom namedSize(llvm::StringRef name);
  /// The index along dimension `axis` of a tensor whose size there is `extent`; 0 where the size is 1.
  Polynomial index(unsigned axis, const Polynomial &extent);
  /// An integer that is element `indices` of `source`, or any other integer-valued expression.
  Polynomial atomOf(const Expression *definition, bool nonNegative = false, std::optional<Polynomial> upper = {});
  const AtomInfo &info(Atom atom) const { return atoms[atom]; }

  /// Whether the polynomial is at least 0 for all values of its atoms.
  bool isNonNegative(const Polynomial &polynomial) const;
  bool isPositive(const Polynomial &polynomial) const { return isNonNegative(polynomial - 1); }

  // Predicates.
  const Expression *flag(bool value);
  const Expression *nonNegative(const Polynomial &polynomial);
  const Expression *isZero(const Polynomial &polynomial);
  const Expression *negate(const Expression *predicate);
  const Expression *conjoin(llvm::ArrayRef<const Expression *> predicates);
  const Expression *disjoin(llvm::ArrayRef<const Expression *> predicates);
  const Expression *callFlag(llvm::StringRef name, llvm::ArrayRef<const Expression *> operands);

  // Values.
  const Expression *integer(const Polynomial &polynomial);
  const Expression *real(double value);
  const Expression *select(const Expression *condition, const Expression *a, const Expression *b);
  const Expression *call(llvm::StringRef name, llvm::ArrayRef<const Expression *> operands);
  const Expression *load(mlir::Value source, llvm::ArrayRef<Polynomial> indices);
  const Expression *loadFlag(mlir::Value source, llvm::ArrayRef<Polynomial> indices);

  /// A predicate as the integer 0 or 1, and back.
  Polynomial toInteger(const Expression *flagOrInteger);
  const Expression *toFlag(const Expression *value);
  const Expression *toReal(const Expression *value);

  /// Floating-point arithmetic by ONNX operator name: Add, Sub, Mul, Div, Neg, Sqrt, Tanh, … over real expressions.
  const Expression *arithmetic(llvm::StringRef op, llvm::ArrayRef<const Expression *> operands);
  /// Equality of two real expressions, as a predicate.
  const Expression *equal(const Expression *a, const Expression *b);
  const Expression *less(const Expression *a, const Expression *b);

  /// Text of an expression for messages: sizes by their names, indices as i0, i1, …
  std::string toString(const Expression *expression) const;
  std::string toString(const Polynomial &polynomial) const;

  /// How many expressions there are; users stop where it grows out of bounds.
  size_t size() const { return storage.size(); }

private:
  const Expression *intern(Expression &&candidate);
  const Expression *combine(ExpressionKind kind, llvm::ArrayRef<const Expression *> predicates);
  bool implies(const Expression *a, const Expression *b) const;
  std::optional<double> evaluate(llvm::StringRef op, llvm::ArrayRef<double> operands) const;

  std::deque<Expression> storage;
  llvm::FoldingSet<Expression> unique;
  std::deque<AtomInfo> atoms;
  llvm::StringMap<Atom> sizes;
  llvm::StringMap<char> names; // owns the names of calls
  llvm::DenseMap<const Expression *, Atom> defined;
  std::deque<std::tuple<unsigned, Polynomial, Atom>> indexAtoms;
};

} // namespace hone::analysis

#endif // HONE_ANALYSIS_EXPRESSIONS_H
