// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of a command. A row declares one: its name, help, default, values and what it needs, bound to a field.

#ifndef HONE_LIB_DRIVER_OPTIONSET_H
#define HONE_LIB_DRIVER_OPTIONSET_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/LogicalResult.h"

#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hone {

/// A declared option. What its functions demand is checked where the option was given, in the order of the calls.
class OptionRow {
public:
  /// Why what was given cannot be, or an empty string.
  using Check = std::function<std::string()>;

  /// The values that it takes.
  OptionRow &oneOf(std::vector<llvm::StringRef> values);
  /// The whole numbers that it takes: from 1 to `most`.
  OptionRow &upTo(int64_t most = std::numeric_limits<int64_t>::max());
  /// `other`, as a user writes it, without which the option does nothing; `isThere` says whether it was given.
  OptionRow &needs(llvm::StringRef other, std::function<bool()> isThere);
  /// Anything else.
  OptionRow &check(Check why);
  /// It has to be given.
  OptionRow &required();

private:
  friend class OptionSet;

  /// Whether it was given, with a value.
  bool isGiven() const;
  /// As a user writes it: --name, or -n.
  std::string getName() const;
  std::string findFault() const;

  std::unique_ptr<llvm::cl::Option> option;
  std::function<std::string()> getText; // of the field
  std::vector<Check> checks;
  bool isRequired = false;
};

/// The options of one command. A field keeps what it has, its default, where its option is not given; it has to live as long as the set.
class OptionSet {
public:
  explicit OptionSet(llvm::cl::SubCommand &command) : command(command) {}

  OptionRow &add(llvm::StringRef name, bool &field, llvm::StringRef help);
  OptionRow &add(llvm::StringRef name, std::string &field, llvm::StringRef value, llvm::StringRef help);
  OptionRow &add(llvm::StringRef name, int64_t &field, llvm::StringRef value, llvm::StringRef help);
  OptionRow &add(llvm::StringRef name, std::optional<int64_t> &field, llvm::StringRef value, llvm::StringRef help);
  OptionRow &add(llvm::StringRef name, std::optional<double> &field, llvm::StringRef value, llvm::StringRef help);
  /// An option that may be given several times.
  OptionRow &add(llvm::StringRef name, std::vector<std::string> &field, llvm::StringRef value, llvm::StringRef help);
  /// What is no option: one file, or several.
  void addInput(std::string &field, llvm::StringRef help);
  void addInputs(std::vector<std::string> &field, llvm::StringRef help);

  /// After the command line was parsed: fails, after a message, where an option was given that cannot be.
  llvm::LogicalResult check() const;

private:
  OptionRow &addRow(std::unique_ptr<llvm::cl::Option> option, std::function<std::string()> getText);

  llvm::cl::SubCommand &command;
  std::deque<OptionRow> rows; // whose places do not change
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONSET_H
