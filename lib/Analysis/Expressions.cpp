// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Atoms, what is known of them, and the uniquing of expressions.

#include "hone/Analysis/Expressions.h"

#include "llvm/ADT/STLExtras.h"

using llvm::SmallVector;

namespace hone::analysis {

void Expression::Profile(llvm::FoldingSetNodeID &id) const {
  id.AddInteger(static_cast<int>(kind));
  polynomial.Profile(id);
  uint64_t bits;
  static_assert(sizeof(bits) == sizeof(real));
  memcpy(&bits, &real, sizeof(bits));
  id.AddInteger(bits);
  id.AddPointer(source.getAsOpaquePointer());
  id.AddString(name);
  id.AddInteger(indices.size());
  for (const Polynomial &index : indices)
    index.Profile(id);
  for (const Expression *operand : operands)
    id.AddPointer(operand);
}

const Expression *Expressions::intern(Expression &&candidate) {
  llvm::FoldingSetNodeID id;
  candidate.Profile(id);
  void *position = nullptr;
  if (Expression *found = unique.FindNodeOrInsertPos(id, position))
    return found;
  candidate.number = storage.size();
  storage.push_back(std::move(candidate));
  unique.InsertNode(&storage.back(), position);
  return &storage.back();
}

//===----------------------------------------------------------------------===//
// Atoms
//===----------------------------------------------------------------------===//

Atom Expressions::freshSize() {
  atoms.push_back({/*nonNegative=*/true, {}, nullptr});
  return atoms.size() - 1;
}

Atom Expressions::boundedSize(const Polynomial &upper) {
  atoms.push_back({/*nonNegative=*/true, upper, nullptr});
  return atoms.size() - 1;
}

Atom Expressions::namedSize(llvm::StringRef name) {
  auto it = sizes.find(name);
  return it != sizes.end() ? it->second : sizes[name] = freshSize();
}

Polynomial Expressions::index(unsigned axis, const Polynomial &extent) {
  if (extent.isConstant(1))
    return 0;
  for (auto &[knownAxis, knownExtent, atom] : indexAtoms)
    if (knownAxis == axis && knownExtent == extent)
      return Polynomial::of(atom);
  atoms.push_back({/*nonNegative=*/true, extent - 1, nullptr});
  indexAtoms.emplace_back(axis, extent, atoms.size() - 1);
  return Polynomial::of(atoms.size() - 1);
}

Polynomial Expressions::atomOf(const Expression *definition, bool nonNegative, std::optional<Polynomial> upper) {
  auto [it, isNew] = defined.try_emplace(definition, 0);
  if (isNew) {
    atoms.push_back({nonNegative, std::move(upper), definition});
    it->second = atoms.size() - 1;
  }
  return Polynomial::of(it->second);
}

/// Bounds the polynomial from below: in terms that are subtracted, an atom gives way to the largest value it can have.
bool Expressions::isNonNegative(const Polynomial &polynomial) const {
  Polynomial bound = polynomial;
  constexpr int kRounds = 4; // an upper bound may itself be made of bounded atoms
  for (int round = 0; round < kRounds; ++round) {
    Polynomial next;
    bool changed = false;
    for (const Polynomial::Term &term : bound.getTerms()) {
      Polynomial product(term.coefficient);
      bool replaced = false;
      for (Atom atom : term.atoms) {
        if (!atoms[atom].nonNegative)
          return false;
        bool replace = term.coefficient < 0 && !replaced && atoms[atom].upper;
        product = product * (replace ? *atoms[atom].upper : Polynomial::of(atom));
        replaced |= replace;
      }
      changed |= replaced;
      next = next + product;
    }
    bound = next;
    if (!changed)
      break;
  }
  return llvm::all_of(bound.getTerms(), [](const Polynomial::Term &term) { return term.coefficient >= 0; });
}

//===----------------------------------------------------------------------===//
// Leaves
//===----------------------------------------------------------------------===//

static Expression make(ExpressionKind kind) {
  Expression expression;
  expression.kind = kind;
  return expression;
}

const Expression *Expressions::integer(const Polynomial &polynomial) {
  Expression result = make(ExpressionKind::Integer);
  result.polynomial = polynomial;
  return intern(std::move(result));
}

/// Both zeros are one: `evaluate` never divides by one, which is where they differ.
const Expression *Expressions::real(double value) {
  Expression result = make(ExpressionKind::Real);
  result.real = static_cast<float>(value);
  if (result.real == 0)
    result.real = 0;
  return intern(std::move(result));
}

const Expression *Expressions::flag(bool value) {
  return intern(make(value ? ExpressionKind::True : ExpressionKind::False));
}

const Expression *Expressions::load(mlir::Value source, llvm::ArrayRef<Polynomial> indices) {
  Expression result = make(ExpressionKind::Load);
  result.source = source;
  result.indices.assign(indices.begin(), indices.end());
  return intern(std::move(result));
}

const Expression *Expressions::loadFlag(mlir::Value source, llvm::ArrayRef<Polynomial> indices) {
  Expression result = make(ExpressionKind::LoadFlag);
  result.source = source;
  result.indices.assign(indices.begin(), indices.end());
  return intern(std::move(result));
}

const Expression *Expressions::call(llvm::StringRef name, llvm::ArrayRef<const Expression *> operands) {
  Expression result = make(ExpressionKind::Call);
  result.name = names.try_emplace(name).first->first();
  result.operands.assign(operands.begin(), operands.end());
  return intern(std::move(result));
}

const Expression *Expressions::callFlag(llvm::StringRef name, llvm::ArrayRef<const Expression *> operands) {
  Expression result = make(ExpressionKind::CallFlag);
  result.name = names.try_emplace(name).first->first();
  result.operands.assign(operands.begin(), operands.end());
  return intern(std::move(result));
}

//===----------------------------------------------------------------------===//
// Predicates
//===----------------------------------------------------------------------===//

const Expression *Expressions::nonNegative(const Polynomial &polynomial) {
  if (isNonNegative(polynomial))
    return flag(true);
  if (isNonNegative(Polynomial(-1) - polynomial))
    return flag(false);
  Expression result = make(ExpressionKind::NonNegative);
  result.polynomial = polynomial;
  return intern(std::move(result));
}

const Expression *Expressions::isZero(const Polynomial &polynomial) {
  if (auto constant = polynomial.getConstant())
    return flag(*constant == 0);
  if (isPositive(polynomial) || isPositive(-polynomial))
    return flag(false);
  // The integer of a predicate is 0 where the predicate is false.
  if (auto atom = polynomial.getAtom(); atom && atoms[*atom].definition && atoms[*atom].definition->isFlag())
    return negate(atoms[*atom].definition);
  Expression result = make(ExpressionKind::IsZero);
  result.polynomial = polynomial.getTerms().front().coefficient < 0 ? -polynomial : polynomial;
  return intern(std::move(result));
}

const Expression *Expressions::negate(const Expression *predicate) {
  SmallVector<const Expression *> negated;
  switch (predicate->kind) {
  case ExpressionKind::True:
    return flag(false);
  case ExpressionKind::False:
    return flag(true);
  case ExpressionKind::NonNegative:
    return nonNegative(Polynomial(-1) - predicate->polynomial);
  case ExpressionKind::Not:
    return predicate->operands.front();
  case ExpressionKind::And:
  case ExpressionKind::Or:
    for (const Expression *operand : predicate->operands)
      negated.push_back(negate(operand));
    return predicate->kind == ExpressionKind::And ? disjoin(negated) : conjoin(negated);
  default: {
    Expression result = make(ExpressionKind::Not);
    result.operands.push_back(predicate);
    return intern(std::move(result));
  }
  }
}

bool Expressions::implies(const Expression *a, const Expression *b) const {
  if (a == b)
    return true;
  return a->kind == ExpressionKind::NonNegative && b->kind == ExpressionKind::NonNegative &&
         isNonNegative(b->polynomial - a->polynomial);
}

const Expression *Expressions::conjoin(llvm::ArrayRef<const Expression *> predicates) {
  return combine(ExpressionKind::And, predicates);
}

const Expression *Expressions::disjoin(llvm::ArrayRef<const Expression *> predicates) {
  return combine(ExpressionKind::Or, predicates);
}

/// And and Or are each other's dual: flattened, without repetitions, without what another operand implies (And) or is
/// implied by (Or), and with each operand freed of what the others already decide.
const Expression *Expressions::combine(ExpressionKind kind, llvm::ArrayRef<const Expression *> predicates) {
  bool isAnd = kind == ExpressionKind::And;
  ExpressionKind neutral = isAnd ? ExpressionKind::True : ExpressionKind::False;
  ExpressionKind deciding = isAnd ? ExpressionKind::False : ExpressionKind::True;
  ExpressionKind dual = isAnd ? ExpressionKind::Or : ExpressionKind::And;
  SmallVector<const Expression *> operands;
  for (const Expression *predicate : predicates) {
    if (predicate->kind == deciding)
      return predicate;
    if (predicate->kind == kind)
      operands.append(predicate->operands.begin(), predicate->operands.end());
    else if (predicate->kind != neutral)
      operands.push_back(predicate);
  }
  llvm::sort(operands, [](const Expression *a, const Expression *b) { return a->number < b->number; });
  operands.erase(llvm::unique(operands), operands.end());
  SmallVector<const Expression *> negations;
  for (const Expression *operand : operands) {
    negations.push_back(operand->kind == dual ? nullptr : negate(operand));
    if (llvm::is_contained(operands, negations.back()))
      return flag(!isAnd);
  }
  // x or (not x and y) is x or y; x and (not x or y) is x and y.
  for (const Expression *operand : operands) {
    if (operand->kind != dual ||
        !llvm::any_of(operand->operands, [&](const Expression *part) { return llvm::is_contained(negations, part); }))
      continue;
    SmallVector<const Expression *> rest(operands);
    llvm::erase(rest, operand);
    SmallVector<const Expression *> parts(operand->operands.begin(), operand->operands.end());
    llvm::erase_if(parts, [&](const Expression *part) { return llvm::is_contained(negations, part); });
    rest.push_back(combine(dual, parts));
    return combine(kind, rest);
  }
  SmallVector<const Expression *> kept;
  for (const Expression *operand : operands) {
    bool redundant = llvm::any_of(operands, [&](const Expression *other) {
      if (other == operand)
        return false;
      return isAnd ? implies(other, operand) : implies(operand, other);
    });
    if (!redundant)
      kept.push_back(operand);
  }
  if (kept.empty())
    return intern(make(neutral));
  if (kept.size() == 1)
    return kept.front();
  Expression result = make(kind);
  result.operands.assign(kept.begin(), kept.end());
  return intern(std::move(result));
}

} // namespace hone::analysis
