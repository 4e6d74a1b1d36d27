// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table is base64 of: the size in bytes of the double array, its 32-bit units, and the replacements.

#include "text/precompiled.h"

#include "text/unicode.h"

#include <climits>
#include <unicode/brkiter.h>
#include <unicode/utext.h>

namespace hone::text {

namespace {

constexpr size_t kLongestCluster = 5; // bytes; longer clusters go character by character

absl::StatusOr<std::string> decodeBase64(std::string_view text, const std::string &path) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr int kDigitBits = 6;
  while (text.ends_with('='))
    text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos)
      return io::invalid("expected ", path, " to be base64");
    bits = bits << kDigitBits | static_cast<uint32_t>(digit);
    count += kDigitBits;
    if (count < CHAR_BIT)
      continue;
    count -= CHAR_BIT;
    bytes.push_back(static_cast<char>(bits >> count));
  }
  return bytes;
}

uint32_t readLittleEndian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < sizeof(value); ++i)
    value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (CHAR_BIT * i);
  return value;
}

// The fields of a unit, as Darts-clone packs them.
bool hasLeaf(uint32_t unit) { return unit >> 8 & 1; }
uint32_t valueOf(uint32_t unit) { return unit & 0x7fffffff; }
uint32_t labelOf(uint32_t unit) { return unit & 0x800000ff; }
uint32_t offsetOf(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }

} // namespace

absl::StatusOr<std::unique_ptr<Normalizer>> Precompiled::create(const JsonObject &object) {
  constexpr size_t kUnitBytes = sizeof(uint32_t);
  constexpr const char *kField = "precompiled_charsmap";
  HONE_ASSIGN_OR_RETURN(std::string text, object.string(kField));
  HONE_ASSIGN_OR_RETURN(std::string bytes, decodeBase64(text, object.pathOf(kField)));
  auto result = std::make_unique<Precompiled>();
  size_t size = bytes.size() < kUnitBytes ? 0 : readLittleEndian(bytes, 0) / kUnitBytes * kUnitBytes;
  if (size == 0 || size > bytes.size() - kUnitBytes)
    return io::invalid("expected ", object.pathOf(kField), " to begin with the size of its table, but got ", size,
                       " in ", bytes.size(), " bytes");
  for (size_t at = 0; at < size; at += kUnitBytes)
    result->units.push_back(readLittleEndian(bytes, kUnitBytes + at));
  result->replacements = bytes.substr(kUnitBytes + size);
  if (findInvalidUtf8(result->replacements) != std::string::npos)
    return io::invalid("expected the replacements of ", object.pathOf(kField), " to be UTF-8");
  return result;
}

/// The replacement of the shortest beginning of `text` that is in the table.
std::optional<std::string_view> Precompiled::replacementOf(std::string_view text) const {
  size_t place = offsetOf(units[0]);
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    place ^= byte;
    if (byte == 0 || place >= units.size() || labelOf(units[place]) != byte)
      return std::nullopt;
    uint32_t unit = units[place];
    place ^= offsetOf(unit);
    if (!hasLeaf(unit))
      continue;
    if (place >= units.size())
      return std::nullopt;
    size_t begin = valueOf(units[place]);
    if (begin > replacements.size() || (begin < replacements.size() && (replacements[begin] & 0xc0) == 0x80))
      return std::nullopt; // not the beginning of a string: a broken table
    return std::string_view(replacements).substr(begin, replacements.find('\0', begin) - begin);
  }
  return std::nullopt;
}

absl::Status Precompiled::appendCluster(std::string_view cluster, std::string &result) const {
  if (cluster.size() <= kLongestCluster)
    if (auto replacement = replacementOf(cluster))
      return appendLimited(result, *replacement);
  for (size_t begin = 0, length = 0; begin < cluster.size(); begin += length) {
    length = sequenceLength(cluster[begin]);
    std::string_view character = cluster.substr(begin, length);
    HONE_RETURN_IF_ERROR(appendLimited(result, replacementOf(character).value_or(character)));
  }
  return absl::OkStatus();
}

absl::Status Precompiled::apply(NormalizedText &text, RegexScratch &) const {
  UErrorCode error = U_ZERO_ERROR;
  std::string_view input = text.text;
  std::unique_ptr<UText, decltype(&utext_close)> view(
      utext_openUTF8(nullptr, input.data(), static_cast<int64_t>(input.size()), &error), &utext_close);
  std::unique_ptr<icu::BreakIterator> clusters(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), error));
  if (U_SUCCESS(error))
    clusters->setText(view.get(), error);
  if (U_FAILURE(error))
    return absl::InternalError(io::cat("cannot find the characters of ", input.size(), " bytes: ", u_errorName(error)));
  std::string result;
  for (int32_t begin = clusters->first(), end = clusters->next(); end != icu::BreakIterator::DONE;
       begin = end, end = clusters->next()) {
    HONE_RETURN_IF_ERROR(appendCluster(input.substr(begin, end - begin), result));
  }
  text.text = std::move(result);
  return absl::OkStatus();
}

} // namespace hone::text
