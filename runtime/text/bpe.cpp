// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Byte-pair encoding of words: characters become symbols, symbols merge, and words seen before are looked up.

#include "text/bpe.h"

#include "text/unicode.h"
#include "text/word_cache.h"

namespace hone::text {

namespace {

constexpr size_t kBasicPlane = 0x10000;
constexpr int32_t kNoId = -1;

std::string_view bytesOf(const int32_t *symbols, size_t count) {
  return {reinterpret_cast<const char *>(symbols), count * sizeof(*symbols)};
}

} // namespace

struct BpeModel::Scratch : ModelScratch {
  WordCache words;    // by text
  WordCache segments; // by the bytes of their symbols
  std::vector<int32_t> symbols;
  std::vector<size_t> segmentEnds;
  MergeScratch merges;
};

std::unique_ptr<ModelScratch> BpeModel::makeScratch() const { return std::make_unique<Scratch>(); }

absl::StatusOr<std::unique_ptr<Model>> BpeModel::create(const JsonObject &object) {
  HONE_ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::read(object));
  auto model = std::unique_ptr<BpeModel>(new BpeModel(std::move(vocabulary)));
  HONE_RETURN_IF_ERROR(model->readOptions(object));
  HONE_ASSIGN_OR_RETURN(model->merges, BpeMerges::read(object, model->vocabulary(), model->continuingPrefix));
  model->indexCharacters();
  model->indexBytes();
  return model;
}

absl::Status BpeModel::readOptions(const JsonObject &object) {
  if (const Json *dropout = object.find("dropout")) {
    if (!dropout->is_number())
      return object.mismatch("dropout", "a number");
    if (dropout->get<double>() != 0)
      return object.unsupported(object.pathOf("dropout"), dropout->dump(), "0 (tokenization is deterministic)");
  }
  if (object.find("unk_token")) {
    HONE_ASSIGN_OR_RETURN(unknownToken, object.string("unk_token"));
  }
  HONE_ASSIGN_OR_RETURN(continuingPrefix, object.stringOr("continuing_subword_prefix", ""));
  HONE_ASSIGN_OR_RETURN(endSuffix, object.stringOr("end_of_word_suffix", ""));
  HONE_ASSIGN_OR_RETURN(fuseUnknown, object.booleanOr("fuse_unk", false));
  HONE_ASSIGN_OR_RETURN(byteFallback, object.booleanOr("byte_fallback", false));
  HONE_ASSIGN_OR_RETURN(ignoreMerges, object.booleanOr("ignore_merges", false));
  return absl::OkStatus();
}

void BpeModel::indexCharacters() {
  characterIds.assign(kBasicPlane, kNoId);
  for (const std::string &token : vocabulary().all()) {
    size_t position = 0;
    if (token.empty() || sequenceLength(token[0]) != token.size())
      continue;
    char32_t character = decodeCodePoint(token, position);
    if (character < kBasicPlane)
      characterIds[character] = *vocabulary().idOf(token);
  }
}

void BpeModel::indexBytes() {
  for (int byte = 0; byte < 256; ++byte)
    byteIds[byte] = vocabulary().idOf(byteToken(byte)).value_or(kNoId);
}

std::optional<int32_t> BpeModel::idOfCharacter(std::string_view character) const {
  if (character.size() > 3) // beyond the basic plane
    return vocabulary().idOf(character);
  size_t position = 0;
  int32_t id = characterIds[decodeCodePoint(character, position)];
  return id == kNoId ? std::nullopt : std::optional<int32_t>(id);
}

/// Turns the characters of a word into symbols. An unknown character waits, so that the next can join it.
class BpeModel::Symbolizer {
public:
  Symbolizer(const BpeModel &model, std::string_view word, std::vector<int32_t> &symbols,
             std::vector<size_t> *segmentEnds)
      : model(model), word(word), symbols(symbols), segmentEnds(segmentEnds) {}

  absl::Status run() {
    for (size_t position = 0; position < word.size();) {
      size_t begin = position;
      position += sequenceLength(word[position]);
      HONE_RETURN_IF_ERROR(character(begin, position));
    }
    flushUnknown();
    return absl::OkStatus();
  }

private:
  absl::Status character(size_t begin, size_t end) {
    std::string_view text = word.substr(begin, end - begin);
    bool isContinuing = begin > 0 && !model.continuingPrefix.empty();
    bool isLast = end == word.size() && !model.endSuffix.empty();
    std::string marked;
    std::optional<int32_t> id;
    if (isContinuing || isLast) {
      marked = io::cat(isContinuing ? model.continuingPrefix : "", text, isLast ? model.endSuffix : "");
      text = marked;
      id = model.vocabulary().idOf(text);
    } else {
      id = model.idOfCharacter(text);
    }
    if (id) {
      flushUnknown();
      return push(*id, text);
    }
    if (model.byteFallback && pushBytes(text))
      return absl::OkStatus();
    return unknown();
  }

  absl::Status push(int32_t id, std::string_view token) {
    if (segmentEnds) {
      size_t first = 0;
      char32_t begins = decodeCodePoint(token, first);
      if (!symbols.empty() && !model.merges.mayJoin(lastCharacter, begins))
        segmentEnds->push_back(symbols.size());
      lastCharacter = begins;
      while (first < token.size())
        lastCharacter = decodeCodePoint(token, first);
    }
    symbols.push_back(id);
    return absl::OkStatus();
  }

  bool pushBytes(std::string_view text) {
    for (char byte : text)
      if (model.byteIds[static_cast<unsigned char>(byte)] == kNoId)
        return false;
    for (char byte : text)
      (void)push(model.byteIds[static_cast<unsigned char>(byte)], "<>");
    return true;
  }

  absl::Status unknown() {
    if (!model.unknownToken)
      return absl::OkStatus(); // a model without one leaves such characters out
    if (waiting && model.fuseUnknown)
      return absl::OkStatus();
    flushUnknown();
    HONE_ASSIGN_OR_RETURN(unknownId, model.unknownId(*model.unknownToken));
    waiting = true;
    return absl::OkStatus();
  }

  void flushUnknown() {
    if (waiting)
      (void)push(unknownId, model.unknownToken->empty() ? std::string_view("<>") : *model.unknownToken);
    waiting = false;
  }

  const BpeModel &model;
  std::string_view word;
  std::vector<int32_t> &symbols;
  std::vector<size_t> *segmentEnds; // null where the word is not to be cut
  char32_t lastCharacter = 0;
  int32_t unknownId = kNoId;
  bool waiting = false;
};

absl::Status BpeModel::tokenize(std::string_view word, ModelScratch &modelScratch, std::vector<int32_t> &ids) const {
  auto &scratch = static_cast<Scratch &>(modelScratch);
  if (word.size() > WordCache::kLongestWord)
    return tokenizeLong(word, scratch, ids);
  if (scratch.words.append(word, ids))
    return absl::OkStatus();
  std::vector<int32_t> &symbols = scratch.symbols;
  symbols.clear();
  std::optional<int32_t> whole = ignoreMerges ? vocabulary().idOf(word) : std::nullopt;
  if (whole)
    symbols.push_back(*whole);
  else
    HONE_RETURN_IF_ERROR(Symbolizer(*this, word, symbols, nullptr).run());
  size_t count = merges.apply(symbols.data(), symbols.size(), scratch.merges);
  scratch.words.store(word, symbols.data(), count);
  ids.insert(ids.end(), symbols.begin(), symbols.begin() + static_cast<ptrdiff_t>(count));
  return absl::OkStatus();
}

/// A long word, of SentencePiece models often the whole text, is cut where no merge can reach across.
absl::Status BpeModel::tokenizeLong(std::string_view word, Scratch &scratch, std::vector<int32_t> &ids) const {
  if (ignoreMerges)
    if (auto whole = vocabulary().idOf(word)) {
      ids.push_back(*whole);
      return absl::OkStatus();
    }
  scratch.symbols.clear();
  scratch.segmentEnds.clear();
  HONE_RETURN_IF_ERROR(Symbolizer(*this, word, scratch.symbols, &scratch.segmentEnds).run());
  scratch.segmentEnds.push_back(scratch.symbols.size());
  size_t begin = 0;
  for (size_t end : scratch.segmentEnds) {
    tokenizeSegment(scratch.symbols.data() + begin, end - begin, scratch, ids);
    begin = end;
  }
  return absl::OkStatus();
}

void BpeModel::tokenizeSegment(int32_t *symbols, size_t count, Scratch &scratch, std::vector<int32_t> &ids) const {
  if (count == 1)
    ids.push_back(*symbols);
  if (count < 2 || (count <= WordCache::kLongestWord && scratch.segments.append(bytesOf(symbols, count), ids)))
    return;
  std::string key(count <= WordCache::kLongestWord ? bytesOf(symbols, count) : std::string_view());
  size_t merged = merges.apply(symbols, count, scratch.merges);
  if (!key.empty())
    scratch.segments.store(key, symbols, merged);
  ids.insert(ids.end(), symbols, symbols + merged);
}

} // namespace hone::text
