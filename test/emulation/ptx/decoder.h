// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the text of a function to instructions of a kernel.
//
// Functions that a kernel calls are decoded again at each call, with registers and local memory of their own, so that a call
// is a jump and lanes meet again after it as after any other.

#pragma once

#include "ptx/module.h"
#include "ptx/program.h"
#include "ptx/statement.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace hone::emulation {

/// What decoders of instructions ask for: slots of operands, and a place for the instruction.
class Decoder {
public:
  Decoder(const PtxModule &module, Kernel &kernel) : module(module), kernel(kernel) {}

  /// Decodes the body of an entry. Throws PtxError with the text of what is not supported.
  void decodeEntry(const PtxFunction &function);

  /// Appends an instruction under the guard of the statement that is being decoded.
  Inst &emit(Handler handler);
  /// The slot of an operand that is read as a value of the type: a register, an immediate, an address of a symbol.
  uint32_t source(const Operand &operand, Type type);
  /// The slot of a register that is written; of a sink, a slot that nobody reads.
  uint32_t destination(const Operand &operand, Type type);
  /// The mask of a predicate; `flip` becomes all ones where it is negated.
  uint32_t predicate(const Operand &operand, uint32_t &flip);
  uint32_t predicate(const Operand &operand);
  /// What a name is: whether it is a predicate, and how many bytes a lane of its register has (0 where it is no register).
  bool isPredicate(const Operand &operand);
  unsigned bytesOfRegister(const Operand &operand);
  /// The slot of a register that may be wider than the type, and how many bytes it has. Immediates have those of the type.
  uint32_t wideSource(const Operand &operand, Type type, unsigned &bytes);
  uint32_t wideDestination(const Operand &operand, Type type, unsigned &bytes);
  /// Sets the base, the offset and the space of an address: its base becomes operand `at`.
  void address(Inst &inst, const Operand &operand, Space space, unsigned at);
  /// A slot whose lanes all hold these bits.
  uint32_t constant(uint64_t low, unsigned bytes, uint64_t high = 0);
  /// Refuses an instruction that the module's target does not have: older than `architecture`, or not exactly sm_<architecture>a.
  void requireTarget(int architecture, bool exact) const;
  /// A slot of its own.
  uint32_t allocate(unsigned bytesPerLane);
  uint32_t *list(std::vector<uint32_t> slots);
  /// Where a variable lies, by its name; none where there is no such variable.
  struct Place {
    Space space;
    uint64_t address;
    bool endOfShared = false; // of dynamic shared memory, whose beginning is not known yet
  };
  std::optional<Place> variable(std::string_view name);

  // Control.
  /// A jump to a label of this function.
  void branch(std::string_view label);
  /// A jump to one of the labels of a table, by the index that each lane has in operand 0.
  void branchTable(std::string_view table, uint32_t index);
  /// The code of the function that is called.
  void call(const Statement &statement);
  /// The end of a thread, or of the function that was called.
  void leave();

private:
  struct Register {
    Type type;
    uint32_t slot;
  };
  struct Range {
    std::string_view prefix;
    Type type;
    std::vector<uint32_t> slots; // 0: not used yet
  };
  struct Fixup {
    std::string_view label;
    size_t inst;
    uint32_t *entry; // of a branch table, or null: the target
  };
  struct Scope {
    std::unordered_map<std::string_view, Register> registers;
    std::unordered_map<std::string_view, Place> variables;
    std::unordered_map<std::string_view, uint32_t> labels;
    std::unordered_map<std::string_view, std::vector<std::string_view>> tables;
    std::vector<Range> ranges;
    std::vector<Fixup> fixups;
    bool isFunction = false; // outer scopes are another function's
    std::vector<size_t> returns;
  };

  void decodeBody(std::string_view body);
  void readStatement(Lexer &lexer);
  void readDirective(Lexer &lexer);
  void readRegisters(Lexer &lexer);
  void readLabel(std::string_view label, Lexer &lexer);
  void declareVariable(const PtxVariable &variable);
  void closeScope();
  void resolve(const Fixup &fixup, uint32_t target);
  void decode(Statement &statement);
  std::optional<Register> findRegister(std::string_view name);
  uint32_t symbolSlot(const Operand &operand, const Place &place, unsigned bytes);
  uint32_t immediate(const Operand &operand, Type type);
  Place placeShared(const PtxVariable &variable);
  void bind(const std::vector<PtxVariable> &formals, const Operand *arguments, Scope &scope);
  [[noreturn]] void refuse(const std::string &reason) const;

  const PtxModule &module;
  Kernel &kernel;
  std::vector<Scope> scopes;
  std::unordered_map<std::string_view, Place> moduleShared; // of this kernel, by first use
  struct ConstantKey {
    uint64_t low, high;
    unsigned bytes;
    bool operator==(const ConstantKey &) const = default;
  };
  struct ConstantHash {
    size_t operator()(const ConstantKey &key) const {
      return (key.low ^ (key.high * 31)) * 0x9e3779b97f4a7c15u + key.bytes;
    }
  };
  std::unordered_map<ConstantKey, uint32_t, ConstantHash> constants;
  std::vector<size_t> dynamicShared; // constants to which the size of static shared memory is added
  uint64_t dynamicAlign = 16;
  Statement *current = nullptr;
  std::vector<std::string_view> calling;
};

/// Decodes one instruction: reads its modifiers and operands, and emits.
using InstructionDecoder = void (*)(Decoder &, Statement &);

/// The decoder of instructions with this first word, or null.
InstructionDecoder instructionDecoder(std::string_view root);

} // namespace hone::emulation
