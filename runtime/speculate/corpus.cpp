// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The step from a text to one with a token more is backward search (Ferragina and Manzini 2000) by the array `shorter` of compressed suffix
// arrays (Grossi and Vitter 2000), which increases within a bucket; what is shared with other ranks is the least of the lengths between
// (Manber and Myers 1993).

#include "speculate/corpus.h"

#include "speculate/tree_growth.h"

#include <cstdio>
#include <cstring>

namespace hone::speculate {

using io::invalid;

uint64_t fingerprintOf(std::string_view tokenizerJson) {
  return static_cast<uint64_t>(tokenizerJson.size()) << 32 | io::crcOf(tokenizerJson);
}

std::string showFingerprint(uint64_t fingerprint) {
  return io::cat("CRC-32 ", io::crcText(static_cast<uint32_t>(fingerprint)), " of ", fingerprint >> 32, " bytes");
}

absl::StatusOr<std::shared_ptr<const Corpus>> Corpus::open(const std::string &path) {
  auto corpus = std::make_shared<Corpus>();
  corpus->name = path;
  HONE_ASSIGN_OR_RETURN(corpus->file, io::MappedFile::open(path));
  HONE_RETURN_IF_ERROR(corpus->readHeader());
  CorpusLayout layout(corpus->header);
  if (layout.end != corpus->file.size())
    return invalid(path, ": expected a corpus of ", layout.end, " bytes, but the file has ", corpus->file.size());
  corpus->buckets = corpus->arrayAt<uint32_t>(layout.buckets);
  corpus->text = corpus->arrayAt<uint8_t>(layout.text);
  corpus->shorter = corpus->arrayAt<uint32_t>(layout.shorter);
  corpus->ends = corpus->arrayAt<uint32_t>(layout.ends);
  corpus->lengths = corpus->arrayAt<uint8_t>(layout.lengths);
  corpus->longStarts = corpus->arrayAt<uint32_t>(layout.longStarts);
  for (uint64_t offset : layout.minima)
    corpus->minima.push_back(corpus->arrayAt<uint32_t>(offset));
  corpus->longs = corpus->arrayAt<uint32_t>(layout.longs);
  HONE_RETURN_IF_ERROR(corpus->checkBuckets());
  return corpus;
}

/// Everything that sizes follow from.
absl::Status Corpus::readHeader() {
  if (file.size() < sizeof header || std::memcmp(file.data(), kCorpusMagic, sizeof kCorpusMagic) != 0)
    return invalid(name, ": not a corpus of Hone");
  std::memcpy(&header, file.data(), sizeof header);
  if (header.version != kCorpusVersion)
    return invalid(name, ": expected a corpus of version ", kCorpusVersion, ", but it is of version ", header.version);
  if (uint32_t crc = crcOfHeader(header); crc != header.headerCrc)
    return invalid(name, ": expected the header's CRC-32 to be ", io::crcText(header.headerCrc), ", but got ",
                   io::crcText(crc));
  if (header.tokenBytes != tokenBytesOf(header.vocabulary))
    return invalid(name, ": expected tokens of ", tokenBytesOf(header.vocabulary), " bytes for a vocabulary of ",
                   header.vocabulary, ", but got ", header.tokenBytes);
  struct Bound {
    const char *what;
    uint64_t value, most;
  };
  for (const Bound &bound :
       {Bound{"vocabulary", header.vocabulary, kMostVocabulary},
        Bound{"number of tokens", header.size, kMostCorpusTokens}, Bound{"number of texts", header.texts, header.size},
        Bound{"number of long lengths", header.longLengths, header.size}})
    if (bound.value > bound.most)
      return invalid(name, ": expected the ", bound.what, " to be at most ", bound.most, ", but got ", bound.value);
  return absl::OkStatus();
}

/// Ranges of ranks that the search takes as they are.
absl::Status Corpus::checkBuckets() const {
  uint64_t before = 0;
  for (uint64_t i = 0; i < header.vocabulary + 2; before = buckets[i++])
    if (buckets[i] < before || buckets[i] > header.size)
      return invalid(name, ": expected bucket ", i, " to begin from ", before, " to ", header.size, ", but got ",
                     buckets[i]);
  return absl::OkStatus();
}

absl::Status Corpus::verify() const {
  std::string_view body = file.text().substr(sizeof header);
  if (uint32_t crc = io::crcOf(body); crc != header.bodyCrc)
    return invalid(name, ": expected the CRC-32 ", io::crcText(header.bodyCrc), ", but got ", io::crcText(crc));
  return absl::OkStatus();
}

uint32_t Corpus::tokenAt(uint64_t position) const {
  if (position >= header.size)
    return static_cast<uint32_t>(header.vocabulary);
  uint32_t token = header.tokenBytes == sizeof(uint16_t) ? reinterpret_cast<const uint16_t *>(text)[position]
                                                         : reinterpret_cast<const uint32_t *>(text)[position];
  return std::min(token, static_cast<uint32_t>(header.vocabulary));
}

/// One pass over bytes; the list of long lengths only where all of them are long.
uint32_t Corpus::leastOfRanks(uint64_t from, uint64_t to) const {
  uint8_t least = *std::min_element(lengths + from, lengths + to);
  if (least < kLongLength)
    return least;
  uint64_t block = from / kMinimaBlock;
  uint64_t first = longStarts[block] + std::count(lengths + block * kMinimaBlock, lengths + from, kLongLength);
  uint64_t end = first + (to - from);
  return end <= header.longLengths ? *std::min_element(longs + first, longs + end) : kLongLength;
}

uint32_t Corpus::leastOfLevel(size_t level, uint64_t from, uint64_t to) const {
  if (from >= to)
    return UINT32_MAX;
  return level == 0 ? leastOfRanks(from, to) : *std::min_element(minima[level - 1] + from, minima[level - 1] + to);
}

uint32_t Corpus::leastLength(uint64_t from, uint64_t to) const {
  uint32_t least = UINT32_MAX;
  for (size_t level = 0;; ++level) {
    uint64_t first = (from + kMinimaBlock - 1) / kMinimaBlock, last = to / kMinimaBlock;
    if (first >= last || level == minima.size())
      return std::min(least, leastOfLevel(level, from, to));
    least = std::min(
        {least, leastOfLevel(level, from, first * kMinimaBlock), leastOfLevel(level, last * kMinimaBlock, to)});
    from = first;
    to = last;
  }
}

void CorpusMatch::append(int64_t token) {
  if (token < 0 || token >= corpus.vocabulary())
    return reset();
  const uint32_t *first = corpus.shorter + corpus.buckets[token + 1], *end = corpus.shorter + corpus.buckets[token + 2];
  // What follows a token in reverse is less than the text where its rank is.
  const uint32_t *place = std::partition_point(first, end, [&](uint32_t shorter) {
    ++steps;
    return shorter < rank;
  });
  // With the token, the neighbours share one more than their ranks without it, which may be further away.
  auto sharedWith = [&](uint64_t from, uint64_t to, int64_t nearest) {
    return nearest == 0 || from >= to ? nearest : std::min<int64_t>(nearest, corpus.leastLength(from, to));
  };
  int64_t beforeNow = 0, afterNow = 0;
  if (place != first)
    beforeNow = 1 + sharedWith(uint64_t{place[-1]} + 1, rank, before);
  if (place != end)
    afterNow = 1 + sharedWith(rank + 1, std::min(uint64_t{*place} + 1, corpus.header.size), after);
  before = beforeNow;
  after = afterNow;
  rank = static_cast<uint64_t>(place - corpus.shorter);
}

/// Where occurrences of the suffix end: those of ranks on both sides that share as much as the nearest ones.
std::vector<uint64_t> CorpusMatch::listEnds() const {
  std::vector<uint64_t> ends;
  int64_t shared = before;
  for (uint64_t i = rank; i > 0 && rank - i < kVoters && shared == length(); --i) {
    ends.push_back(corpus.ends[i - 1]);
    shared = std::min<int64_t>(shared, corpus.lengthAt(i - 1));
  }
  shared = after;
  for (uint64_t i = rank; i < corpus.header.size && i - rank < kVoters && shared == length(); ++i) {
    ends.push_back(corpus.ends[i]);
    if (i + 1 < corpus.header.size)
      shared = std::min<int64_t>(shared, corpus.lengthAt(i + 1));
  }
  return ends;
}

std::vector<int64_t> CorpusMatch::likeliestTokens(int64_t most) const {
  std::vector<int64_t> likeliest;
  if (length() == 0)
    return likeliest;
  std::vector<uint64_t> ends = listEnds();
  auto tokenAfter = [&](uint64_t end) { return corpus.tokenAt(end); };
  for (; static_cast<int64_t>(likeliest.size()) < most; std::ranges::for_each(ends, [](uint64_t &end) { ++end; })) {
    std::erase_if(ends, [&](uint64_t end) { return tokenAfter(end) >= corpus.header.vocabulary; });
    if (ends.empty())
      break;
    uint32_t best = tokenAfter(ends.front());
    ptrdiff_t votes = 0;
    for (size_t i = 0; i < ends.size() && 2 * votes < std::ssize(ends); ++i)
      if (ptrdiff_t count = std::ranges::count(ends, tokenAfter(ends[i]), tokenAfter); count > votes) {
        votes = count;
        best = tokenAfter(ends[i]);
      }
    std::erase_if(ends, [&](uint64_t end) { return tokenAfter(end) != best; });
    likeliest.push_back(best);
  }
  return likeliest;
}

Draft CorpusMatch::growTree(int64_t most) const {
  using Ends = std::vector<uint64_t>;
  auto expand = [this](const Ends &ends) {
    std::vector<Continuation<Ends>> found;
    for (uint64_t end : ends) {
      uint32_t token = corpus.tokenAt(end);
      if (token >= corpus.header.vocabulary)
        continue;
      auto same = std::ranges::find(found, int64_t{token}, &Continuation<Ends>::token);
      if (same == found.end())
        same = found.insert(found.end(), {token, 0, {}});
      same->place.push_back(end + 1);
    }
    for (Continuation<Ends> &each : found)
      each.share = static_cast<double>(each.place.size()) / static_cast<double>(ends.size());
    return found;
  };
  return speculate::growTree(length() > 0 ? most : 0, length() > 0 ? listEnds() : Ends(), expand);
}

void CorpusDrafter::append(std::span<const int64_t> tokens) {
  for (int64_t token : tokens)
    match.append(token);
}

Draft CorpusDrafter::draft(int64_t most) const { return {{match.likeliestTokens(most)}, match.length()}; }

Draft CorpusDrafter::draftTree(int64_t most) const {
  Draft draft = match.growTree(most);
  draft.matched = match.length();
  return draft;
}

} // namespace hone::speculate
