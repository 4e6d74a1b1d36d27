// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expressions as text, for messages.

#include "hone/Analysis/Expressions.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"

namespace hone::analysis {

static std::string nameOf(mlir::Value value) {
  if (auto name = llvm::dyn_cast<mlir::NameLoc>(value.getLoc()))
    return name.getName().str();
  return "tensor";
}

std::string Expressions::toString(const Polynomial &polynomial) const {
  std::string text;
  for (const Polynomial::Term &term : polynomial.getTerms()) {
    llvm::SmallVector<std::string> factors;
    if (term.coefficient != 1 || term.atoms.empty())
      factors.push_back(std::to_string(term.coefficient));
    for (Atom atom : term.atoms) {
      std::string factor = "s" + std::to_string(atom);
      for (const auto &named : sizes)
        if (named.second == atom)
          factor = named.first().str();
      for (const auto &[axis, extent, index] : indexAtoms)
        if (index == atom)
          factor = "i" + std::to_string(axis);
      factors.push_back(atoms[atom].definition ? toString(atoms[atom].definition) : factor);
    }
    text += (text.empty() ? "" : " + ") + llvm::join(factors, "*");
  }
  return text.empty() ? "0" : text;
}

std::string Expressions::toString(const Expression *expression) const {
  auto list = [&](llvm::StringRef separator) {
    return llvm::join(
        llvm::map_range(expression->operands, [&](const Expression *operand) { return toString(operand); }), separator);
  };
  switch (expression->kind) {
  case ExpressionKind::Integer:
    return toString(expression->polynomial);
  case ExpressionKind::True:
    return "true";
  case ExpressionKind::False:
    return "false";
  case ExpressionKind::NonNegative:
    return "0 <= " + toString(expression->polynomial);
  case ExpressionKind::IsZero:
    return "0 == " + toString(expression->polynomial);
  case ExpressionKind::Not:
    return "not (" + list("") + ")";
  case ExpressionKind::And:
    return "(" + list(" and ") + ")";
  case ExpressionKind::Or:
    return "(" + list(" or ") + ")";
  case ExpressionKind::Real:
    return std::to_string(expression->real);
  case ExpressionKind::Select:
    return "select(" + list(", ") + ")";
  case ExpressionKind::Call:
  case ExpressionKind::CallFlag:
    return expression->name.str() + "(" + list(", ") + ")";
  case ExpressionKind::Load:
  case ExpressionKind::LoadFlag:
    return nameOf(expression->source) + "[" +
           llvm::join(llvm::map_range(expression->indices, [&](const Polynomial &index) { return toString(index); }),
                      ", ") +
           "]";
  }
  return "";
}

} // namespace hone::analysis
