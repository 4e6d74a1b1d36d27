// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The decoders of tokenizer.json, one stage class each, and the reader that picks one.

#include "text/decoder.h"

#include "text/decode_stages.h"
#include "text/metaspace.h"
#include "text/normalizer.h"
#include "text/pattern.h"
#include "text/unicode.h"

namespace hone::text {

namespace {

constexpr std::string_view kSupported =
    "BPEDecoder, ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence, Strip, WordPiece";

using Next = std::unique_ptr<DecodeStage>;

/// Bytes of the byte-level alphabet; a token with any other character stands for its own bytes.
class ByteLevelStage : public TokenStage {
public:
  using TokenStage::TokenStage;

  absl::Status finish() override {
    std::string rest;
    utf8.finish(rest);
    HONE_RETURN_IF_ERROR(emit(rest));
    return TokenStage::finish();
  }

private:
  absl::Status token(std::string &whole) override {
    std::string bytes, text;
    for (size_t position = 0; position < whole.size();) {
      int byte = byteLevelByte(decodeCodePoint(whole, position));
      if (byte < 0) {
        bytes = whole;
        break;
      }
      bytes.push_back(static_cast<char>(byte));
    }
    utf8.push(bytes, text);
    return text.empty() ? absl::OkStatus() : next->text(text); // all text is one token
  }

  LossyUtf8 utf8;
};

/// Runs of tokens <0xHH> become text where the whole run is valid UTF-8, and one U+FFFD a token where it is not; a run
/// is held back until it ends.
class ByteFallbackStage : public TokenStage {
public:
  using TokenStage::TokenStage;

  absl::Status finish() override {
    HONE_RETURN_IF_ERROR(flush());
    return TokenStage::finish();
  }

private:
  absl::Status token(std::string &whole) override {
    if (std::optional<char> byte = byteOf(whole)) {
      run.push_back(*byte);
      return absl::OkStatus();
    }
    HONE_RETURN_IF_ERROR(flush());
    return emit(whole);
  }

  static std::optional<char> byteOf(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>'))
      return std::nullopt;
    int value = 0;
    for (char digit : token.substr(3, 2)) {
      if (!std::isxdigit(static_cast<unsigned char>(digit)))
        return std::nullopt;
      value = value * 16 + (digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
    }
    return static_cast<char>(value);
  }

  absl::Status flush() {
    std::string bytes = std::exchange(run, {});
    if (bytes.empty())
      return absl::OkStatus();
    if (findInvalidUtf8(bytes) == std::string::npos)
      return emit(bytes);
    for (size_t i = 0; i < bytes.size(); ++i)
      HONE_RETURN_IF_ERROR(emit("\xef\xbf\xbd"));
    return absl::OkStatus();
  }

  std::string run;
};

/// All tokens become one.
class FuseStage : public DecodeStage {
public:
  explicit FuseStage(Next next) : next(std::move(next)) {}
  absl::Status text(std::string_view part) override { return next->text(part); }
  absl::Status endToken() override { return absl::OkStatus(); }
  absl::Status finish() override {
    HONE_RETURN_IF_ERROR(next->endToken());
    return next->finish();
  }

private:
  Next next;
};

struct StripOptions {
  char32_t content = 0;
  int64_t start = 0, stop = 0;
};

/// Takes up to `start` characters `content` from the beginning of a token and up to `stop` from its end.
class StripStage : public DecodeStage {
public:
  StripStage(StripOptions options, Next next) : options(options), next(std::move(next)) {}

  absl::Status text(std::string_view part) override {
    std::string kept;
    for (size_t position = 0; position < part.size();)
      character(decodeCodePoint(part, position), kept);
    return next->text(kept);
  }
  absl::Status endToken() override {
    atBeginning = true;
    taken = heldBack = 0;
    return next->endToken();
  }
  absl::Status finish() override { return next->finish(); }

private:
  void character(char32_t c, std::string &kept) {
    if (atBeginning && c == options.content && taken < options.start) {
      ++taken;
      return;
    }
    atBeginning = false;
    if (c == options.content && heldBack < options.stop) {
      ++heldBack;
      return;
    }
    bool isContent = c == options.content; // one more than may be taken: the first of them stays
    for (; !isContent && heldBack > 0; --heldBack)
      appendCodePoint(kept, options.content);
    appendCodePoint(kept, c);
  }

  StripOptions options;
  Next next;
  bool atBeginning = true;
  int64_t taken = 0, heldBack = 0;
};

/// The replacement character becomes a space, and nothing in the first token where the scheme puts one before the text.
class MetaspaceStage : public DecodeStage {
public:
  MetaspaceStage(const MetaspaceOptions &options, Next next) : options(options), next(std::move(next)) {}

  absl::Status text(std::string_view part) override {
    std::string result(part);
    bool drops = isFirst && options.prepend != MetaspaceOptions::Prepend::Never;
    replaceAll(result, options.replacement, drops ? "" : " ");
    return next->text(result);
  }
  absl::Status endToken() override {
    isFirst = false;
    return next->endToken();
  }
  absl::Status finish() override { return next->finish(); }

private:
  const MetaspaceOptions &options;
  Next next;
  bool isFirst = true;
};

struct ReplaceOptions {
  std::optional<Pattern> pattern;
  std::string content;
};

class ReplaceStage : public TokenStage {
public:
  ReplaceStage(const ReplaceOptions &options, Next next) : TokenStage(std::move(next)), options(options) {}

private:
  absl::Status token(std::string &whole) override {
    std::string result;
    HONE_RETURN_IF_ERROR(options.pattern->segments(whole, scratch, [&](Range range, bool isMatch) {
      return appendLimited(result, isMatch ? std::string_view(options.content)
                                           : std::string_view(whole).substr(range.begin, range.end - range.begin));
    }));
    return emit(result);
  }

  const ReplaceOptions &options;
  RegexScratch scratch;
};

struct WordPieceOptions {
  std::string prefix;
  bool cleanup = false;
};

/// Tokens that continue a word lose their prefix, the others get a space before them.
class WordPieceStage : public TokenStage {
public:
  WordPieceStage(const WordPieceOptions &options, Next next) : TokenStage(std::move(next)), options(options) {}

private:
  absl::Status token(std::string &whole) override {
    if (!std::exchange(isFirst, false)) {
      if (whole.starts_with(options.prefix))
        whole.erase(0, options.prefix.size());
      else
        whole.insert(0, " ");
    }
    if (options.cleanup)
      cleanUp(whole);
    return emit(whole);
  }

  /// Takes back the spaces that tokenization put before English punctuation and contractions.
  static void cleanUp(std::string &text) {
    static constexpr struct {
      std::string_view from, to;
    } kRules[] = {{" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
                  {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (auto rule : kRules)
      replaceAll(text, rule.from, rule.to);
  }

  const WordPieceOptions &options;
  bool isFirst = true;
};

/// The suffix that ends words becomes a space, but for the last token's; a token is held back until the next comes.
class BpeStage : public TokenStage {
public:
  BpeStage(const std::string &suffix, Next next) : TokenStage(std::move(next)), suffix(suffix) {}

  absl::Status finish() override {
    HONE_RETURN_IF_ERROR(flush(""));
    return TokenStage::finish();
  }

private:
  absl::Status token(std::string &whole) override {
    HONE_RETURN_IF_ERROR(flush(" "));
    last = std::move(whole);
    return absl::OkStatus();
  }

  absl::Status flush(std::string_view replacement) {
    if (!last)
      return absl::OkStatus();
    replaceAll(*last, suffix, replacement);
    absl::Status status = emit(*last);
    last.reset();
    return status;
  }

  const std::string &suffix;
  std::optional<std::string> last;
};

class JoinStage : public DecodeStage {
public:
  explicit JoinStage(Next next) : next(std::move(next)) {}
  absl::Status text(std::string_view part) override {
    if (std::exchange(owesSpace, false))
      HONE_RETURN_IF_ERROR(next->text(" "));
    return next->text(part);
  }
  absl::Status endToken() override {
    owesSpace = true;
    return next->endToken();
  }
  absl::Status finish() override { return next->finish(); }

private:
  Next next;
  bool owesSpace = false;
};

class AppendStage : public DecodeStage {
public:
  explicit AppendStage(std::string &output) : output(output) {}
  absl::Status text(std::string_view part) override {
    output += part;
    return absl::OkStatus();
  }
  absl::Status endToken() override { return absl::OkStatus(); }
  absl::Status finish() override { return absl::OkStatus(); }

private:
  std::string &output;
};

/// A decoder whose stage takes nothing but the next one.
template <typename Stage>
class PlainDecoder : public Decoder {
public:
  Next open(Next next) const override { return std::make_unique<Stage>(std::move(next)); }
};

/// A decoder that owns what its stages read.
template <typename Stage, typename Options>
class OptionsDecoder : public Decoder {
public:
  explicit OptionsDecoder(Options options) : options(std::move(options)) {}
  Next open(Next next) const override { return std::make_unique<Stage>(options, std::move(next)); }

private:
  Options options;
};

class DecoderSequence : public Decoder {
public:
  explicit DecoderSequence(std::vector<std::unique_ptr<Decoder>> decoders) : decoders(std::move(decoders)) {}

  Next open(Next next) const override {
    for (auto decoder = decoders.rbegin(); decoder != decoders.rend(); ++decoder)
      next = (*decoder)->open(std::move(next));
    return next;
  }

private:
  std::vector<std::unique_ptr<Decoder>> decoders;
};

using Result = absl::StatusOr<std::unique_ptr<Decoder>>;

Result readSequence(const JsonObject &object) {
  HONE_ASSIGN_OR_RETURN(auto children, object.objects("decoders"));
  std::vector<std::unique_ptr<Decoder>> decoders;
  for (const JsonObject &child : children) {
    HONE_ASSIGN_OR_RETURN(decoders.emplace_back(), Decoder::read(child));
  }
  return std::make_unique<DecoderSequence>(std::move(decoders));
}

Result readStrip(const JsonObject &object) {
  StripOptions options;
  HONE_ASSIGN_OR_RETURN(options.content, object.character("content"));
  HONE_ASSIGN_OR_RETURN(options.start, object.integer("start", 0, INT32_MAX));
  HONE_ASSIGN_OR_RETURN(options.stop, object.integer("stop", 0, INT32_MAX));
  return std::make_unique<OptionsDecoder<StripStage, StripOptions>>(options);
}

Result readMetaspace(const JsonObject &object) {
  HONE_ASSIGN_OR_RETURN(MetaspaceOptions options, MetaspaceOptions::read(object));
  return std::make_unique<OptionsDecoder<MetaspaceStage, MetaspaceOptions>>(std::move(options));
}

Result readReplace(const JsonObject &object) {
  ReplaceOptions options;
  HONE_ASSIGN_OR_RETURN(options.pattern, Pattern::read(object, "pattern"));
  HONE_ASSIGN_OR_RETURN(options.content, object.string("content"));
  return std::make_unique<OptionsDecoder<ReplaceStage, ReplaceOptions>>(std::move(options));
}

Result readWordPiece(const JsonObject &object) {
  WordPieceOptions options;
  HONE_ASSIGN_OR_RETURN(options.prefix, object.string("prefix"));
  HONE_ASSIGN_OR_RETURN(options.cleanup, object.boolean("cleanup"));
  return std::make_unique<OptionsDecoder<WordPieceStage, WordPieceOptions>>(std::move(options));
}

Result readBpe(const JsonObject &object) {
  HONE_ASSIGN_OR_RETURN(std::string suffix, object.string("suffix"));
  return std::make_unique<OptionsDecoder<BpeStage, std::string>>(std::move(suffix));
}

template <typename Stage>
Result plain(const JsonObject &) {
  return std::make_unique<PlainDecoder<Stage>>();
}

constexpr struct {
  std::string_view type;
  Result (*read)(const JsonObject &);
} kDecoders[] = {
    {"BPEDecoder", readBpe},
    {"ByteFallback", plain<ByteFallbackStage>},
    {"ByteLevel", plain<ByteLevelStage>},
    {"Fuse", plain<FuseStage>},
    {"Metaspace", readMetaspace},
    {"Replace", readReplace},
    {"Sequence", readSequence},
    {"Strip", readStrip},
    {"WordPiece", readWordPiece},
};

} // namespace

void replaceAll(std::string &text, std::string_view from, std::string_view to) {
  std::string result;
  size_t position = 0;
  for (size_t found; !from.empty() && (found = text.find(from, position)) != std::string::npos;) {
    result.append(text, position, found - position).append(to);
    position = found + from.size();
  }
  if (position > 0)
    text = result.append(text, position);
}

absl::StatusOr<std::unique_ptr<Decoder>> Decoder::read(const JsonObject &object) {
  HONE_ASSIGN_OR_RETURN(std::string type, object.string("type"));
  for (auto candidate : kDecoders)
    if (candidate.type == type)
      return candidate.read(object);
  return object.unsupported("decoder", type, kSupported);
}

std::unique_ptr<Decoder> Decoder::joining() { return std::make_unique<PlainDecoder<JoinStage>>(); }

std::unique_ptr<DecodeStage> appendTo(std::string &output) { return std::make_unique<AppendStage>(output); }

} // namespace hone::text
