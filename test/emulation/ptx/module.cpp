// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading of modules: variables with their initial values, and where functions begin and end.

#include "ptx/module.h"

#include "ptx/decoder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace hone::emulation {
namespace {

/// The first word of a statement that says how a name is linked, which the emulation does not need.
bool isLinkage(std::string_view word) { return word == ".visible" || word == ".weak" || word == ".common"; }

bool isSpace(std::string_view word) {
  return word == ".global" || word == ".const" || word == ".shared" || word == ".local";
}

void skipToLineEnd(Lexer &lexer, size_t words) {
  while (words-- > 0)
    lexer.next();
}

/// The arguments of .file and .loc end with their line: numbers, a string, commas.
void skipDebug(Lexer &lexer) {
  while (lexer.peek().kind == Token::Kind::Number || lexer.peek().kind == Token::Kind::String || lexer.peek().is(","))
    lexer.next();
}

} // namespace

PtxVariable parseVariable(std::string_view space, Lexer &lexer) {
  PtxVariable variable;
  variable.space = space;
  uint64_t elements = 1;
  std::optional<Type> type;
  while (lexer.peek().isDirective()) {
    std::string_view word = lexer.next().text;
    if (word == ".align") {
      variable.align = static_cast<uint64_t>(lexer.integer());
    } else if (word == ".ptr" || word == ".global" || word == ".const" || word == ".shared" || word == ".local") {
      continue; // says what a pointer points to
    } else if (word == ".v2" || word == ".v4") {
      elements = word == ".v2" ? 2 : 4;
    } else if (word == ".attribute") {
      lexer.expect("(");
      lexer.skipBalanced("(", ")");
    } else if (std::optional<Type> named = typeNamed(word.substr(1))) {
      type = named;
    } else {
      lexer.fail("a type");
    }
  }
  if (!type)
    lexer.fail("a type");
  variable.type = *type;
  variable.name = lexer.word();
  variable.align = std::max<uint64_t>(variable.align, bytesOf(*type) * elements);
  while (lexer.accept("[")) {
    elements *= lexer.peek().is("]") ? 0 : static_cast<uint64_t>(lexer.integer());
    lexer.expect("]");
  }
  variable.bytes = elements * bytesOf(*type);
  return variable;
}

PtxTarget targetOf(std::string_view text) {
  size_t at = text.find(".target");
  PtxTarget target;
  if (at == std::string_view::npos)
    throw PtxError("expected a '.target', but there is none");
  size_t name = text.find("sm_", at);
  if (name == std::string_view::npos)
    throw PtxError("expected a '.target' of the form sm_90, but there is none");
  for (at = name + 3; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); ++at)
    target.architecture = target.architecture * 10 + (text[at] - '0');
  target.exact = at < text.size() && text[at] == 'a';
  return target;
}

PtxModule::PtxModule(std::string source, DeviceMemory &memory)
    : text(std::move(source)), chip(targetOf(text)), memory(memory) {
  try {
    read();
    for (std::string_view name : order) {
      const PtxFunction &entry = functions.at(name);
      Kernel &kernel = kernels[name];
      kernel.name = name;
      Decoder(*this, kernel).decodeEntry(entry);
    }
  } catch (...) {
    for (auto [name, address] : addresses)
      memory.release(address);
    throw;
  }
}

PtxModule::~PtxModule() {
  for (auto [name, address] : addresses)
    memory.release(address);
}

const Kernel *PtxModule::kernel(std::string_view name) const {
  auto found = kernels.find(name);
  return found == kernels.end() ? nullptr : &found->second;
}

const PtxFunction *PtxModule::function(std::string_view name) const {
  auto found = functions.find(name);
  return found == functions.end() ? nullptr : &found->second;
}

const PtxVariable *PtxModule::variable(std::string_view name) const {
  auto found = variables.find(name);
  return found == variables.end() ? nullptr : &found->second;
}

uint64_t PtxModule::addressOf(std::string_view name) const {
  auto found = addresses.find(name);
  return found == addresses.end() ? 0 : found->second;
}

void PtxModule::read() {
  Lexer lexer(text);
  bool external = false;
  while (lexer.peek().kind != Token::Kind::End) {
    std::string_view word = lexer.word();
    if (word == ".extern") {
      external = true;
      continue;
    }
    if (isLinkage(word))
      continue;
    if (word == ".version" || word == ".address_size") {
      skipToLineEnd(lexer, 1);
    } else if (word == ".target") {
      lexer.word();
      while (lexer.accept(","))
        lexer.word();
    } else if (word == ".file" || word == ".loc") {
      skipDebug(lexer);
    } else if (word == ".section") {
      lexer.word();
      lexer.expect("{");
      lexer.skipBalanced("{", "}");
    } else if (word == ".entry" || word == ".func") {
      readFunction(word == ".entry", lexer);
    } else if (isSpace(word)) {
      readVariable(word.substr(1), external, lexer);
    } else {
      throw PtxError("unsupported directive '" + std::string(word) + "'");
    }
    external = false;
  }
}

void PtxModule::readVariable(std::string_view space, bool external, Lexer &lexer) {
  PtxVariable variable = parseVariable(space, lexer);
  variable.external = external;
  if (lexer.peek().is("=") && variable.bytes == 0)
    lexer.fail("a size for what has values");
  if (space != "shared" && external)
    throw PtxError("unsupported external variable '" + std::string(variable.name) + "'");
  variables.insert_or_assign(variable.name, variable);
  if (space == "global" || space == "const") {
    place(variable);
    if (lexer.accept("="))
      initialize(variable, lexer);
  }
  lexer.expect(";");
}

void PtxModule::place(const PtxVariable &variable) {
  std::optional<uint64_t> address = memory.allocate(std::max<uint64_t>(variable.bytes, 1));
  if (!address)
    throw std::bad_alloc();
  addresses[variable.name] = *address;
  // What has no value begins as zeros, as in C.
  std::memset(memory.bytes(*address), 0, variable.bytes);
}

void PtxModule::initialize(const PtxVariable &variable, Lexer &lexer) {
  std::byte *to = memory.bytes(addresses.at(variable.name));
  uint64_t size = bytesOf(variable.type);
  uint64_t done = 0;
  auto put = [&](uint64_t bits) {
    if (done + size > variable.bytes)
      lexer.fail("no more values than '" + std::string(variable.name) + "' holds");
    std::memcpy(to + done, &bits, size);
    done += size;
  };
  int depth = 0;
  do {
    if (lexer.accept("{")) {
      ++depth;
    } else if (lexer.accept("}")) {
      --depth;
    } else if (lexer.peek().kind == Token::Kind::Word) {
      std::string_view name = lexer.word();
      bool generic = name == "generic" && lexer.accept("(");
      if (generic) {
        name = lexer.word();
        lexer.expect(")");
      }
      if (addressOf(name) == 0)
        lexer.fail("the name of a variable");
      uint64_t offset = lexer.accept("+") ? static_cast<uint64_t>(lexer.integer()) : 0;
      put(addressOf(name) + offset);
    } else if (looksLikeFloat(lexer.peek().text)) {
      double value = floatOf(lexer.next().text);
      put(size == 4 ? std::bit_cast<uint32_t>(static_cast<float>(value)) : std::bit_cast<uint64_t>(value));
    } else {
      put(static_cast<uint64_t>(lexer.integer()));
    }
    lexer.accept(",");
  } while (depth > 0);
}

void PtxModule::readFunction(bool isEntry, Lexer &lexer) {
  PtxFunction function;
  function.isEntry = isEntry;
  auto list = [&](std::vector<PtxVariable> &variables) {
    while (!lexer.accept(")")) {
      std::string_view space = lexer.word();
      variables.push_back(parseVariable(space.substr(1), lexer));
      lexer.accept(",");
    }
  };
  if (lexer.accept("("))
    list(function.results);
  function.name = lexer.word();
  if (lexer.accept("("))
    list(function.parameters);
  readAttributes(function, lexer);
  if (lexer.accept("{")) {
    size_t from = lexer.position();
    lexer.skipBalanced("{", "}");
    // The slice ends with the closing brace, which ends the body for its reader too.
    function.body = lexer.slice(from, lexer.position());
    function.body = function.body.substr(0, function.body.rfind('}') + 1);
    if (isEntry)
      order.push_back(function.name);
  } else {
    lexer.expect(";");
    if (functions.count(function.name) != 0)
      return; // declared again
  }
  functions.insert_or_assign(function.name, std::move(function));
}

void PtxModule::readAttributes(PtxFunction &function, Lexer &lexer) {
  auto three = [&] {
    std::array<uint32_t, 3> values{1, 1, 1};
    for (uint32_t &value : values) {
      value = static_cast<uint32_t>(lexer.integer());
      if (!lexer.accept(","))
        break;
    }
    return values;
  };
  while (lexer.peek().isDirective()) {
    std::string_view word = lexer.next().text;
    if (word == ".reqntid") {
      function.requiredThreads = three();
    } else if (word == ".maxntid") {
      std::array<uint32_t, 3> most = three();
      function.maxThreads = most[0] * most[1] * most[2];
    } else if (word == ".reqnctapercluster") {
      function.cluster = three();
      if (function.cluster[0] == 0 || function.cluster[1] != 1 || function.cluster[2] != 1)
        throw PtxError("the emulation has clusters along x alone, which those of '" + std::string(function.name) +
                       "' are not");
    } else if (word == ".pragma") {
      lexer.next();
      lexer.expect(";");
    } else if (word == ".minnctapersm" || word == ".maxnreg" || word == ".maxnctapersm" || word == ".abi_preserve") {
      lexer.integer();
    } else if (word != ".noreturn" && word != ".explicitcluster") {
      throw PtxError("unsupported directive '" + std::string(word) + "' of '" + std::string(function.name) + "'");
    }
  }
}

} // namespace hone::emulation
