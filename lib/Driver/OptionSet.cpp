// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's parser reads the values; what they have to be among each other is checked here. Fields are not the storage of the parser: the
// linker, which is a library with a command line of its own, resets all options of the process.

#include "OptionSet.h"

#include "FlagChecks.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
namespace cl = llvm::cl;

namespace hone {

OptionRow &OptionRow::oneOf(std::vector<StringRef> values) {
  return check([this, values = std::move(values)]() -> std::string {
    std::string text = getText();
    if (llvm::is_contained(values, text))
      return "";
    return "unsupported " + getName() + "=" + text + "; supported: " + llvm::join(values, ", ");
  });
}

OptionRow &OptionRow::upTo(int64_t most) {
  return check([this, most]() -> std::string {
    int64_t value = 0;
    if (!StringRef(getText()).getAsInteger(10, value) && value >= 1 && value <= most)
      return "";
    bool isBounded = most != std::numeric_limits<int64_t>::max();
    return "expected " + getName() + " to be a whole number " +
           (isBounded ? "from 1 to " + std::to_string(most) : std::string("of at least 1")) + ", but got " + getText();
  });
}

OptionRow &OptionRow::needs(StringRef other, std::function<bool()> isThere) {
  return check([this, other = other.str(), isThere = std::move(isThere)]() -> std::string {
    return isThere() ? "" : "expected " + other + " with " + getName();
  });
}

OptionRow &OptionRow::check(Check why) {
  checks.push_back(std::move(why));
  return *this;
}

OptionRow &OptionRow::required() {
  isRequired = true;
  return *this;
}

bool OptionRow::isGiven() const { return option->getNumOccurrences() > 0 && !getText().empty(); }

std::string OptionRow::getName() const { return (option->ArgStr.size() > 1 ? "--" : "-") + option->ArgStr.str(); }

std::string OptionRow::findFault() const {
  if (!isGiven())
    return isRequired ? "expected " + getName() + " " + option->ValueStr.str() : "";
  for (const Check &check : checks)
    if (std::string fault = check(); !fault.empty())
      return fault;
  return "";
}

OptionRow &OptionSet::addRow(std::unique_ptr<cl::Option> option, std::function<std::string()> getText) {
  OptionRow &row = rows.emplace_back();
  row.option = std::move(option);
  row.getText = std::move(getText);
  return row;
}

OptionRow &OptionSet::add(StringRef name, bool &field, StringRef help) {
  return addRow(std::make_unique<cl::opt<bool>>(name, cl::desc(help), cl::sub(command),
                                                cl::callback([&field](const bool &given) { field = given; })),
                [&field] { return std::string(field ? "true" : ""); });
}

OptionRow &OptionSet::add(StringRef name, std::string &field, StringRef value, StringRef help) {
  return addRow(
      std::make_unique<cl::opt<std::string>>(name, cl::desc(help), cl::value_desc(value), cl::sub(command),
                                             cl::callback([&field](const std::string &given) { field = given; })),
      [&field] { return field; });
}

OptionRow &OptionSet::add(StringRef name, int64_t &field, StringRef value, StringRef help) {
  return addRow(std::make_unique<cl::opt<int64_t>>(name, cl::desc(help), cl::value_desc(value), cl::sub(command),
                                                   cl::callback([&field](const int64_t &given) { field = given; })),
                [&field] { return std::to_string(field); });
}

OptionRow &OptionSet::add(StringRef name, std::optional<int64_t> &field, StringRef value, StringRef help) {
  return addRow(std::make_unique<cl::opt<int64_t>>(name, cl::desc(help), cl::value_desc(value), cl::sub(command),
                                                   cl::callback([&field](const int64_t &given) { field = given; })),
                [&field] { return field ? std::to_string(*field) : ""; });
}

OptionRow &OptionSet::add(StringRef name, std::optional<double> &field, StringRef value, StringRef help) {
  return addRow(std::make_unique<cl::opt<double>>(name, cl::desc(help), cl::value_desc(value), cl::sub(command),
                                                  cl::callback([&field](const double &given) { field = given; })),
                [&field] { return field ? std::to_string(*field) : ""; });
}

OptionRow &OptionSet::add(StringRef name, std::vector<std::string> &field, StringRef value, StringRef help) {
  return addRow(std::make_unique<cl::list<std::string>>(
                    name, cl::desc(help), cl::value_desc(value), cl::sub(command),
                    cl::callback([&field](const std::string &given) { field.push_back(given); })),
                [&field] { return llvm::join(field, ","); });
}

void OptionSet::addInput(std::string &field, StringRef help) {
  addRow(std::make_unique<cl::opt<std::string>>(cl::Positional, cl::desc(help), cl::sub(command),
                                                cl::callback([&field](const std::string &given) { field = given; })),
         [&field] { return field; });
}

void OptionSet::addInputs(std::vector<std::string> &field, StringRef help) {
  addRow(std::make_unique<cl::list<std::string>>(
             cl::Positional, cl::desc(help), cl::sub(command),
             cl::callback([&field](const std::string &given) { field.push_back(given); })),
         [&field] { return llvm::join(field, ","); });
}

LogicalResult OptionSet::check() const {
  for (const OptionRow &row : rows)
    if (std::string fault = row.findFault(); !fault.empty()) {
      fail(fault);
      return failure();
    }
  return success();
}

} // namespace hone
