// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `run`: generation, or a call with tensors, as the options say.

#include "cli/call.h"
#include "cli/commands.h"
#include "cli/generate.h"
#include "cli/profile.h"
#include "cli/route.h"

namespace hone::cli {
namespace {

using io::invalid;

constexpr const char *kHelp =
    R"(usage: {program} run MODEL.hone --prompt TEXT | --prompt-file FILE | --tokens FILE.npy [OPTIONS]
       {program} run MODEL.hone [--prompt TEXT] --encoder-inputs FILE.npz [OPTIONS]
       {program} run MODEL.hone --inputs FILE.npz [OPTIONS]
       {program} run MODEL.hone --cases FILE.npz [OPTIONS]

With a prompt, goes on where it ends, one token at a time, until a token that ends a text, a stop string, or
--max-new-tokens. With inputs, calls the model as the ONNX file had it, tensors in and tensors out.

prompt
  --prompt TEXT             the prompt, which the artefact's tokenizer cuts into tokens; the new text is printed as it comes
  --prompt-file FILE        the prompt, as a file of UTF-8 text
  --tokens FILE.npy         the prompt as token ids: uint16, int32 or int64, of shape [n], or [rows, n] for several prompts;
                            the new ids are printed
  --output-tokens FILE.npy  write the new ids (int64, [n] or [rows, n]); rows that end early are filled up with the token
                            that ends a text

  --prompt-cache FILE       begin with what this file has of the prompt, where there is one, and write the state after the text to
                            it: a prompt that goes on, or that begins alike, is not read again
  --kv-offload DIR          keep the KV cache in files of this folder, without names, of which memory holds what was used last: for
                            texts whose cache is larger than memory, with --attention of 'hone compile'; for --target=cpu
  --context FILE.npz        what an encoder gave: an array for every context input, by its name (see inspect)

models with an encoder (the prompt is what the encoder reads; the text is the decoder's)
  --encoder-inputs FILE.npz what the encoder reads where that is no text, by its names: features of a sound, pixels, ...
  --decoder-prompt TEXT     what the text begins with, as '<|startoftranscript|><|en|>' (default: what the model's
                            generation_config.json says)
  --decoder-tokens FILE.npy the same as token ids

generation
  --max-new-tokens N        most tokens to write (default 128)
  --temperature T           0 always takes the likeliest token (default 0); else logits are divided by T and a token is drawn
  --top-k K                 draw from the K likeliest tokens (default 0: from all)
  --top-p P                 draw from the likeliest tokens that add up to probability P (default 1: from all)
  --min-p P                 draw from tokens at least P times as probable as the likeliest (default 0: from all)
  --repetition-penalty R    divide positive and multiply negative logits of tokens that occurred before (default 1: no change)
  --seed S                  seed of the draws; the same seed gives the same text (default 0)
  --stop TEXT               end before this text; may be given several times
  --ignore-end              go on after a token that ends a text
  --prefill-chunk N         feed the prompt in pieces of at most N tokens (default 512)
  --batch N                 go on after N prompts of --tokens at once, each as it would alone; for models of
                            'hone compile --speculate=batch', with --draft-tree tree,batch (default 1)
)" HONE_SPECULATION_HELP R"(  --router DRAFT.hone,RULE[,threshold=T]
                            lossy: let a smaller model with the same tokens write the steps of a text that are good enough, by
                            this model's probabilities: arbitrage (steps that this model would hardly better: the mean distance
                            to its likeliest tokens is at most T, in nats), quality (the mean log probability is at least T),
                            blocks (the same, but the first step is this model's), or oracle (this model writes each step too,
                            and takes its own where the mean log probability is better by more than T); T is 0 where it is not given
  --router-step TEXT        a step ends with the token in which this text does (default \n\n: an empty line)
  --router-tokens N         most tokens of a step (default 128)
  --stats                   print counts and times on stderr

calls with tensors
  --inputs FILE.npz         an array for every input, by its name; bfloat16 as uint16, 8-bit floats as uint8, or those of
                            ml_dtypes
  --outputs FILE.npz        write the outputs by their names; without this and --expect, their shapes are printed
  --expect FILE.npz         compare outputs with these arrays; exit 1 where one differs
  --cases FILE.npz          call for every <case>/in/<input> of the file and compare with <case>/out/<output>
  --rtol R, --atol A        an element may differ by A + R * |expected| (default 1e-4 each)
  --entry NAME              the entry to call (default main)

both
  --threads N               threads (default: one for each processor)
)" HONE_PROFILE_HELP;

struct RunOptions {
  CallOptions call;
  GenerateOptions generate;
  RouterFlags router;
  int64_t threads = 0, seed = 0;
  std::vector<std::string> profile;
};

OptionParser parserFor(RunOptions &options) {
  constexpr double anyTolerance = 1e30;
  OptionParser parser;
  rt::GenerationOptions &generation = options.generate.writing.generation;
  sampling::SamplingOptions &sampling = options.generate.writing.sampling;
  parser.text("prompt", options.generate.prompt);
  parser.text("prompt-file", options.generate.promptFile);
  parser.text("tokens", options.generate.tokens);
  parser.text("output-tokens", options.generate.outputTokens);
  parser.text("prompt-cache", options.generate.promptCache);
  parser.text("kv-offload", options.generate.kvOffload);
  parser.text("context", options.generate.context);
  parser.text("encoder-inputs", options.generate.encoderInputs);
  parser.text("decoder-prompt", options.generate.decoderPrompt);
  parser.text("decoder-tokens", options.generate.decoderTokens);
  parser.integer("max-new-tokens", generation.maximalNewTokens, 1);
  parser.number("temperature", sampling.temperature, 0, 1e6);
  parser.integer("top-k", sampling.topK, 0);
  parser.number("top-p", sampling.topP, 0, 1);
  parser.number("min-p", sampling.minP, 0, 1);
  parser.number("repetition-penalty", sampling.repetitionPenalty, 0, 1e6);
  parser.integer("seed", options.seed, 0);
  parser.texts("stop", options.generate.writing.stop);
  parser.flag("ignore-end", options.generate.ignoreEnd);
  parser.integer("prefill-chunk", generation.prefillChunk, 1);
  parser.integer("batch", options.generate.batch, 1, 1024);
  options.generate.speculation.declare(parser);
  options.router.declare(parser);
  parser.flag("stats", options.generate.statistics);
  parser.text("inputs", options.call.inputs);
  parser.text("outputs", options.call.outputs);
  parser.text("expect", options.call.expect);
  parser.text("cases", options.call.cases);
  parser.number("rtol", options.call.tolerance.relative, 0, anyTolerance);
  parser.number("atol", options.call.tolerance.absolute, 0, anyTolerance);
  parser.text("entry", options.call.entry);
  parser.integer("threads", options.threads, 1, kMostThreads);
  parser.texts("profile", options.profile);
  return parser;
}

/// Exactly one of the three things to do.
absl::Status checkMode(const RunOptions &options) {
  const CallOptions &call = options.call;
  const GenerateOptions &generate = options.generate;
  bool callsOnce = call.inputs || call.outputs || call.expect; // an entry may have no inputs
  int prompts = generate.prompt.has_value() + generate.promptFile.has_value() + generate.tokens.has_value();
  bool isOfEncoder = generate.encoderInputs && prompts == 0; // beside a prompt it may have features for that
  int modes = prompts + isOfEncoder + callsOnce + call.cases.has_value();
  if (generate.decoderPrompt && generate.decoderTokens)
    return invalid("expected one of --decoder-prompt and --decoder-tokens, but got both");
  if (modes == 1)
    return absl::OkStatus();
  return invalid("expected one of --prompt, --prompt-file, --tokens, --encoder-inputs, --inputs and --cases, but got ",
                 modes ? "several" : "none");
}

/// What is read; fails where results would be written over it.
absl::StatusOr<io::InputFiles> checkOutputs(const std::string &model, const RunOptions &options) {
  const CallOptions &call = options.call;
  const GenerateOptions &generate = options.generate;
  io::InputFiles inputs;
  inputs.add(model);
  for (const auto *file : {&generate.promptFile, &generate.tokens, &generate.context, &generate.encoderInputs,
                           &generate.decoderTokens, &call.inputs, &call.expect, &call.cases})
    inputs.add(file->value_or(""));
  generate.speculation.addInputs(inputs);
  inputs.add(options.router.draft);
  for (const auto *file : {&generate.outputTokens, &generate.promptCache, &call.outputs})
    HONE_RETURN_IF_ERROR(inputs.checkOutput(file->value_or("")));
  return inputs;
}

absl::Status runRun(std::span<const std::string> arguments) {
  RunOptions options;
  std::vector<std::string> positionals;
  HONE_RETURN_IF_ERROR(parserFor(options).parse(arguments, positionals));
  HONE_ASSIGN_OR_RETURN(std::string path, onlyModel(positionals));
  HONE_RETURN_IF_ERROR(checkMode(options));
  HONE_RETURN_IF_ERROR(options.generate.speculation.read());
  HONE_RETURN_IF_ERROR(options.router.read());
  HONE_ASSIGN_OR_RETURN(io::InputFiles inputs, checkOutputs(path, options));
  Profiler profiler;
  HONE_RETURN_IF_ERROR(profiler.open(options.profile, inputs));
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const rt::Module> module, loadModule(path, profiler.recorder()));
  HONE_RETURN_IF_ERROR(options.generate.speculation.loadDraft(path, module, profiler.recorder()));
  options.call.threads = options.generate.threads = options.threads;
  options.generate.writing.sampling.seed = static_cast<uint64_t>(options.seed);
  bool calls = options.call.inputs || options.call.outputs || options.call.expect || options.call.cases;
  if (options.router.given)
    HONE_RETURN_IF_ERROR(routeText(module, options.generate, options.router));
  else
    HONE_RETURN_IF_ERROR(calls ? callWithTensors(*module, options.call) : generateText(module, options.generate));
  return profiler.write(*module);
}

} // namespace

extern const Command kRunCommand = {
    "run", "write text or tokens with a language model, or call an artefact with tensors", kHelp, runRun, [] {
      RunOptions options;
      return parserFor(options).names();
    }};

} // namespace hone::cli
