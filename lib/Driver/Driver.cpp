// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command line of `hone`: everything follows from the table of commands.

#include "hone/Driver/Driver.h"

#include "Command.h"
#include "FlagChecks.h"
#include "ProcessLimits.h"
#include "hone/InitAll.h"
#include "hone/cli/main.h"
#include "hone/io/mapped_faults.h"
#include "hone/io/temporary.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Signals.h"

using namespace mlir;
namespace cl = llvm::cl;

namespace hone {

static const Command *findCommand(StringRef name) {
  auto found = llvm::find_if(listCommands(), [&](const Command *command) { return command->name == name; });
  return found == listCommands().end() ? nullptr : *found;
}

/// Commands on artefacts are the runtime's own, but where the driver has one of the same name that is meant.
static bool isForRuntime(ArrayRef<std::string> words) {
  if (words.empty() || !cli::isRunCommand(words[0]))
    return false;
  const Command *command = findCommand(words[0]);
  return !command || (command->isForRuntime && command->isForRuntime(words.drop_front()));
}

static void printOverview(llvm::raw_ostream &os) {
  os << "usage: hone COMMAND [OPTIONS] FILE\n\ncommands\n";
  auto print = [&](StringRef name, StringRef summary) { os << llvm::formatv("  {0,-10}{1}\n", name, summary); };
  for (const Command *command : listCommands())
    print(command->name, command->summary);
  for (const cli::CommandSummary &command : cli::listRunCommands())
    if (!findCommand(command.name))
      print(command.name, command.summary);
  os << "\n'hone COMMAND --help' lists a command's options, 'hone --version' says the version; hone-run has the "
        "commands on "
        "artefacts where LLVM is absent.\n";
}

/// The overview, for words without a command; nothing if there is one.
static std::optional<int> runOverview(ArrayRef<std::string> words) {
  if (words.empty()) {
    printOverview(llvm::errs());
    return 1;
  }
  if (words[0] == "--version" || findCommand(words[0]))
    return std::nullopt;
  static const StringRef help[] = {"--help", "-h", "help"};
  if (!llvm::is_contained(help, words[0]))
    return fail("unknown command '" + words[0] + "'; 'hone --help' lists the commands");
  printOverview(llvm::outs());
  return closeOutput(0);
}

static bool parse(int argc, char **argv, std::string &errors) {
  llvm::raw_string_ostream stream(errors);
  return cl::ParseCommandLineOptions(argc, argv, "Hone: a compiler for transformer inference\n", &stream);
}

int runDriver(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  endWhereMemoryEnds();
  io::removeTemporariesOnInterrupt(llvm::sys::RunInterruptHandlers);
  io::endOnMappedFault("hone", llvm::sys::RunInterruptHandlers);
  std::vector<std::string> words(argv + 1, argv + argc);
  if (isForRuntime(words))
    return cli::runMain("hone", words);
  if (std::optional<int> status = runOverview(words))
    return *status;
  registerAllPasses();
  setVersionPrinter("hone");
  std::string errors;
  const Command *command = findCommand(words[0]);
  if (!command)
    return parse(argc, argv, errors) ? 0 : reportCommandLine(errors, words[0]);
  cl::SubCommand parsed(command->name, command->summary);
  OptionSet options(parsed);
  Command::Run run = command->declare(options);
  hideForeignOptions({&cl::SubCommand::getTopLevel(), &parsed});
  if (failed(checkOptions(words, parsed)))
    return 1;
  if (!parse(argc, argv, errors))
    return reportCommandLine(errors, words[0]);
  return failed(options.check()) ? 1 : run();
}

} // namespace hone
