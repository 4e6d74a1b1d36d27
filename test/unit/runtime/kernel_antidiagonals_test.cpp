// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The blocks that hold most of the attention of blocks of queries by sums over antidiagonals, against plain loops.

#include "growing_cache.h"

#include <functional>
#include <optional>

namespace hone::test {
namespace {

constexpr int64_t kBatch = 2, kKeyHeads = 2, kSize = 32, kPerList = 64, kStride = 16;
constexpr double kScale = 0.3;

struct Case {
  int64_t heads, length, queries, keys;
  double share;
  int64_t sequences = 1; // that have bounds of their own
  std::vector<int64_t> keyBegin = {};
};

class SelectAntidiagonals : public KernelTest {
protected:
  /// `key(b, g, j, d)` is what `view` holds.
  void check(const std::string &kernel, const Case &test, hone_tensor view,
             const std::function<double(int64_t, int64_t, int64_t, int64_t)> &key) {
    Tensor query = Tensor({kBatch, test.heads, test.queries, test.length}, Layout::Gaps).randomize(random);
    int64_t lists = (test.queries + kPerList - 1) / kPerList, places = (test.keys + kSize - 1) / kSize;
    std::vector<int64_t> begins, ends;
    for (int64_t i = 0; i < test.sequences * lists; ++i) {
      begins.push_back(static_cast<int64_t>(random() % 3));
      ends.push_back(i % 4 == 3 ? begins.back()
                                : std::min<int64_t>(places, begins.back() + static_cast<int64_t>(random() % 40)));
    }
    auto bounds = [&](std::vector<int64_t> &of) {
      return hone_tensor{of.data(), HONE_I64, 2, {test.sequences, lists}, {lists, 1}};
    };
    std::vector<int64_t> found(static_cast<size_t>(kBatch * kKeyHeads * lists * places), -7);
    hone_tensor blocks = {found.data(),
                          HONE_I64,
                          4,
                          {kBatch, kKeyHeads, lists, places},
                          {kKeyHeads * lists * places, lists * places, places, 1}};
    run(kernel, {query.view(), view, bounds(begins), bounds(ends), listOf(test.keyBegin), blocks},
        {kSize, kPerList, kStride}, {kScale, test.share});
    for (int64_t row = 0; row < kBatch * kKeyHeads * lists; ++row) {
      int64_t b = row / (kKeyHeads * lists), list = row % lists;
      auto at = static_cast<size_t>((test.sequences == 1 ? 0 : b * lists) + list);
      std::vector<int64_t> expected = select(test, query, key, b, row / lists % kKeyHeads, list, begins[at], ends[at]);
      expected.resize(static_cast<size_t>(places), -1);
      auto from = found.begin() + row * places;
      EXPECT_EQ(std::vector<int64_t>(from, from + places), expected)
          << kernel << ": row " << row << " of " << test.queries << " queries";
    }
  }

private:
  static std::vector<int64_t> select(const Case &test, const Tensor &query,
                                     const std::function<double(int64_t, int64_t, int64_t, int64_t)> &key, int64_t b,
                                     int64_t g, int64_t list, int64_t begin, int64_t end) {
    std::vector<int64_t> selected;
    if (test.queries <= 64) {
      for (int64_t n = begin; n < end; ++n)
        selected.push_back(n);
      return selected;
    }
    int64_t firstKey = test.keyBegin.empty() ? 0 : test.keyBegin[static_cast<size_t>(b)];
    int64_t group = test.heads / kKeyHeads, groups = (test.keys + kStride - 1) / kStride;
    std::vector<double> importance(static_cast<size_t>((test.keys + kSize - 1) / kSize), 0);
    for (int64_t h = g * group; h < (g + 1) * group; ++h)
      for (int64_t m = list * kPerList / kStride; m < (list + 1) * kPerList / kStride && m * kStride < test.queries;
           ++m) {
        std::vector<double> weights;
        for (int64_t j = 0; j < groups && j * kStride <= test.keys - test.queries + m * kStride + kStride - 1; ++j) {
          double sum = 0;
          if ((j + 1) * kStride <= firstKey) {
            weights.push_back(0);
            continue;
          }
          for (int64_t s = 0; s < kStride; ++s)
            for (int64_t d = 0, i = m * kStride + kStride - 1 - s, k = j * kStride + s; d < test.length; ++d)
              sum += i < test.queries && k >= firstKey && k < test.keys ? query.at({b, h, i, d}) * key(b, g, k, d) : 0;
          weights.push_back(std::exp(sum * kScale / kStride));
        }
        double total = std::accumulate(weights.begin(), weights.end(), 0.0);
        for (size_t j = 0; j < weights.size(); ++j)
          importance[j * kStride / kSize] += total > 0 ? weights[j] / total : 0;
      }
    double total = std::accumulate(importance.begin(), importance.end(), 0.0), seen = total;
    std::vector<int64_t> order;
    for (int64_t n = begin; n < end; ++n) {
      order.push_back(n);
      seen -= importance[static_cast<size_t>(n)];
    }
    std::ranges::sort(order, {}, [&](int64_t n) { return std::pair(-importance[static_cast<size_t>(n)], n); });
    for (int64_t n : order) {
      if (test.share < 1 && seen >= test.share * total)
        break;
      selected.push_back(n);
      seen += importance[static_cast<size_t>(n)];
    }
    return selected;
  }
};

const Case kCases[] = {{2, 20, 1, 100, 0.5},
                       {4, 32, 64, 500, 0.5, 2},
                       {4, 32, 65, 65, 0.9},
                       {2, 16, 130, 700, 0.5, 2},
                       {6, 20, 150, 800, 0.7},
                       {2, 64, 200, 1201, 0.95},
                       {4, 32, 190, 777, 1.0, 2},
                       {2, 20, 0, 100, 0.5},
                       {4, 20, 150, 600, 0.6, 1, {75, 0}},
                       {2, 16, 200, 200, 0.8, 2, {0, 130}}};

TEST_P(SelectAntidiagonals, KeysInRows) {
  for (const Case &test : kCases)
    for (Layout layout : {Layout::Dense, Layout::Swapped}) {
      Tensor keys = Tensor({kBatch, kKeyHeads, test.keys, test.length}, layout).randomize(random);
      check("hone.select_antidiagonals.f32", test, keys.view(),
            [&](int64_t b, int64_t g, int64_t j, int64_t d) { return keys.at({b, g, j, d}); });
    }
}

/// Caches whose keys are the same in all elements, sequences and heads.
TEST_P(SelectAntidiagonals, KeysInBlocks) {
  for (const Kind &kind : kKinds)
    for (const Case &test : kCases) {
      if (kind.form == Form::Rows)
        continue;
      GrowingCache keys(kind, true, kBatch, kKeyHeads, test.keys, test.length);
      std::vector<float> numbers;
      for (int64_t position = 0; position < test.keys; ++position) {
        numbers.push_back(static_cast<float>(random() % 200) / 128 - 0.75f);
        keys.fill(position, numbers.back());
      }
      check("hone.select_antidiagonals." + std::string(kind.kernel).substr(std::string("hone.attention.").size()), test,
            keys.view(0, kBatch, test.keys),
            [&](int64_t, int64_t, int64_t j, int64_t) { return numbers[static_cast<size_t>(j)]; });
    }
}

HONE_INSTANTIATE_LEVELS(SelectAntidiagonals);

} // namespace
} // namespace hone::test
