// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integer polynomials over atoms (named sizes, loop indices, loaded integers): how shapes and indices are computed with
// before their values are known.

#ifndef HONE_ANALYSIS_POLYNOMIAL_H
#define HONE_ANALYSIS_POLYNOMIAL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/FoldingSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace hone::analysis {

/// An unknown integer; `Expressions` says what is known of it.
using Atom = unsigned;

/// A sum of products of atoms. Terms are sorted and none is zero, so that equal polynomials are equal objects. Arithmetic
/// wraps at 64 bits, as ONNX's own does.
class Polynomial {
public:
  struct Term {
    llvm::SmallVector<Atom, 2> atoms; // sorted, with repetitions
    int64_t coefficient;
  };

  Polynomial() = default;
  Polynomial(int64_t constant);
  static Polynomial of(Atom atom);

  llvm::ArrayRef<Term> getTerms() const { return terms; }
  /// The value, if there is no atom.
  std::optional<int64_t> getConstant() const;
  bool isConstant(int64_t value) const { return getConstant() == value; }
  /// The atom, if the polynomial is just that.
  std::optional<Atom> getAtom() const;

  Polynomial operator+(const Polynomial &other) const;
  Polynomial operator-(const Polynomial &other) const;
  Polynomial operator*(const Polynomial &other) const;
  Polynomial operator-() const { return Polynomial(0) - *this; }
  bool operator==(const Polynomial &other) const;
  bool operator!=(const Polynomial &other) const { return !(*this == other); }

  /// Quotient and remainder of the division by `divisor`, term by term: `*this == quotient * divisor + remainder`. Nothing
  /// if the divisor is zero.
  std::optional<std::pair<Polynomial, Polynomial>> divide(const Polynomial &divisor) const;
  /// The quotient if the division leaves nothing.
  std::optional<Polynomial> divideExactly(const Polynomial &divisor) const;

  /// Each atom replaced by what `replace` gives for it.
  Polynomial substitute(llvm::function_ref<Polynomial(Atom)> replace) const;
  bool contains(Atom atom) const;

  void Profile(llvm::FoldingSetNodeID &id) const;

private:
  void add(llvm::ArrayRef<Atom> atoms, int64_t coefficient);

  std::vector<Term> terms;
};

} // namespace hone::analysis

#endif // HONE_ANALYSIS_POLYNOMIAL_H
