// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sorting the reversed texts, and what follows from their order.

#include "speculate/corpus_builder.h"

#include "hone/io/file.h"
#include "speculate/corpus_format.h"
#include "speculate/suffix_array.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string_view>

namespace hone::speculate {
namespace {

using io::invalid;

constexpr int32_t kSeparator = 0;

template <typename Element> std::string_view bytesOf(const std::vector<Element> &elements) {
  return {reinterpret_cast<const char *>(elements.data()), elements.size() * sizeof(Element)};
}

/// The index of reversed texts.
class Index {
public:
  Index(std::vector<int32_t> reversedSymbols, int32_t vocabulary)
      : reversed(std::move(reversedSymbols)), vocabulary(vocabulary), begins(sortSuffixes(reversed, vocabulary + 1)) {
    countBuckets();
    findShorter();
    findLengths();
    findMinima();
  }

  CorpusHeader header(uint64_t texts, uint64_t tokenizer) const {
    CorpusHeader header = {};
    std::memcpy(header.magic, kCorpusMagic, sizeof kCorpusMagic);
    header.version = kCorpusVersion;
    header.vocabulary = static_cast<uint64_t>(vocabulary);
    header.tokenBytes = tokenBytesOf(header.vocabulary);
    header.tokenizer = tokenizer;
    header.size = reversed.size();
    header.texts = texts;
    header.longLengths = longs.size();
    return header;
  }

  /// Gives the bytes after the header to `take`, piece by piece.
  absl::Status forEachPiece(const CorpusHeader &header,
                            const std::function<absl::Status(std::string_view bytes)> &take) const {
    CorpusLayout layout(header);
    uint64_t position = sizeof header;
    auto put = [&](uint64_t place, std::string_view bytes) {
      HONE_RETURN_IF_ERROR(take(std::string(place - position, '\0')));
      position = place + bytes.size();
      return take(bytes);
    };
    HONE_RETURN_IF_ERROR(put(layout.buckets, bytesOf(buckets)));
    HONE_RETURN_IF_ERROR(put(layout.text, header.tokenBytes == sizeof(uint16_t) ? bytesOf(textAs<uint16_t>())
                                                                                : bytesOf(textAs<uint32_t>())));
    HONE_RETURN_IF_ERROR(put(layout.shorter, bytesOf(shorter)));
    HONE_RETURN_IF_ERROR(put(layout.ends, bytesOf(listEnds())));
    HONE_RETURN_IF_ERROR(put(layout.lengths, bytesOf(lengths)));
    HONE_RETURN_IF_ERROR(put(layout.longStarts, bytesOf(longStarts)));
    for (size_t level = 0; level < minima.size(); ++level)
      HONE_RETURN_IF_ERROR(put(layout.minima[level], bytesOf(minima[level])));
    return put(layout.longs, bytesOf(longs));
  }

private:
  void countBuckets() {
    buckets.resize(static_cast<size_t>(vocabulary) + 2);
    for (int32_t symbol : reversed)
      ++buckets[static_cast<size_t>(symbol) + 1];
    for (size_t i = 1; i < buckets.size(); ++i)
      buckets[i] += buckets[i - 1];
  }

  void findShorter() {
    std::vector<uint32_t> rankOf(reversed.size() +
                                 1); // nothing has the rank 0, which nobody asks for: it is that of a separator
    for (size_t rank = 0; rank < begins.size(); ++rank)
      rankOf[static_cast<size_t>(begins[rank])] = static_cast<uint32_t>(rank);
    shorter.resize(begins.size());
    std::ranges::transform(begins, shorter.begin(),
                           [&](int32_t begin) { return rankOf[static_cast<size_t>(begin) + 1]; });
  }

  /// In the order of the text, where each length is at least the one before less 1 (Kärkkäinen, Manzini and Puglisi 2009). None goes beyond a
  /// separator.
  void findLengths() {
    constexpr int32_t none = -1;
    std::vector<int32_t> known(
        reversed.size()); // which suffix is the next smaller one, and then the length shared with it
    for (size_t rank = 0; rank < begins.size(); ++rank)
      known[static_cast<size_t>(begins[rank])] = rank > 0 ? begins[rank - 1] : none;
    auto size = static_cast<int32_t>(reversed.size());
    int32_t length = 0;
    for (int32_t begin = 0; begin < size; ++begin) {
      int32_t &other = known[static_cast<size_t>(begin)];
      if (other == none)
        length = 0;
      else
        while (std::max(begin, other) + length < size && at(begin + length) == at(other + length) &&
               at(begin + length) != kSeparator)
          ++length;
      other = length;
      length = std::max(length - 1, 0);
    }
    lengths.resize(begins.size());
    for (size_t rank = 0; rank < begins.size(); ++rank)
      putLength(rank, static_cast<uint32_t>(known[static_cast<size_t>(begins[rank])]));
  }

  void putLength(size_t rank, uint32_t length) {
    if (rank % kMinimaBlock == 0) {
      longStarts.push_back(static_cast<uint32_t>(longs.size()));
      blockMinima.push_back(length);
    }
    blockMinima.back() = std::min(blockMinima.back(), length);
    lengths[rank] = static_cast<uint8_t>(std::min<uint32_t>(length, kLongLength));
    if (length >= kLongLength)
      longs.push_back(length);
  }

  void findMinima() {
    minima.push_back(std::move(blockMinima));
    while (minima.back().size() > 1) {
      const std::vector<uint32_t> &finer = minima.back();
      std::vector<uint32_t> coarser;
      for (size_t begin = 0; begin < finer.size(); begin += kMinimaBlock)
        coarser.push_back(
            *std::min_element(finer.begin() + static_cast<ptrdiff_t>(begin),
                              finer.begin() + static_cast<ptrdiff_t>(std::min(begin + kMinimaBlock, finer.size()))));
      minima.push_back(std::move(coarser));
    }
  }

  int32_t at(int32_t position) const { return reversed[static_cast<size_t>(position)]; }

  template <typename Element> std::vector<Element> textAs() const {
    std::vector<Element> text(reversed.size());
    std::transform(reversed.rbegin(), reversed.rend(), text.begin(), [&](int32_t symbol) {
      return static_cast<Element>(symbol == kSeparator ? vocabulary : symbol - 1);
    });
    return text;
  }

  std::vector<uint32_t> listEnds() const {
    std::vector<uint32_t> ends(begins.size());
    std::ranges::transform(begins, ends.begin(), [&](int32_t begin) {
      return static_cast<uint32_t>(reversed.size() - static_cast<size_t>(begin));
    });
    return ends;
  }

  std::vector<int32_t> reversed;
  int32_t vocabulary;
  std::vector<int32_t> begins; // by rank
  std::vector<uint32_t> buckets, shorter, longStarts, blockMinima, longs;
  std::vector<uint8_t> lengths;
  std::vector<std::vector<uint32_t>> minima;
};

} // namespace

absl::Status CorpusBuilder::add(std::span<const int32_t> tokens) {
  if (tokens.empty())
    return absl::OkStatus();
  auto [least, largest] = std::ranges::minmax(tokens);
  if (least < 0 || largest >= kMostVocabulary)
    return invalid("expected tokens from 0 to ", kMostVocabulary - 1, ", but got ", least < 0 ? least : largest);
  if (tokens.size() >= kMostCorpusTokens - symbols.size())
    return invalid("expected a corpus to have at most ", kMostCorpusTokens,
                   " tokens with one before each text, but got ", symbols.size() + tokens.size() + 1);
  symbols.push_back(kSeparator);
  for (int32_t token : tokens)
    symbols.push_back(token + 1);
  vocabulary = std::max(vocabulary, largest + 1);
  ++texts;
  return absl::OkStatus();
}

/// Whether what is at `path`, and is `shown` in the error, is a corpus.
static absl::Status checkFormerCorpus(const std::string &shown, const std::string &path) {
  HONE_ASSIGN_OR_RETURN(io::MappedFile file, io::MappedFile::open(path));
  bool isCorpus = file.text().starts_with(std::string_view(kCorpusMagic, sizeof kCorpusMagic)); // of whatever version
  return isCorpus ? absl::OkStatus() : invalid("cannot write ", shown, ": it exists and is not a corpus");
}

absl::Status CorpusBuilder::checkOutput(const std::string &path) {
  return std::filesystem::exists(path) ? checkFormerCorpus(path, path) : absl::OkStatus();
}

absl::Status CorpusBuilder::write(const std::string &path, uint64_t tokenizer) && {
  if (texts == 0)
    return invalid("cannot write ", path, ": expected at least one text with tokens, but got none");
  HONE_RETURN_IF_ERROR(checkOutput(path));
  HONE_ASSIGN_OR_RETURN(io::FileWriter file, io::FileWriter::create(path));
  std::ranges::reverse(symbols);
  Index index(std::move(symbols), vocabulary);
  CorpusHeader header = index.header(texts, tokenizer);
  HONE_RETURN_IF_ERROR(index.forEachPiece(header, [&](std::string_view bytes) {
    header.bodyCrc = io::crcOf(bytes, header.bodyCrc);
    return absl::OkStatus();
  }));
  header.headerCrc = crcOfHeader(header);
  HONE_RETURN_IF_ERROR(file.write({reinterpret_cast<const char *>(&header), sizeof header}));
  HONE_RETURN_IF_ERROR(index.forEachPiece(header, [&](std::string_view bytes) { return file.write(bytes); }));
  return file.commit([&](const std::string &there) { return checkFormerCorpus(path, there); });
}

} // namespace hone::speculate
