// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text of files on terminals: what controls them is escaped, what people write stays.

#include "hone/io/printable.h"

#include <gtest/gtest.h>

namespace hone::test {
namespace {

TEST(Printable, KeepsWhatPeopleWrite) {
  for (std::string text : {"", "plain", "C:\\models\\a.onnx", "größe", "模型", "\U0001F916", "नमस्ते", "السلام"}) {
    EXPECT_EQ(io::printable(text), text);
    EXPECT_EQ(io::printableText(text), text);
  }
}

TEST(Printable, EscapesControlCharacters) {
  EXPECT_EQ(io::printable("\x1b[2J\a\b\r\n\t\x7f"), "\\x1b[2J\\x07\\x08\\r\\n\\t\\x7f");
  EXPECT_EQ(io::printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(io::printable("\xc2\x9b"
                          "31m"),
            "\\x9b31m"); // C1: CSI in one character
}

TEST(Printable, EscapesBidirectionalControlsAndSeparators) {
  EXPECT_EQ(io::printable("a\u202etxt\u2066b\u200f\u061c\u2028"), "a\\u202etxt\\u2066b\\u200f\\u061c\\u2028");
  EXPECT_EQ(io::printableText("a\u200fb"), "a\u200fb");
}

TEST(Printable, EscapesInvalidUtf8ByByte) {
  EXPECT_EQ(io::printable("a\xff\xc3"), "a\\xff\\xc3");
  EXPECT_EQ(io::printable("\xc0\xaf"), "\\xc0\\xaf");          // overlong
  EXPECT_EQ(io::printable("\xed\xa0\x80"), "\\xed\\xa0\\x80"); // a surrogate
  EXPECT_EQ(io::printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(io::printable("\xe2\x80"), "\\xe2\\x80"); // cut off
}

TEST(Printable, TextKeepsLinesAndTabs) { EXPECT_EQ(io::printableText("a\n\tb\x1b[0m"), "a\n\tb\\x1b[0m"); }

} // namespace
} // namespace hone::test
