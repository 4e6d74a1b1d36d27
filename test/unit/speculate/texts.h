// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts that are hard on indices of suffixes, and searches to compare with.

#ifndef HONE_TEST_UNIT_SPECULATE_TEXTS_H
#define HONE_TEST_UNIT_SPECULATE_TEXTS_H

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace hone::test {

template <typename Token> std::vector<Token> randomText(std::mt19937 &random, size_t size, int64_t alphabet) {
  std::uniform_int_distribution<int64_t> tokens(0, alphabet - 1);
  std::vector<Token> text(size);
  for (Token &token : text)
    token = static_cast<Token>(tokens(random));
  return text;
}

/// abaababa…: each prefix occurs again and again.
template <typename Token> std::vector<Token> fibonacciWord(size_t size) {
  std::vector<Token> word = {0}, before = {1};
  while (word.size() < size) {
    std::vector<Token> longer = word;
    longer.insert(longer.end(), before.begin(), before.end());
    before = std::exchange(word, longer);
  }
  word.resize(size);
  return word;
}

/// 0 1 … period - 1 0 1 …
template <typename Token> std::vector<Token> periodicText(size_t size, size_t period) {
  std::vector<Token> text(size);
  for (size_t i = 0; i < size; ++i)
    text[i] = static_cast<Token>(i % period);
  return text;
}

} // namespace hone::test

#endif // HONE_TEST_UNIT_SPECULATE_TEXTS_H
