// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A module of PTX: its variables, in device memory, and its functions.

#pragma once

#include "ptx/lexer.h"
#include "ptx/memory.h"
#include "ptx/program.h"
#include "ptx/types.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hone::emulation {

/// A variable of any space: of a module, of a function, or a parameter.
struct PtxVariable {
  std::string_view name;
  std::string_view space; // "global", "const", "shared", "local", "param", "reg"
  Type type = Type::B8;
  uint64_t bytes = 0; // 0: an array of unknown size, of dynamic shared memory
  uint64_t align = 1;
  bool external = false;
};

/// A function as text; what it is called with has the names of its parameters.
struct PtxFunction {
  std::string_view name;
  std::string_view body; // between its braces; empty for a declaration
  bool isEntry = false;
  std::vector<PtxVariable> results;
  std::vector<PtxVariable> parameters;
  uint32_t maxThreads = 1024;
  std::array<uint32_t, 3> requiredThreads{};
  std::array<uint32_t, 3> cluster{1, 1, 1}; // blocks
};

/// The architecture a module is for, from its ".target" (90 for sm_90a), and whether it is for that chip alone.
struct PtxTarget {
  int architecture = 0;
  bool exact = false;
};
PtxTarget targetOf(std::string_view text);

class PtxModule {
public:
  /// Reads a module and decodes all of its kernels; its variables are placed in `memory`, which outlives it.
  /// Throws PtxError; throws std::bad_alloc where the variables find no room.
  PtxModule(std::string text, DeviceMemory &memory);
  ~PtxModule();
  PtxModule(const PtxModule &) = delete;
  PtxModule &operator=(const PtxModule &) = delete;

  const Kernel *kernel(std::string_view name) const;
  const PtxFunction *function(std::string_view name) const;
  const PtxVariable *variable(std::string_view name) const;
  PtxTarget target() const { return chip; }
  /// Device address of a variable in global or constant memory; 0 for none.
  uint64_t addressOf(std::string_view name) const;

private:
  void read();
  void readVariable(std::string_view space, bool external, Lexer &lexer);
  void readFunction(bool isEntry, Lexer &lexer);
  void readAttributes(PtxFunction &function, Lexer &lexer);
  void initialize(const PtxVariable &variable, Lexer &lexer);
  void place(const PtxVariable &variable);

  std::string text;
  PtxTarget chip;
  DeviceMemory &memory;
  std::unordered_map<std::string_view, PtxVariable> variables;
  std::unordered_map<std::string_view, PtxFunction> functions;
  std::vector<std::string_view> order;
  std::unordered_map<std::string_view, uint64_t> addresses;
  std::map<std::string_view, Kernel> kernels;
};

/// Reads a declaration after its space (".align 8 .b8 name[24]"), and what follows an array's name. Reads no initial value.
PtxVariable parseVariable(std::string_view space, Lexer &lexer);

} // namespace hone::emulation
