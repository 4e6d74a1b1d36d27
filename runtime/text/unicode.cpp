// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// UTF-8 by hand, character properties from ICU.

#include "text/unicode.h"

#include <cstdint>
#include <cstring>
#include <unicode/uchar.h>

namespace hone::text {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd"; // U+FFFD
constexpr char32_t kDotAbove = 0x307;                     // U+0130 lowers to "i" and this mark

/// What may follow a lead byte: how many bytes, and the range of the first of them (Unicode Standard, table 3-7).
struct Continuation {
  int count;
  unsigned char lowest, highest;
};

Continuation continuationOf(unsigned char lead) {
  if (lead >= 0xc2 && lead <= 0xdf)
    return {1, 0x80, 0xbf};
  if (lead >= 0xe0 && lead <= 0xef)
    return {2, static_cast<unsigned char>(lead == 0xe0 ? 0xa0 : 0x80),
            static_cast<unsigned char>(lead == 0xed ? 0x9f : 0xbf)};
  if (lead >= 0xf0 && lead <= 0xf4)
    return {3, static_cast<unsigned char>(lead == 0xf0 ? 0x90 : 0x80),
            static_cast<unsigned char>(lead == 0xf4 ? 0x8f : 0xbf)};
  return {-1, 0, 0};
}

/// Bytes of `text` from `position` on that are ASCII, counted eight at a time.
size_t asciiPrefix(std::string_view text, size_t position) {
  constexpr uint64_t kHighBits = 0x8080808080808080u;
  size_t start = position;
  for (uint64_t word; position + sizeof(word) <= text.size(); position += sizeof(word)) {
    std::memcpy(&word, text.data() + position, sizeof(word));
    if (word & kHighBits)
      break;
  }
  while (position < text.size() && static_cast<unsigned char>(text[position]) < 0x80)
    ++position;
  return position - start;
}

/// Length of the valid sequence at `position`, which is not ASCII; 0 where it is ill-formed.
size_t validSequence(std::string_view text, size_t position) {
  Continuation next = continuationOf(static_cast<unsigned char>(text[position]));
  if (next.count < 0 || text.size() - position <= static_cast<size_t>(next.count))
    return 0;
  auto byte = [&](size_t offset) { return static_cast<unsigned char>(text[position + offset]); };
  if (byte(1) < next.lowest || byte(1) > next.highest)
    return 0;
  for (int i = 2; i <= next.count; ++i)
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
  return next.count + 1;
}

bool isAssignedBy(char32_t codePoint, int version) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(codePoint), age);
  return age[0] > 0 && age[0] <= version;
}

uint32_t categoryMask(char32_t codePoint) { return U_GET_GC_MASK(static_cast<UChar32>(codePoint)); }

} // namespace

char32_t decodeCodePoint(std::string_view text, size_t &position) {
  auto byte = [&](size_t offset) { return static_cast<unsigned char>(text[position + offset]); };
  char32_t lead = byte(0);
  size_t length = sequenceLength(text[position]);
  char32_t result = length == 1 ? lead : lead & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i)
    result = result << 6 | (byte(i) & 0x3f);
  position += length;
  return result;
}

void appendCodePoint(std::string &text, char32_t c) {
  if (c < 0x80) {
    text.push_back(static_cast<char>(c));
    return;
  }
  auto continuation = [&](int shift) { text.push_back(static_cast<char>(0x80 | (c >> shift & 0x3f))); };
  if (c < 0x800) {
    text.push_back(static_cast<char>(0xc0 | c >> 6));
  } else if (c < 0x10000) {
    text.push_back(static_cast<char>(0xe0 | c >> 12));
    continuation(6);
  } else {
    text.push_back(static_cast<char>(0xf0 | c >> 18));
    continuation(12);
    continuation(6);
  }
  continuation(0);
}

size_t findInvalidUtf8(std::string_view text) {
  size_t position = 0;
  while (true) {
    position += asciiPrefix(text, position);
    if (position == text.size())
      return std::string_view::npos;
    size_t length = validSequence(text, position);
    if (length == 0)
      return position;
    position += length;
  }
}

bool isAscii(std::string_view text) { return asciiPrefix(text, 0) == text.size(); }

absl::Status checkLength(size_t bytes) {
  constexpr size_t kMaximalBytes = 1 << 30;
  if (bytes <= kMaximalBytes)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(
      io::cat("cannot tokenize: the text grows to more than ", kMaximalBytes, " bytes"));
}

absl::Status appendLimited(std::string &text, std::string_view part) {
  HONE_RETURN_IF_ERROR(checkLength(text.size() + part.size()));
  text += part;
  return absl::OkStatus();
}

size_t countCodePoints(std::string_view text) {
  size_t count = 0;
  for (char c : text)
    count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

void LossyUtf8::beginSequence(unsigned char byte, std::string &text) {
  if (byte < 0x80) {
    text.push_back(static_cast<char>(byte));
    return;
  }
  Continuation next = continuationOf(byte);
  if (next.count < 0) {
    text.append(kReplacement);
    return;
  }
  held[0] = static_cast<char>(byte);
  heldCount = 1;
  missing = next.count;
  lowest = next.lowest;
  highest = next.highest;
}

void LossyUtf8::push(std::string_view bytes, std::string &text) {
  for (char c : bytes) {
    auto byte = static_cast<unsigned char>(c);
    if (missing == 0) {
      beginSequence(byte, text);
      continue;
    }
    if (byte < lowest || byte > highest) {
      finish(text);
      beginSequence(byte, text);
      continue;
    }
    held[heldCount++] = c;
    lowest = 0x80;
    highest = 0xbf;
    if (--missing == 0) {
      text.append(held, heldCount);
      heldCount = 0;
    }
  }
}

void LossyUtf8::finish(std::string &text) {
  if (missing > 0)
    text.append(kReplacement);
  heldCount = missing = 0;
}

bool isWhitespace(char32_t c) {
  if (c < 0x80)
    return c == ' ' || (c >= '\t' && c <= '\r');
  return u_isUWhiteSpace(static_cast<UChar32>(c));
}

bool isWord(char32_t c) {
  if (c < 0x80)
    return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  auto point = static_cast<UChar32>(c);
  return u_isUAlphabetic(point) || (categoryMask(c) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0 ||
         u_hasBinaryProperty(point, UCHAR_JOIN_CONTROL);
}

bool isNumeric(char32_t c) {
  if (c < 0x80)
    return c >= '0' && c <= '9';
  return (categoryMask(c) & (U_GC_ND_MASK | U_GC_NL_MASK | U_GC_NO_MASK)) != 0;
}

bool isPunctuation(char32_t c) {
  if (c < 0x80)
    return c > ' ' && c < 0x7f && (!isWord(c) || c == '_');
  return (categoryMask(c) & U_GC_P_MASK) != 0 && isAssignedBy(c, 8);
}

bool isCombiningMark(char32_t c) { return c >= 0x300 && (categoryMask(c) & U_GC_M_MASK) != 0 && isAssignedBy(c, 9); }

bool isNonspacingMark(char32_t c) { return c >= 0x300 && (categoryMask(c) & U_GC_MN_MASK) != 0 && isAssignedBy(c, 8); }

bool isOther(char32_t c) {
  if (c < 0x80)
    return c < ' ' || c == 0x7f;
  return (categoryMask(c) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0 && isAssignedBy(c, 8);
}

bool isChineseCharacter(char32_t c) {
  static constexpr struct {
    char32_t first, last;
  } kBlocks[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
                 {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
  for (auto block : kBlocks)
    if (c >= block.first && c <= block.last)
      return true;
  return false;
}

void appendLowercase(std::string &text, char32_t c) {
  constexpr char32_t kDottedCapitalI = 0x130;
  appendCodePoint(text, static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))));
  if (c == kDottedCapitalI)
    appendCodePoint(text, kDotAbove);
}

} // namespace hone::text
