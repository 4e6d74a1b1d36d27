// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One sentence where LLVM's parser has two lines, a guess, or options that are not ours.

#include "FlagChecks.h"

using namespace mlir;
namespace cl = llvm::cl;

namespace hone {

void hideForeignOptions(ArrayRef<cl::SubCommand *> commands) {
  for (cl::SubCommand *command : commands)
    for (auto &option : command->OptionsMap) {
      bool ours = command != &cl::SubCommand::getTopLevel() &&
                  !llvm::is_contained(option.second->Subs, &cl::SubCommand::getAll());
      if (!ours && option.first != "help" && option.first != "version")
        option.second->setHiddenFlag(cl::ReallyHidden);
    }
}

LogicalResult checkOptions(ArrayRef<std::string> words, const cl::SubCommand &command) {
  for (size_t i = 1; i < words.size(); ++i) {
    StringRef word = words[i], name = word.ltrim('-').split('=').first;
    if (!word.starts_with("-") || word == "-")
      continue;
    auto option = command.OptionsMap.find(name);
    bool isKnown = option != command.OptionsMap.end() || llvm::is_contained({"h", "help", "help-hidden"}, name);
    if (!isKnown) {
      fail("unknown option '" + word.split('=').first + "'; 'hone " + words[0] + " --help' lists the options");
      return failure();
    }
    bool takesNext = option != command.OptionsMap.end() && !word.contains('=') &&
                     option->second->getValueExpectedFlag() == cl::ValueRequired;
    if (takesNext && ++i == words.size()) {
      fail("option '" + word + "' needs a value");
      return failure();
    }
  }
  return success();
}

int reportCommandLine(StringRef errors, StringRef command) {
  if (errors.contains("Too many positional arguments"))
    return fail("expected one model, but got several; 'hone " + command + " --help' lists the options");
  StringRef line = errors.split('\n').first.split("  Try: ").first;
  line.consume_front("hone: ");
  return line.empty() ? 1 : fail(line.rtrim(".! "));
}

} // namespace hone
