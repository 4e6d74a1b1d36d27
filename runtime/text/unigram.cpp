// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Unigram tokenization by dynamic programming over the places of a word (Viterbi 1967).

#include "text/unigram.h"

#include "text/regex.h"
#include "text/unicode.h"
#include "text/word_cache.h"

#include <algorithm>
#include <limits>

namespace hone::text {

namespace {

constexpr int32_t kNotReached = -1, kNoId = -1;
constexpr double kUnknownPenalty = 10;

/// Reads "vocab": an array of [token, score] whose places are the ids.
absl::Status readVocabulary(const JsonObject &object, std::vector<std::string> &tokens, std::vector<double> &scores) {
  HONE_ASSIGN_OR_RETURN(const Json *entries, object.array("vocab"));
  if (entries->size() > static_cast<size_t>(kLargestTokenId))
    return io::invalid("expected ", object.pathOf("vocab"), " to have at most ", kLargestTokenId, " tokens");
  for (size_t i = 0; i < entries->size(); ++i) {
    const Json &entry = (*entries)[i];
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
      return io::invalid("expected ", object.pathOf("vocab"), "[", i, "] to be a token and its score, but got ",
                         entry.dump());
    tokens.push_back(entry[0].get_ref<const std::string &>());
    scores.push_back(entry[1].get<double>());
  }
  return absl::OkStatus();
}

} // namespace

struct UnigramModel::Scratch : ModelScratch {
  WordCache words;
  std::vector<Node> nodes;
  std::vector<Range> path;
};

std::unique_ptr<ModelScratch> UnigramModel::makeScratch() const { return std::make_unique<Scratch>(); }

absl::StatusOr<std::unique_ptr<Model>> UnigramModel::create(const JsonObject &object) {
  std::vector<std::string> tokens;
  std::vector<double> scores;
  HONE_RETURN_IF_ERROR(readVocabulary(object, tokens, scores));
  auto model = std::unique_ptr<UnigramModel>(new UnigramModel(Vocabulary::numbered(std::move(tokens))));
  double lowest = std::numeric_limits<double>::infinity();
  for (size_t id = 0; id < scores.size(); ++id) {
    const std::string &token = *model->vocabulary().tokenOf(static_cast<int32_t>(id));
    model->tokens.insert(token, *model->vocabulary().idOf(token));
    lowest = std::min(lowest, scores[id]);
  }
  model->unknownScore = lowest - kUnknownPenalty;
  model->scores = std::move(scores);
  if (object.find("unk_id")) {
    auto last = static_cast<int64_t>(model->scores.size()) - 1;
    HONE_ASSIGN_OR_RETURN(model->unknownId, object.integer("unk_id", 0, last));
  }
  HONE_ASSIGN_OR_RETURN(bool byteFallback, object.booleanOr("byte_fallback", false));
  for (int byte = 0; byteFallback && byte < 256; ++byte)
    model->byteIds.push_back(model->vocabulary().idOf(byteToken(byte)).value_or(kNoId));
  return model;
}

/// nodes[i]: the best way to word[0, i).
absl::Status UnigramModel::findBestPath(std::string_view word, std::vector<Node> &nodes) const {
  nodes.assign(word.size() + 1, {kNotReached, 0, 0});
  auto offer = [&](size_t begin, size_t length, int32_t id, double score) {
    Node &node = nodes[begin + length];
    if (node.id == kNotReached || score > node.score)
      node = {id, begin, score};
  };
  for (size_t begin = 0; begin < word.size(); begin += sequenceLength(word[begin])) {
    double before = nodes[begin].score;
    size_t character = sequenceLength(word[begin]);
    bool isCovered = false;
    tokens.forEachPrefix(word, begin, [&](size_t length, int32_t id) {
      offer(begin, length, id, scores[id] + before);
      isCovered |= length == character;
    });
    if (isCovered)
      continue;
    if (!unknownId)
      return io::invalid("cannot tokenize a character that no token covers: the model has no unk_id");
    offer(begin, character, *unknownId, unknownScore + before);
  }
  return absl::OkStatus();
}

absl::Status UnigramModel::tokenize(std::string_view word, ModelScratch &modelScratch,
                                    std::vector<int32_t> &ids) const {
  auto &scratch = static_cast<Scratch &>(modelScratch);
  bool isCached = word.size() <= WordCache::kLongestWord;
  if (isCached && scratch.words.append(word, ids))
    return absl::OkStatus();
  HONE_RETURN_IF_ERROR(findBestPath(word, scratch.nodes));
  scratch.path.clear();
  bool lastIsUnknown = false;
  for (size_t end = word.size(); end > 0; end = scratch.path.back().begin) {
    const Node &node = scratch.nodes[end];
    bool isUnknown = unknownId && node.id == *unknownId;
    if (isUnknown && lastIsUnknown)
      scratch.path.back().begin = node.begin;
    else
      scratch.path.push_back({node.begin, end});
    lastIsUnknown = isUnknown;
  }
  size_t idsBefore = ids.size();
  for (auto range = scratch.path.rbegin(); range != scratch.path.rend(); ++range)
    HONE_RETURN_IF_ERROR(appendToken(word.substr(range->begin, range->end - range->begin), ids));
  if (isCached)
    scratch.words.store(word, ids.data() + idsBefore, ids.size() - idsBefore);
  return absl::OkStatus();
}

/// The id of a stretch of the best path, its bytes where it is unknown and the model has them, or the unknown id.
absl::Status UnigramModel::appendToken(std::string_view token, std::vector<int32_t> &ids) const {
  if (auto id = vocabulary().idOf(token)) {
    ids.push_back(*id);
    return absl::OkStatus();
  }
  auto idOfByte = [&](char byte) { return byteIds[static_cast<unsigned char>(byte)]; };
  bool hasBytes =
      !byteIds.empty() && std::none_of(token.begin(), token.end(), [&](char byte) { return idOfByte(byte) == kNoId; });
  if (hasBytes)
    for (char byte : token)
      ids.push_back(idOfByte(byte));
  else
    ids.push_back(*unknownId);
  return absl::OkStatus();
}

} // namespace hone::text
