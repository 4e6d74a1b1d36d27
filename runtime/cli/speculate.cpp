// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `speculate train`: a classifier of drafted tokens, from what a model writes after prompts.

#include "cli/commands.h"
#include "cli/prompts.h"
#include "cli/speculation.h"
#include "generate/decoder.h"
#include "generate/tree_recording.h"
#include "hone/cli/progress.h"

namespace hone::cli {
namespace {

using io::invalid;

constexpr const char *kHelp =
    R"(usage: {program} speculate train MODEL.hone --prompts FILE.jsonl | --tokens FILE.npy -o FILE.safetensors [OPTIONS]

Trains the classifier that 'run --speculate=model --draft-tree --draft-pruner FILE.safetensors' prunes trees of a draft model
with: the model writes on after each prompt, the draft model grows a tree at each step, and the classifier learns which of
its tokens the model went on with. Prints what each threshold would keep of trees that it has not learnt from.

  --prompts FILE.jsonl      prompts as 'bench' takes them; the turns of one come one after the other
  --tokens FILE.npy         prompts as token ids: uint16, int32 or int64, [n] or [rows, n]
  --output FILE, -o         the classifier
  --draft DRAFT.hone        the draft model (default: the entry 'draft' of MODEL.hone)
  --new-tokens N            most tokens to write after a prompt (default 128)
  --temperature T           of the model's text (default 0: the likeliest tokens)
  --draft-branches K        shape of the trees, as 'run' takes it (default 4)
  --draft-depth D           (default 6)
  --epochs N                passes over what was recorded (default 20)
  --seed S                  of all draws (default 0)
  --threads N               threads (default: one for each processor)
)";

struct TrainOptions {
  std::optional<std::string> prompts, tokens, output;
  SpeculationFlags speculation;
  speculate::TreeShape shape;
  speculate::TrainingOptions training;
  sampling::SamplingOptions sampling;
  int64_t newTokens = 128, seed = 0, threads = 0;
};

OptionParser parserFor(TrainOptions &options) {
  OptionParser parser;
  parser.text("prompts", options.prompts);
  parser.text("tokens", options.tokens);
  parser.text("output", options.output);
  parser.text("draft", options.speculation.draftFile);
  parser.integer("new-tokens", options.newTokens, 2);
  parser.number("temperature", options.sampling.temperature, 0, 1e6);
  parser.integer("draft-branches", options.shape.branches, 1, speculate::kMostTreeTokens - 1);
  parser.integer("draft-depth", options.shape.depth, 1, speculate::kMostTreeTokens - 1);
  parser.integer("epochs", options.training.epochs, 1, 1000);
  parser.integer("seed", options.seed, 0);
  parser.integer("threads", options.threads, 1, kMostThreads);
  return parser;
}

/// Lists of turns.
absl::StatusOr<std::vector<std::vector<std::vector<int64_t>>>> readTexts(const TrainOptions &options,
                                                                         const rt::Module &module) {
  std::vector<std::vector<std::vector<int64_t>>> texts;
  if (options.tokens) {
    HONE_ASSIGN_OR_RETURN(std::vector<std::vector<int64_t>> rows, readTokens(*options.tokens));
    for (std::vector<int64_t> &row : rows)
      texts.push_back({std::move(row)});
    return texts;
  }
  HONE_ASSIGN_OR_RETURN(std::vector<Prompt> prompts, readPrompts(*options.prompts, module));
  for (Prompt &prompt : prompts)
    texts.push_back(std::move(prompt.turns));
  return texts;
}

/// Writes texts with a model and records trees of its draft.
class Recorder {
public:
  Recorder(rt::LanguageModel &model, rt::LanguageModel &draft, const TrainOptions &options)
      : model(model), draft(draft), options(options) {
    generation.maximalNewTokens = options.newTokens;
    generation.endTokens = model.session().module().manifest().generation.endTokens;
  }

  absl::Status record(std::span<const std::vector<int64_t>> turns) {
    std::vector<int64_t> text;
    for (const std::vector<int64_t> &turn : turns) {
      text.insert(text.end(), turn.begin(), turn.end());
      HONE_ASSIGN_OR_RETURN(std::vector<int64_t> written, write(text));
      HONE_RETURN_IF_ERROR(rt::recordTrees(draft, text, written, options.shape, trees));
      text.insert(text.end(), written.begin(), written.end());
    }
    return absl::OkStatus();
  }

  std::span<const speculate::RecordedTree> recorded() const { return trees; }

private:
  absl::StatusOr<std::vector<int64_t>> write(std::span<const int64_t> text) {
    model.session().state().reset();
    sampling::SamplingOptions sampling = options.sampling;
    sampling.seed = static_cast<uint64_t>(options.seed) + texts++;
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<rt::Decoder> decoder,
                          rt::createDecoder(model, sampling, generation, nullptr, text));
    std::vector<int64_t> written;
    auto receive = [&](int64_t token) -> absl::StatusOr<bool> {
      written.push_back(token);
      return true;
    };
    HONE_RETURN_IF_ERROR(rt::generate(model, text, generation, *decoder, receive).status());
    return written;
  }

  rt::LanguageModel &model, &draft;
  const TrainOptions &options;
  rt::GenerationOptions generation;
  std::vector<speculate::RecordedTree> trees;
  uint64_t texts = 0; // each has draws of its own
};

std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof(text), "%.1f %%", 100 * share);
  return text;
}

std::string threeDigits(double value) {
  char text[16];
  std::snprintf(text, sizeof(text), "%.3f", value);
  return text;
}

void print(const speculate::TrainedClassifier &trained, const std::string &output) {
  printLine(output, ": from ", trained.trainingTrees, " trees; ", trained.heldTrees, " were held out");
  printLine("area under the curve  ", threeDigits(trained.area), ", of the probability alone ",
            threeDigits(trained.areaOfProbability));
  printLine("threshold  accepted tokens kept  all tokens kept");
  for (const speculate::ThresholdEffect &effect : trained.effects) {
    char line[64];
    std::snprintf(line, sizeof(line), "%-9.1f  %20s  %15s", effect.threshold, percent(effect.recall).c_str(),
                  percent(effect.kept).c_str());
    printLine(line);
  }
}

absl::Status train(TrainOptions &options, const std::string &path) {
  if (options.prompts.has_value() == options.tokens.has_value())
    return invalid("expected either --prompts or --tokens, but got ", options.prompts ? "both" : "neither");
  if (!options.output)
    return invalid("expected -o FILE.safetensors");
  io::InputFiles inputs;
  inputs.add(path);
  for (const auto *file : {&options.prompts, &options.tokens, &options.speculation.draftFile})
    inputs.add(file->value_or(""));
  HONE_RETURN_IF_ERROR(inputs.checkOutput(*options.output));
  options.speculation.options.sources = {rt::DraftSource::Model};
  options.training.seed = static_cast<uint64_t>(options.seed);
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const rt::Module> module, loadModule(path));
  HONE_RETURN_IF_ERROR(options.speculation.loadDraft(path, module, nullptr));
  HONE_ASSIGN_OR_RETURN(auto texts, readTexts(options, *module));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<rt::Session> session,
                        rt::openLanguageSession(module, static_cast<int>(options.threads)));
  HONE_ASSIGN_OR_RETURN(rt::LanguageModel model, rt::LanguageModel::over(*session));
  rt::DraftModel draft;
  HONE_RETURN_IF_ERROR(options.speculation.openDraft(draft, *session, options.threads));
  HONE_RETURN_IF_ERROR(draft.get()->checkTrees());
  Recorder recorder(model, *draft.get(), options);
  Progress progress("prompts", static_cast<int64_t>(texts.size()));
  for (size_t i = 0; i < texts.size(); ++i) {
    HONE_RETURN_IF_ERROR(recorder.record(texts[i]));
    progress.update(static_cast<int64_t>(i) + 1);
  }
  HONE_ASSIGN_OR_RETURN(speculate::TrainedClassifier trained,
                        speculate::trainClassifier(recorder.recorded(), options.training));
  HONE_RETURN_IF_ERROR(trained.classifier.write(*options.output));
  print(trained, *options.output);
  return absl::OkStatus();
}

absl::Status runSpeculate(std::span<const std::string> arguments) {
  TrainOptions options;
  std::vector<std::string> positionals;
  HONE_RETURN_IF_ERROR(parserFor(options).parse(arguments, positionals));
  if (positionals.empty() || positionals[0] != "train")
    return invalid("expected 'train', but got ", positionals.empty() ? "nothing" : "'" + positionals[0] + "'");
  positionals.erase(positionals.begin());
  HONE_ASSIGN_OR_RETURN(std::string path, onlyModel(positionals));
  return train(options, path);
}

} // namespace

extern const Command kSpeculateCommand = {"speculate", "train what prunes the draft trees of a draft model", kHelp,
                                          runSpeculate, [] {
                                            TrainOptions options;
                                            return parserFor(options).names();
                                          }};

} // namespace hone::cli
