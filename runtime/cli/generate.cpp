// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Generation at the command line: prompts in, tokens out.

#include "cli/generate.h"

#include "cli/commands.h"
#include "cli/progress.h"
#include "hone/io/npy.h"

#include <algorithm>
#include <cstdio>

namespace hone::cli {
namespace {

using io::invalid;
using Rows = std::vector<std::vector<int64_t>>;

/// Rows of unequal length end with `filler`.
absl::Status writeTokens(const std::string &path, const Rows &rows, int64_t filler) {
  size_t longest = 0;
  for (const std::vector<int64_t> &row : rows)
    longest = std::max(longest, row.size());
  std::vector<int64_t> shape = {static_cast<int64_t>(longest)};
  if (rows.size() != 1)
    shape.insert(shape.begin(), static_cast<int64_t>(rows.size()));
  HONE_ASSIGN_OR_RETURN(io::Array array, io::Array::create(HONE_I64, shape));
  std::span<int64_t> elements = array.as<int64_t>();
  std::ranges::fill(elements, filler);
  for (size_t row = 0; row < rows.size(); ++row)
    std::ranges::copy(rows[row], elements.begin() + static_cast<int64_t>(row * longest));
  return io::writeNpy(path, array);
}

void printTokens(const std::vector<int64_t> &tokens) {
  for (size_t i = 0; i < tokens.size(); ++i)
    std::printf("%s%lld", i ? " " : "", static_cast<long long>(tokens[i]));
  std::printf("\n");
}

void printStatistics(const rt::GenerationStatistics &statistics) {
  int64_t steps = std::max<int64_t>(statistics.newTokens - 1, 0);
  std::fprintf(stderr, "prompt: %lld tokens, first token after %.3f s\n",
               static_cast<long long>(statistics.promptTokens), statistics.firstTokenSeconds);
  std::fprintf(stderr, "new: %lld tokens, %.2f tokens a second\n", static_cast<long long>(statistics.newTokens),
               statistics.decodeSeconds > 0 ? static_cast<double>(steps) / statistics.decodeSeconds : 0.0);
}

absl::StatusOr<std::vector<int64_t>> continuePrompt(rt::LanguageModel &model, const std::vector<int64_t> &prompt,
                                                    const GenerateOptions &options,
                                                    const rt::GenerationOptions &generation) {
  model.session().state().reset();
  std::vector<int64_t> written;
  auto choose = [](std::span<const float> logits) -> absl::StatusOr<int64_t> { return rt::likeliestToken(logits); };
  auto receive = [&](int64_t token) -> absl::StatusOr<bool> {
    written.push_back(token);
    return true;
  };
  HONE_ASSIGN_OR_RETURN(rt::GenerationStatistics statistics, rt::generate(model, prompt, generation, choose, receive));
  if (options.statistics)
    printStatistics(statistics);
  return written;
}

} // namespace

absl::Status generateText(std::shared_ptr<const rt::Module> module, const GenerateOptions &options) {
  const io::Manifest &manifest = module->manifest();
  rt::GenerationOptions generation;
  generation.maximalNewTokens = options.maximalNewTokens;
  generation.prefillChunk = options.prefillChunk;
  if (!options.ignoreEnd)
    generation.endTokens = manifest.endTokens;
  int64_t filler = manifest.endTokens.empty() ? 0 : manifest.endTokens[0];
  HONE_ASSIGN_OR_RETURN(Rows prompts, readTokens(*options.tokens));
  HONE_ASSIGN_OR_RETURN(rt::LanguageModel model, rt::LanguageModel::open(module, static_cast<int>(options.threads)));
  Progress progress("prompts", static_cast<int64_t>(prompts.size()));
  Rows written;
  for (const std::vector<int64_t> &prompt : prompts) {
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> row, continuePrompt(model, prompt, options, generation));
    if (!options.outputTokens)
      printTokens(row);
    written.push_back(std::move(row));
    progress.update(static_cast<int64_t>(written.size()));
  }
  return options.outputTokens ? writeTokens(*options.outputTokens, written, filler) : absl::OkStatus();
}

} // namespace hone::cli
