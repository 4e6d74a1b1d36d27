// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The normalizers of tokenizer.json, one class each, and the reader that picks one.

#include "text/normalizer.h"

#include "text/pattern.h"
#include "text/precompiled.h"
#include "text/unicode.h"

#include "absl/functional/function_ref.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>

namespace hone::text {

namespace {

constexpr std::string_view kSupported = "BertNormalizer, ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, "
                                        "Prepend, Replace, Sequence, Strip, StripAccents";

/// Rewrites character by character. `rewrite` appends what a character becomes.
absl::Status rewriteCharacters(NormalizedText &text, absl::FunctionRef<void(char32_t, std::string &)> rewrite) {
  std::string result;
  result.reserve(text.text.size());
  for (size_t position = 0; position < text.text.size();) {
    bool first = position == 0;
    rewrite(decodeCodePoint(text.text, position), result);
    HONE_RETURN_IF_ERROR(checkLength(result.size()));
    if (first && result.empty())
      text.atStart = false;
  }
  text.text = std::move(result);
  return absl::OkStatus();
}

/// Takes what ICU writes, up to the limit.
class LimitedSink final : public icu::ByteSink {
public:
  explicit LimitedSink(std::string &text) : text(text) {}
  void Append(const char *bytes, int32_t count) override {
    if (status.ok())
      status = appendLimited(text, {bytes, static_cast<size_t>(count)});
  }

  absl::Status status;

private:
  std::string &text;
};

class UnicodeForm : public Normalizer {
public:
  using Getter = const icu::Normalizer2 *(*)(UErrorCode &);
  explicit UnicodeForm(Getter getter) : getter(getter) {}

  absl::Status apply(NormalizedText &text, RegexScratch &) const override {
    if (isAscii(text.text))
      return absl::OkStatus();
    UErrorCode error = U_ZERO_ERROR;
    const icu::Normalizer2 *form = getter(error);
    std::string result;
    LimitedSink sink(result);
    if (U_SUCCESS(error))
      form->normalizeUTF8(0, icu::StringPiece(text.text.data(), static_cast<int32_t>(text.text.size())), sink, nullptr,
                          error);
    if (U_FAILURE(error))
      return absl::InternalError(io::cat("cannot normalize ", text.text.size(), " bytes: ", u_errorName(error)));
    HONE_RETURN_IF_ERROR(sink.status);
    text.text = std::move(result);
    return absl::OkStatus();
  }

private:
  Getter getter;
};

class Lowercase : public Normalizer {
public:
  absl::Status apply(NormalizedText &text, RegexScratch &) const override {
    return rewriteCharacters(text, [](char32_t c, std::string &out) { appendLowercase(out, c); });
  }
};

class StripAccents : public Normalizer {
public:
  absl::Status apply(NormalizedText &text, RegexScratch &) const override {
    return rewriteCharacters(text, [](char32_t c, std::string &out) {
      if (!isCombiningMark(c))
        appendCodePoint(out, c);
    });
  }
};

/// The character rules of SentencePiece's "nmt" normalization.
class Nmt : public Normalizer {
public:
  absl::Status apply(NormalizedText &text, RegexScratch &) const override {
    return rewriteCharacters(text, [](char32_t c, std::string &out) {
      if (!isDropped(c))
        appendCodePoint(out, isSpace(c) ? U' ' : c);
    });
  }

private:
  static bool isDropped(char32_t c) {
    return (c >= 0x1 && c <= 0x8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f;
  }
  static bool isSpace(char32_t c) {
    return c == 0x9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 || (c >= 0x200b && c <= 0x200f) || c == 0x2028 ||
           c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd;
  }
};

class BertNormalizer : public Normalizer {
public:
  static absl::StatusOr<std::unique_ptr<Normalizer>> create(const JsonObject &object) {
    auto result = std::make_unique<BertNormalizer>();
    HONE_ASSIGN_OR_RETURN(result->cleanText, object.boolean("clean_text"));
    HONE_ASSIGN_OR_RETURN(result->separateChinese, object.boolean("handle_chinese_chars"));
    HONE_ASSIGN_OR_RETURN(result->lowercase, object.boolean("lowercase"));
    HONE_ASSIGN_OR_RETURN(result->stripAccents, object.booleanOr("strip_accents", result->lowercase));
    return result;
  }

  absl::Status apply(NormalizedText &text, RegexScratch &scratch) const override {
    HONE_RETURN_IF_ERROR(rewriteCharacters(text, [&](char32_t c, std::string &out) { clean(c, out); }));
    if (stripAccents) {
      HONE_RETURN_IF_ERROR(UnicodeForm(icu::Normalizer2::getNFDInstance).apply(text, scratch));
      HONE_RETURN_IF_ERROR(rewriteCharacters(text, [](char32_t c, std::string &out) {
        if (!isNonspacingMark(c))
          appendCodePoint(out, c);
      }));
    }
    return lowercase ? Lowercase().apply(text, scratch) : absl::OkStatus();
  }

private:
  void clean(char32_t c, std::string &out) const {
    constexpr char32_t kReplacement = 0xfffd;
    bool isSpace = c == '\t' || c == '\n' || c == '\r' || isWhitespace(c);
    bool isControl = isOther(c) && c != '\t' && c != '\n' && c != '\r';
    if (cleanText && (c == 0 || c == kReplacement || isControl))
      return;
    if (separateChinese && isChineseCharacter(c)) {
      out.push_back(' ');
      appendCodePoint(out, c);
      out.push_back(' ');
      return;
    }
    appendCodePoint(out, cleanText && isSpace ? U' ' : c);
  }

  bool cleanText = true, separateChinese = true, stripAccents = true, lowercase = true;
};

class Strip : public Normalizer {
public:
  static absl::StatusOr<std::unique_ptr<Normalizer>> create(const JsonObject &object) {
    auto result = std::make_unique<Strip>();
    HONE_ASSIGN_OR_RETURN(result->left, object.boolean("strip_left"));
    HONE_ASSIGN_OR_RETURN(result->right, object.boolean("strip_right"));
    return result;
  }

  absl::Status apply(NormalizedText &text, RegexScratch &) const override {
    size_t begin = 0, end = 0; // of what is kept
    bool any = false;
    for (size_t position = 0; position < text.text.size();) {
      size_t start = position;
      if (isWhitespace(decodeCodePoint(text.text, position)))
        continue;
      begin = any ? begin : start;
      end = position;
      any = true;
    }
    size_t size = text.text.size();
    begin = !left ? 0 : any ? begin : size;
    end = !right ? size : any ? end : begin;
    text.atStart &= begin == 0;
    text.text = text.text.substr(begin, end - begin);
    return absl::OkStatus();
  }

private:
  bool left = false, right = false;
};

class Prepend : public Normalizer {
public:
  static absl::StatusOr<std::unique_ptr<Normalizer>> create(const JsonObject &object) {
    auto result = std::make_unique<Prepend>();
    HONE_ASSIGN_OR_RETURN(result->prefix, object.string("prepend"));
    return result;
  }

  absl::Status apply(NormalizedText &text, RegexScratch &) const override {
    if (text.text.empty())
      return absl::OkStatus();
    HONE_RETURN_IF_ERROR(checkLength(prefix.size() + text.text.size()));
    text.text.insert(0, prefix);
    return absl::OkStatus();
  }

private:
  std::string prefix;
};

class Replace : public Normalizer {
public:
  static absl::StatusOr<std::unique_ptr<Normalizer>> create(const JsonObject &object) {
    auto result = std::make_unique<Replace>();
    HONE_ASSIGN_OR_RETURN(result->pattern, Pattern::read(object, "pattern"));
    HONE_ASSIGN_OR_RETURN(result->content, object.string("content"));
    return result;
  }

  absl::Status apply(NormalizedText &text, RegexScratch &scratch) const override {
    std::string result;
    result.reserve(text.text.size());
    HONE_RETURN_IF_ERROR(pattern->segments(text.text, scratch, [&](Range range, bool isMatch) {
      std::string_view segment = std::string_view(text.text).substr(range.begin, range.end - range.begin);
      // What replaces several characters takes the place of the last of them.
      if (isMatch && range.begin == 0 && !segment.empty())
        text.atStart &= !content.empty() && countCodePoints(segment) == 1;
      return appendLimited(result, isMatch ? std::string_view(content) : segment);
    }));
    text.text = std::move(result);
    return absl::OkStatus();
  }

private:
  std::optional<Pattern> pattern;
  std::string content;
};

class ByteLevelNormalizer : public Normalizer {
public:
  absl::Status apply(NormalizedText &text, RegexScratch &) const override {
    constexpr size_t most = 2; // bytes of a character of that alphabet
    HONE_RETURN_IF_ERROR(checkLength(text.text.size() * most));
    std::string result;
    appendByteLevel(result, text.text);
    text.text = std::move(result);
    return absl::OkStatus();
  }
};

class NormalizerSequence : public Normalizer {
public:
  static absl::StatusOr<std::unique_ptr<Normalizer>> create(const JsonObject &object) {
    auto result = std::make_unique<NormalizerSequence>();
    HONE_ASSIGN_OR_RETURN(auto children, object.objects("normalizers"));
    for (const JsonObject &child : children) {
      HONE_ASSIGN_OR_RETURN(auto normalizer, Normalizer::read(child));
      result->stages.push_back(std::move(normalizer));
    }
    return result;
  }

  absl::Status apply(NormalizedText &text, RegexScratch &scratch) const override {
    for (const auto &stage : stages)
      HONE_RETURN_IF_ERROR(stage->apply(text, scratch));
    return absl::OkStatus();
  }

private:
  std::vector<std::unique_ptr<Normalizer>> stages;
};

using Creator = absl::StatusOr<std::unique_ptr<Normalizer>> (*)(const JsonObject &);

template <typename Class>
absl::StatusOr<std::unique_ptr<Normalizer>> plain(const JsonObject &) {
  return std::make_unique<Class>();
}

template <UnicodeForm::Getter getter>
absl::StatusOr<std::unique_ptr<Normalizer>> form(const JsonObject &) {
  return std::make_unique<UnicodeForm>(getter);
}

constexpr struct {
  std::string_view type;
  Creator create;
} kNormalizers[] = {
    {"BertNormalizer", BertNormalizer::create},
    {"ByteLevel", plain<ByteLevelNormalizer>},
    {"Lowercase", plain<Lowercase>},
    {"NFC", form<icu::Normalizer2::getNFCInstance>},
    {"NFD", form<icu::Normalizer2::getNFDInstance>},
    {"NFKC", form<icu::Normalizer2::getNFKCInstance>},
    {"NFKD", form<icu::Normalizer2::getNFKDInstance>},
    {"Nmt", plain<Nmt>},
    {"Precompiled", Precompiled::create},
    {"Prepend", Prepend::create},
    {"Replace", Replace::create},
    {"Sequence", NormalizerSequence::create},
    {"Strip", Strip::create},
    {"StripAccents", plain<StripAccents>},
};

} // namespace

absl::StatusOr<std::unique_ptr<Normalizer>> Normalizer::read(const JsonObject &object) {
  HONE_ASSIGN_OR_RETURN(std::string type, object.string("type"));
  for (auto candidate : kNormalizers)
    if (candidate.type == type)
      return candidate.create(object);
  return object.unsupported("normalizer", type, kSupported);
}

} // namespace hone::text
