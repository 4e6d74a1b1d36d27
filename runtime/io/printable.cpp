// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "hone/io/printable.h"

#include <array>
#include <cstdint>
#include <cstdio>

namespace hone::io {
namespace {

struct CodePoint {
  uint32_t value; // of the first byte alone where it begins no valid UTF-8
  size_t bytes;   // 0 there
};

constexpr bool isContinuation(unsigned char byte) { return (byte & 0xc0) == 0x80; }

/// The first code point of `text`, which is not empty. Overlong forms, surrogates and values past U+10FFFF are invalid.
CodePoint decode(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  constexpr std::array<uint32_t, 5> smallest = {0, 0, 0x80, 0x800, 0x10000};
  unsigned char first = byte(0);
  if (first < 0x80)
    return {first, 1};
  size_t count = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < count)
    return {first, 0};
  uint32_t value = first & (0x7fu >> count);
  for (size_t i = 1; i < count; ++i) {
    if (!isContinuation(byte(i)))
      return {first, 0};
    value = value << 6 | (byte(i) & 0x3f);
  }
  bool isSurrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < smallest[count] || value > 0x10ffff || isSurrogate)
    return {first, 0};
  return {value, count};
}

bool isControl(uint32_t value) { return value < 0x20 || (value >= 0x7f && value <= 0x9f); }

/// Marks, embeddings, overrides and isolates of the bidirectional algorithm (UAX #9), and separators that end a line.
bool isBidiOrSeparator(uint32_t value) {
  return value == 0x061c || value == 0x200e || value == 0x200f || (value >= 0x2028 && value <= 0x202e) ||
         (value >= 0x2066 && value <= 0x2069);
}

std::string escaped(const char *format, uint32_t value) {
  std::array<char, 16> text;
  std::snprintf(text.data(), text.size(), format, static_cast<unsigned>(value));
  return text.data();
}

std::string escapedControl(uint32_t value) {
  switch (value) {
  case '\n':
    return "\\n";
  case '\r':
    return "\\r";
  case '\t':
    return "\\t";
  default:
    return escaped("\\x%02x", value);
  }
}

template <typename Escapes> std::string escape(std::string_view text, Escapes &&escapes) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    CodePoint point = decode(text);
    size_t bytes = point.bytes == 0 ? 1 : point.bytes;
    if (point.bytes == 0 || (isControl(point.value) && escapes(point.value)))
      result += escapedControl(point.value);
    else if (escapes(point.value))
      result += escaped("\\u%04x", point.value);
    else
      result.append(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return result;
}

} // namespace

std::string printable(std::string_view text) {
  return escape(text, [](uint32_t value) { return isControl(value) || isBidiOrSeparator(value); });
}

std::string printableText(std::string_view text) {
  return escape(text, [](uint32_t value) { return isControl(value) && value != '\n' && value != '\t'; });
}

} // namespace hone::io
