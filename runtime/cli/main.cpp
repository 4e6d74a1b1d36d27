// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finding the command, help, exit codes.

#include "hone/cli/main.h"

#include "cli/commands.h"
#include "core/communicator.h"
#include "hone/io/npy.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace hone::cli {

#define HONE_COMMAND(name) extern const Command k##name##Command;
#include "cli/commands.inc"
#undef HONE_COMMAND

namespace {

constexpr int kFault = 1, kBug = 2;

const Command *findCommand(const std::string &name) {
  auto commands = listCommands();
  auto found = std::ranges::find_if(commands, [&](const Command *command) { return name == command->name; });
  return found == commands.end() ? nullptr : *found;
}

/// What was printed must have arrived.
int closeOutput(const std::string &program, int status) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return status;
  std::fprintf(stderr, "%s: cannot write standard output: %s\n", program.c_str(), std::strerror(errno));
  return kFault;
}

/// Prints `text` with "{program}" replaced.
void printHelp(std::FILE *stream, std::string text, const std::string &program) {
  constexpr std::string_view placeholder = "{program}";
  for (size_t place; (place = text.find(placeholder)) != std::string::npos;)
    text.replace(place, placeholder.size(), program);
  std::fputs(text.c_str(), stream);
}

void printOverview(std::FILE *stream, const std::string &program) {
  constexpr int column = 10;
  std::fprintf(stream, "usage: %s COMMAND FILE [OPTIONS]\n\ncommands\n", program.c_str());
  for (const Command *command : listCommands())
    std::fprintf(stream, "  %-*s%s\n", column, command->name, command->summary);
  std::fprintf(stream, "\n'%s COMMAND --help' lists a command's options, '%s --version' says the version.\n",
               program.c_str(), program.c_str());
}

bool asksForHelp(const std::vector<std::string> &arguments) {
  return std::ranges::any_of(arguments, [](const std::string &word) { return word == "--help" || word == "-h"; });
}

int report(const std::string &program, const absl::Status &status) {
  if (status.ok())
    return 0;
  rt::Communicator *ranks = rt::Communicator::current();
  std::string message = io::printable(io::messageOf(status));
  if (!ranks || ranks->speaks()) {
    char rank[32] = "";
    if (ranks && ranks->rank() > 0)
      std::snprintf(rank, sizeof rank, "rank %lld: ", static_cast<long long>(ranks->rank()));
    // One call, so that others who write to the stream cannot come between; and no memory, which may be what is missing.
    std::fprintf(stderr, "%s: %s%s\n", program.c_str(), rank, message.c_str());
  }
  if (status.code() != absl::StatusCode::kInternal)
    return kFault;
  std::fprintf(stderr, "%s: this is a bug in Hone; please report it with the command and the model\n", program.c_str());
  return kBug;
}

/// What a command throws is a status as well.
absl::Status runGuarded(const Command &command, std::span<const std::string> arguments) {
  try {
    return command.run(arguments);
  } catch (...) {
    return io::statusOfException();
  }
}

/// Other processes may wait for one that has failed.
int leaveRanks(int status) {
  rt::Communicator *ranks = rt::Communicator::current();
  if (ranks && status != 0)
    ranks->fail();
  if (ranks)
    ranks->leave();
  return status;
}

} // namespace

std::span<const Command *const> listCommands() {
  static const Command *const commands[] = {
#define HONE_COMMAND(name) &k##name##Command,
#include "cli/commands.inc"
#undef HONE_COMMAND
  };
  return commands;
}

std::vector<CommandSummary> listRunCommands() {
  std::vector<CommandSummary> summaries;
  for (const Command *command : listCommands())
    summaries.push_back({command->name, command->summary});
  return summaries;
}

bool isRunCommand(const std::string &command) { return findCommand(command) != nullptr; }

int runMain(const std::string &program, const std::vector<std::string> &arguments) {
  if (arguments.size() == 1 && arguments[0] == "--version") {
    std::printf("%s %s\n", program.c_str(), HONE_VERSION);
    return closeOutput(program, 0);
  }
  const Command *command = arguments.empty() ? nullptr : findCommand(arguments[0]);
  if (!command) {
    bool helps = asksForHelp(arguments);
    if (!arguments.empty() && !helps)
      std::fprintf(stderr, "%s: unknown command '%s'; '%s --help' lists the commands\n", program.c_str(),
                   io::printable(arguments[0]).c_str(), program.c_str());
    else
      printOverview(helps ? stdout : stderr, program);
    return helps ? closeOutput(program, 0) : kFault;
  }
  if (asksForHelp(arguments)) {
    printHelp(stdout, command->help, program);
    return closeOutput(program, 0);
  }
  int status = report(program, runGuarded(*command, std::span(arguments).subspan(1)));
  return leaveRanks(status == 0 ? closeOutput(program, status) : status);
}

absl::StatusOr<std::shared_ptr<const rt::Module>> loadModule(const std::string &path, rt::Profile *profile) {
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const rt::Module> module, rt::Module::load(path, profile));
  if (!rt::isFirstRank() && !std::freopen("/dev/null", "w", stdout))
    return io::invalid("cannot write /dev/null: ", std::strerror(errno));
  return module;
}

absl::StatusOr<std::string> onlyModel(const std::vector<std::string> &positionals) {
  if (positionals.size() != 1)
    return io::invalid("expected one MODEL.hone, but got ", positionals.size());
  return positionals[0];
}

absl::StatusOr<std::vector<std::vector<int64_t>>> readTokens(const std::string &path) {
  HONE_ASSIGN_OR_RETURN(io::Array array, io::readNpy(path));
  std::vector<int64_t> all;
  auto take = [&](auto elements) { all.assign(elements.begin(), elements.end()); };
  switch (array.dtype()) {
  case HONE_U16:
    take(array.as<uint16_t>());
    break;
  case HONE_I32:
    take(array.as<int32_t>());
    break;
  case HONE_I64:
    take(array.as<int64_t>());
    break;
  default:
    return io::invalid(path, ": unsupported type of tokens ", io::dtypeName(array.dtype()),
                       "; supported: u16, i32, i64");
  }
  if (array.rank() != 1 && array.rank() != 2)
    return io::invalid(path, ": expected tokens of shape [n] or [rows, n], but got ", io::shapeText(array.shape()));
  int64_t rows = array.rank() == 2 ? array.shape()[0] : 1, size = array.shape().back();
  if (rows > 1 && size == 0) // no bytes of the file stand for them
    return io::invalid(path, ": expected rows of at least one token, but got ", io::shapeText(array.shape()));
  std::vector<std::vector<int64_t>> split;
  for (int64_t row = 0; row < rows; ++row)
    split.emplace_back(all.begin() + row * size, all.begin() + (row + 1) * size);
  return split;
}

absl::StatusOr<std::vector<int64_t>> readTokenRow(const std::string &path) {
  HONE_ASSIGN_OR_RETURN(auto rows, readTokens(path));
  if (rows.size() != 1)
    return io::invalid(path, ": expected one row of tokens, but got ", rows.size());
  return std::move(rows[0]);
}

} // namespace hone::cli
