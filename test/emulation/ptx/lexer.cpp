// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Words, numbers and signs of PTX text.

#include "ptx/lexer.h"

#include <bit>
#include <cctype>
#include <charconv>
#include <cstdlib>

namespace hone::emulation {
namespace {

bool isWordStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}

bool isWordPart(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.'; }

size_t endOfWord(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    // Two colons belong to a modifier (shared::cta), one ends a label.
    if (text[at] == ':' && at + 1 < text.size() && text[at + 1] == ':')
      ++at;
    else if (!isWordPart(text[at]))
      break;
  }
  return at;
}

size_t endOfNumber(std::string_view text, size_t at) {
  bool decimal = !(text[at] == '0' && at + 1 < text.size() && std::isalpha(static_cast<unsigned char>(text[at + 1])));
  for (++at; at < text.size(); ++at) {
    bool exponentSign = decimal && (text[at] == '-' || text[at] == '+') && (text[at - 1] == 'e' || text[at - 1] == 'E');
    if (!isWordPart(text[at]) && !exponentSign)
      break;
  }
  return at;
}

} // namespace

void Lexer::skipBlanks() {
  while (end < text.size()) {
    if (std::isspace(static_cast<unsigned char>(text[end]))) {
      ++end;
    } else if (text.substr(end, 2) == "//") {
      end = std::min(text.find('\n', end), text.size());
    } else if (text.substr(end, 2) == "/*") {
      size_t close = text.find("*/", end + 2);
      end = close == std::string_view::npos ? text.size() : close + 2;
    } else {
      return;
    }
  }
}

void Lexer::advance() {
  skipBlanks();
  begin = end;
  // Text from a buffer may end with its zero.
  if (begin >= text.size() || text[begin] == '\0') {
    current = {Token::Kind::End, {}};
    return;
  }
  char c = text[begin];
  Token::Kind kind = Token::Kind::Sign;
  end = begin + 1;
  if (isWordStart(c)) {
    kind = Token::Kind::Word;
    end = endOfWord(text, begin);
  } else if (std::isdigit(static_cast<unsigned char>(c))) {
    kind = Token::Kind::Number;
    end = endOfNumber(text, begin);
  } else if (c == '"') {
    kind = Token::Kind::String;
    size_t close = text.find('"', begin + 1);
    end = close == std::string_view::npos ? text.size() : close + 1;
  }
  current = {kind, text.substr(begin, end - begin)};
}

Token Lexer::next() {
  Token token = current;
  advance();
  return token;
}

bool Lexer::accept(std::string_view wanted) {
  if (!current.is(wanted))
    return false;
  advance();
  return true;
}

void Lexer::expect(std::string_view wanted) {
  if (!accept(wanted))
    fail("'" + std::string(wanted) + "'");
}

std::string_view Lexer::word() {
  if (current.kind != Token::Kind::Word)
    fail("a name");
  return next().text;
}

int64_t Lexer::integer() {
  bool negative = accept("-");
  if (current.kind != Token::Kind::Number)
    fail("a number");
  auto value = static_cast<int64_t>(integerOf(next().text));
  return negative ? -value : value;
}

void Lexer::skipBalanced(std::string_view open, std::string_view close) {
  for (int depth = 1; depth > 0;) {
    Token token = next();
    if (token.kind == Token::Kind::End)
      fail("'" + std::string(close) + "'");
    depth += token.is(open) ? 1 : token.is(close) ? -1 : 0;
  }
}

void Lexer::fail(const std::string &expected) const {
  size_t line = 1;
  for (char c : text.substr(0, begin))
    line += c == '\n';
  throw PtxError("line " + std::to_string(line) + ": expected " + expected + ", but got '" + std::string(current.text) +
                 "'");
}

uint64_t integerOf(std::string_view text) {
  int base = 10;
  std::string_view digits = text;
  if (digits.size() > 2 && (digits.substr(0, 2) == "0x" || digits.substr(0, 2) == "0X"))
    base = 16, digits.remove_prefix(2);
  else if (digits.size() > 2 && (digits.substr(0, 2) == "0b" || digits.substr(0, 2) == "0B"))
    base = 2, digits.remove_prefix(2);
  else if (digits.size() > 1 && digits[0] == '0')
    base = 8, digits.remove_prefix(1);
  if (digits.ends_with('U'))
    digits.remove_suffix(1);
  uint64_t value = 0;
  auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || rest != digits.data() + digits.size())
    throw PtxError("expected an integer, but got '" + std::string(text) + "'");
  return value;
}

bool looksLikeFloat(std::string_view text) {
  if (text.size() < 2)
    return false;
  if (text[0] == '0' && std::string_view("fFdD").find(text[1]) != std::string_view::npos)
    return true;
  if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
    return false;
  return text.find_first_of(".eE") != std::string_view::npos;
}

double floatOf(std::string_view text) {
  if (text.size() > 2 && text[0] == '0' && std::isalpha(static_cast<unsigned char>(text[1]))) {
    uint64_t bits = integerOf("0x" + std::string(text.substr(2)));
    if (text[1] == 'f' || text[1] == 'F')
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    return std::bit_cast<double>(bits);
  }
  return std::strtod(std::string(text).c_str(), nullptr);
}

} // namespace hone::emulation
