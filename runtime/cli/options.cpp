// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parsing of options.

#include "cli/options.h"

#include <algorithm>
#include <charconv>

namespace hone::cli {
namespace {

using io::invalid;

constexpr std::string_view kOutput = "output", kShortOutput = "-o";

template <typename Number>
absl::Status parseNumber(const std::string &name, std::string_view value, Number smallest, Number largest,
                         std::string_view kind, Number &target) {
  Number parsed = 0;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  // Written so that NaN is refused.
  bool good = error == std::errc() && end == value.data() + value.size() && parsed >= smallest && parsed <= largest;
  if (!good)
    return invalid("expected --", name, " to be ", kind, ", but got '", value, "'");
  target = parsed;
  return absl::OkStatus();
}

} // namespace

void OptionParser::flag(std::string_view name, bool &target) {
  options.push_back({std::string(name), false, [&target](std::string_view) {
                       target = true;
                       return absl::OkStatus();
                     }});
}

void OptionParser::text(std::string_view name, std::optional<std::string> &target) {
  options.push_back({std::string(name), true, [&target](std::string_view value) {
                       target = std::string(value);
                       return absl::OkStatus();
                     }});
}

void OptionParser::texts(std::string_view name, std::vector<std::string> &target) {
  options.push_back({std::string(name), true, [&target](std::string_view value) {
                       target.emplace_back(value);
                       return absl::OkStatus();
                     }});
}

void OptionParser::integer(std::string_view name, int64_t &target, int64_t smallest, int64_t largest) {
  std::string own(name);
  std::string kind = io::cat("a whole number of at least ", smallest);
  if (largest != INT64_MAX)
    kind = io::cat("a whole number from ", smallest, " to ", largest);
  options.push_back({own, true, [=, &target](std::string_view value) {
                       return parseNumber(own, value, smallest, largest, kind, target);
                     }});
}

void OptionParser::number(std::string_view name, double &target, double smallest, double largest) {
  std::string own(name);
  char kind[64];
  std::snprintf(kind, sizeof kind, "a number from %g to %g", smallest, largest);
  options.push_back({own, true, [=, text = std::string(kind), &target](std::string_view value) {
                       return parseNumber(own, value, smallest, largest, text, target);
                     }});
}

absl::Status OptionParser::parse(std::span<const std::string> arguments, std::vector<std::string> &positionals) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    bool isOutput = arguments[i] == kShortOutput && std::ranges::count(options, kOutput, &Option::name) > 0;
    if (arguments[i].starts_with("--") || isOutput)
      HONE_RETURN_IF_ERROR(parseOption(arguments, i));
    else if (arguments[i].size() > 1 && arguments[i][0] == '-')
      return invalid("unknown option '", arguments[i], "'; options begin with two dashes");
    else
      positionals.push_back(arguments[i]);
  }
  return absl::OkStatus();
}

absl::Status OptionParser::parseOption(std::span<const std::string> arguments, size_t &i) const {
  std::string_view argument = arguments[i];
  size_t equals = argument.find('=');
  std::string_view name = argument.substr(2, equals == std::string_view::npos ? equals : equals - 2);
  if (argument == kShortOutput)
    name = kOutput;
  auto option = std::ranges::find(options, name, &Option::name);
  if (option == options.end())
    return invalid("unknown option '--", name, "'; --help lists the options");
  if (!option->takesValue)
    return equals == std::string_view::npos ? option->set("") : invalid("option --", name, " takes no value");
  if (equals != std::string_view::npos)
    return option->set(argument.substr(equals + 1));
  if (i + 1 == arguments.size())
    return invalid("option --", name, " needs a value");
  return option->set(arguments[++i]);
}

std::vector<std::string> OptionParser::names() const {
  std::vector<std::string> list;
  for (const Option &option : options)
    list.push_back(option.name);
  return list;
}

std::vector<std::string> splitList(std::string_view list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size();) {
    size_t end = std::min(list.find(',', begin), list.size());
    parts.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

} // namespace hone::cli
