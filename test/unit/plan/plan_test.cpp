// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "law_points.h"
#include "plan/plan.h"

#include <gtest/gtest.h>

namespace hone::plan {
namespace {

std::string line(const std::string &more) {
  return R"({"kind": "2:4", "parameters": 7000000, "rate": 0.5, "tokens": 1e6, "dense_loss": 2.0, "loss": 2.5)" + more +
         "}\n";
}

TEST(LossPoints, ReadsLines) {
  absl::StatusOr<LossPoints> points = parseLossPoints(line("") + "\n" + line(R"(, "step": 3)"), "runs.jsonl");
  ASSERT_TRUE(points.ok()) << points.status();
  ASSERT_EQ((*points)["2:4"].size(), 2u);
  EXPECT_EQ((*points)["2:4"][1].pruning.parameters, 7e6);
  EXPECT_EQ((*points)["2:4"][1].loss, 2.5);
}

TEST(LossPoints, NamesTheLineOfAFault) {
  auto faultOf = [](const std::string &text) {
    return std::string(io::messageOf(parseLossPoints(text, "runs.jsonl").status()));
  };
  EXPECT_EQ(faultOf("\n"), "runs.jsonl: expected points, a JSON object a line, but there is none");
  EXPECT_EQ(faultOf(line("") + R"({"kind": "2:4"})"), "runs.jsonl:2: expected a member 'parameters'");
  EXPECT_EQ(faultOf(R"({"kind": "2:4", "parameters": 1, "rate": 1})"),
            "runs.jsonl:1: expected 'rate' to be a positive number below 1, but got 1");
  EXPECT_EQ(faultOf(R"({"kind": "2:4", "parameters": -1})"),
            "runs.jsonl:1: expected 'parameters' to be a positive number, but got -1");
  EXPECT_EQ(faultOf(R"({"kind": "2:4", "parameters": "many"})"),
            "runs.jsonl:1: expected 'parameters' to be a positive number, but got \"many\"");
  EXPECT_TRUE(faultOf("[1]").starts_with("runs.jsonl:1: expected 'kind' to be the name"));
  EXPECT_TRUE(faultOf("{").starts_with("runs.jsonl:1: "));
}

Question questionOf(double parameters) {
  Question question;
  question.parameters = parameters;
  question.denseLoss = denseLossOf(parameters);
  return question;
}

TEST(Plan, AnswersByTheLaw) {
  LossPoints points = {{"structured", pointsOf(knownLaw(), kModels, kRates, kBudgets)}};
  Question question = questionOf(1e8);
  Pruning pruning = {1e8, 0.25, question.denseLoss};
  question.targetLoss = knownLaw().lossOf(pruning, 5e6);
  question.budget = 5e6;
  question.rates = {0.25, 0.9};
  absl::StatusOr<std::vector<KindPlan>> plans = makePlan(points, question);
  ASSERT_TRUE(plans.ok()) << plans.status();
  const KindPlan &plan = (*plans)[0];
  EXPECT_NEAR(plan.rates[0].tokens->value, 5e6, 5e3);
  EXPECT_NEAR(plan.rates[0].loss->value, *question.targetLoss, 1e-4);
  EXPECT_NEAR(plan.bestRate->value, 0.25, 1e-3);
  EXPECT_FALSE(plan.rates[0].isBeyond || plan.rates[0].isTokensBeyond);
  EXPECT_TRUE(plan.rates[1].isBeyond);
  EXPECT_TRUE(std::isinf(plan.rates[1].tokens->value));
  EXPECT_TRUE(plan.rates[1].isTokensBeyond);
}

TEST(Plan, MarksModelsAndBudgetsBeyondThePoints) {
  LossPoints points = {{"structured", pointsOf(knownLaw(), kModels, kRates, kBudgets)}};
  Question question = questionOf(5e9);
  EXPECT_TRUE((*makePlan(points, question))[0].rates[0].isBeyond);
  question = questionOf(1e8);
  question.budget = 1e9;
  EXPECT_TRUE((*makePlan(points, question))[0].rates[0].isBeyond);
}

TEST(Plan, OfOneRateAnswersForThat) {
  LossPoints points = {{"2:4", pointsOf(knownLaw(), kModels, {0.5}, kBudgets)}};
  Question question = questionOf(1e8);
  question.rates = {0.1, 0.2};
  question.targetLoss = question.budget = 3;
  absl::StatusOr<std::vector<KindPlan>> plans = makePlan(points, question);
  ASSERT_TRUE(plans.ok()) << plans.status();
  ASSERT_EQ((*plans)[0].rates.size(), 1u);
  EXPECT_EQ((*plans)[0].rates[0].rate, 0.5);
  EXPECT_FALSE((*plans)[0].bestRate);
}

TEST(Plan, NamesTheKindThatCannotBeFitted) {
  LossPoints points = {{"2:4", pointsOf(knownLaw(), {1e8}, {0.5}, {1e6})}};
  EXPECT_EQ(makePlan(points, questionOf(1e8)).status().message(),
            "kind '2:4': expected at least 4 points to fit, but got 1");
}

Question goalOf(double rate, double tokens) {
  Question question = questionOf(1e8);
  question.targetLoss = knownLaw().lossOf({1e8, rate, question.denseLoss}, tokens);
  question.budget = tokens;
  return question;
}

TEST(ChooseRate, FindsTheLargestThatReachesTheTarget) {
  LossPoints points = {{"structured", pointsOf(knownLaw(), kModels, kRates, kBudgets)},
                       {"2:4", pointsOf(knownLaw(), kModels, {0.2}, kBudgets)}};
  absl::StatusOr<Choice> choice = chooseRate(points, goalOf(0.3, 5e6));
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->kind, "structured");
  EXPECT_NEAR(choice->rate, 0.3, 1e-3);
  EXPECT_NEAR(choice->loss.value, *goalOf(0.3, 5e6).targetLoss, 1e-3);
  EXPECT_FALSE(choice->isBeyond);
}

TEST(ChooseRate, TakesNoRateBeyondThePoints) {
  LossPoints points = {{"structured", pointsOf(knownLaw(), kModels, kRates, kBudgets)}};
  EXPECT_DOUBLE_EQ(chooseRate(points, goalOf(0.9, 5e6))->rate, kRates.back());
  EXPECT_TRUE(io::messageOf(chooseRate(points, goalOf(0.05, 5e6)).status())
                  .starts_with("no rate of the points reaches a loss"));
}

TEST(ChooseRate, TakesAPatternOfOneRate) {
  LossPoints points = {{"structured", pointsOf(knownLaw(), kModels, {0.1, 0.15, 0.2}, kBudgets)},
                       {"2:4", pointsOf(knownLaw(), kModels, {0.5}, kBudgets)}};
  EXPECT_EQ(chooseRate(points, goalOf(0.6, 5e6))->kind, "2:4");
  EXPECT_EQ(chooseRate(points, goalOf(0.17, 5e6))->kind, "structured");
}

} // namespace
} // namespace hone::plan
