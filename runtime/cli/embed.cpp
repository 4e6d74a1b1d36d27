// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `embed`: texts to vectors.

#include "cli/commands.h"
#include "cli/encoder_inputs.h"
#include "generate/text_writer.h"
#include "hone/cli/progress.h"
#include "hone/io/npy.h"

#include <algorithm>
#include <cstdio>

namespace hone::cli {
namespace {

using io::invalid;

constexpr std::string_view kEntry = "embed";

constexpr const char *kHelp =
    R"(usage: {program} embed MODEL.hone --text TEXT | --texts FILE [OPTIONS]

Gives each text a vector, as Sentence Transformers does: the encoder's vectors of its tokens, pooled into one. The artefact is one of
'hone compile' with the folder of such a model, or with --pooling.

options
  --text TEXT         the text
  --texts FILE        a file of UTF-8 with a text in each line
  --output FILE.npy   write the vectors (float32, [texts, size]); without it, they are printed, a line for a text
  --threads N         threads (default: one for each processor)

A text of more tokens than the model takes is cut at its end.
)";

struct EmbedOptions {
  std::optional<std::string> text, texts, output;
  int64_t threads = 0;
};

OptionParser parserFor(EmbedOptions &options) {
  OptionParser parser;
  parser.text("text", options.text);
  parser.text("texts", options.texts);
  parser.text("output", options.output);
  parser.integer("threads", options.threads, 1, kMostThreads);
  return parser;
}

std::vector<std::string> splitLines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// Cuts texts into tokens, of which those that the tokenizer puts around a text stay.
class TextEncoder {
public:
  TextEncoder(const text::Tokenizer &tokenizer, std::optional<int64_t> most) : tokenizer(tokenizer), most(most) {}

  absl::StatusOr<std::vector<int64_t>> encode(std::string_view text) const {
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> ids, rt::encodePrompt(tokenizer, text));
    if (!most || std::ssize(ids) <= *most)
      return ids;
    HONE_ASSIGN_OR_RETURN(std::vector<int32_t> own, tokenizer.encode(text, /*addSpecialTokens=*/false));
    auto begin = std::ranges::search(ids, own).begin();
    int64_t around = std::ssize(ids) - std::ssize(own), cut = std::ssize(ids) - *most;
    if (begin == ids.end() || around >= *most)
      return invalid("cannot cut a text to ", *most, " tokens, of which ", around, " are put around it");
    auto end = begin + std::ssize(own);
    ids.erase(end - cut, end);
    return ids;
  }

private:
  const text::Tokenizer &tokenizer;
  std::optional<int64_t> most;
};

absl::StatusOr<io::Array> embed(const rt::Module &module, const io::EntryInfo &entry, std::span<const int64_t> tokens,
                                int threads) {
  HONE_ASSIGN_OR_RETURN(NamedArrays inputs, makeTextInputs(entry, tokens));
  HONE_ASSIGN_OR_RETURN(std::vector<io::Array> outputs, module.call(kEntry, viewsOf(inputs), threads));
  return std::move(outputs.front());
}

void printVector(std::span<const float> vector) {
  for (size_t i = 0; i < vector.size(); ++i)
    std::printf("%s%.7g", i ? " " : "", static_cast<double>(vector[i]));
  std::printf("\n");
}

absl::Status runEmbed(std::span<const std::string> arguments) {
  EmbedOptions options;
  std::vector<std::string> positionals;
  HONE_RETURN_IF_ERROR(parserFor(options).parse(arguments, positionals));
  HONE_ASSIGN_OR_RETURN(std::string path, onlyModel(positionals));
  if (options.text.has_value() + options.texts.has_value() != 1)
    return invalid("expected one of --text and --texts, but got ", options.text ? "both" : "none");
  io::InputFiles inputs;
  inputs.add(path);
  inputs.add(options.texts.value_or(""));
  HONE_RETURN_IF_ERROR(inputs.checkOutput(options.output.value_or("")));
  std::vector<std::string> texts = {options.text.value_or("")};
  if (options.texts) {
    HONE_ASSIGN_OR_RETURN(std::string file, io::readFile(*options.texts));
    texts = splitLines(file);
  }
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const rt::Module> module, loadModule(path));
  const io::EntryInfo *entry = module->manifest().entry(kEntry);
  if (!entry)
    return invalid(path, ": has no entry '", kEntry, "'; 'hone compile --pooling' adds it");
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const text::Tokenizer> tokenizer, rt::loadTokenizer(*module));
  if (!tokenizer)
    return invalid(path, ": has no tokenizer to cut texts into tokens");
  TextEncoder encoder(*tokenizer, module->manifest().mostEmbeddedTokens);
  Progress progress("texts", std::ssize(texts));
  std::vector<float> all;
  int64_t done = 0;
  for (const std::string &text : texts) {
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> ids, encoder.encode(text));
    if (ids.empty())
      return invalid("expected at least one token, but a text has none");
    HONE_ASSIGN_OR_RETURN(io::Array vector, embed(*module, *entry, ids, static_cast<int>(options.threads)));
    std::span<const float> elements = vector.as<float>();
    if (!options.output)
      printVector(elements);
    all.insert(all.end(), elements.begin(), elements.end());
    progress.update(++done);
  }
  if (!options.output)
    return absl::OkStatus();
  auto count = std::ssize(texts), size = count ? std::ssize(all) / count : 0;
  HONE_ASSIGN_OR_RETURN(io::Array array, io::Array::create(HONE_F32, std::vector{int64_t{count}, int64_t{size}}));
  std::ranges::copy(all, array.as<float>().begin());
  return io::writeNpy(*options.output, array);
}

} // namespace

extern const Command kEmbedCommand = {"embed", "vectors of texts by a sentence encoder", kHelp, runEmbed, [] {
                                        EmbedOptions options;
                                        return parserFor(options).names();
                                      }};

} // namespace hone::cli
