// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Words, numbers and signs of PTX text.

#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hone::emulation {

/// What is wrong with a module, in one sentence.
struct PtxError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Token {
  /// A word is a name, a register, a directive or an opcode with all of its modifiers ("ld.global.v4.f32").
  enum class Kind : uint8_t { Word, Number, String, Sign, End };
  Kind kind = Kind::End;
  std::string_view text;

  bool is(std::string_view wanted) const { return text == wanted && kind != Kind::String; }
  bool isDirective() const { return kind == Kind::Word && text.front() == '.'; }
};

/// Reads text that outlives it, one token ahead.
class Lexer {
public:
  explicit Lexer(std::string_view text) : text(text) { advance(); }

  const Token &peek() const { return current; }
  Token next();
  /// Takes the next token if it is the one wanted.
  bool accept(std::string_view wanted);
  /// Takes the next token; throws PtxError where it is another.
  void expect(std::string_view wanted);
  /// Takes a word; throws PtxError where something else stands.
  std::string_view word();
  /// Takes an integer, with its sign; throws PtxError where none stands.
  int64_t integer();
  /// Skips past the sign that closes what `open` has opened; `open` itself has been taken.
  void skipBalanced(std::string_view open, std::string_view close);
  /// Where the next token begins, in characters.
  size_t position() const { return begin; }
  /// The text from one position to another.
  std::string_view slice(size_t from, size_t to) const { return text.substr(from, to - from); }
  [[noreturn]] void fail(const std::string &expected) const;

private:
  void advance();
  void skipBlanks();

  std::string_view text;
  size_t begin = 0;
  size_t end = 0;
  Token current;
};

/// The bits of an integer as PTX writes it (decimal, 0x, 0b, octal, with or without U).
uint64_t integerOf(std::string_view text);

/// The value of a number with a fraction: 0f and 0d followed by its bits, or decimal.
double floatOf(std::string_view text);
bool looksLikeFloat(std::string_view text);

} // namespace hone::emulation
