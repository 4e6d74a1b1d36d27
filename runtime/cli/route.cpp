// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of two models as one text.

#include "cli/route.h"

#include "cli/commands.h"
#include "generate/text_steps.h"

#include <charconv>
#include <cmath>
#include <unistd.h>

namespace hone::cli {
namespace {

using io::invalid;
using speculate::RoutingRule;

absl::Status readRule(std::string_view name, speculate::RoutingOptions &options) {
  if (name == "arbitrage")
    options.rule = RoutingRule::Advantage;
  else if (name == "oracle")
    options.rule = RoutingRule::Oracle;
  else if (name == "quality" || name == "blocks")
    options.rule = RoutingRule::Quality;
  else
    return invalid("unknown rule '", name, "' of --router; supported: arbitrage, oracle, quality, blocks");
  options.forcesFirst = name == "blocks";
  return absl::OkStatus();
}

absl::Status readThreshold(std::string_view part, speculate::RoutingOptions &options) {
  constexpr std::string_view prefix = "threshold=";
  const char *last = part.data() + part.size();
  if (!part.starts_with(prefix))
    return invalid("expected threshold=NUMBER after the rule of --router, but got '", part, "'");
  auto [end, error] = std::from_chars(part.data() + prefix.size(), last, options.threshold);
  if (error != std::errc() || end != last || std::isnan(options.threshold))
    return invalid("expected a number, inf or -inf as the threshold of --router, but got '", part.substr(prefix.size()),
                   "'");
  return absl::OkStatus();
}

/// `\n` for a line's end, as a shell passes it.
std::string unescape(std::string text) {
  for (size_t at = 0; (at = text.find("\\n", at)) != text.npos; ++at)
    text.replace(at, 2, "\n");
  return text;
}

/// What both writers are told.
rt::StepOptions stepOptionsOf(const rt::Module &module, const GenerateOptions &options, const RouterFlags &router) {
  rt::StepOptions steps;
  steps.end = unescape(router.step.value_or(steps.end));
  steps.mostTokens = std::min(router.mostTokens, options.writing.generation.maximalNewTokens);
  if (!options.ignoreEnd)
    steps.endTokens = module.manifest().generation.endTokens;
  steps.sampling = options.writing.sampling;
  return steps;
}

void printCounts(const speculate::RoutingCounts &counts) {
  std::fprintf(stderr, "router: %lld steps, %lld of %lld proposed ones accepted, %lld by the target\n",
               static_cast<long long>(counts.blocks), static_cast<long long>(counts.blocks - counts.escalated),
               static_cast<long long>(counts.proposed), static_cast<long long>(counts.escalated));
}

/// Until the last step or so many tokens, printing each step as it is accepted.
absl::Status write(speculate::BlockRouter<rt::TextStep> &router, const text::Tokenizer &tokenizer, int64_t most) {
  text::Detokenizer detokenizer(tokenizer);
  bool isTerminal = isatty(STDOUT_FILENO);
  auto print = [&](const std::string &text) {
    std::string shown = isTerminal ? io::printableText(text) : text;
    std::fwrite(shown.data(), 1, shown.size(), stdout);
    std::fflush(stdout);
  };
  for (bool isLast = false; !isLast && most > 0;) {
    HONE_ASSIGN_OR_RETURN(speculate::RoutedBlock<rt::TextStep> step, router.next());
    isLast = step.block.isLast;
    for (int64_t token : step.block.tokens) {
      if (most-- <= 0)
        break;
      HONE_ASSIGN_OR_RETURN(std::string piece, detokenizer.push(static_cast<int32_t>(token)));
      print(piece);
    }
  }
  HONE_ASSIGN_OR_RETURN(std::string rest, detokenizer.finish());
  print(rest + "\n");
  return absl::OkStatus();
}

} // namespace

void RouterFlags::declare(OptionParser &parser) {
  parser.text("router", given);
  parser.text("router-step", step);
  parser.integer("router-tokens", mostTokens, 1);
}

absl::Status RouterFlags::read() {
  if (!given)
    return step ? invalid("expected --router with --router-step") : absl::OkStatus();
  std::vector<std::string> parts = splitList(*given);
  if (parts.size() < 2 || parts.size() > 3)
    return invalid("expected --router=DRAFT.hone,RULE[,threshold=T], but got '", *given, "'");
  draft = parts[0];
  HONE_RETURN_IF_ERROR(readRule(parts[1], options));
  return parts.size() == 3 ? readThreshold(parts[2], options) : absl::OkStatus();
}

absl::Status routeText(std::shared_ptr<const rt::Module> module, const GenerateOptions &options,
                       const RouterFlags &router) {
  if ((!options.prompt && !options.promptFile) || options.outputTokens || options.promptCache || options.context ||
      !options.writing.stop.empty() || options.speculation.drafts)
    return invalid("expected --prompt or --prompt-file with --router, and neither --output-tokens, --prompt-cache, "
                   "--context, --stop nor "
                   "--speculate");
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const text::Tokenizer> tokenizer, rt::loadTokenizer(*module));
  if (!tokenizer)
    return invalid(module->folder(), ": has no tokenizer, which --router needs");
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> prompt, readPrompt(options, *tokenizer));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<rt::Session> session,
                        rt::openLanguageSession(module, static_cast<int>(options.threads), options.kvOffload));
  HONE_ASSIGN_OR_RETURN(rt::LanguageModel model, rt::LanguageModel::over(*session));
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const rt::Module> small, loadModule(router.draft));
  rt::DraftModel draft;
  HONE_RETURN_IF_ERROR(draft.open(small, "forward", *session, static_cast<int>(options.threads)));
  rt::StepOptions steps = stepOptionsOf(*module, options, router);
  using Judgement = rt::StepWriter::Judgement;
  bool isAdvantage = router.options.rule == RoutingRule::Advantage;
  auto open = [&](rt::LanguageModel &of) {
    return rt::StepWriter::create(of, *tokenizer, prompt, steps,
                                  isAdvantage ? Judgement::Regret : Judgement::Likelihood);
  };
  HONE_ASSIGN_OR_RETURN(rt::StepWriter target, open(model));
  HONE_ASSIGN_OR_RETURN(rt::StepWriter proposer, open(*draft.get()));
  speculate::BlockRouter<rt::TextStep> routed(proposer, target, target, router.options);
  HONE_RETURN_IF_ERROR(write(routed, *tokenizer, options.writing.generation.maximalNewTokens));
  if (options.statistics)
    printCounts(routed.counts());
  return absl::OkStatus();
}

} // namespace hone::cli
