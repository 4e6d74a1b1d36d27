// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `corpus`: texts that drafts come from, made of files and looked at.

#include "speculate/corpus.h"
#include "cli/commands.h"
#include "hone/cli/progress.h"
#include "hone/io/file.h"
#include "hone/io/output.h"
#include "hone/text/tokenizer.h"
#include "speculate/corpus_builder.h"

#include <algorithm>
#include <filesystem>

namespace hone::cli {
namespace {

using io::invalid;

constexpr const char *kHelp = R"(usage: {program} corpus build DIR | FILE … --tokenizer tokenizer.json -o FILE.corpus
       {program} corpus inspect FILE.corpus

Makes a corpus of texts, which 'run --speculate=corpus --draft-corpus FILE.corpus' drafts from, or says what is in one.

Of a folder all files are read, and those of its folders, but no links and no folders whose names begin with a dot. A file
is a text: no match goes from one to the next. Files that cannot be read and those that are no UTF-8 text are left out,
which a note says.

options of build
  --tokenizer FILE    tokenizer.json, that of the model
  --output FILE, -o   the corpus, about 11 bytes a token; it replaces nothing but a corpus

inspect prints counts and the tokenizer, and reads the whole file to compare it with its checksum.
)";

struct CorpusOptions {
  std::optional<std::string> tokenizer, output;
};

OptionParser parserFor(CorpusOptions &options) {
  OptionParser parser;
  parser.text("tokenizer", options.tokenizer);
  parser.text("output", options.output);
  return parser;
}

/// The regular files in a folder and in those in it, in the order of their names.
absl::Status listFolder(const std::string &folder, std::vector<std::string> &files) {
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(folder, error), end;
  std::vector<std::string> found;
  for (; !error && it != end; it.increment(error)) {
    std::filesystem::file_status status = it->symlink_status(error);
    if (std::filesystem::is_directory(status) && it->path().filename().string().starts_with('.'))
      it.disable_recursion_pending();
    if (std::filesystem::is_regular_file(status))
      found.push_back(it->path().string());
  }
  if (error)
    return invalid("cannot read ", folder, ": ", error.message());
  std::ranges::sort(found);
  files.insert(files.end(), found.begin(), found.end());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> listFiles(std::span<const std::string> places) {
  std::vector<std::string> files;
  for (const std::string &place : places) {
    std::error_code error;
    if (std::filesystem::is_directory(place, error))
      HONE_RETURN_IF_ERROR(listFolder(place, files));
    else if (std::filesystem::exists(place, error))
      files.push_back(place);
    else
      return invalid("cannot read ", place, ": ", std::generic_category().message(ENOENT));
  }
  return files;
}

absl::StatusOr<std::vector<int32_t>> tokenize(const text::Tokenizer &tokenizer, const std::string &file) {
  HONE_ASSIGN_OR_RETURN(io::MappedFile bytes, io::MappedFile::open(file));
  if (bytes.text().find('\0') != std::string_view::npos)
    return invalid("it is binary");
  return tokenizer.encode(bytes.text(), /*addSpecialTokens=*/false);
}

/// Says which files were left out, the first few by name.
class Omissions {
public:
  ~Omissions() {
    if (count > kNamed)
      std::fprintf(stderr, "note: and %lld other files left out\n", static_cast<long long>(count - kNamed));
  }

  void add(const std::string &file, const absl::Status &reason) {
    if (++count <= kNamed)
      std::fprintf(stderr, "note: %s left out: %s\n", io::printable(file).c_str(),
                   io::printable(io::messageOf(reason)).c_str());
  }

private:
  static constexpr int64_t kNamed = 10;
  int64_t count = 0;
};

absl::Status addFiles(std::span<const std::string> files, const text::Tokenizer &tokenizer,
                      speculate::CorpusBuilder &builder, io::InputFiles &inputs) {
  Omissions omissions;
  Progress progress("tokenizing files", static_cast<int64_t>(files.size()));
  for (size_t i = 0; i < files.size(); ++i) {
    progress.update(static_cast<int64_t>(i), files[i]);
    absl::StatusOr<std::vector<int32_t>> tokens = tokenize(tokenizer, files[i]);
    if (!tokens.ok()) {
      omissions.add(files[i], tokens.status());
      continue;
    }
    inputs.add(files[i]);
    HONE_RETURN_IF_ERROR(builder.add(*tokens));
  }
  return absl::OkStatus();
}

absl::Status build(const CorpusOptions &options, std::span<const std::string> places) {
  if (!options.tokenizer || !options.output)
    return invalid("expected --tokenizer FILE and -o FILE");
  if (places.empty())
    return invalid("expected a folder or files to make a corpus of, but got none");
  HONE_ASSIGN_OR_RETURN(std::string json, io::readFile(*options.tokenizer));
  absl::StatusOr<text::Tokenizer> tokenizer = text::Tokenizer::fromJson(json);
  if (!tokenizer.ok())
    return invalid(*options.tokenizer, ": ", io::messageOf(tokenizer.status()));
  HONE_ASSIGN_OR_RETURN(std::vector<std::string> files, listFiles(places));
  HONE_RETURN_IF_ERROR(speculate::CorpusBuilder::checkOutput(*options.output));
  io::InputFiles inputs;
  inputs.add(*options.tokenizer);
  speculate::CorpusBuilder builder;
  HONE_RETURN_IF_ERROR(addFiles(files, *tokenizer, builder, inputs));
  HONE_RETURN_IF_ERROR(inputs.checkOutput(*options.output));
  uint64_t texts = builder.countTexts(), tokens = builder.countTokens();
  HONE_RETURN_IF_ERROR(std::move(builder).write(*options.output, speculate::fingerprintOf(json)));
  printLine(*options.output, ": ", texts, " texts, ", tokens, " tokens");
  return absl::OkStatus();
}

absl::Status inspect(const CorpusOptions &options, std::span<const std::string> files) {
  if (options.tokenizer || options.output)
    return invalid("corpus inspect takes no options");
  if (files.size() != 1)
    return invalid("expected one FILE.corpus, but got ", files.size());
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const speculate::Corpus> corpus, speculate::Corpus::open(files[0]));
  HONE_RETURN_IF_ERROR(corpus->verify());
  printLine("texts       ", corpus->countTexts());
  printLine("tokens      ", corpus->countTokens());
  printLine("vocabulary  below ", corpus->vocabulary());
  printLine("tokenizer   ", speculate::showFingerprint(corpus->tokenizer()));
  printLine("bytes       ", corpus->countBytes());
  return absl::OkStatus();
}

absl::Status runCorpus(std::span<const std::string> arguments) {
  CorpusOptions options;
  std::vector<std::string> positionals;
  HONE_RETURN_IF_ERROR(parserFor(options).parse(arguments, positionals));
  if (positionals.empty())
    return invalid("expected 'build' or 'inspect'");
  std::span<const std::string> rest = std::span(positionals).subspan(1);
  if (positionals[0] == "build")
    return build(options, rest);
  if (positionals[0] == "inspect")
    return inspect(options, rest);
  return invalid("expected 'build' or 'inspect', but got '", positionals[0], "'");
}

} // namespace

extern const Command kCorpusCommand = {"corpus", "make a corpus of texts that drafts come from", kHelp, runCorpus, [] {
                                         CorpusOptions options;
                                         return parserFor(options).names();
                                       }};

} // namespace hone::cli
