// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone-tokenize: text on standard input to token ids on standard output, or back.

#include "hone/io/descriptors.h"
#include "hone/io/printable.h"
#include "hone/text/tokenizer.h"

#include <cstdio>
#include <ctime>
#include <iostream>
#include <iterator>
#include <utility>

namespace {

constexpr const char *kUsage = "usage: hone-tokenize TOKENIZER.json [--decode] [--no-special] [--stats] < INPUT\n"
                               "  Reads documents separated by NUL and prints the ids of each on a line.\n"
                               "  --decode      reads lines of ids and prints their texts, separated by NUL\n"
                               "  --no-special  adds no special tokens; with --decode, leaves them out\n"
                               "  --stats       prints documents, bytes, tokens and processor time on standard error\n"
                               "  --version     prints the version\n";

struct Options {
  std::string file;
  bool decode = false, noSpecial = false, stats = false;
};

absl::Status parseOptions(int argc, char **argv, Options &options) {
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--decode")
      options.decode = true;
    else if (argument == "--no-special")
      options.noSpecial = true;
    else if (argument == "--stats")
      options.stats = true;
    else if (argument.starts_with("-"))
      return hone::io::invalid("unknown option '", argument, "'; --help lists the options");
    else if (!std::exchange(options.file, argument).empty())
      return hone::io::invalid("expected one TOKENIZER.json, but got several");
  }
  return options.file.empty() ? hone::io::invalid("expected TOKENIZER.json, but got none") : absl::OkStatus();
}

int fail(const absl::Status &status) {
  std::cerr << "hone-tokenize: error: " << hone::io::printable(hone::io::messageOf(status)) << "\n";
  return 1;
}

absl::StatusOr<std::vector<int32_t>> parseIds(std::string_view line) {
  std::vector<int32_t> ids;
  size_t position = 0;
  while ((position = line.find_first_not_of(' ', position)) != std::string_view::npos) {
    std::string_view word = line.substr(position, line.find(' ', position) - position);
    int64_t value = 0;
    for (char digit : word) {
      if (digit < '0' || digit > '9' || value > INT32_MAX)
        return hone::io::invalid("expected token ids from 0 to ", INT32_MAX, ", but got '", word, "'");
      value = value * 10 + (digit - '0');
    }
    if (value > INT32_MAX)
      return hone::io::invalid("expected token ids from 0 to ", INT32_MAX, ", but got '", word, "'");
    ids.push_back(static_cast<int32_t>(value));
    position += word.size();
  }
  return ids;
}

/// The output for one document; adds its tokens to `tokens`.
absl::StatusOr<std::string> process(const hone::text::Tokenizer &tokenizer, const Options &options,
                                    std::string_view record, size_t &tokens) {
  if (options.decode) {
    HONE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, parseIds(record));
    tokens += ids.size();
    return tokenizer.decode(ids, /*skipSpecialTokens=*/options.noSpecial);
  }
  HONE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer.encode(record, !options.noSpecial));
  tokens += ids.size();
  std::string line;
  for (int32_t id : ids)
    line += line.empty() ? std::to_string(id) : ' ' + std::to_string(id);
  return line;
}

int run(const Options &options, const std::string &input) {
  auto tokenizer = hone::text::Tokenizer::fromFile(options.file);
  if (!tokenizer.ok())
    return fail(tokenizer.status());
  const char inputEnd = options.decode ? '\n' : '\0', outputEnd = options.decode ? '\0' : '\n';
  size_t documents = 0, tokens = 0;
  std::clock_t ticks = 0;
  for (size_t begin = 0; begin < input.size() || documents == 0;) {
    size_t end = std::min(input.find(inputEnd, begin), input.size());
    std::clock_t start = std::clock();
    auto output = process(*tokenizer, options, std::string_view(input).substr(begin, end - begin), tokens);
    ticks += std::clock() - start;
    ++documents;
    if (!output.ok())
      return fail(absl::InvalidArgumentError(hone::io::cat("document ", documents, ": ", output.status().message())));
    std::cout << *output << outputEnd;
    begin = end + 1;
  }
  double seconds = static_cast<double>(ticks) / CLOCKS_PER_SEC;
  if (options.stats)
    std::fprintf(stderr, "%zu documents, %zu bytes, %zu tokens, %.3f s, %.1f MB/s\n", documents, input.size(), tokens,
                 seconds, static_cast<double>(input.size()) / 1e6 / seconds);
  return std::cout.flush() ? 0 : fail(absl::DataLossError("cannot write standard output"));
}

} // namespace

int main(int argc, char **argv) {
  hone::io::keepStandardStreams();
  Options options;
  std::string_view only = argc == 2 ? argv[1] : "";
  if (only == "--help" || only == "-h" || only == "--version") {
    std::cout << (only == "--version" ? "hone-tokenize " HONE_VERSION "\n" : kUsage);
    return std::cout.flush() ? 0 : fail(absl::DataLossError("cannot write standard output"));
  }
  if (absl::Status status = parseOptions(argc, argv, options); !status.ok())
    return fail(status);
  std::ios::sync_with_stdio(false);
  try {
    return run(options, std::string(std::istreambuf_iterator<char>(std::cin), {}));
  } catch (...) {
    return fail(hone::io::statusOfException());
  }
}
