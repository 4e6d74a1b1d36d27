// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tokenizer as a whole: added tokens, normalizer, pre-tokenizer, model and post-processor in their order.

#include "hone/text/tokenizer.h"

#include "hone/io/file.h"
#include "text/added_vocabulary.h"
#include "text/decoder.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/unicode.h"

#include <mutex>

namespace hone::text {

namespace {

/// What one call of encode() works with.
struct EncodeScratch {
  PreTokenizerScratch preTokenizer;
  std::unique_ptr<ModelScratch> model;
};

/// Scratches that no call uses at the moment, with what their caches have learnt.
class ScratchPool {
public:
  std::unique_ptr<EncodeScratch> take(const Model &model) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (!idle.empty()) {
        auto scratch = std::move(idle.back());
        idle.pop_back();
        return scratch;
      }
    }
    auto scratch = std::make_unique<EncodeScratch>();
    scratch->model = model.makeScratch();
    return scratch;
  }
  void giveBack(std::unique_ptr<EncodeScratch> scratch) {
    std::lock_guard<std::mutex> lock(mutex);
    idle.push_back(std::move(scratch));
  }

private:
  std::mutex mutex;
  std::vector<std::unique_ptr<EncodeScratch>> idle;
};

} // namespace

struct Tokenizer::Parts {
  absl::Status read(const JsonObject &document);
  absl::Status encode(std::string_view text, EncodeScratch &scratch, std::vector<int32_t> &ids) const;
  absl::Status encodeStretch(Piece stretch, EncodeScratch &scratch, std::vector<int32_t> &ids) const;
  absl::Status encodeNormalized(Piece stretch, EncodeScratch &scratch, std::vector<int32_t> &ids) const;
  const std::string *tokenOf(int32_t id) const;

  std::unique_ptr<Model> model;
  std::unique_ptr<Normalizer> normalizer;     // null: none
  std::unique_ptr<PreTokenizer> preTokenizer; // null: none
  std::unique_ptr<Decoder> decoder;
  PostProcessor postProcessor;
  AddedVocabulary added;
  ScratchPool pool;
};

absl::Status Tokenizer::Parts::read(const JsonObject &document) {
  HONE_ASSIGN_OR_RETURN(std::string version, document.stringOr("version", "1.0"));
  if (version != "1.0")
    return document.unsupported("version", version, "1.0");
  HONE_ASSIGN_OR_RETURN(JsonObject modelObject, document.object("model"));
  HONE_ASSIGN_OR_RETURN(model, Model::read(modelObject));
  HONE_ASSIGN_OR_RETURN(auto object, document.optionalObject("normalizer"));
  if (object) {
    HONE_ASSIGN_OR_RETURN(normalizer, Normalizer::read(*object));
  }
  HONE_ASSIGN_OR_RETURN(object, document.optionalObject("pre_tokenizer"));
  if (object) {
    HONE_ASSIGN_OR_RETURN(preTokenizer, PreTokenizer::read(*object));
  }
  HONE_ASSIGN_OR_RETURN(object, document.optionalObject("post_processor"));
  if (object) {
    HONE_ASSIGN_OR_RETURN(postProcessor, PostProcessor::read(*object));
  }
  HONE_ASSIGN_OR_RETURN(object, document.optionalObject("decoder"));
  decoder = Decoder::joining();
  if (object) {
    HONE_ASSIGN_OR_RETURN(decoder, Decoder::read(*object));
  }
  HONE_ASSIGN_OR_RETURN(added, AddedVocabulary::read(document, *model, normalizer.get()));
  return absl::OkStatus();
}

/// Added tokens that are matched in the text as it is, and what stands between them.
absl::Status Tokenizer::Parts::encode(std::string_view text, EncodeScratch &scratch, std::vector<int32_t> &ids) const {
  return added.split(text, /*normalized=*/false, [&](Range range, int32_t id) {
    if (id >= 0) {
      ids.push_back(id);
      return absl::OkStatus();
    }
    return encodeStretch({text.substr(range.begin, range.end - range.begin), range.begin == 0}, scratch, ids);
  });
}

absl::Status Tokenizer::Parts::encodeStretch(Piece stretch, EncodeScratch &scratch, std::vector<int32_t> &ids) const {
  if (!normalizer)
    return encodeNormalized(stretch, scratch, ids);
  NormalizedText normalized{std::string(stretch.text), stretch.atStart};
  HONE_RETURN_IF_ERROR(normalizer->apply(normalized, scratch.preTokenizer.regex));
  return encodeNormalized({normalized.text, normalized.atStart}, scratch, ids);
}

/// Added tokens that are matched after normalization, and the words between them.
absl::Status Tokenizer::Parts::encodeNormalized(Piece stretch, EncodeScratch &scratch,
                                                std::vector<int32_t> &ids) const {
  auto tokenize = [&](Piece word) { return model->tokenize(word.text, *scratch.model, ids); };
  return added.split(stretch.text, /*normalized=*/true, [&](Range range, int32_t id) {
    if (id >= 0) {
      ids.push_back(id);
      return absl::OkStatus();
    }
    Piece piece{stretch.text.substr(range.begin, range.end - range.begin), stretch.atStart && range.begin == 0};
    return preTokenizer ? preTokenizer->apply(piece, scratch.preTokenizer, tokenize) : tokenize(piece);
  });
}

const std::string *Tokenizer::Parts::tokenOf(int32_t id) const {
  const std::string *token = added.tokenOf(id);
  return token ? token : model->vocabulary().tokenOf(id);
}

Tokenizer::Tokenizer(std::unique_ptr<Parts> parts) : parts(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer &&) noexcept = default;
Tokenizer &Tokenizer::operator=(Tokenizer &&) noexcept = default;
Tokenizer::~Tokenizer() = default;

absl::StatusOr<Tokenizer> Tokenizer::fromJson(std::string_view json) {
  HONE_ASSIGN_OR_RETURN(io::JsonDocument document, parseJson(json));
  HONE_ASSIGN_OR_RETURN(JsonObject root, JsonObject::root(*document));
  auto parts = std::make_unique<Parts>();
  HONE_RETURN_IF_ERROR(parts->read(root));
  return Tokenizer(std::move(parts));
}

absl::StatusOr<Tokenizer> Tokenizer::fromFile(const std::string &path) {
  HONE_ASSIGN_OR_RETURN(io::MappedFile file, io::MappedFile::open(path));
  auto tokenizer = fromJson(file.text());
  if (!tokenizer.ok())
    return absl::Status(tokenizer.status().code(), io::cat(path, ": ", tokenizer.status().message()));
  return tokenizer;
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::encode(std::string_view text, bool addSpecialTokens) const {
  if (text.size() > INT32_MAX)
    return io::invalid("cannot tokenize ", text.size(), " bytes at once: the limit is ", INT32_MAX);
  size_t invalid = findInvalidUtf8(text);
  if (invalid != std::string_view::npos)
    return io::invalid("cannot tokenize text that is not valid UTF-8, from byte ", invalid, " of ", text.size());
  std::unique_ptr<EncodeScratch> scratch = parts->pool.take(*parts->model);
  std::vector<int32_t> ids;
  absl::Status status = parts->encode(text, *scratch, ids);
  parts->pool.giveBack(std::move(scratch));
  HONE_RETURN_IF_ERROR(status);
  return parts->postProcessor.apply(std::move(ids), addSpecialTokens);
}

absl::StatusOr<std::string> Tokenizer::decode(absl::Span<const int32_t> ids, bool skipSpecialTokens) const {
  Detokenizer detokenizer(*this, skipSpecialTokens);
  std::string text;
  for (int32_t id : ids) {
    HONE_ASSIGN_OR_RETURN(std::string part, detokenizer.push(id));
    text += part;
  }
  HONE_ASSIGN_OR_RETURN(std::string rest, detokenizer.finish());
  return text + rest;
}

std::optional<int32_t> Tokenizer::idOf(std::string_view token) const {
  std::optional<int32_t> id = parts->added.idOf(token);
  return id ? id : parts->model->vocabulary().idOf(token);
}

std::optional<std::string> Tokenizer::tokenOf(int32_t id) const {
  const std::string *token = parts->tokenOf(id);
  return token ? std::optional<std::string>(*token) : std::nullopt;
}

bool Tokenizer::isSpecial(int32_t id) const {
  const std::string *token = parts->tokenOf(id);
  return token && parts->added.isSpecial(*token);
}

std::optional<TokenDifference> findDifference(const Tokenizer &expected, const Tokenizer &got, int64_t count) {
  auto nameOf = [](const std::optional<std::string> &token) { return token ? "'" + *token + "'" : "no token"; };
  for (int64_t id = 0; id < count; ++id) {
    std::optional<std::string> one = expected.tokenOf(static_cast<int32_t>(id)),
                               other = got.tokenOf(static_cast<int32_t>(id));
    if (one != other)
      return TokenDifference{id, nameOf(one), nameOf(other)};
  }
  return std::nullopt;
}

Detokenizer::Detokenizer(const Tokenizer &tokenizer, bool skipSpecialTokens)
    : tokenizer(&tokenizer), skipSpecialTokens(skipSpecialTokens), pending(std::make_unique<std::string>()),
      stage(tokenizer.parts->decoder->open(appendTo(*pending))) {}
Detokenizer::Detokenizer(Detokenizer &&) noexcept = default;
Detokenizer &Detokenizer::operator=(Detokenizer &&) noexcept = default;
Detokenizer::~Detokenizer() = default;

absl::StatusOr<std::string> Detokenizer::push(int32_t id) {
  const std::string *token = tokenizer->parts->tokenOf(id);
  if (!token || (skipSpecialTokens && tokenizer->parts->added.isSpecial(*token)))
    return std::string();
  HONE_RETURN_IF_ERROR(stage->text(*token));
  HONE_RETURN_IF_ERROR(stage->endToken());
  return std::exchange(*pending, {});
}

absl::StatusOr<std::string> Detokenizer::finish() {
  HONE_RETURN_IF_ERROR(stage->finish());
  return std::exchange(*pending, {});
}

} // namespace hone::text
