// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic of polynomials. Terms stay sorted by their atoms, longer products first, which is the order of division.

#include "hone/Analysis/Polynomial.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using llvm::ArrayRef;
using llvm::SmallVector;

namespace hone::analysis {

static int64_t wrapAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
static int64_t wrapMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

/// Graded order: the product of more atoms comes first, then the smaller atoms.
static bool precedes(ArrayRef<Atom> a, ArrayRef<Atom> b) {
  if (a.size() != b.size())
    return a.size() > b.size();
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

Polynomial::Polynomial(int64_t constant) {
  if (constant != 0)
    terms.push_back({{}, constant});
}

Polynomial Polynomial::of(Atom atom) {
  Polynomial result;
  result.terms.push_back({{atom}, 1});
  return result;
}

std::optional<int64_t> Polynomial::getConstant() const {
  if (terms.empty())
    return 0;
  if (terms.size() == 1 && terms[0].atoms.empty())
    return terms[0].coefficient;
  return std::nullopt;
}

std::optional<Atom> Polynomial::getAtom() const {
  if (terms.size() == 1 && terms[0].coefficient == 1 && terms[0].atoms.size() == 1)
    return terms[0].atoms[0];
  return std::nullopt;
}

void Polynomial::add(ArrayRef<Atom> atoms, int64_t coefficient) {
  auto it = llvm::find_if(terms, [&](const Term &term) { return !precedes(term.atoms, atoms); });
  if (it == terms.end() || ArrayRef<Atom>(it->atoms) != atoms) {
    if (coefficient != 0)
      terms.insert(it, {SmallVector<Atom, 2>(atoms), coefficient});
    return;
  }
  it->coefficient = wrapAdd(it->coefficient, coefficient);
  if (it->coefficient == 0)
    terms.erase(it);
}

Polynomial Polynomial::operator+(const Polynomial &other) const {
  Polynomial result = *this;
  for (const Term &term : other.terms)
    result.add(term.atoms, term.coefficient);
  return result;
}

Polynomial Polynomial::operator-(const Polynomial &other) const {
  Polynomial result = *this;
  for (const Term &term : other.terms)
    result.add(term.atoms, wrapMul(term.coefficient, -1));
  return result;
}

Polynomial Polynomial::operator*(const Polynomial &other) const {
  Polynomial result;
  for (const Term &a : terms)
    for (const Term &b : other.terms) {
      SmallVector<Atom, 4> atoms(a.atoms.begin(), a.atoms.end());
      atoms.append(b.atoms.begin(), b.atoms.end());
      llvm::sort(atoms);
      result.add(atoms, wrapMul(a.coefficient, b.coefficient));
    }
  return result;
}

bool Polynomial::operator==(const Polynomial &other) const {
  return llvm::equal(terms, other.terms,
                     [](const Term &a, const Term &b) { return a.coefficient == b.coefficient && a.atoms == b.atoms; });
}

/// `product` without the atoms of `factor`, or nothing if they are not all there. Both are sorted.
static std::optional<SmallVector<Atom, 2>> without(ArrayRef<Atom> product, ArrayRef<Atom> factor) {
  if (!std::includes(product.begin(), product.end(), factor.begin(), factor.end()))
    return std::nullopt;
  SmallVector<Atom, 2> rest;
  std::set_difference(product.begin(), product.end(), factor.begin(), factor.end(), std::back_inserter(rest));
  return rest;
}

std::optional<std::pair<Polynomial, Polynomial>> Polynomial::divide(const Polynomial &divisor) const {
  if (divisor.terms.empty())
    return std::nullopt;
  const Term &lead = divisor.terms.front();
  Polynomial quotient, remainder, rest = *this;
  while (!rest.terms.empty()) {
    Term term = rest.terms.front();
    auto atoms = without(term.atoms, lead.atoms);
    // Dividing the least integer by -1 has no result.
    bool divides = atoms && lead.coefficient != -1 ? term.coefficient % lead.coefficient == 0 : atoms.has_value();
    if (!divides) {
      remainder.add(term.atoms, term.coefficient);
      rest.terms.erase(rest.terms.begin());
      continue;
    }
    Polynomial factor;
    factor.add(*atoms, lead.coefficient == -1 ? wrapMul(term.coefficient, -1) : term.coefficient / lead.coefficient);
    quotient = quotient + factor;
    rest = rest - factor * divisor;
  }
  return std::make_pair(quotient, remainder);
}

std::optional<Polynomial> Polynomial::divideExactly(const Polynomial &divisor) const {
  auto result = divide(divisor);
  if (!result || !result->second.terms.empty())
    return std::nullopt;
  return result->first;
}

Polynomial Polynomial::substitute(llvm::function_ref<Polynomial(Atom)> replace) const {
  Polynomial result;
  for (const Term &term : terms) {
    Polynomial product(term.coefficient);
    for (Atom atom : term.atoms)
      product = product * replace(atom);
    result = result + product;
  }
  return result;
}

bool Polynomial::contains(Atom atom) const {
  return llvm::any_of(terms, [&](const Term &term) { return llvm::is_contained(term.atoms, atom); });
}

void Polynomial::Profile(llvm::FoldingSetNodeID &id) const {
  id.AddInteger(terms.size());
  for (const Term &term : terms) {
    id.AddInteger(term.coefficient);
    id.AddInteger(term.atoms.size());
    for (Atom atom : term.atoms)
      id.AddInteger(atom);
  }
}

} // namespace hone::analysis
