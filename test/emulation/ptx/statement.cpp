// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading of instructions and their operands.

#include "ptx/statement.h"

namespace hone::emulation {
namespace {

Operand parseOperand(Lexer &lexer);

std::vector<Operand> parseElements(Lexer &lexer, std::string_view close) {
  std::vector<Operand> elements;
  while (!lexer.accept(close)) {
    elements.push_back(parseOperand(lexer));
    if (!lexer.accept(",") && !lexer.peek().is(close))
      lexer.fail("',' or '" + std::string(close) + "'");
  }
  return elements;
}

int64_t parseOffset(Lexer &lexer) {
  if (lexer.accept("+"))
    return lexer.integer();
  return lexer.peek().is("-") ? lexer.integer() : 0;
}

Operand parseAddress(Lexer &lexer) {
  Operand operand;
  operand.kind = Operand::Kind::Address;
  if (lexer.peek().kind == Token::Kind::Word) {
    operand.name = lexer.next().text;
    operand.offset = parseOffset(lexer);
  } else {
    operand.offset = lexer.integer();
  }
  if (lexer.accept(",")) {
    operand.elements = parseElements(lexer, "]");
    return operand;
  }
  lexer.expect("]");
  return operand;
}

Operand parseNumber(Lexer &lexer, bool negative) {
  Operand operand;
  std::string_view text = lexer.next().text;
  if (looksLikeFloat(text)) {
    operand.kind = Operand::Kind::Float;
    operand.value = negative ? -floatOf(text) : floatOf(text);
  } else {
    operand.kind = Operand::Kind::Integer;
    operand.bits = negative ? -integerOf(text) : integerOf(text);
  }
  return operand;
}

Operand parseName(Lexer &lexer) {
  Operand operand;
  operand.name = lexer.word();
  operand.kind = operand.name == "_" ? Operand::Kind::Sink : Operand::Kind::Name;
  if (!lexer.accept("|")) {
    operand.offset = parseOffset(lexer);
    return operand;
  }
  Operand pair;
  pair.kind = Operand::Kind::Pair;
  pair.elements = {operand, parseName(lexer)};
  return pair;
}

Operand parseGroup(Lexer &lexer, Operand::Kind kind, std::string_view close) {
  Operand operand;
  operand.kind = kind;
  operand.elements = parseElements(lexer, close);
  return operand;
}

Operand parseOperand(Lexer &lexer) {
  if (lexer.accept("{"))
    return parseGroup(lexer, Operand::Kind::Vector, "}");
  if (lexer.accept("("))
    return parseGroup(lexer, Operand::Kind::List, ")");
  if (lexer.accept("["))
    return parseAddress(lexer);
  if (lexer.accept("!")) {
    Operand operand = parseName(lexer);
    operand.negated = true;
    return operand;
  }
  bool negative = lexer.accept("-");
  if (lexer.peek().kind == Token::Kind::Number)
    return parseNumber(lexer, negative);
  return parseName(lexer);
}

} // namespace

Statement::Statement(Lexer &lexer) {
  size_t from = lexer.position();
  if (lexer.accept("@")) {
    guardNegated = lexer.accept("!");
    guard = lexer.word();
  }
  split(lexer.word());
  size_t to = lexer.position();
  while (!lexer.peek().is(";")) {
    operands.push_back(parseOperand(lexer));
    // The results of a call stand before the function's name without a comma in some writers' text.
    to = lexer.position();
    if (!lexer.accept(",") && !lexer.peek().is(";") && operands.back().kind != Operand::Kind::List)
      lexer.fail("',' or ';'");
  }
  text = lexer.slice(from, to);
  lexer.expect(";");
}

void Statement::split(std::string_view opcode) {
  size_t dot = opcode.find('.');
  root = opcode.substr(0, dot);
  while (dot != std::string_view::npos) {
    size_t nextDot = opcode.find('.', dot + 1);
    if (count == modifiers.size())
      throw PtxError("unsupported instruction '" + std::string(opcode) + "': too many modifiers");
    modifiers[count++] = opcode.substr(dot + 1, nextDot == std::string_view::npos ? nextDot : nextDot - dot - 1);
    dot = nextDot;
  }
}

bool Statement::take(std::string_view modifier) {
  for (uint32_t i = 0; i < count; ++i) {
    if (modifiers[i] != modifier || (taken >> i & 1) != 0)
      continue;
    taken |= 1u << i;
    return true;
  }
  return false;
}

int Statement::takeOneOf(std::initializer_list<std::string_view> wanted) {
  int index = 0;
  for (std::string_view modifier : wanted) {
    if (take(modifier))
      return index;
    ++index;
  }
  return -1;
}

std::string_view Statement::takePrefixed(std::string_view prefix) {
  for (uint32_t i = 0; i < count; ++i) {
    if (!modifiers[i].starts_with(prefix) || (taken >> i & 1) != 0)
      continue;
    taken |= 1u << i;
    return modifiers[i];
  }
  return {};
}

std::optional<Type> Statement::takeType() {
  for (uint32_t i = 0; i < count; ++i) {
    if ((taken >> i & 1) != 0)
      continue;
    if (std::optional<Type> type = typeNamed(modifiers[i])) {
      taken |= 1u << i;
      return type;
    }
  }
  return std::nullopt;
}

Type Statement::type() {
  if (std::optional<Type> type = takeType())
    return *type;
  refuse("no type");
}

bool Statement::finished() const { return taken == (1u << count) - 1; }

void Statement::refuse(const std::string &reason) const {
  throw PtxError("unsupported instruction '" + std::string(text) + "': " + reason);
}

void Statement::expectOperands(size_t least, size_t most) const {
  if (operands.size() < least || operands.size() > most)
    refuse("expected " + std::to_string(least) + " to " + std::to_string(most) + " operands, but got " +
           std::to_string(operands.size()));
}

} // namespace hone::emulation
