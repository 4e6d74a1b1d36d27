// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Options of a command: `--name value`, `--name=value`, `--flag`, and what is no option.

#ifndef HONE_RUNTIME_CLI_OPTIONS_H
#define HONE_RUNTIME_CLI_OPTIONS_H

#include "hone/io/status.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace hone::cli {

/// Binds names to variables, then parses. Each call adds an option; variables keep their value where it is not given.
class OptionParser {
public:
  void flag(std::string_view name, bool &target);
  void text(std::string_view name, std::optional<std::string> &target);
  void texts(std::string_view name, std::vector<std::string> &target);
  void integer(std::string_view name, int64_t &target, int64_t smallest, int64_t largest = INT64_MAX);
  void number(std::string_view name, double &target, double smallest, double largest);

  /// Fills the variables; what is no option goes to `positionals` in order. `-o` stands for `--output`, where that is an option.
  absl::Status parse(std::span<const std::string> arguments, std::vector<std::string> &positionals) const;

  std::vector<std::string> names() const;

private:
  struct Option {
    std::string name;
    bool takesValue;
    std::function<absl::Status(std::string_view value)> set;
  };
  absl::Status parseOption(std::span<const std::string> arguments, size_t &i) const;

  std::vector<Option> options;
};

/// The parts of a list with commas, empty ones included.
std::vector<std::string> splitList(std::string_view list);

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_OPTIONS_H
