// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One instruction as it is written, and the operands in it.

#pragma once

#include "ptx/lexer.h"
#include "ptx/types.h"

#include <array>
#include <initializer_list>
#include <optional>
#include <vector>

namespace hone::emulation {

struct Operand {
  enum class Kind : uint8_t { Name, Integer, Float, Address, Vector, List, Pair, Sink };
  Kind kind = Kind::Sink;
  bool negated = false;          // !p
  std::string_view name;         // of a register or symbol; the base of an address, empty where it is a number
  uint64_t bits = 0;             // of an integer
  double value = 0;              // of a float
  int64_t offset = 0;            // name + offset, [name + offset]
  std::vector<Operand> elements; // of a vector, list or pair (a|b); coordinates of an address
};

/// Modifiers are taken one by one by what understands them; what is left at the end is not supported.
class Statement {
public:
  /// Reads an instruction with its guard up to its semicolon.
  explicit Statement(Lexer &lexer);

  std::string_view text;
  std::string_view guard;
  bool guardNegated = false;
  std::string_view root;
  std::vector<Operand> operands;

  /// Takes a modifier where it stands.
  bool take(std::string_view modifier);
  /// Takes the first of these that stands, and says which; -1 for none.
  int takeOneOf(std::initializer_list<std::string_view> modifiers);
  /// Takes the first modifier that begins so, and returns all of it; empty for none.
  std::string_view takePrefixed(std::string_view prefix);
  /// Takes the first modifier that names a type.
  std::optional<Type> takeType();
  /// The same; throws PtxError where there is none.
  Type type();
  /// Whether all modifiers were taken.
  bool finished() const;
  /// Says which instruction is not supported, and why.
  [[noreturn]] void refuse(const std::string &reason) const;
  /// Refuses a statement with another number of operands.
  void expectOperands(size_t least, size_t most) const;
  void expectOperands(size_t count) const { expectOperands(count, count); }

private:
  void split(std::string_view opcode);

  std::array<std::string_view, 20> modifiers;
  uint32_t count = 0;
  uint32_t taken = 0;
};

} // namespace hone::emulation
