// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Generation at the command line: prompts in, text or tokens out.

#include "cli/generate.h"

#include "cli/arrays.h"
#include "cli/commands.h"
#include "cli/encoder_inputs.h"
#include "core/communicator.h"
#include "core/saved_state.h"
#include "generate/batch.h"
#include "hone/cli/progress.h"
#include "hone/io/npy.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <unistd.h>

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

using Drafters = std::span<rt::Speculation *const>;

/// What drafters of all texts did, by source.
std::vector<rt::DraftCounts> addCounts(Drafters drafters) {
  std::vector<rt::DraftCounts> sums(drafters.front()->counts().size());
  for (const rt::Speculation *each : drafters)
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i].verified += each->counts()[i].verified;
      sums[i].accepted += each->counts()[i].accepted;
    }
  return sums;
}

void printSpeculation(const rt::GenerationStatistics &statistics, int64_t steps, Drafters drafters) {
  const rt::SpeculationStatistics &drafts = statistics.speculation;
  std::fprintf(stderr, "speculation: %lld passes, %.2f tokens a pass, %lld of %lld drafted tokens accepted\n",
               static_cast<long long>(statistics.passes),
               statistics.passes > 0 ? static_cast<double>(steps) / static_cast<double>(statistics.passes) : 0.0,
               static_cast<long long>(drafts.accepted), static_cast<long long>(drafts.drafted));
  std::fprintf(stderr, "speculation: %.3f s to draft, %.3f s to verify, %.3f s to commit\n", drafts.draftSeconds,
               drafts.verifySeconds, drafts.commitSeconds);
  if (drafters.front()->usesModel())
    return;
  std::vector<rt::DraftCounts> counts = addCounts(drafters);
  for (size_t i = 0; i < counts.size(); ++i)
    std::fprintf(stderr, "drafts of %s: %lld tokens verified, %lld accepted\n",
                 nameOf(drafters.front()->settings().sources[i]), static_cast<long long>(counts[i].verified),
                 static_cast<long long>(counts[i].accepted));
}

/// Of `texts` texts, whose drafters there are, or none.
void printStatistics(const rt::GenerationStatistics &statistics, size_t texts, Drafters drafters) {
  int64_t steps = std::max<int64_t>(statistics.newTokens - static_cast<int64_t>(texts), 0);
  std::fprintf(stderr, "prompt: %lld tokens, first token after %.3f s\n",
               static_cast<long long>(statistics.promptTokens), statistics.firstTokenSeconds);
  std::fprintf(stderr, "new: %lld tokens, %.2f tokens a second\n", static_cast<long long>(statistics.newTokens),
               statistics.decodeSeconds > 0 ? static_cast<double>(steps) / statistics.decodeSeconds : 0.0);
  if (!drafters.empty())
    printSpeculation(statistics, steps, drafters);
}

/// The state after a prompt depends on its context, and drafts of several texts on each other.
absl::Status checkPromptCache(const GenerateOptions &options) {
  for (const auto &[name, isGiven] :
       {std::pair("--context", options.context.has_value()), std::pair("--batch", options.batch > 1)})
    if (options.promptCache && isGiven)
      return invalid("unsupported ", name, " with --prompt-cache");
  return absl::OkStatus();
}

/// What goes with --batch; the text of several cannot be shown as it comes.
absl::Status checkBatch(const GenerateOptions &options) {
  if (options.batch == 1)
    return absl::OkStatus();
  if (!options.tokens)
    return invalid("expected --tokens with --batch=", options.batch, ", but got another prompt");
  if (options.context)
    return invalid("unsupported --context with --batch=", options.batch);
  return absl::OkStatus();
}

absl::Status checkEncoder(const rt::Module &module, const GenerateOptions &options) {
  for (const auto &[name, isGiven] :
       {std::pair("--prompt-cache", options.promptCache.has_value()), std::pair("--batch", options.batch > 1)})
    if (isGiven && runsEncoder(module, options))
      return invalid("unsupported ", name, " with a model that has an encoder");
  if (options.batch > 1 && module.manifest().features) // sessions with context cannot be joined
    return invalid("unsupported --batch with a model that reads features");
  return absl::OkStatus();
}

/// One prompt, and what becomes of its continuation.
class Continuation {
public:
  Continuation(rt::LanguageModel &model, const text::Tokenizer *tokenizer, const GenerateOptions &options)
      : model(model), tokenizer(tokenizer), options(options) {}

  absl::StatusOr<std::vector<int64_t>> write(const TextBeginning &beginning) {
    std::vector<int64_t> prompt = beginning.tokens;
    HONE_ASSIGN_OR_RETURN(held, holdPrompt(prompt));
    if (beginning.encoder)
      HONE_RETURN_IF_ERROR(model.session().encode(viewsOf(*beginning.encoder)));
    if (beginning.encoder && prompt.empty()) {
      HONE_ASSIGN_OR_RETURN(prompt, rt::chooseStart(model));
    }
    HONE_ASSIGN_OR_RETURN(prompt, model.placeFeatures(prompt));
    std::vector<int64_t> written;
    auto receive = [&](int64_t token, std::string_view piece) -> absl::StatusOr<bool> {
      if (token != rt::kNoToken)
        written.push_back(token);
      if (printsText())
        print(piece);
      return true;
    };
    absl::StatusOr<rt::GenerationStatistics> statistics = writeWithProgress(prompt, receive);
    bool hasOutput = statistics.ok() || !written.empty(); // what was written before a failure too
    if (hasOutput && printsText())
      print("\n");
    else if (hasOutput && !options.outputTokens)
      printTokens(written);
    HONE_RETURN_IF_ERROR(statistics.status());
    HONE_RETURN_IF_ERROR(saveText(prompt, written));
    if (options.statistics && options.promptCache)
      std::fprintf(stderr, "prompt: %lld tokens of %s\n", static_cast<long long>(held), options.promptCache->c_str());
    if (options.statistics && rt::isFirstRank())
      printStatistics(*statistics, /*texts=*/1,
                      Drafters(&options.writing.speculation, options.writing.speculation ? 1 : 0));
    return written;
  }

private:
  /// Lets the model have what the cache has of the prompt, at most all but its last token; returns how many tokens these are.
  absl::StatusOr<int64_t> holdPrompt(const std::vector<int64_t> &prompt) {
    rt::State &state = model.session().state();
    state.reset();
    std::error_code none;
    if (!options.promptCache || prompt.empty() || !std::filesystem::exists(*options.promptCache, none))
      return 0;
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> saved, rt::restoreState(*options.promptCache, model.session()));
    size_t most = std::min(saved.size(), prompt.size() - 1);
    auto common =
        std::mismatch(saved.begin(), saved.begin() + static_cast<std::ptrdiff_t>(most), prompt.begin()).first -
        saved.begin();
    bool canDrop = common == std::ssize(saved) || !state.findWithoutHistory();
    if (common == 0 || !canDrop) {
      state.reset();
      return 0;
    }
    HONE_RETURN_IF_ERROR(state.truncate(common));
    return common;
  }

  /// Writes the state, which has all tokens but the last ones that were received.
  absl::Status saveText(std::vector<int64_t> text, const std::vector<int64_t> &written) {
    if (!options.promptCache)
      return absl::OkStatus();
    text.insert(text.end(), written.begin(), written.end());
    text.resize(static_cast<size_t>(std::min(model.length(), std::ssize(text))));
    return rt::saveState(*options.promptCache, model.session(), text);
  }

  /// Shows how far the prompt is read until the first token comes.
  absl::StatusOr<rt::GenerationStatistics> writeWithProgress(const std::vector<int64_t> &prompt,
                                                             const rt::PieceReceiver &receive) {
    std::optional<Progress> progress(std::in_place, "reading the prompt", std::ssize(prompt) - held);
    rt::WritingOptions writing = options.writing;
    writing.generation.promptHeld = held;
    writing.generation.onPromptFed = [&](int64_t tokens) { progress->update(tokens); };
    return rt::writeText(model, tokenizer, prompt, writing, [&](int64_t token, std::string_view piece) {
      progress.reset();
      return receive(token, piece);
    });
  }

  /// Text goes in as text and comes out as text, tokens as tokens.
  bool printsText() const { return tokenizer && !options.tokens; }

  /// What a vocabulary holds must not control a terminal; a file or a pipe gets the text as it is.
  static void print(std::string_view text) {
    static const bool isTerminal = isatty(STDOUT_FILENO);
    std::string shown = isTerminal ? io::printableText(text) : std::string(text);
    std::fwrite(shown.data(), 1, shown.size(), stdout);
    std::fflush(stdout);
  }

  rt::LanguageModel &model;
  const text::Tokenizer *tokenizer;
  const GenerateOptions &options;
  int64_t held = 0; // of the prompt, by the cache
};

/// Goes on after one prompt after the other.
absl::StatusOr<Rows> writeEach(rt::LanguageModel &model, const text::Tokenizer *tokenizer,
                               const std::vector<TextBeginning> &beginnings, GenerateOptions &options) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<OpenSpeculation> speculation, options.speculation.open(model, options.threads));
  options.writing.speculation = speculation ? speculation->drafters.get() : nullptr;
  Continuation continuation(model, tokenizer, options);
  Progress progress("prompts", std::ssize(beginnings));
  Rows written;
  for (const TextBeginning &beginning : beginnings) {
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> row, continuation.write(beginning));
    written.push_back(std::move(row));
    if (beginnings.size() > 1)
      progress.update(static_cast<int64_t>(written.size()));
  }
  return written;
}

/// Goes on after prompts, several at a time. Drafters of the first of each time know what it wrote before, and so on.
absl::StatusOr<Rows> writeBatches(rt::LanguageModel &model, const text::Tokenizer *tokenizer,
                                  const std::vector<TextBeginning> &beginnings, GenerateOptions &options) {
  Rows prompts;
  for (const TextBeginning &beginning : beginnings)
    prompts.push_back(beginning.tokens);
  std::vector<std::unique_ptr<OpenSpeculation>> speculations;
  std::vector<rt::Speculation *> drafters;
  while (!options.speculation.options.sources.empty() && std::ssize(drafters) < options.batch) {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<OpenSpeculation> own, options.speculation.open(model, options.threads));
    drafters.push_back(own->drafters.get());
    speculations.push_back(std::move(own));
  }
  Progress progress("prompts", std::ssize(prompts));
  Rows written;
  while (written.size() < prompts.size()) {
    auto next = std::span(prompts).subspan(written.size());
    next = next.first(std::min(next.size(), static_cast<size_t>(options.batch)));
    Drafters ofNext = Drafters(drafters).first(std::min(drafters.size(), next.size()));
    HONE_ASSIGN_OR_RETURN(rt::BatchTexts texts,
                          rt::generateBatch(model.session(), tokenizer, next, options.writing, ofNext));
    for (std::vector<int64_t> &tokens : texts.tokens) {
      if (!options.outputTokens)
        printTokens(tokens);
      written.push_back(std::move(tokens));
    }
    if (options.statistics)
      printStatistics(texts.statistics, next.size(), ofNext);
    progress.update(std::ssize(written));
  }
  return written;
}

/// Gives the session the arrays of a .npz as its context.
absl::Status setContext(rt::Session &session, const std::string &path) {
  HONE_ASSIGN_OR_RETURN(io::NpzReader file, io::NpzReader::open(path));
  HONE_ASSIGN_OR_RETURN(NamedArrays arrays,
                        readArrays(file, "", [&](std::string_view name) { return session.checkContextName(name); }));
  adoptTypes(arrays, session.entry().inputs);
  return session.setContext(viewsOf(arrays));
}

} // namespace

absl::StatusOr<std::vector<int64_t>> readPrompt(const GenerateOptions &options, const text::Tokenizer &tokenizer) {
  std::string prompt = options.prompt.value_or("");
  if (options.promptFile) {
    HONE_ASSIGN_OR_RETURN(prompt, io::readFile(*options.promptFile));
  }
  return rt::encodePrompt(tokenizer, prompt);
}

absl::Status generateText(std::shared_ptr<const rt::Module> module, GenerateOptions options) {
  HONE_RETURN_IF_ERROR(checkBatch(options));
  HONE_RETURN_IF_ERROR(checkPromptCache(options));
  const std::vector<int64_t> &endTokens = module->manifest().generation.endTokens;
  options.writing.generation.rules = module->manifest().generation.rules;
  if (!options.ignoreEnd)
    options.writing.generation.endTokens = endTokens;
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const text::Tokenizer> tokenizer, rt::loadTokenizer(*module));
  HONE_RETURN_IF_ERROR(checkEncoder(*module, options));
  HONE_ASSIGN_OR_RETURN(std::vector<TextBeginning> beginnings, readBeginnings(*module, tokenizer.get(), options));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<rt::Session> session,
                        rt::openLanguageSession(module, static_cast<int>(options.threads), options.kvOffload));
  if (options.promptCache)
    HONE_RETURN_IF_ERROR(rt::checkSavable(*options.promptCache, *session));
  if (options.context)
    HONE_RETURN_IF_ERROR(setContext(*session, *options.context));
  HONE_ASSIGN_OR_RETURN(rt::LanguageModel model, rt::LanguageModel::over(*session));
  HONE_ASSIGN_OR_RETURN(Rows written, options.batch > 1 ? writeBatches(model, tokenizer.get(), beginnings, options)
                                                        : writeEach(model, tokenizer.get(), beginnings, options));
  bool writes = options.outputTokens && rt::isFirstRank();
  return writes ? writeTokens(*options.outputTokens, written, endTokens.empty() ? 0 : endTokens[0]) : absl::OkStatus();
}

} // namespace hone::cli
