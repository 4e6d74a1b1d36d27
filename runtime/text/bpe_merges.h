// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The merges of a byte-pair encoding and their application.

#ifndef HONE_RUNTIME_TEXT_BPE_MERGES_H
#define HONE_RUNTIME_TEXT_BPE_MERGES_H

#include "text/vocabulary.h"

#include <bitset>
#include <memory>

namespace hone::text {

/// Buffers of BpeMerges::apply, one a thread.
struct MergeScratch {
  struct Candidate {
    int32_t rank;
    uint32_t position;
    int32_t left, right, result;
    bool operator>(const Candidate &other) const {
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };
  std::vector<int32_t> ranks;
  std::vector<uint32_t> next, previous;
  std::vector<Candidate> heap;
};

class BpeMerges {
public:
  /// Reads "merges", whose elements are "a b" or ["a", "b"], most important first. The two tokens and their
  /// concatenation, without the prefix that continuing tokens carry, must be in the vocabulary.
  static absl::StatusOr<BpeMerges> read(const JsonObject &model, const Vocabulary &vocabulary,
                                        std::string_view continuingPrefix);

  /// Merges symbols in place, the most important merge first and the leftmost of equals, until none applies. Returns
  /// how many symbols remain.
  size_t apply(int32_t *symbols, size_t count, MergeScratch &scratch) const;

  /// False where no merge can ever join a symbol whose token ends with `left` to one whose token begins with `right`:
  /// what stands on either side of such a place can be merged on its own, with the same result.
  bool mayJoin(char32_t left, char32_t right) const { return !joints || joints->test(jointHash(left, right)); }

private:
  struct Merge {
    int32_t rank, result;
  };
  static constexpr size_t kJointBits = 1 << 20;

  static uint64_t pairKey(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  static size_t jointHash(char32_t left, char32_t right) {
    return ((left * 0x9e3779b1u) ^ (right * 0x85ebca6bu)) >> 12;
  }

  absl::Status add(std::string_view left, std::string_view right, int32_t rank, const Vocabulary &vocabulary,
                   std::string_view continuingPrefix);
  const Merge *find(int32_t left, int32_t right) const;
  size_t applyByScanning(int32_t *symbols, size_t count, MergeScratch &scratch) const;
  size_t applyByHeap(int32_t *symbols, size_t count, MergeScratch &scratch) const;
  void pushCandidate(const int32_t *symbols, uint32_t left, uint32_t right, MergeScratch &scratch) const;

  absl::flat_hash_map<uint64_t, Merge> byPair;
  /// Hashes of (last character, first character) of all pairs; null where the argument above does not hold.
  std::unique_ptr<std::bitset<kJointBits>> joints;
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_BPE_MERGES_H
