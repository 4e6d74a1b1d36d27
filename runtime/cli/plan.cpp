// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `plan`: how much to prune, and how long to train on.

#include "plan/plan.h"
#include "cli/commands.h"
#include "hone/io/file.h"
#include "io/json.h"

#include <algorithm>
#include <cmath>

namespace hone::cli {
namespace {

using io::invalid;

constexpr const char *kHelp = R"(usage: {program} plan POINTS.jsonl [OPTIONS]

Fits the P2 law to measured losses of pruned models after post-training, for each kind of sparsity, and says which rates and
how many tokens reach a loss:

  L = L0 + rate^-gamma * N0^-delta * (N_C / N0^alpha + D_C / D^beta + E)

POINTS.jsonl has a JSON object a line, a measured loss: {"kind": "structured", "parameters": N0, "rate": 0.25,
"tokens": D, "dense_loss": L0, "loss": L}, where N0 and L0 are those of the model before pruning. Kinds are names. Exponents
that the points do not tell apart (gamma of one rate, delta of one model) are 0. 'hone plan --probe MODEL.onnx' of the compiler measures
points ('hone plan --probe --help').

options
  --target-loss L    how many tokens reach this loss, at each rate
  --budget N         the loss after N tokens, at each rate; with --target-loss also the largest rate that reaches it
  --rates R,R,...    rates to answer for (default: those of the points)
  --parameters N     parameters of the model to prune (default: those of the points, where they are of one model)
  --dense-loss L     its loss (default: that of the points of so many parameters)
  --flat-gain L      a curve is flat where twice the tokens gain less loss than this (default 0.01)
  --seed N           seed of starts and of the bootstrap (default 0)
  --json             print one JSON object: {"kinds": [...]}

Intervals in brackets are from the 5th to the 95th percentile of 200 fits of runs drawn with replacement. What lies outside of the
points is marked with *: the law is extrapolated there.
)";

struct PlanOptions {
  std::optional<std::string> rates;
  double targetLoss = 0, budget = 0, parameters = 0, denseLoss = 0; // 0 where not given
  double flatGain = plan::Question().flatGain;
  int64_t seed = 0;
  bool json = false;
};

OptionParser parserFor(PlanOptions &options) {
  constexpr double least = 1e-6, most = 1e18;
  OptionParser parser;
  parser.number("target-loss", options.targetLoss, least, most);
  parser.number("budget", options.budget, 1, most);
  parser.text("rates", options.rates);
  parser.number("parameters", options.parameters, 1, most);
  parser.number("dense-loss", options.denseLoss, least, most);
  parser.number("flat-gain", options.flatGain, least, most);
  parser.integer("seed", options.seed, 0);
  parser.flag("json", options.json);
  return parser;
}

absl::StatusOr<std::vector<double>> parseRates(const std::string &list) {
  std::vector<double> rates;
  for (const std::string &word : splitList(list)) {
    char *after = nullptr;
    double rate = std::strtod(word.c_str(), &after);
    if (word.empty() || *after != '\0' || !(rate > 0 && rate < 1))
      return invalid("expected --rates to be numbers above 0 and below 1, but got '", word, "'");
    rates.push_back(rate);
  }
  return rates;
}

/// The model to prune, as options or else the points say.
absl::Status chooseModel(const PlanOptions &options, const plan::LossPoints &points, plan::Question &question) {
  std::vector<plan::Pruning> models;
  for (const auto &[kind, known] : points)
    for (const plan::LossPoint &point : known)
      models.push_back(point.pruning);
  question.parameters = options.parameters > 0 ? options.parameters : models[0].parameters;
  auto isOther = [&](const plan::Pruning &model) { return model.parameters != question.parameters; };
  if (options.parameters == 0 && std::ranges::any_of(models, isOther))
    return invalid("expected --parameters, as the points are of several models");
  question.denseLoss = options.denseLoss;
  if (options.denseLoss > 0)
    return absl::OkStatus();
  std::erase_if(models, isOther);
  auto differs = [&](const plan::Pruning &model) { return model.denseLoss != models[0].denseLoss; };
  if (models.empty() || std::ranges::any_of(models, differs))
    return invalid("expected --dense-loss, as the points have ", models.empty() ? "none" : "several",
                   " for a model of so many parameters");
  question.denseLoss = models[0].denseLoss;
  return absl::OkStatus();
}

absl::StatusOr<plan::Question> questionOf(const PlanOptions &options, const plan::LossPoints &points) {
  plan::Question question;
  HONE_RETURN_IF_ERROR(chooseModel(options, points, question));
  if (options.targetLoss > 0)
    question.targetLoss = options.targetLoss;
  if (options.budget > 0)
    question.budget = options.budget;
  if (options.rates) {
    HONE_ASSIGN_OR_RETURN(question.rates, parseRates(*options.rates));
  }
  question.flatGain = options.flatGain;
  question.seed = static_cast<uint64_t>(options.seed);
  return question;
}

std::string format(const char *pattern, double value) {
  char text[64];
  (void)std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string showNumber(double value) { return format("%.4g", value); }

/// "1.25 M"; "never" where it is infinite.
std::string showTokens(double tokens) {
  if (!std::isfinite(tokens))
    return "never";
  for (auto [unit, name] : {std::pair(1e12, " T"), std::pair(1e9, " G"), std::pair(1e6, " M"), std::pair(1e3, " k")})
    if (tokens >= unit)
      return format("%.3g", tokens / unit) + name;
  return format("%.3g", tokens);
}

template <typename Show> std::string show(const plan::Estimate &estimate, Show one) {
  return one(estimate.value) + " [" + one(estimate.low) + ", " + one(estimate.high) + "]";
}

std::string showPercent(double share) { return format("%.2f %%", 100 * share); }

void printFit(const plan::KindPlan &plan) {
  printLine(plan.kind, ": ", plan.points, " points, ", showTokens(plan.fewestTokens), " to ",
            showTokens(plan.mostTokens), " tokens");
  const plan::Identified &identified = plan.fit.identified;
  std::string exponents = "  beta " + show(plan.beta, showNumber);
  if (identified.rate)
    exponents += ", gamma " + show(plan.gamma, showNumber);
  if (identified.model)
    exponents += ", delta " + show(plan.delta, showNumber);
  if (identified.modelTerm)
    exponents += ", alpha " + show(plan.alpha, showNumber);
  printLine(exponents);
  printLine("  error of the fit: ", showPercent(plan.fit.relativeError));
  for (const auto &[name, known] :
       {std::pair("the last 20 % of each run's points, from the others", plan.budgets),
        std::pair("the points of the largest rate, from those of others", plan.largestRate)})
    if (known)
      printLine("  error of ", name, ": mean ", showPercent(known->meanError), ", largest ",
                showPercent(known->largestError));
}

/// A row of the table; columns are padded, the last one is not.
void printRow(const std::vector<std::string> &cells) {
  constexpr size_t width = 30, first = 9;
  std::string row = "  ";
  for (size_t i = 0; i < cells.size(); ++i) {
    row += cells[i];
    if (i + 1 < cells.size())
      row.append(std::max<size_t>((i == 0 ? first : width), cells[i].size() + 1) - cells[i].size(), ' ');
  }
  printLine(row);
}

void printRates(const plan::KindPlan &plan, const plan::Question &question) {
  std::vector<std::string> head = {"rate"};
  if (question.targetLoss)
    head.push_back("tokens to loss " + showNumber(*question.targetLoss));
  if (question.budget)
    head.push_back("loss after " + showTokens(*question.budget) + " tokens");
  head.push_back("flat after");
  printRow(head);
  for (const plan::RatePlan &rate : plan.rates) {
    std::vector<std::string> row = {format("%.3g", rate.rate) + (rate.isBeyond ? " *" : "")};
    if (rate.tokens)
      row.push_back(show(*rate.tokens, showTokens) + (rate.isTokensBeyond ? " *" : ""));
    if (rate.loss)
      row.push_back(show(*rate.loss, showNumber));
    row.push_back(show(rate.flatAfter, showTokens));
    printRow(row);
  }
  if (plan.bestRate)
    printLine("  largest rate that reaches loss ", showNumber(*question.targetLoss), " after ",
              showTokens(*question.budget), " tokens: ", show(*plan.bestRate, showNumber));
}

/// Null where a value is infinite.
io::Json jsonOf(const std::optional<plan::Estimate> &estimate) {
  if (!estimate)
    return nullptr;
  auto finite = [](double value) { return std::isfinite(value) ? io::Json(value) : io::Json(nullptr); };
  return {{"value", finite(estimate->value)}, {"low", finite(estimate->low)}, {"high", finite(estimate->high)}};
}

io::Json jsonOf(const std::optional<plan::Prediction> &prediction) {
  if (!prediction)
    return nullptr;
  return {{"points", prediction->points},
          {"mean_error", prediction->meanError},
          {"largest_error", prediction->largestError},
          {"average_slope_difference", prediction->slopeDifference}};
}

io::Json jsonOf(const plan::KindPlan &plan) {
  io::Json rates = io::Json::array();
  for (const plan::RatePlan &rate : plan.rates)
    rates.push_back({{"rate", rate.rate},
                     {"extrapolated", rate.isBeyond},
                     {"tokens", jsonOf(rate.tokens)},
                     {"tokens_extrapolated", rate.isTokensBeyond},
                     {"loss", jsonOf(rate.loss)},
                     {"flat_after", jsonOf(rate.flatAfter)}});
  const plan::P2Law &law = plan.fit.law;
  return {{"kind", plan.kind},
          {"points", plan.points},
          {"law",
           {{"alpha", jsonOf(plan.alpha)},
            {"beta", jsonOf(plan.beta)},
            {"gamma", jsonOf(plan.gamma)},
            {"delta", jsonOf(plan.delta)},
            {"N_C", law.modelTerm},
            {"D_C", law.tokenTerm},
            {"E", law.floor},
            {"parameter_unit", law.parameterUnit},
            {"token_unit", law.tokenUnit}}},
          {"fit_error", plan.fit.relativeError},
          {"last_budgets", jsonOf(plan.budgets)},
          {"largest_rate", jsonOf(plan.largestRate)},
          {"rates", rates},
          {"best_rate", jsonOf(plan.bestRate)}};
}

void printJson(const std::vector<plan::KindPlan> &plans) {
  io::Json kinds = io::Json::array();
  for (const plan::KindPlan &plan : plans)
    kinds.push_back(jsonOf(plan));
  std::puts(io::Json({{"kinds", kinds}}).dump().c_str());
}

absl::Status runPlan(std::span<const std::string> arguments) {
  PlanOptions options;
  std::vector<std::string> positionals;
  HONE_RETURN_IF_ERROR(parserFor(options).parse(arguments, positionals));
  if (positionals.size() != 1)
    return invalid("expected one POINTS.jsonl, but got ", positionals.size());
  HONE_ASSIGN_OR_RETURN(std::string text, io::readFile(positionals[0]));
  HONE_ASSIGN_OR_RETURN(plan::LossPoints points, plan::parseLossPoints(text, positionals[0]));
  HONE_ASSIGN_OR_RETURN(plan::Question question, questionOf(options, points));
  absl::StatusOr<std::vector<plan::KindPlan>> plans = plan::makePlan(points, question);
  if (!plans.ok())
    return invalid(positionals[0], ": ", io::messageOf(plans.status()));
  if (options.json) {
    printJson(*plans);
    return absl::OkStatus();
  }
  for (const plan::KindPlan &plan : *plans) {
    printFit(plan);
    printRates(plan, question);
  }
  return absl::OkStatus();
}

} // namespace

extern const Command kPlanCommand = {"plan", "how much to prune and how long to train on, by the P2 law", kHelp,
                                     runPlan, [] {
                                       PlanOptions options;
                                       return parserFor(options).names();
                                     }};

} // namespace hone::cli
