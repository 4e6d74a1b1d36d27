// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// UTF-8: what is valid, and what becomes of what is not.

#include "text/unicode.h"

#include <gmock/gmock.h>

namespace hone::text {
namespace {

std::string repaired(std::string_view bytes, size_t chunk) {
  LossyUtf8 utf8;
  std::string result;
  for (size_t begin = 0; begin < bytes.size(); begin += chunk)
    utf8.push(bytes.substr(begin, chunk), result);
  utf8.finish(result);
  return result;
}

TEST(Utf8, EveryCodePointComesBack) {
  for (char32_t c = 0; c <= 0x10ffff; c += c < 0x3000 ? 1 : 37) {
    if (c >= 0xd800 && c <= 0xdfff)
      continue;
    std::string text;
    appendCodePoint(text, c);
    size_t position = 0;
    ASSERT_EQ(decodeCodePoint(text, position), c);
    ASSERT_EQ(position, text.size());
    ASSERT_EQ(sequenceLength(text[0]), text.size());
    ASSERT_EQ(findInvalidUtf8(text), std::string::npos);
    ASSERT_EQ(countCodePoints(text), 1);
  }
}

TEST(Utf8, InvalidBytesAreFoundWhereTheyAre) {
  const std::string padding = "twenty bytes of text";
  for (std::string_view bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                               "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x98"}) {
    EXPECT_EQ(findInvalidUtf8(bad), 0) << testing::PrintToString(bad);
    EXPECT_EQ(findInvalidUtf8(padding + std::string(bad)), padding.size());
    EXPECT_EQ(findInvalidUtf8(padding + std::string(bad) + "a"), padding.size());
  }
}

TEST(Utf8, MaximalSubpartsBecomeOneReplacementEach) {
  // The example of the Unicode Standard, section 3.9, table 3-11, and its neighbours.
  EXPECT_EQ(repaired("\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64", 100), "a���b�c��d");
  EXPECT_EQ(repaired("\xe2\x82", 100), "�");
  EXPECT_EQ(repaired("\xf0\x80\x80", 100), "���");
  EXPECT_EQ(repaired("\xed\xa0\x80", 100), "���");
  EXPECT_EQ(repaired("\xc3\xc3\xa9", 100), "�é");
}

TEST(Utf8, HowBytesArriveDoesNotMatter) {
  const std::string bytes = "a\xf1\x80\x80\xe1\x80\xc2z\x80 \xf0\x9f\x98\x80\xe6\xbc\xa2\xff";
  for (size_t chunk = 1; chunk < bytes.size(); ++chunk)
    EXPECT_EQ(repaired(bytes, chunk), repaired(bytes, bytes.size())) << chunk;
}

TEST(Characters, ClassesFollowTheFormatsUnicodeVersions) {
  EXPECT_TRUE(isWhitespace(0x85) && isWhitespace(0x3000) && isWhitespace('\v'));
  EXPECT_FALSE(isWhitespace(0x200b) || isWhitespace(0x180e) || isWhitespace(0x1f));
  EXPECT_TRUE(isWord(0x301) && isWord(0x203f) && isWord(0x200d) && isWord('_') && isWord(0x24b6));
  EXPECT_FALSE(isWord(0xb2) || isWord('-') || isWord(0x2460));
  EXPECT_TRUE(isNumeric(0xb2) && isNumeric(0x216b) && isNumeric(0x663));
  EXPECT_TRUE(isPunctuation('$') && isPunctuation('_') && isPunctuation(0x3002));
  EXPECT_FALSE(isPunctuation(0x20ac) || isPunctuation(0x2e43) || isPunctuation(' '));
  EXPECT_TRUE(isCombiningMark(0x301) && isCombiningMark(0x20dd));
  EXPECT_FALSE(isCombiningMark(0x7fd)) << "a mark since Unicode 11";
}

TEST(Characters, LowercaseIsTheFullMapping) {
  std::string text;
  for (char32_t c : {U'A', U'İ', U'Σ', U'ß', U'漢'})
    appendLowercase(text, c);
  EXPECT_EQ(text, "ai̇σß漢");
}

} // namespace
} // namespace hone::text
