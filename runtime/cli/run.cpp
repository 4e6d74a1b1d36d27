// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `run`: generation, or a call with tensors, as the options say.

#include "cli/call.h"
#include "cli/commands.h"
#include "cli/generate.h"

namespace hone::cli {
namespace {

using io::invalid;

constexpr const char *kHelp = R"(usage: {program} run MODEL.hone --tokens FILE.npy [OPTIONS]
       {program} run MODEL.hone --inputs FILE.npz [OPTIONS]
       {program} run MODEL.hone --cases FILE.npz [OPTIONS]

With tokens, goes on where the prompt ends, one token at a time, until a token that ends the text or --max-new-tokens. With
inputs, calls the model as the ONNX file had it, tensors in and tensors out.

generation
  --tokens FILE.npy         the prompt as token ids: uint16, int32 or int64, of shape [n], or [rows, n] for several prompts
  --output-tokens FILE.npy  write the new ids (int64, [n] or [rows, n]) instead of printing them; rows that end early are
                            filled up with the token that ends a text
  --max-new-tokens N        most tokens to write (default 128)
  --ignore-end              go on after a token that ends the text
  --prefill-chunk N         feed the prompt in pieces of at most N tokens (default: all at once)
  --stats                   print counts and times on stderr

calls with tensors
  --inputs FILE.npz         an array for every input, by its name; bfloat16 as uint16, 8-bit floats as uint8
  --outputs FILE.npz        write the outputs by their names; without this and --expect, their shapes are printed
  --expect FILE.npz         compare outputs with these arrays; exit 1 where one differs
  --cases FILE.npz          call for every <case>/in/<input> of the file and compare with <case>/out/<output>
  --rtol R, --atol A        an element may differ by A + R * |expected| (default 1e-4 each)
  --entry NAME              the entry to call (default main)

both
  --threads N               threads (default: one for each processor)
)";

struct RunOptions {
  CallOptions call;
  GenerateOptions generate;
  int64_t threads = 0;
};

OptionParser parserFor(RunOptions &options) {
  constexpr double anyTolerance = 1e30;
  OptionParser parser;
  parser.text("tokens", options.generate.tokens);
  parser.text("output-tokens", options.generate.outputTokens);
  parser.integer("max-new-tokens", options.generate.maximalNewTokens, 1);
  parser.flag("ignore-end", options.generate.ignoreEnd);
  parser.integer("prefill-chunk", options.generate.prefillChunk, 1);
  parser.flag("stats", options.generate.statistics);
  parser.text("inputs", options.call.inputs);
  parser.text("outputs", options.call.outputs);
  parser.text("expect", options.call.expect);
  parser.text("cases", options.call.cases);
  parser.number("rtol", options.call.tolerance.relative, 0, anyTolerance);
  parser.number("atol", options.call.tolerance.absolute, 0, anyTolerance);
  parser.text("entry", options.call.entry);
  parser.integer("threads", options.threads, 1, kMostThreads);
  return parser;
}

/// Exactly one of the three things to do.
absl::Status checkMode(const RunOptions &options) {
  const CallOptions &call = options.call;
  bool callsOnce = call.inputs || call.outputs || call.expect; // an entry may have no inputs
  int modes = options.generate.tokens.has_value() + callsOnce + call.cases.has_value();
  if (modes == 1)
    return absl::OkStatus();
  return invalid("expected one of --tokens, --inputs and --cases, but got ", modes ? "several" : "none");
}

absl::Status runRun(std::span<const std::string> arguments) {
  RunOptions options;
  std::vector<std::string> positionals;
  HONE_RETURN_IF_ERROR(parserFor(options).parse(arguments, positionals));
  HONE_ASSIGN_OR_RETURN(std::string path, onlyModel(positionals));
  HONE_RETURN_IF_ERROR(checkMode(options));
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const rt::Module> module, rt::Module::load(path));
  options.call.threads = options.generate.threads = options.threads;
  if (options.generate.tokens)
    return generateText(module, options.generate);
  return callWithTensors(*module, options.call);
}

} // namespace

const Command kRunCommand = {"run", kHelp, runRun, [] {
                               RunOptions options;
                               return parserFor(options).names();
                             }};

} // namespace hone::cli
