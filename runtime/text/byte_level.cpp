// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The byte-level alphabet. Printable Latin-1 bytes stand for themselves; the other 68, in order, for U+0100 and on
// (Radford et al. 2019).

#include "text/normalizer.h"
#include "text/unicode.h"

#include <array>

namespace hone::text {

namespace {

constexpr char32_t kFirstStandIn = 0x100;
constexpr int kAlphabetEnd = 0x144;

constexpr bool isPrintable(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct Alphabet {
  std::array<char32_t, 256> characters = {};
  std::array<int16_t, kAlphabetEnd> bytes = {};

  constexpr Alphabet() {
    bytes.fill(-1);
    char32_t standIn = kFirstStandIn;
    for (int byte = 0; byte < 256; ++byte) {
      characters[byte] = isPrintable(byte) ? static_cast<char32_t>(byte) : standIn++;
      bytes[characters[byte]] = static_cast<int16_t>(byte);
    }
  }
};

constexpr Alphabet kAlphabet;

} // namespace

char32_t byteLevelCharacter(unsigned char byte) { return kAlphabet.characters[byte]; }

int byteLevelByte(char32_t character) { return character < kAlphabetEnd ? kAlphabet.bytes[character] : -1; }

void appendByteLevel(std::string &text, std::string_view bytes) {
  for (char byte : bytes) {
    char32_t character = kAlphabet.characters[static_cast<unsigned char>(byte)];
    if (character < 0x80) {
      text.push_back(static_cast<char>(character));
    } else { // the alphabet ends before U+0800
      text.push_back(static_cast<char>(0xc0 | character >> 6));
      text.push_back(static_cast<char>(0x80 | (character & 0x3f)));
    }
  }
}

} // namespace hone::text
