// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A command of `hone`: Commands/<Name>.cpp defines k<Name>Command, and a row of Commands/CMakeLists.txt puts it into the table.

#ifndef HONE_LIB_DRIVER_COMMAND_H
#define HONE_LIB_DRIVER_COMMAND_H

#include "OptionSet.h"

#include "mlir/IR/MLIRContext.h"

namespace hone {

struct Command {
  /// Runs the command after its options were parsed; returns the exit status.
  using Run = std::function<int()>;

  llvm::StringRef name;
  llvm::StringRef summary; // one line of the overview
  /// Declares the options, which live as long as what is returned.
  Run (*declare)(OptionSet &set);
  /// Whether the command of this name that the runtime has is meant, by the words after the name; null: never.
  bool (*isForRuntime)(llvm::ArrayRef<std::string> words) = nullptr;
};

/// A command with the options `Options`, which are constructed with the set that they are declared in.
template <typename Options, int (*run)(Options &)>
constexpr Command makeCommand(llvm::StringRef name, llvm::StringRef summary,
                              bool (*isForRuntime)(llvm::ArrayRef<std::string> words) = nullptr) {
  auto declare = [](OptionSet &set) -> Command::Run {
    auto options = std::make_shared<Options>(set);
    return [options] { return run(*options); };
  };
  return {name, summary, declare, isForRuntime};
}

/// All commands, in the order of the overview.
llvm::ArrayRef<const Command *> listCommands();

/// Runs `action` on the model or file `input` in a context of its own, which prints its diagnostics. Returns the exit status.
int withContext(llvm::StringRef input, llvm::function_ref<llvm::LogicalResult(mlir::MLIRContext &)> action);

/// What was printed must have arrived: `status`, or that of a fault after a message.
int closeOutput(int status);

/// The last part of the name of `path`, with another ending.
std::string replaceEnding(llvm::StringRef path, llvm::StringRef ending);

} // namespace hone

#endif // HONE_LIB_DRIVER_COMMAND_H
