// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Merging: a scan over the ranks for short words, a heap for long ones; both take the same merges in the same order.

#include "text/bpe_merges.h"

#include "text/unicode.h"

#include <algorithm>

namespace hone::text {

namespace {

constexpr size_t kLongestScan = 48; // symbols; beyond, a heap is quicker than rescanning
constexpr int32_t kNoMerge = INT32_MAX;
constexpr uint32_t kNone = UINT32_MAX;

char32_t firstCharacter(std::string_view text) {
  size_t position = 0;
  return decodeCodePoint(text, position);
}

char32_t lastCharacter(std::string_view text) {
  size_t position = text.size() - 1;
  while ((text[position] & 0xc0) == 0x80)
    --position;
  return decodeCodePoint(text, position);
}

/// The two tokens of one element of "merges".
absl::Status readPair(const Json &element, const std::string &path, std::string &left, std::string &right) {
  if (element.is_string()) {
    const auto &text = element.get_ref<const std::string &>();
    size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
      return io::invalid("expected ", path, " to be two tokens with a space between, but got '", text, "'");
    left = text.substr(0, space);
    right = text.substr(space + 1);
    return absl::OkStatus();
  }
  if (!element.is_array() || element.size() != 2 || !element[0].is_string() || !element[1].is_string())
    return io::invalid("expected ", path, " to be two tokens, but got ", element.dump());
  left = element[0].get_ref<const std::string &>();
  right = element[1].get_ref<const std::string &>();
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<BpeMerges> BpeMerges::read(const JsonObject &model, const Vocabulary &vocabulary,
                                          std::string_view continuingPrefix) {
  HONE_ASSIGN_OR_RETURN(const Json *elements, model.array("merges"));
  BpeMerges merges;
  merges.byPair.reserve(elements->size());
  if (continuingPrefix.empty() && vocabulary.idsAreUnique())
    merges.joints = std::make_unique<std::bitset<kJointBits>>();
  std::string left, right;
  int32_t rank = 0;
  for (size_t i = 0; i < elements->size(); ++i) {
    const Json &element = (*elements)[i];
    if (element.is_string() && element.get_ref<const std::string &>().starts_with("#version"))
      continue;
    std::string path = io::cat(model.pathOf("merges"), "[", i, "]");
    HONE_RETURN_IF_ERROR(readPair(element, path, left, right));
    absl::Status added = merges.add(left, right, rank++, vocabulary, continuingPrefix);
    if (!added.ok())
      return io::invalid(path, ": ", added.message());
  }
  return merges;
}

absl::Status BpeMerges::add(std::string_view left, std::string_view right, int32_t rank, const Vocabulary &vocabulary,
                            std::string_view continuingPrefix) {
  if (right.size() < continuingPrefix.size())
    return io::invalid("expected '", right, "' to begin with '", continuingPrefix, "'");
  std::string whole = io::cat(left, right.substr(continuingPrefix.size()));
  auto leftId = vocabulary.idOf(left), rightId = vocabulary.idOf(right), wholeId = vocabulary.idOf(whole);
  for (auto [id, token] :
       {std::pair(leftId, left), std::pair(rightId, right), std::pair(wholeId, std::string_view(whole))})
    if (!id)
      return io::invalid("merges '", left, "' and '", right, "', but '", token, "' is not in the vocabulary");
  byPair[pairKey(*leftId, *rightId)] = {rank, *wholeId};
  if (left.empty() || right.empty())
    joints.reset();
  else if (joints)
    joints->set(jointHash(lastCharacter(left), firstCharacter(right)));
  return absl::OkStatus();
}

const BpeMerges::Merge *BpeMerges::find(int32_t left, int32_t right) const {
  auto found = byPair.find(pairKey(left, right));
  return found == byPair.end() ? nullptr : &found->second;
}

size_t BpeMerges::apply(int32_t *symbols, size_t count, MergeScratch &scratch) const {
  if (count < 2)
    return count;
  return count <= kLongestScan ? applyByScanning(symbols, count, scratch) : applyByHeap(symbols, count, scratch);
}

size_t BpeMerges::applyByScanning(int32_t *symbols, size_t count, MergeScratch &scratch) const {
  std::vector<int32_t> &ranks = scratch.ranks; // ranks[i]: of merging symbols i and i + 1
  auto rankAt = [&](size_t i) {
    const Merge *merge = find(symbols[i], symbols[i + 1]);
    return merge ? merge->rank : kNoMerge;
  };
  ranks.resize(count - 1);
  for (size_t i = 0; i + 1 < count; ++i)
    ranks[i] = rankAt(i);
  while (count > 1) {
    auto best = std::min_element(ranks.begin(), ranks.end());
    if (*best == kNoMerge)
      break;
    size_t i = best - ranks.begin();
    symbols[i] = find(symbols[i], symbols[i + 1])->result;
    std::copy(symbols + i + 2, symbols + count, symbols + i + 1);
    ranks.erase(best);
    --count;
    if (i > 0)
      ranks[i - 1] = rankAt(i - 1);
    if (i + 1 < count)
      ranks[i] = rankAt(i);
  }
  return count;
}

void BpeMerges::pushCandidate(const int32_t *symbols, uint32_t left, uint32_t right, MergeScratch &scratch) const {
  const Merge *merge = find(symbols[left], symbols[right]);
  if (!merge)
    return;
  scratch.heap.push_back({merge->rank, left, symbols[left], symbols[right], merge->result});
  std::push_heap(scratch.heap.begin(), scratch.heap.end(), std::greater<>());
}

size_t BpeMerges::applyByHeap(int32_t *symbols, size_t count, MergeScratch &scratch) const {
  std::vector<uint32_t> &next = scratch.next, &previous = scratch.previous;
  auto &heap = scratch.heap;
  next.resize(count);
  previous.resize(count);
  heap.clear();
  for (uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1 < count ? i + 1 : kNone;
    previous[i] = i > 0 ? i - 1 : kNone;
    if (i + 1 < count)
      pushCandidate(symbols, i, i + 1, scratch);
  }
  constexpr int32_t kMergedAway = -1;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    MergeScratch::Candidate candidate = heap.back();
    heap.pop_back();
    uint32_t left = candidate.position, right = next[left];
    // A candidate is out of date once either of its symbols has merged with another.
    if (right == kNone || symbols[left] != candidate.left || symbols[right] != candidate.right)
      continue;
    symbols[left] = candidate.result;
    symbols[right] = kMergedAway;
    next[left] = next[right];
    if (next[left] != kNone)
      previous[next[left]] = left;
    if (previous[left] != kNone)
      pushCandidate(symbols, previous[left], left, scratch);
    if (next[left] != kNone)
      pushCandidate(symbols, left, next[left], scratch);
  }
  return std::remove(symbols, symbols + count, kMergedAway) - symbols;
}

} // namespace hone::text
