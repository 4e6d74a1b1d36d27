// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading added tokens and finding them in text.

#include "text/added_vocabulary.h"

#include "text/unicode.h"

#include <algorithm>

namespace hone::text {

namespace {

/// The last character of a text that is not empty, and where it begins.
char32_t lastCharacter(std::string_view text, size_t &begin) {
  begin = text.size() - 1;
  while ((text[begin] & 0xc0) == 0x80)
    --begin;
  size_t position = begin;
  return decodeCodePoint(text, position);
}

bool endsWithWord(std::string_view text) {
  size_t begin;
  return !text.empty() && isWord(lastCharacter(text, begin));
}

bool beginsWithWord(std::string_view text) {
  size_t position = 0;
  return !text.empty() && isWord(decodeCodePoint(text, position));
}

/// Where the white space that ends `text` begins.
size_t trailingSpace(std::string_view text) {
  for (size_t begin; !text.empty() && isWhitespace(lastCharacter(text, begin));)
    text = text.substr(0, begin);
  return text.size();
}

/// Where the white space that begins `text` ends.
size_t leadingSpace(std::string_view text) {
  for (size_t position = 0, next = 0; position < text.size(); position = next)
    if (!isWhitespace(decodeCodePoint(text, next)))
      return position;
  return text.size();
}

} // namespace

absl::StatusOr<AddedVocabulary> AddedVocabulary::read(const JsonObject &document, const Model &model,
                                                      const Normalizer *normalizer) {
  AddedVocabulary added;
  if (!document.find("added_tokens"))
    return added;
  HONE_ASSIGN_OR_RETURN(auto entries, document.objects("added_tokens"));
  auto nextId = static_cast<int32_t>(model.vocabulary().size());
  for (const JsonObject &entry : entries) {
    HONE_ASSIGN_OR_RETURN(Token token, readToken(entry));
    absl::Status status = added.add(std::move(token), model, normalizer, nextId);
    if (!status.ok())
      return io::invalid(entry.path(), ": ", status.message());
  }
  added.index();
  return added;
}

absl::StatusOr<AddedVocabulary::Token> AddedVocabulary::readToken(const JsonObject &object) {
  Token token;
  HONE_RETURN_IF_ERROR(object.integer("id", 0, kLargestTokenId).status());
  HONE_ASSIGN_OR_RETURN(token.content, object.string("content"));
  HONE_ASSIGN_OR_RETURN(token.singleWord, object.boolean("single_word"));
  HONE_ASSIGN_OR_RETURN(token.stripLeft, object.boolean("lstrip"));
  HONE_ASSIGN_OR_RETURN(token.stripRight, object.boolean("rstrip"));
  HONE_ASSIGN_OR_RETURN(token.normalized, object.boolean("normalized"));
  HONE_ASSIGN_OR_RETURN(token.special, object.boolean("special"));
  return token;
}

absl::Status AddedVocabulary::add(Token token, const Model &model, const Normalizer *normalizer, int32_t &nextId) {
  if (token.content.empty())
    return absl::OkStatus();
  token.decoded = token.content;
  if (token.normalized && normalizer) {
    RegexScratch scratch;
    NormalizedText text{token.content};
    HONE_RETURN_IF_ERROR(normalizer->apply(text, scratch));
    token.decoded = std::move(text.text);
  }
  std::optional<int32_t> id = idOf(token.content);
  if (!id)
    id = model.vocabulary().idOf(token.content);
  if (!id)
    id = nextId++;
  ids[token.content] = *id;
  if (token.special)
    specials.insert(token.content);
  tokens[*id] = std::move(token);
  return absl::OkStatus();
}

void AddedVocabulary::index() {
  std::vector<int32_t> order;
  for (const auto &entry : tokens)
    order.push_back(entry.first);
  std::sort(order.begin(), order.end()); // of equal strings the lowest id counts
  for (int32_t id : order) {
    const Token &token = tokens[id];
    (token.normalized ? normalizedMatcher : rawMatcher).insert(token.normalized ? token.decoded : token.content, id);
  }
  rawMatcher.finish();
  normalizedMatcher.finish();
}

absl::Status AddedVocabulary::split(std::string_view text, bool normalized, Sink sink) const {
  constexpr int32_t kNoToken = -1;
  std::vector<TokenMatcher::Match> matches = (normalized ? normalizedMatcher : rawMatcher).matchBackwards(text);
  size_t start = 0, done = 0, spaceBegin = 0, spaceEnd = 0;
  for (; !matches.empty(); matches.pop_back()) {
    const TokenMatcher::Match &found = matches.back();
    Range match = {found.begin, found.begin + size_t{found.length}};
    if (match.begin < start) // within the last match
      continue;
    start = match.end;
    const Token &token = tokens.find(found.value)->second;
    if (token.singleWord && (endsWithWord(text.substr(0, match.begin)) || beginsWithWord(text.substr(match.end))))
      continue;
    if (token.stripLeft)
      match.begin = match.begin > done ? done + trailingSpace(text.substr(done, match.begin - done)) : done;
    if (token.stripRight) {
      if (match.end < spaceBegin || match.end > spaceEnd) { // else the same white space follows several matches
        spaceBegin = match.end;
        spaceEnd = match.end + leadingSpace(text.substr(match.end));
      }
      match.end = spaceEnd;
    }
    if (done < match.begin)
      HONE_RETURN_IF_ERROR(sink({done, match.begin}, kNoToken));
    HONE_RETURN_IF_ERROR(sink(match, found.value));
    done = match.end;
  }
  return done < text.size() ? sink({done, text.size()}, kNoToken) : absl::OkStatus();
}

std::optional<int32_t> AddedVocabulary::idOf(std::string_view content) const {
  auto found = ids.find(abslView(content));
  return found == ids.end() ? std::nullopt : std::optional<int32_t>(found->second);
}

const std::string *AddedVocabulary::tokenOf(int32_t id) const {
  auto found = tokens.find(id);
  return found == tokens.end() ? nullptr : &found->second.decoded;
}

} // namespace hone::text
