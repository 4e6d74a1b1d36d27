// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// UTF-8 and the character classes of the tokenizer format. Text that reaches any other file of this folder has been
// checked here once and is valid UTF-8.

#ifndef HONE_RUNTIME_TEXT_UNICODE_H
#define HONE_RUNTIME_TEXT_UNICODE_H

#include "hone/io/status.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace hone::text {

/// Length in bytes of the sequence that a lead byte begins; the byte is the first of a valid sequence.
inline size_t sequenceLength(char lead) {
  auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/// The code point at `position` of valid UTF-8; moves `position` past it.
char32_t decodeCodePoint(std::string_view text, size_t &position);

void appendCodePoint(std::string &text, char32_t codePoint);

/// Position of the first byte that is not part of a valid sequence; npos where all of `text` is valid UTF-8.
size_t findInvalidUtf8(std::string_view text);

bool isAscii(std::string_view text);

/// Fails for text beyond a gigabyte: the stages of a tokenizer.json can multiply the length of a text again and again.
absl::Status checkLength(size_t bytes);

/// Appends, unless the text would be longer than that.
absl::Status appendLimited(std::string &text, std::string_view part);

size_t countCodePoints(std::string_view text);

/// Turns bytes that arrive in pieces into valid UTF-8. Each maximal part of an ill-formed sequence becomes one U+FFFD
/// (Unicode Standard 3.9, "Substitution of Maximal Subparts"); a sequence still incomplete is held back.
class LossyUtf8 {
public:
  void push(std::string_view bytes, std::string &text);
  /// Ends the input: what is held back becomes one U+FFFD.
  void finish(std::string &text);

private:
  void beginSequence(unsigned char byte, std::string &text);

  char held[4] = {};
  int heldCount = 0;
  int missing = 0;
  unsigned char lowest = 0x80, highest = 0xbf;
};

/// White_Space.
bool isWhitespace(char32_t codePoint);
/// `\w` of UTS #18: Alphabetic, M, Nd, Pc, Join_Control.
bool isWord(char32_t codePoint);
/// N: Nd, Nl, No.
bool isNumeric(char32_t codePoint);
/// ASCII punctuation and symbols, and P as of Unicode 8, the version the tokenizer format is defined by.
bool isPunctuation(char32_t codePoint);
/// M as of Unicode 9, for StripAccents.
bool isCombiningMark(char32_t codePoint);
/// Mn as of Unicode 8, for the BERT normalizer.
bool isNonspacingMark(char32_t codePoint);
/// Cc, Cf, Co as of Unicode 8.
bool isOther(char32_t codePoint);
/// The blocks that BERT calls Chinese characters.
bool isChineseCharacter(char32_t codePoint);
/// Appends the full lower-case mapping, without context.
void appendLowercase(std::string &text, char32_t codePoint);

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_UNICODE_H
