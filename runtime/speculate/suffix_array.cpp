// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SA-IS. A suffix is of type S where it is smaller than the one that begins one later, and of type L otherwise; an LMS position is one of type
// S after one of type L. The order of LMS suffixes induces that of all, and is found from that of the substrings between them.

#include "speculate/suffix_array.h"

#include <algorithm>
#include <cstddef>

namespace hone::speculate {
namespace {

class SuffixSorter {
public:
  SuffixSorter(std::span<const int32_t> text, int32_t alphabet)
      : text(text), size(static_cast<int32_t>(text.size())), begins(static_cast<size_t>(alphabet) + 1) {
    for (int32_t element : text)
      ++begins[static_cast<size_t>(element) + 1];
    for (size_t i = 1; i < begins.size(); ++i)
      begins[i] += begins[i - 1];
    findLms();
  }

  std::vector<int32_t> sort() {
    order.resize(text.size());
    induce(lms);
    induce(sortLms(nameSubstrings()));
    return std::move(order);
  }

private:
  int32_t at(int32_t position) const { return text[static_cast<size_t>(position)]; }

  void findLms() {
    isLms.resize(text.size());
    bool isS = false; // the last suffix is greater than the empty one
    for (int32_t i = size - 2; i >= 0; --i) {
      bool isGreater = at(i) > at(i + 1) || (at(i) == at(i + 1) && !isS);
      if (isGreater && isS) {
        isLms[static_cast<size_t>(i) + 1] = true;
        lms.push_back(i + 1);
      }
      isS = !isGreater;
    }
    std::ranges::reverse(lms);
  }

  /// Orders all suffixes by that of the LMS ones, or, from any order of those, the substrings between LMS positions.
  void induce(const std::vector<int32_t> &sortedLms) {
    constexpr int32_t kFree = -1;
    std::ranges::fill(order, kFree);
    std::vector<int32_t> place(begins.begin() + 1, begins.end());
    for (size_t i = sortedLms.size(); i-- > 0;)
      order[static_cast<size_t>(--place[static_cast<size_t>(at(sortedLms[i]))])] = sortedLms[i];
    std::copy(begins.begin(), begins.end() - 1, place.begin());
    auto putL = [&](int32_t position) {
      order[static_cast<size_t>(place[static_cast<size_t>(at(position))]++)] = position;
    };
    if (size > 0)
      putL(size - 1);
    for (int32_t i = 0; i < size; ++i)
      if (int32_t before = order[static_cast<size_t>(i)] - 1; before >= 0 && at(before) >= at(before + 1))
        putL(before);
    std::copy(begins.begin() + 1, begins.end(), place.begin());
    for (int32_t i = size - 1; i >= 0; --i) {
      int32_t before = order[static_cast<size_t>(i)] - 1;
      if (before < 0)
        continue;
      // Of equal elements the types are equal; those of type S are at the end of their bucket.
      int32_t &end = place[static_cast<size_t>(at(before))];
      if (at(before) < at(before + 1) || (at(before) == at(before + 1) && end <= i))
        order[static_cast<size_t>(--end)] = before;
    }
  }

  /// Whether the substrings from two LMS positions to the next ones are equal; `ends` by half of the position.
  bool areEqual(int32_t one, int32_t other, const std::vector<int32_t> &ends) const {
    int32_t end = ends[static_cast<size_t>(one / 2)], length = end - one;
    // The last substring ends with the text, and equals no other.
    if (end == size || ends[static_cast<size_t>(other / 2)] - other != length ||
        ends[static_cast<size_t>(other / 2)] == size)
      return false;
    auto from = text.begin() + one;
    return std::equal(from, from + length + 1, text.begin() + other);
  }

  /// Numbers the substrings that start at LMS positions in their order, and leaves the numbers in the order of the text; returns how many differ.
  int32_t nameSubstrings() {
    std::vector<int32_t> ends(text.size() / 2 + 1), nameOf(text.size() / 2 + 1);
    for (size_t i = 0; i < lms.size(); ++i)
      ends[static_cast<size_t>(lms[i] / 2)] = i + 1 < lms.size() ? lms[i + 1] : size;
    int32_t names = 0, last = -1;
    for (int32_t position : order) {
      if (!isLms[static_cast<size_t>(position)])
        continue;
      names += last < 0 || !areEqual(last, position, ends);
      nameOf[static_cast<size_t>(position / 2)] = names - 1;
      last = position;
    }
    reduced.resize(lms.size());
    std::ranges::transform(lms, reduced.begin(),
                           [&](int32_t position) { return nameOf[static_cast<size_t>(position / 2)]; });
    return names;
  }

  std::vector<int32_t> sortLms(int32_t names) const {
    std::vector<int32_t> sorted(lms.size());
    if (names == static_cast<int32_t>(lms.size()))
      for (size_t i = 0; i < lms.size(); ++i)
        sorted[static_cast<size_t>(reduced[i])] = lms[i];
    else
      std::ranges::transform(sortSuffixes(reduced, names), sorted.begin(),
                             [&](int32_t number) { return lms[static_cast<size_t>(number)]; });
    return sorted;
  }

  std::span<const int32_t> text;
  int32_t size;
  std::vector<int32_t> begins; // of the buckets of each element
  std::vector<bool> isLms;
  std::vector<int32_t> lms, reduced; // by position
  std::vector<int32_t> order;
};

} // namespace

std::vector<int32_t> sortSuffixes(std::span<const int32_t> text, int32_t alphabet) {
  return SuffixSorter(text, alphabet).sort();
}

} // namespace hone::speculate
