// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Drafts from a corpus: the longest suffix of a text that occurs in it, and what follows it there.

#ifndef HONE_RUNTIME_SPECULATE_CORPUS_H
#define HONE_RUNTIME_SPECULATE_CORPUS_H

#include "hone/io/file.h"
#include "speculate/corpus_format.h"
#include "speculate/drafter.h"

#include <algorithm>
#include <memory>
#include <string_view>

namespace hone::speculate {

/// What a corpus knows its tokenizer by: size and CRC-32 of the bytes of a tokenizer.json.
uint64_t fingerprintOf(std::string_view tokenizerJson);
/// As messages show it: "CRC-32 1a2b3c4d of 1234 bytes".
std::string showFingerprint(uint64_t fingerprint);

/// A corpus, mapped. Opening reads the header and the buckets. All else may be damaged: then drafts are other ones, but each access stays in
/// the file and each token in the vocabulary. Usable from several threads at once.
class Corpus {
public:
  /// Fails, with both values, where the header is not that of a corpus of this version and of the file's size.
  static absl::StatusOr<std::shared_ptr<const Corpus>> open(const std::string &path);

  const std::string &path() const { return name; }
  uint64_t tokenizer() const { return header.tokenizer; }
  /// All tokens are less.
  int64_t vocabulary() const { return static_cast<int64_t>(header.vocabulary); }
  uint64_t countTexts() const { return header.texts; }
  uint64_t countTokens() const { return header.size - header.texts; }
  uint64_t countBytes() const { return file.size(); }
  /// Reads the whole file; fails where it is not what was written.
  absl::Status verify() const;

private:
  friend class CorpusMatch;
  template <typename Element> const Element *arrayAt(uint64_t offset) const {
    return reinterpret_cast<const Element *>(file.data() + offset);
  }
  absl::Status readHeader();
  absl::Status checkBuckets() const;
  /// The token at a position, or the vocabulary where there is none: at the end of a text.
  uint32_t tokenAt(uint64_t position) const;
  uint32_t lengthAt(uint64_t place) const { return leastOfRanks(place, place + 1); }
  /// The least length of the ranks from `from` to before `to`, some at least.
  uint32_t leastLength(uint64_t from, uint64_t to) const;
  uint32_t leastOfLevel(size_t level, uint64_t from, uint64_t to) const;
  uint32_t leastOfRanks(uint64_t from, uint64_t to) const;

  std::string name;
  io::MappedFile file;
  CorpusHeader header = {};
  // What the layout says of them.
  const uint32_t *buckets = nullptr, *shorter = nullptr, *ends = nullptr, *longStarts = nullptr, *longs = nullptr;
  const uint8_t *lengths = nullptr, *text = nullptr;
  std::vector<const uint32_t *> minima;
};

/// Follows a text in a corpus, in logarithmic time a token. It knows where the text, read backwards, would be among the ranks, and how much it
/// shares with the ranks on both sides: no other shares more.
class CorpusMatch {
public:
  explicit CorpusMatch(const Corpus &corpus) : corpus(corpus) {}

  void append(int64_t token);
  void reset() { rank = before = after = 0; }
  /// Length of the longest suffix of the text since the last reset that occurs in the corpus.
  int64_t length() const { return std::max(before, after); }
  /// The position after one of its occurrences; that of the smaller rank where two are as long.
  uint64_t end() const { return corpus.ends[before >= after ? rank - 1 : rank]; }
  /// At most `most` tokens that follow the suffix: after each the one that most of up to 2 * kVoters occurrences have, which are next to each
  /// other in the index.
  std::vector<int64_t> likeliestTokens(int64_t most) const;
  static constexpr uint64_t kVoters = 16;
  /// All that follows in those occurrences, as a tree of at most `most` tokens.
  Draft growTree(int64_t most) const;
  /// How many elements of the index were compared with the text's rank so far.
  int64_t countSteps() const { return steps; }

private:
  std::vector<uint64_t> listEnds() const;

  const Corpus &corpus;
  uint64_t rank = 0;             // how many are smaller than the text
  int64_t before = 0, after = 0; // tokens shared with the rank before that and with that
  int64_t steps = 0;
};

/// Drafts what follows the longest suffix in a corpus.
class CorpusDrafter : public Drafter {
public:
  explicit CorpusDrafter(std::shared_ptr<const Corpus> corpus) : corpus(std::move(corpus)), match(*this->corpus) {}

  void beginText() override { match.reset(); }
  void append(std::span<const int64_t> tokens) override;
  Draft draft(int64_t most) const override;
  Draft draftTree(int64_t most) const override;

private:
  std::shared_ptr<const Corpus> corpus;
  CorpusMatch match;
};

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_CORPUS_H
