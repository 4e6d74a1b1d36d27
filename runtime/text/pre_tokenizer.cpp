// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pre-tokenizers of tokenizer.json, one class each, and the reader that picks one.

#include "text/pre_tokenizer.h"

#include "text/metaspace.h"
#include "text/normalizer.h"
#include "text/pattern.h"
#include "text/unicode.h"

namespace hone::text {

namespace {

constexpr std::string_view kSupported = "BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, FixedLength, "
                                        "Metaspace, Punctuation, Sequence, Split, Whitespace, WhitespaceSplit";

using Result = absl::StatusOr<std::unique_ptr<PreTokenizer>>;

Piece subpiece(Piece piece, Range range) {
  return {piece.text.substr(range.begin, range.end - range.begin), piece.atStart && range.begin == 0};
}

/// Splits at characters: each that satisfies `isDelimiter` is a match of its own.
absl::Status splitAtCharacters(Piece piece, SplitBehavior behavior, absl::FunctionRef<bool(char32_t)> isDelimiter,
                               PreTokenizer::Sink sink) {
  auto emit = [&](Range range) { return sink(subpiece(piece, range)); };
  SplitStream stream(behavior, emit);
  size_t begin = 0; // of the text since the last delimiter
  for (size_t position = 0; position < piece.text.size();) {
    size_t start = position;
    if (!isDelimiter(decodeCodePoint(piece.text, position)))
      continue;
    if (begin < start)
      HONE_RETURN_IF_ERROR(stream.segment({begin, start}, false));
    HONE_RETURN_IF_ERROR(stream.segment({start, position}, true));
    begin = position;
  }
  if (begin < piece.text.size())
    HONE_RETURN_IF_ERROR(stream.segment({begin, piece.text.size()}, false));
  return stream.finish();
}

class ByteLevel : public PreTokenizer {
public:
  static Result create(const JsonObject &object) {
    auto result = std::make_unique<ByteLevel>();
    HONE_ASSIGN_OR_RETURN(result->addPrefixSpace, object.boolean("add_prefix_space"));
    HONE_ASSIGN_OR_RETURN(result->useRegex, object.booleanOr("use_regex", true));
    HONE_ASSIGN_OR_RETURN(Regex words, Regex::compile(kWords));
    result->words = std::move(words);
    return result;
  }

  absl::Status apply(Piece piece, PreTokenizerScratch &scratch, Sink sink) const override {
    PreTokenizerScratch::Buffer prefixed(scratch), mapped(scratch);
    if (addPrefixSpace && !piece.text.starts_with(' ')) {
      prefixed->append(" ").append(piece.text);
      piece.text = *prefixed;
    }
    if (!useRegex)
      return map(piece, *mapped, sink);
    RegexMatches matches(*words, piece.text, scratch.regex);
    Range match;
    while (true) { // the expression matches all of any text, so that there is nothing between matches
      HONE_ASSIGN_OR_RETURN(bool found, matches.next(match));
      if (!found)
        return absl::OkStatus();
      HONE_RETURN_IF_ERROR(map(subpiece(piece, match), *mapped, sink));
    }
  }

private:
  // The word pattern of GPT-2 (Radford et al. 2019).
  static constexpr std::string_view kWords =
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

  static absl::Status map(Piece piece, std::string &mapped, Sink sink) {
    mapped.clear();
    appendByteLevel(mapped, piece.text);
    HONE_RETURN_IF_ERROR(checkLength(mapped.size()));
    return sink({mapped, piece.atStart});
  }

  bool addPrefixSpace = false, useRegex = true;
  std::optional<Regex> words;
};

class Split : public PreTokenizer {
public:
  static Result create(const JsonObject &object) {
    auto result = std::make_unique<Split>();
    HONE_ASSIGN_OR_RETURN(result->pattern, Pattern::read(object, "pattern"));
    HONE_ASSIGN_OR_RETURN(result->behavior, readSplitBehavior(object, "behavior"));
    HONE_ASSIGN_OR_RETURN(result->invert, object.boolean("invert"));
    return result;
  }

  absl::Status apply(Piece piece, PreTokenizerScratch &scratch, Sink sink) const override {
    auto emit = [&](Range range) { return sink(subpiece(piece, range)); };
    SplitStream stream(behavior, emit);
    HONE_RETURN_IF_ERROR(pattern->segments(piece.text, scratch.regex, [&](Range range, bool isMatch) {
      return stream.segment(range, isMatch != invert);
    }));
    return stream.finish();
  }

private:
  std::optional<Pattern> pattern;
  SplitBehavior behavior = SplitBehavior::Isolated;
  bool invert = false;
};

class Metaspace : public PreTokenizer {
public:
  static Result create(const JsonObject &object) {
    auto result = std::make_unique<Metaspace>();
    HONE_ASSIGN_OR_RETURN(result->options, MetaspaceOptions::read(object));
    return result;
  }

  absl::Status apply(Piece piece, PreTokenizerScratch &scratch, Sink sink) const override {
    PreTokenizerScratch::Buffer replaced(scratch);
    using Prepend = MetaspaceOptions::Prepend;
    bool startsSo = piece.text.starts_with(' ') || piece.text.starts_with(options.replacement);
    if (!startsSo && (options.prepend == Prepend::Always || (options.prepend == Prepend::First && piece.atStart)))
      replaced->append(options.replacement);
    for (char c : piece.text)
      if (c == ' ')
        replaced->append(options.replacement);
      else
        replaced->push_back(c);
    piece.text = *replaced;
    if (!options.split)
      return sink(piece);
    for (size_t begin = 0; begin < piece.text.size();) { // every replacement begins a piece
      size_t end = std::min(piece.text.find(options.replacement, begin + 1), piece.text.size());
      HONE_RETURN_IF_ERROR(sink(subpiece(piece, {begin, end})));
      begin = end;
    }
    return absl::OkStatus();
  }

private:
  MetaspaceOptions options;
};

class Digits : public PreTokenizer {
public:
  static Result create(const JsonObject &object) {
    auto result = std::make_unique<Digits>();
    HONE_ASSIGN_OR_RETURN(bool individual, object.boolean("individual_digits"));
    result->behavior = individual ? SplitBehavior::Isolated : SplitBehavior::Contiguous;
    return result;
  }

  absl::Status apply(Piece piece, PreTokenizerScratch &, Sink sink) const override {
    return splitAtCharacters(piece, behavior, isNumeric, sink);
  }

private:
  SplitBehavior behavior = SplitBehavior::Contiguous;
};

class Punctuation : public PreTokenizer {
public:
  static Result create(const JsonObject &object) {
    auto result = std::make_unique<Punctuation>();
    if (object.find("behavior")) {
      HONE_ASSIGN_OR_RETURN(result->behavior, readSplitBehavior(object, "behavior"));
    }
    return result;
  }

  absl::Status apply(Piece piece, PreTokenizerScratch &, Sink sink) const override {
    return splitAtCharacters(piece, behavior, isPunctuation, sink);
  }

private:
  SplitBehavior behavior = SplitBehavior::Isolated;
};

/// Words and runs of anything else that is not a space.
class Whitespace : public PreTokenizer {
public:
  absl::Status apply(Piece piece, PreTokenizerScratch &, Sink sink) const override {
    enum class Kind { Space, Word, Other };
    auto kindOf = [](char32_t c) { return isWord(c) ? Kind::Word : isWhitespace(c) ? Kind::Space : Kind::Other; };
    size_t begin = 0;
    Kind kind = Kind::Space;
    for (size_t position = 0; position < piece.text.size();) {
      size_t start = position;
      Kind next = kindOf(decodeCodePoint(piece.text, position));
      if (next == kind)
        continue;
      if (kind != Kind::Space)
        HONE_RETURN_IF_ERROR(sink(subpiece(piece, {begin, start})));
      begin = start;
      kind = next;
    }
    return kind == Kind::Space ? absl::OkStatus() : sink(subpiece(piece, {begin, piece.text.size()}));
  }
};

class WhitespaceSplit : public PreTokenizer {
public:
  absl::Status apply(Piece piece, PreTokenizerScratch &, Sink sink) const override {
    return splitAtCharacters(piece, SplitBehavior::Removed, isWhitespace, sink);
  }
};

class BertPreTokenizer : public PreTokenizer {
public:
  absl::Status apply(Piece piece, PreTokenizerScratch &, Sink sink) const override {
    return splitAtCharacters(piece, SplitBehavior::Removed, isWhitespace, [&](Piece word) {
      return splitAtCharacters(word, SplitBehavior::Isolated, isPunctuation, sink);
    });
  }
};

class CharDelimiterSplit : public PreTokenizer {
public:
  static Result create(const JsonObject &object) {
    auto result = std::make_unique<CharDelimiterSplit>();
    HONE_ASSIGN_OR_RETURN(result->delimiter, object.character("delimiter"));
    return result;
  }

  absl::Status apply(Piece piece, PreTokenizerScratch &, Sink sink) const override {
    return splitAtCharacters(piece, SplitBehavior::Removed, [&](char32_t c) { return c == delimiter; }, sink);
  }

private:
  char32_t delimiter = 0;
};

class FixedLength : public PreTokenizer {
public:
  static Result create(const JsonObject &object) {
    auto result = std::make_unique<FixedLength>();
    if (object.find("length")) {
      HONE_ASSIGN_OR_RETURN(result->length, object.integer("length", 1, INT32_MAX));
    }
    return result;
  }

  absl::Status apply(Piece piece, PreTokenizerScratch &, Sink sink) const override {
    for (size_t begin = 0, end = 0; begin < piece.text.size(); begin = end) {
      for (int64_t i = 0; i < length && end < piece.text.size(); ++i)
        end += sequenceLength(piece.text[end]);
      HONE_RETURN_IF_ERROR(sink(subpiece(piece, {begin, end})));
    }
    return absl::OkStatus();
  }

private:
  int64_t length = 5;
};

class PreTokenizerSequence : public PreTokenizer {
public:
  static Result create(const JsonObject &object) {
    auto result = std::make_unique<PreTokenizerSequence>();
    HONE_ASSIGN_OR_RETURN(auto children, object.objects("pretokenizers"));
    if (children.size() > kMaximalStages) // each is a level of recursion
      return io::invalid("expected ", object.pathOf("pretokenizers"), " to have at most ", kMaximalStages,
                         " elements, but got ", children.size());
    for (const JsonObject &child : children) {
      HONE_ASSIGN_OR_RETURN(auto stage, PreTokenizer::read(child));
      result->stages.push_back(std::move(stage));
    }
    return result;
  }

  absl::Status apply(Piece piece, PreTokenizerScratch &scratch, Sink sink) const override {
    return applyFrom(0, piece, scratch, sink);
  }

private:
  static constexpr size_t kMaximalStages = 64;

  absl::Status applyFrom(size_t stage, Piece piece, PreTokenizerScratch &scratch, Sink sink) const {
    if (stage == stages.size())
      return sink(piece);
    return stages[stage]->apply(piece, scratch, [&](Piece part) { return applyFrom(stage + 1, part, scratch, sink); });
  }

  std::vector<std::unique_ptr<PreTokenizer>> stages;
};

template <typename Class>
Result plain(const JsonObject &) {
  return std::make_unique<Class>();
}

constexpr struct {
  std::string_view type;
  Result (*create)(const JsonObject &);
} kPreTokenizers[] = {
    {"BertPreTokenizer", plain<BertPreTokenizer>},
    {"ByteLevel", ByteLevel::create},
    {"CharDelimiterSplit", CharDelimiterSplit::create},
    {"Digits", Digits::create},
    {"FixedLength", FixedLength::create},
    {"Metaspace", Metaspace::create},
    {"Punctuation", Punctuation::create},
    {"Sequence", PreTokenizerSequence::create},
    {"Split", Split::create},
    {"Whitespace", plain<Whitespace>},
    {"WhitespaceSplit", plain<WhitespaceSplit>},
};

} // namespace

absl::StatusOr<MetaspaceOptions> MetaspaceOptions::read(const JsonObject &object) {
  MetaspaceOptions options;
  HONE_ASSIGN_OR_RETURN(char32_t replacement, object.character("replacement"));
  appendCodePoint(options.replacement, replacement);
  HONE_ASSIGN_OR_RETURN(std::string scheme, object.stringOr("prepend_scheme", "always"));
  HONE_ASSIGN_OR_RETURN(bool addPrefixSpace, object.booleanOr("add_prefix_space", true));
  HONE_ASSIGN_OR_RETURN(options.split, object.booleanOr("split", true));
  if (scheme == "first")
    options.prepend = Prepend::First;
  else if (scheme == "never")
    options.prepend = Prepend::Never;
  else if (scheme != "always")
    return object.unsupported(object.pathOf("prepend_scheme"), scheme, "always, first, never");
  if (!addPrefixSpace && object.find("prepend_scheme") && options.prepend != Prepend::Never)
    return io::invalid("expected ", object.pathOf("prepend_scheme"),
                       " to be 'never' where add_prefix_space is false, but got '", scheme, "'");
  if (!addPrefixSpace)
    options.prepend = Prepend::Never;
  return options;
}

absl::StatusOr<std::unique_ptr<PreTokenizer>> PreTokenizer::read(const JsonObject &object) {
  HONE_ASSIGN_OR_RETURN(std::string type, object.string("type"));
  for (auto candidate : kPreTokenizers)
    if (candidate.type == type)
      return candidate.create(object);
  return object.unsupported("pre_tokenizer", type, kSupported);
}

} // namespace hone::text
