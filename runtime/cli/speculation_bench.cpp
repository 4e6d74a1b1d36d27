// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Answers in turns, their sums by category, and the table of those.

#include "cli/speculation_bench.h"

#include "cpu/read_limit.h"
#include "generate/decoder.h"
#include "hone/cli/progress.h"
#include "hone/io/printable.h"
#include "io/json.h"

#include <algorithm>
#include <cstdio>

namespace hone::cli {
namespace {

using Tokens = std::vector<int64_t>;

constexpr int kWarmUps = 3; // as in Spec-Bench, of the first prompt

/// The times of drafting, verifying and taking back.
void addTimes(rt::SpeculationStatistics &to, const rt::SpeculationStatistics &from) {
  to.draftSeconds += from.draftSeconds;
  to.verifySeconds += from.verifySeconds;
  to.commitSeconds += from.commitSeconds;
}

/// The answers to all turns of a prompt.
struct Answers {
  std::vector<Tokens> turns;
  double seconds = 0;                        // prompts included
  int64_t tokens = 0, steps = 0, passes = 0; // all; those that passes after the prompts gave; those passes
  double decodeSeconds = 0;                  // of the passes
  rt::SpeculationStatistics speculation;

  double tokensPerSecond() const { return static_cast<double>(tokens) / seconds; }
  double decodeTokensPerSecond() const {
    return decodeSeconds > 0 ? static_cast<double>(steps) / decodeSeconds : tokensPerSecond();
  }
};

/// Writes answers with a model.
class Writer {
public:
  Writer(rt::LanguageModel &model, const SpeculationBenchOptions &options) : model(model), options(options) {}

  /// With drafts if `plain` is there: the answers without, of which a replay drafts.
  absl::StatusOr<Answers> write(const Prompt &prompt, const Answers *plain) {
    model.session().state().reset();
    Answers answers;
    Tokens text, pending; // `pending`: what the model does not have of the text
    for (const Tokens &turn : prompt.turns) {
      text.insert(text.end(), turn.begin(), turn.end());
      pending.insert(pending.end(), turn.begin(), turn.end());
      const Tokens *known = plain ? &plain->turns[answers.turns.size()] : nullptr;
      HONE_RETURN_IF_ERROR(writeTurn(text, pending, known, answers));
      const Tokens &answer = answers.turns.back();
      text.insert(text.end(), answer.begin(), answer.end());
      pending.assign(1, answer.back());
    }
    return answers;
  }

private:
  /// Begins with drafters that know nothing, and with what was found out of times and acceptance so far.
  absl::Status beginSpeculation(const Tokens &text, const Tokens &known) {
    rt::SpeculationOptions drafts = options.speculation;
    if (options.acceptLength) {
      drafts.replay.text = text;
      drafts.replay.text.insert(drafts.replay.text.end(), known.begin(), known.end());
      drafts.replay.acceptance = speculate::acceptanceFor(*options.acceptLength, drafts.mostDrafted);
      drafts.replay.seed = options.sampling.seed;
    }
    HONE_ASSIGN_OR_RETURN(speculation, rt::Speculation::create(drafts, model, std::move(speculation)));
    return absl::OkStatus();
  }

  absl::Status writeTurn(const Tokens &text, const Tokens &pending, const Tokens *known, Answers &answers) {
    if (known)
      HONE_RETURN_IF_ERROR(beginSpeculation(text, *known));
    rt::GenerationOptions generation;
    generation.maximalNewTokens = options.newTokens;
    generation.endTokens = options.endTokens;
    Tokens &answer = answers.turns.emplace_back();
    double start = cpu::wallSeconds();
    HONE_ASSIGN_OR_RETURN(
        std::unique_ptr<rt::Decoder> decoder,
        rt::createDecoder(model, options.sampling, generation, known ? speculation.get() : nullptr, text));
    auto receive = [&](int64_t token) -> absl::StatusOr<bool> {
      answer.push_back(token);
      return true;
    };
    HONE_ASSIGN_OR_RETURN(rt::GenerationStatistics statistics,
                          rt::generate(model, pending, generation, *decoder, receive));
    answers.seconds += cpu::wallSeconds() - start;
    answers.tokens += statistics.newTokens;
    answers.steps += statistics.newTokens - 1;
    answers.passes += statistics.passes;
    answers.decodeSeconds += statistics.decodeSeconds;
    addTimes(answers.speculation, statistics.speculation);
    return absl::OkStatus();
  }

  rt::LanguageModel &model;
  const SpeculationBenchOptions &options;
  std::unique_ptr<rt::Speculation> speculation;
};

/// Median, least and most of the repeats.
struct Spread {
  explicit Spread(std::vector<double> values) {
    std::ranges::sort(values);
    median = values[values.size() / 2], least = values.front(), most = values.back();
  }
  double median, least, most;
};

/// Speeds of a repeat, summed over prompts: their means have the ratio of the sums.
struct Speeds {
  double plain = 0, drafted = 0, plainDecode = 0, draftedDecode = 0;
};

/// What became of the prompts of a category, or of all.
struct Sums {
  std::string name;
  int64_t prompts = 0, pairs = 0, same = 0; // prompts; pairs of answers of all repeats, and those that are alike
  int64_t steps = 0, passes = 0;            // with drafts
  double decodeSeconds = 0;                 // with drafts
  rt::SpeculationStatistics speculation;
  std::vector<Speeds> repeats;

  void add(size_t repeat, const Answers &plain, const Answers &drafted) {
    prompts += repeat == 0;
    ++pairs;
    same += plain.turns == drafted.turns;
    steps += drafted.steps;
    passes += drafted.passes;
    decodeSeconds += drafted.decodeSeconds;
    addTimes(speculation, drafted.speculation);
    repeats.resize(repeat + 1);
    repeats[repeat].plain += plain.tokensPerSecond();
    repeats[repeat].drafted += drafted.tokensPerSecond();
    repeats[repeat].plainDecode += plain.decodeTokensPerSecond();
    repeats[repeat].draftedDecode += drafted.decodeTokensPerSecond();
  }

  template <typename Figure> Spread spread(Figure figure) const {
    std::vector<double> values;
    for (const Speeds &speeds : repeats)
      values.push_back(figure(speeds));
    return Spread(values);
  }
  Spread plainSpeed() const {
    return spread([&](const Speeds &speeds) { return speeds.plain / static_cast<double>(prompts); });
  }
  Spread speed() const {
    return spread([&](const Speeds &speeds) { return speeds.drafted / static_cast<double>(prompts); });
  }
  Spread speedUp() const {
    return spread([](const Speeds &speeds) { return speeds.drafted / speeds.plain; });
  }
  Spread decodeSpeedUp() const {
    return spread([](const Speeds &speeds) { return speeds.draftedDecode / speeds.plainDecode; });
  }
  double tokensPerPass() const { return passes > 0 ? static_cast<double>(steps) / static_cast<double>(passes) : 1; }
  double share(double seconds) const { return decodeSeconds > 0 ? seconds / decodeSeconds : 0; }
  double sameShare() const { return static_cast<double>(same) / static_cast<double>(pairs); }
};

/// All prompts, and each category in the order of its first prompt.
class Table {
public:
  Table() { overall.name = "overall"; }

  void add(const std::string &category, size_t repeat, const Answers &plain, const Answers &drafted) {
    auto place = std::ranges::find(categories, category, &Sums::name);
    Sums &sums = place == categories.end() ? categories.emplace_back() : *place;
    sums.name = category;
    sums.add(repeat, plain, drafted);
    overall.add(repeat, plain, drafted);
  }

  Sums overall;
  std::vector<Sums> categories;
};

io::Json describe(const Sums &sums) {
  io::Json object;
  auto add = [&](const char *name, const Spread &spread) {
    object[name] = spread.median;
    object[io::cat(name, "_min")] = spread.least;
    object[io::cat(name, "_max")] = spread.most;
  };
  object["prompts"] = sums.prompts;
  object["tokens_per_pass"] = sums.tokensPerPass();
  add("plain_tokens_per_second", sums.plainSpeed());
  add("tokens_per_second", sums.speed());
  add("speed_up", sums.speedUp());
  add("decode_speed_up", sums.decodeSpeedUp());
  object["draft_share"] = sums.share(sums.speculation.draftSeconds);
  object["verify_share"] = sums.share(sums.speculation.verifySeconds);
  object["commit_share"] = sums.share(sums.speculation.commitSeconds);
  object["same_texts"] = sums.sameShare();
  return object;
}

void printJson(const Table &table, const SpeculationBenchOptions &options) {
  io::Json object = describe(table.overall), categories = io::Json::object();
  for (const Sums &sums : table.categories)
    categories[sums.name] = describe(sums);
  object["categories"] = std::move(categories);
  object["new_tokens"] = options.newTokens;
  object["threads"] = options.threads;
  object["repeats"] = options.repeats;
  std::puts(object.dump().c_str());
}

void printRow(const Sums &sums) {
  constexpr double percent = 100;
  Spread speedUp = sums.speedUp();
  std::printf("%-16s %7lld %11.2f %11.1f %11.1f %6.2f (%.2f to %.2f) %7.2f %6.1f%% %6.1f%% %8.1f%% %6.1f%%\n",
              io::printable(sums.name).c_str(), static_cast<long long>(sums.prompts), sums.tokensPerPass(),
              sums.plainSpeed().median, sums.speed().median, speedUp.median, speedUp.least, speedUp.most,
              sums.decodeSpeedUp().median, percent * sums.share(sums.speculation.draftSeconds),
              percent * sums.share(sums.speculation.verifySeconds),
              percent * sums.share(sums.speculation.commitSeconds), percent * sums.sameShare());
}

void printText(const Table &table, const SpeculationBenchOptions &options) {
  std::printf("answers of at most %lld tokens, threads: %lld, repeats: %lld\n",
              static_cast<long long>(options.newTokens), static_cast<long long>(options.threads),
              static_cast<long long>(options.repeats));
  std::printf("%-16s %7s %11s %11s %11s %21s %7s %7s %7s %9s %7s\n", "category", "prompts", "tokens/pass", "plain/s",
              "drafted/s", "speed-up", "decode", "draft", "verify", "take-back", "same");
  for (const Sums &sums : table.categories)
    printRow(sums);
  printRow(table.overall);
}

/// What went wrong with a prompt.
absl::Status withName(const Prompt &prompt, const absl::Status &status) {
  return status.ok() ? status : absl::Status(status.code(), io::cat(prompt.name, ": ", io::messageOf(status)));
}

/// Writes the answers without and with drafts.
absl::Status writePair(Writer &writer, const Prompt &prompt, Answers &plain, Answers &drafted) {
  absl::StatusOr<Answers> written = writer.write(prompt, nullptr);
  HONE_RETURN_IF_ERROR(withName(prompt, written.status()));
  plain = *std::move(written);
  written = writer.write(prompt, &plain);
  HONE_RETURN_IF_ERROR(withName(prompt, written.status()));
  drafted = *std::move(written);
  return absl::OkStatus();
}

} // namespace

absl::Status benchSpeculation(rt::LanguageModel &model, std::span<const Prompt> prompts,
                              const SpeculationBenchOptions &options) {
  Writer writer(model, options);
  Answers plain, drafted;
  for (int i = 0; i < kWarmUps; ++i)
    HONE_RETURN_IF_ERROR(writePair(writer, prompts.front(), plain, drafted));
  Table table;
  Progress progress("measuring", options.repeats * std::ssize(prompts));
  for (int64_t repeat = 0, done = 0; repeat < options.repeats; ++repeat)
    for (const Prompt &prompt : prompts) {
      progress.update(done++, prompt.category);
      HONE_RETURN_IF_ERROR(writePair(writer, prompt, plain, drafted));
      table.add(prompt.category, static_cast<size_t>(repeat), plain, drafted);
    }
  options.json ? printJson(table, options) : printText(table, options);
  return absl::OkStatus();
}

} // namespace hone::cli
