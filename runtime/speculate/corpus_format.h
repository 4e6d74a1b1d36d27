// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A corpus as a file: texts in tokens, and an index of what comes before each token. It is mapped and used as it lies there.
//
// The index is the suffix array of the texts written backwards, so that what ends alike is together: a state of the suffix automaton of the
// texts is a range of it. SuffixAutomaton takes about 170 bytes a token; this takes 11, and up to 15 where texts repeat each other at length.
// docs/corpora.md describes the file.

#ifndef HONE_RUNTIME_SPECULATE_CORPUS_FORMAT_H
#define HONE_RUNTIME_SPECULATE_CORPUS_FORMAT_H

#include "hone/io/file.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace hone::speculate {

inline constexpr char kCorpusMagic[8] = {'H', 'O', 'N', 'E', 'C', 'O', 'R', 'P'};
inline constexpr uint32_t kCorpusVersion = 1;
/// Elements of a level of the index of minima that one of the next level stands for.
inline constexpr uint64_t kMinimaBlock = 64;
/// A common length of at least as much is in the list of long ones.
inline constexpr uint8_t kLongLength = 255;
/// Positions are 32-bit numbers with a sign where suffixes are sorted.
inline constexpr uint64_t kMostCorpusTokens = INT32_MAX - 1;
inline constexpr int32_t kMostVocabulary = INT32_MAX - 1;

/// The beginning of the file, little-endian as all of it.
struct CorpusHeader {
  char magic[8];
  uint32_t version;
  uint32_t tokenBytes; // 2 or 4
  uint64_t tokenizer;  // fingerprintOf() its tokenizer.json
  uint64_t vocabulary; // all tokens are less; this itself separates texts
  uint64_t size;       // tokens, with a separator before each text
  uint64_t texts;
  uint64_t longLengths; // how many
  uint32_t bodyCrc;     // of all bytes after the header: for `hone corpus inspect`, as loading does not read them
  uint32_t headerCrc;   // of the bytes before it
};
static_assert(sizeof(CorpusHeader) == 64 && std::is_trivially_copyable_v<CorpusHeader>);

inline uint32_t crcOfHeader(const CorpusHeader &header) {
  return io::crcOf({reinterpret_cast<const char *>(&header), offsetof(CorpusHeader, headerCrc)});
}

/// Of a token, and of what separates texts.
inline uint32_t tokenBytesOf(uint64_t vocabulary) {
  return vocabulary <= UINT16_MAX ? sizeof(uint16_t) : sizeof(uint32_t);
}

/// Where the arrays of a file are; each begins at a multiple of 64 bytes. Ranks are numbers of positions in the order of the reversed texts
/// that begin there.
struct CorpusLayout {
  explicit CorpusLayout(const CorpusHeader &header) {
    uint64_t tokens = header.size;
    buckets = place((header.vocabulary + 2) * sizeof(uint32_t));
    text = place(tokens * header.tokenBytes);
    shorter = place(tokens * sizeof(uint32_t));
    ends = place(tokens * sizeof(uint32_t));
    lengths = place(tokens);
    uint64_t blocks = (tokens + kMinimaBlock - 1) / kMinimaBlock;
    longStarts = place(blocks * sizeof(uint32_t));
    for (; blocks > 0; blocks = blocks > 1 ? (blocks + kMinimaBlock - 1) / kMinimaBlock : 0) {
      levels.push_back(blocks);
      minima.push_back(place(blocks * sizeof(uint32_t)));
    }
    longs = place(header.longLengths * sizeof(uint32_t));
  }

  uint64_t buckets; // u32 [vocabulary + 2]: the first rank of the separator, then of each token; the last is the size
  uint64_t text;    // u16 or u32 [size]
  uint64_t shorter; // u32 [size], by rank: the rank without its last token
  uint64_t ends;    // u32 [size], by rank: the position after it
  uint64_t lengths; // u8 [size], by rank: how many last tokens it shares with the rank before, at most 255
  uint64_t longStarts;          // u32 [blocks]: those of 255 before each block of ranks
  std::vector<uint64_t> minima; // u32 [levels[i]]: the least lengths of blocks, of blocks of blocks, …
  std::vector<uint64_t> levels;
  uint64_t longs; // u32 [longLengths]: the lengths of which `lengths` says 255
  uint64_t end = sizeof(CorpusHeader);

private:
  uint64_t place(uint64_t bytes) {
    constexpr uint64_t alignment = 64;
    uint64_t begin = (end + alignment - 1) / alignment * alignment;
    end = begin + bytes;
    return begin;
  }
};

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_CORPUS_FORMAT_H
