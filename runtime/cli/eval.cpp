// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `eval`: perplexity in disjoint windows.

#include "hone/cli/eval.h"

#include "cli/commands.h"
#include "hone/cli/progress.h"

#include <cmath>
#include <cstdio>

namespace hone::cli {
namespace {

using io::invalid;

constexpr const char *kHelp = R"(usage: {program} eval MODEL.hone --tokens FILE.npy [OPTIONS]

Measures how well a language model predicts tokens. The file is cut into windows that do not overlap; each window of N
tokens predicts the N tokens that begin one later, from nothing but the window. What is left at the end is not used.

options
  --tokens FILE.npy   token ids: uint16, int32 or int64, of shape [n]
  --window N          tokens a window (default 512)
  --chunk N           feed a window in pieces of N tokens (default: at once), between which a model whose keys are bounded evicts
  --threads N         threads (default: one for each processor)
  --json              print one JSON object: {"perplexity": …, "loss": …, "tokens": …}

The loss is the mean of -log p(token), in nats; the perplexity is its exponential.
)";

struct EvalOptions {
  std::optional<std::string> tokens;
  int64_t window = 512, chunk = 0, threads = 0;
  bool json = false;
};

OptionParser parserFor(EvalOptions &options) {
  OptionParser parser;
  parser.text("tokens", options.tokens);
  parser.integer("window", options.window, 1);
  parser.integer("chunk", options.chunk, 1);
  parser.integer("threads", options.threads, 1, kMostThreads);
  parser.flag("json", options.json);
  return parser;
}

/// -log of the softmax at `target`, summed in double: windows are long and their sums are compared.
double lossOf(std::span<const float> logits, int64_t target) {
  double largest = -INFINITY, sum = 0;
  for (float logit : logits)
    largest = std::max(largest, static_cast<double>(logit));
  for (float logit : logits)
    sum += std::exp(logit - largest);
  return largest + std::log(sum) - logits[static_cast<size_t>(target)];
}

/// Sum of losses of the tokens that come after each of `fed`; `next` are those.
absl::StatusOr<double> lossAfter(rt::LanguageModel &model, std::span<const int64_t> fed,
                                 std::span<const int64_t> next) {
  const std::string &folder = model.session().module().folder();
  int64_t before = model.length();
  HONE_ASSIGN_OR_RETURN(io::Array logits, model.feed(fed));
  if (logits.shape()[1] != std::ssize(fed))
    return invalid(folder, ": expected logits for each of ", fed.size(), " tokens, but got ", logits.shape()[1],
                   ": a model that was exported with those of the last token only ", "cannot be evaluated");
  size_t vocabulary = static_cast<size_t>(logits.shape().back());
  double loss = 0;
  for (size_t i = 0; i < fed.size(); ++i) {
    if (next[i] < 0 || next[i] >= static_cast<int64_t>(vocabulary))
      return invalid("token ", next[i], " is outside the vocabulary of ", vocabulary);
    double one = lossOf(logits.as<float>().subspan(i * vocabulary, vocabulary), next[i]);
    if (std::isnan(one))
      return invalid(folder, ": the loss of the token after ", before + static_cast<int64_t>(i) + 1,
                     " others is not a number; does the model have so many positions?");
    loss += one;
  }
  return loss;
}

/// Of a window that is fed in pieces of `chunk` tokens; its last element is only predicted.
absl::StatusOr<double> windowLoss(rt::LanguageModel &model, std::span<const int64_t> window, size_t chunk) {
  model.session().state().reset();
  double loss = 0;
  for (size_t first = 0; first + 1 < window.size(); first += chunk) {
    size_t count = std::min(chunk, window.size() - 1 - first);
    HONE_ASSIGN_OR_RETURN(double sum, lossAfter(model, window.subspan(first, count), window.subspan(first + 1, count)));
    loss += sum;
  }
  return loss;
}

absl::StatusOr<Evaluation> evaluate(rt::LanguageModel &model, const EvaluationTokens &tokens) {
  auto window = static_cast<size_t>(tokens.window),
       chunk = tokens.chunk > 0 ? static_cast<size_t>(tokens.chunk) : window;
  int64_t windows = (static_cast<int64_t>(tokens.ids.size()) - 1) / tokens.window;
  Progress progress("evaluating windows", windows);
  double loss = 0;
  for (int64_t i = 0; i < windows; ++i) {
    HONE_ASSIGN_OR_RETURN(
        double sum,
        windowLoss(model, std::span(tokens.ids).subspan(static_cast<size_t>(i) * window, window + 1), chunk));
    loss += sum;
    progress.update(i + 1);
  }
  int64_t count = windows * tokens.window;
  double mean = loss / static_cast<double>(count);
  return Evaluation{std::exp(mean), mean, count};
}

absl::Status runEval(std::span<const std::string> arguments) {
  EvalOptions options;
  std::vector<std::string> positionals;
  HONE_RETURN_IF_ERROR(parserFor(options).parse(arguments, positionals));
  HONE_ASSIGN_OR_RETURN(std::string path, onlyModel(positionals));
  if (!options.tokens)
    return invalid("expected --tokens FILE.npy");
  HONE_ASSIGN_OR_RETURN(EvaluationTokens tokens, readEvaluationTokens(*options.tokens, options.window));
  tokens.chunk = options.chunk;
  HONE_ASSIGN_OR_RETURN(Evaluation found, runEvaluation(path, tokens, static_cast<int>(options.threads)));
  const char *format = options.json ? "{\"perplexity\": %.6f, \"loss\": %.6f, \"tokens\": %lld}\n"
                                    : "perplexity %.6f, loss %.6f on %lld tokens\n";
  std::printf(format, found.perplexity, found.loss, static_cast<long long>(found.tokens));
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<EvaluationTokens> readEvaluationTokens(const std::string &file, int64_t window) {
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> ids, readTokenRow(file));
  if (std::ssize(ids) <= window)
    return invalid(file, ": expected at least ", window, " tokens and one more, but got ", ids.size());
  return EvaluationTokens{std::move(ids), window};
}

absl::StatusOr<Evaluation> runEvaluation(const std::string &artefact, const EvaluationTokens &tokens, int threads) {
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const rt::Module> module, loadModule(artefact));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<rt::Session> session, rt::openLanguageSession(module, threads));
  HONE_ASSIGN_OR_RETURN(rt::LanguageModel model, rt::LanguageModel::over(*session));
  return evaluate(model, tokens);
}

extern const Command kEvalCommand = {"eval", "perplexity of a language model on tokens", kHelp, runEval, [] {
                                       EvalOptions options;
                                       return parserFor(options).names();
                                     }};

} // namespace hone::cli
