// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bodies of functions: declarations, labels, scopes and calls.

#include "ptx/decoder.h"

#include "exec/control.h"
#include "ptx/launch.h"

#include <algorithm>
#include <utility>

namespace hone::emulation {
namespace {

uint64_t roundUp(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// What follows .loc and .file: numbers, strings, and where code was inlined from.
void skipLocation(Lexer &lexer) {
  for (;;) {
    const Token &token = lexer.peek();
    bool named = token.is("function_name") || token.is("inlined_at");
    if (!named && token.kind != Token::Kind::Number && token.kind != Token::Kind::String && !token.is(",") &&
        !token.is("+"))
      return;
    if (lexer.next().is("function_name"))
      lexer.word();
  }
}

} // namespace

void Decoder::decodeEntry(const PtxFunction &function) {
  kernel.maxThreads = function.maxThreads;
  kernel.requiredThreads = function.requiredThreads;
  kernel.cluster = function.cluster[0];
  Scope scope;
  scope.isFunction = true;
  for (const PtxVariable &parameter : function.parameters) {
    auto offset = static_cast<uint32_t>(roundUp(kernel.parameterBytes, parameter.align));
    kernel.parameters.push_back({offset, static_cast<uint32_t>(parameter.bytes)});
    kernel.parameterBytes = offset + static_cast<uint32_t>(parameter.bytes);
    scope.variables[parameter.name] = {Space::Param, kParamWindow + offset};
  }
  scopes.push_back(std::move(scope));
  decodeBody(function.body);
  emit(exitLanes).control = true;
  kernel.staticShared = static_cast<uint32_t>(roundUp(kernel.staticShared, dynamicShared.empty() ? 1 : dynamicAlign));
  for (size_t index : dynamicShared)
    kernel.constants[index].bits[0] += kernel.staticShared;
  kernel.localBytes = static_cast<uint32_t>(roundUp(kernel.localBytes, 16));
}

void Decoder::decodeBody(std::string_view body) {
  Lexer lexer(body);
  size_t outer = scopes.size();
  while (!(scopes.size() == outer && lexer.accept("}"))) {
    if (lexer.accept("{"))
      scopes.emplace_back();
    else if (lexer.accept("}"))
      closeScope();
    else
      readStatement(lexer);
  }
  closeScope();
}

void Decoder::readStatement(Lexer &lexer) {
  if (lexer.accept(";"))
    return;
  if (lexer.peek().isDirective()) {
    readDirective(lexer);
    return;
  }
  if (lexer.peek().kind == Token::Kind::Word) {
    Lexer ahead = lexer;
    std::string_view label = ahead.word();
    if (ahead.accept(":")) {
      lexer = ahead;
      readLabel(label, lexer);
      return;
    }
  }
  Statement statement(lexer);
  decode(statement);
}

void Decoder::readLabel(std::string_view label, Lexer &lexer) {
  if (lexer.accept(".branchtargets")) {
    std::vector<std::string_view> &labels = scopes.back().tables[label];
    do
      labels.push_back(lexer.word());
    while (lexer.accept(","));
    lexer.expect(";");
  } else {
    scopes.back().labels[label] = static_cast<uint32_t>(kernel.code.size());
  }
}

void Decoder::readDirective(Lexer &lexer) {
  std::string_view word = lexer.next().text;
  if (word == ".reg") {
    readRegisters(lexer);
  } else if (word == ".loc" || word == ".file") {
    skipLocation(lexer);
    return;
  } else if (word == ".pragma") {
    lexer.next();
  } else if (word == ".local" || word == ".shared" || word == ".param") {
    declareVariable(parseVariable(word.substr(1), lexer));
  } else {
    throw PtxError("unsupported directive '" + std::string(word) + "' in kernel '" + kernel.name + "'");
  }
  lexer.expect(";");
}

void Decoder::readRegisters(Lexer &lexer) {
  std::optional<Type> type = typeNamed(lexer.word().substr(1));
  if (!type)
    lexer.fail("a type of registers");
  do {
    std::string_view name = lexer.word();
    if (lexer.accept("<")) {
      auto count = static_cast<size_t>(lexer.integer());
      lexer.expect(">");
      scopes.back().ranges.push_back({name, *type, std::vector<uint32_t>(count)});
    } else {
      scopes.back().registers[name] = {*type, allocate(bytesOf(*type))};
    }
  } while (lexer.accept(","));
}

void Decoder::declareVariable(const PtxVariable &variable) {
  if (variable.space == "shared") {
    scopes.back().variables[variable.name] = placeShared(variable);
    return;
  }
  // Parameters of calls are local memory that caller and callee know by names of their own.
  auto at = static_cast<uint32_t>(roundUp(kernel.localBytes, variable.align));
  kernel.localBytes = at + static_cast<uint32_t>(variable.bytes);
  scopes.back().variables[variable.name] = {Space::Local, at};
}

Decoder::Place Decoder::placeShared(const PtxVariable &variable) {
  if (variable.bytes == 0) {
    dynamicAlign = std::max(dynamicAlign, variable.align);
    return {Space::Shared, 0, true};
  }
  auto at = static_cast<uint32_t>(roundUp(kernel.staticShared, variable.align));
  kernel.staticShared = at + static_cast<uint32_t>(variable.bytes);
  return {Space::Shared, at};
}

void Decoder::resolve(const Fixup &fixup, uint32_t target) {
  if (fixup.entry != nullptr)
    *fixup.entry = target;
  else
    kernel.code[fixup.inst].target = target;
}

void Decoder::closeScope() {
  Scope scope = std::move(scopes.back());
  scopes.pop_back();
  for (const Fixup &fixup : scope.fixups) {
    if (auto label = scope.labels.find(fixup.label); label != scope.labels.end())
      resolve(fixup, label->second);
    else if (scope.isFunction)
      throw PtxError("expected a label '" + std::string(fixup.label) + "' in kernel '" + kernel.name +
                     "', but there is none");
    else
      scopes.back().fixups.push_back(fixup);
  }
  auto end = static_cast<uint32_t>(kernel.code.size());
  for (size_t inst : scope.returns)
    kernel.code[inst].target = end;
}

void Decoder::decode(Statement &statement) {
  current = &statement;
  InstructionDecoder decoder = instructionDecoder(statement.root);
  if (decoder == nullptr)
    statement.refuse("the emulation has no such instruction");
  decoder(*this, statement);
  if (!statement.finished())
    statement.refuse("the emulation does not have one of its modifiers");
  current = nullptr;
}

Inst &Decoder::emit(Handler handler) {
  Inst &inst = kernel.code.emplace_back();
  inst.run = handler;
  inst.guard = specialSlot(kAlways);
  if (current != nullptr && !current->guard.empty()) {
    Operand guard;
    guard.kind = Operand::Kind::Name;
    guard.name = current->guard;
    guard.negated = current->guardNegated;
    inst.guard = predicate(guard, inst.flip);
  }
  kernel.texts.push_back(current != nullptr ? current->text : std::string_view());
  return inst;
}

void Decoder::branch(std::string_view label) {
  emit(branchLanes).control = true;
  scopes.back().fixups.push_back({label, kernel.code.size() - 1, nullptr});
}

void Decoder::branchTable(std::string_view table, uint32_t index) {
  for (size_t i = scopes.size(); i-- > 0;) {
    auto found = scopes[i].tables.find(table);
    if (found == scopes[i].tables.end())
      continue;
    Inst &inst = emit(branchByTable);
    inst.control = true;
    inst.op[0] = index;
    inst.count = static_cast<uint16_t>(found->second.size());
    uint32_t *targets = list(std::vector<uint32_t>(found->second.size()));
    inst.list = targets;
    for (std::string_view label : found->second)
      scopes.back().fixups.push_back({label, kernel.code.size() - 1, targets++});
    return;
  }
  refuse("there is no table '" + std::string(table) + "'");
}

void Decoder::leave() {
  auto function = std::find_if(scopes.rbegin(), scopes.rend(), [](const Scope &scope) { return scope.isFunction; });
  if (calling.empty()) {
    emit(exitLanes).control = true;
    return;
  }
  emit(branchLanes).control = true;
  function->returns.push_back(kernel.code.size() - 1);
}

void Decoder::bind(const std::vector<PtxVariable> &formals, const Operand *arguments, Scope &scope) {
  size_t given = arguments == nullptr ? 0 : arguments->elements.size();
  if (given != formals.size())
    refuse("expected " + std::to_string(formals.size()) + " arguments, but got " + std::to_string(given));
  for (size_t i = 0; i < given; ++i) {
    std::optional<Place> place = variable(arguments->elements[i].name);
    if (!place || formals[i].space != "param")
      refuse("arguments that are not '.param'");
    scope.variables[formals[i].name] = *place;
  }
}

void Decoder::call(const Statement &statement) {
  const Operand *results = nullptr;
  const Operand *arguments = nullptr;
  std::string_view name;
  for (const Operand &operand : statement.operands) {
    if (operand.kind == Operand::Kind::List)
      (name.empty() ? results : arguments) = &operand;
    else if (name.empty())
      name = operand.name;
    else
      refuse("calls through a pointer");
  }
  const PtxFunction *callee = module.function(name);
  if (callee == nullptr)
    refuse("calls through a pointer");
  if (callee->name == "__assertfail") {
    emit(failAssertion);
    return;
  }
  if (callee->body.empty())
    refuse("there is no body of '" + std::string(name) + "'");
  if (std::find(calling.begin(), calling.end(), name) != calling.end())
    refuse("recursion");
  Scope scope;
  scope.isFunction = true;
  bind(callee->results, results, scope);
  bind(callee->parameters, arguments, scope);
  // Lanes whose guard does not hold jump over the function.
  size_t over = kernel.code.size();
  Inst &skip = emit(branchLanes);
  skip.control = true;
  skip.flip = ~skip.flip;
  Statement *caller = std::exchange(current, nullptr);
  calling.push_back(name);
  scopes.push_back(std::move(scope));
  decodeBody(callee->body);
  calling.pop_back();
  current = caller;
  kernel.code[over].target = static_cast<uint32_t>(kernel.code.size());
}

void Decoder::requireTarget(int architecture, bool exact) const {
  PtxTarget target = module.target();
  if (exact ? !target.exact || target.architecture != architecture : target.architecture < architecture)
    refuse("it needs the target sm_" + std::to_string(architecture) + (exact ? "a" : ""));
}

void Decoder::refuse(const std::string &reason) const {
  if (current != nullptr)
    current->refuse(reason);
  throw PtxError("kernel '" + kernel.name + "': " + reason);
}

} // namespace hone::emulation
