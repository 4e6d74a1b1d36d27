// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The blocks that blocks of queries need by mean queries and mean keys, against plain loops.

#include "growing_cache.h"

#include <functional>
#include <optional>

namespace hone::test {
namespace {

constexpr int64_t kBatch = 2, kKeyHeads = 2, kSize = 32, kPerList = 48;
constexpr double kScale = 0.3;

struct Case {
  int64_t heads, length, queries, keys;
  double least, share, similarity;
  int64_t sequences = 1; // that have bounds of their own
  std::vector<int64_t> keyBegin = {};
  bool hasRows = false; // of thresholds for each KV head
};

using Vector = std::vector<double>;
using Key = std::function<double(int64_t, int64_t, int64_t, int64_t)>;

/// Of vectors: their mean, and the square of the norm of the mean of their directions.
struct Pooled {
  Vector mean, direction;
  int64_t count = 0;

  explicit Pooled(int64_t length) : mean(static_cast<size_t>(length)), direction(static_cast<size_t>(length)) {}

  void add(const Vector &x) {
    double norm = std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
    for (size_t d = 0; d < x.size(); ++d)
      mean[d] += x[d], direction[d] += norm > 0 ? x[d] / norm : 0;
    ++count;
  }
  void divide() {
    for (size_t d = 0; d < mean.size() && count > 0; ++d)
      mean[d] /= static_cast<double>(count), direction[d] /= static_cast<double>(count);
  }
  double similarity() const { return std::inner_product(direction.begin(), direction.end(), direction.begin(), 0.0); }
};

class SelectMeans : public KernelTest {
protected:
  /// `key(b, g, j, d)` is what `view` holds.
  void check(const std::string &kernel, const Case &test, hone_tensor view, const Key &key) {
    // Queries of a list have most of themselves in common, every third list but few of them.
    Tensor query({kBatch, test.heads, test.queries, test.length}, Layout::Gaps);
    std::normal_distribution<float> normal;
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t h = 0; h < test.heads; ++h)
        for (int64_t d = 0; d < test.length; ++d) {
          float common = 0;
          for (int64_t i = 0; i < test.queries; ++i) {
            common = i % kPerList == 0 ? normal(random) : common;
            query({b, h, i, d}) = (i / kPerList % 3 == 2 ? 0.2f : 2.0f) * common + normal(random);
          }
        }
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
    Tensor thresholds({test.hasRows ? kKeyHeads : 1, 3}, Layout::Dense);
    for (int64_t g = 0; g < (test.hasRows ? kKeyHeads : 1); ++g) {
      double part = g == 0 ? 1 : 0.5;
      thresholds({g, 0}) = static_cast<float>(part * test.least);
      thresholds({g, 1}) = static_cast<float>(part * test.share);
      thresholds({g, 2}) = static_cast<float>(part * test.similarity);
    }
    std::vector<int64_t> found(static_cast<size_t>(kBatch * kKeyHeads * lists * places), -7);
    hone_tensor blocks = {found.data(),
                          HONE_I64,
                          4,
                          {kBatch, kKeyHeads, lists, places},
                          {kKeyHeads * lists * places, lists * places, places, 1}};
    run(kernel, {query.view(), view, thresholds.view(), bounds(begins), bounds(ends), listOf(test.keyBegin), blocks},
        {kSize, kPerList}, {kScale});
    for (int64_t row = 0; row < kBatch * kKeyHeads * lists; ++row) {
      int64_t b = row / (kKeyHeads * lists), g = row / lists % kKeyHeads, list = row % lists;
      auto at = static_cast<size_t>((test.sequences == 1 ? 0 : b * lists) + list);
      int64_t of = test.hasRows ? g : 0;
      double limits[] = {thresholds.at({of, 0}), thresholds.at({of, 1}), thresholds.at({of, 2})};
      std::vector<int64_t> expected = select(test, query, key, limits, b, g, list, begins[at], ends[at]);
      expected.resize(static_cast<size_t>(places), -1);
      auto from = found.begin() + row * places;
      EXPECT_EQ(std::vector<int64_t>(from, from + places), expected)
          << kernel << ": row " << row << " of " << test.queries << " queries";
    }
  }

private:
  static std::vector<Pooled> poolKeys(const Case &test, const Key &key, int64_t b, int64_t g, int64_t firstKey) {
    auto vectorOf = [&](int64_t j) {
      Vector x(static_cast<size_t>(test.length));
      for (int64_t d = 0; d < test.length; ++d)
        x[static_cast<size_t>(d)] = key(b, g, j, d);
      return x;
    };
    Pooled all(test.length);
    for (int64_t j = firstKey; j < test.keys; ++j)
      all.add(vectorOf(j));
    all.divide();
    std::vector<Pooled> blocks;
    for (int64_t n = 0; n * kSize < test.keys; ++n) {
      blocks.emplace_back(test.length);
      for (int64_t j = std::max(n * kSize, firstKey); j < std::min((n + 1) * kSize, test.keys); ++j) {
        Vector x = vectorOf(j);
        for (size_t d = 0; d < x.size(); ++d)
          x[d] -= all.mean[d];
        blocks.back().add(x);
      }
      blocks.back().divide();
    }
    return blocks;
  }

  static std::vector<int64_t> select(const Case &test, const Tensor &query, const Key &key, const double *limits,
                                     int64_t b, int64_t g, int64_t list, int64_t begin, int64_t end) {
    std::vector<int64_t> all, order, selected;
    for (int64_t n = begin; n < end; ++n)
      all.push_back(n);
    if (test.queries <= 64)
      return all;
    int64_t firstKey = test.keyBegin.empty() ? 0 : test.keyBegin[static_cast<size_t>(b)],
            group = test.heads / kKeyHeads;
    std::vector<Pooled> blocks = poolKeys(test, key, b, g, firstKey);
    auto isSimilar = [&](int64_t n) { return blocks[static_cast<size_t>(n)].similarity() >= limits[2]; };
    int64_t last = test.keys - test.queries + std::min((list + 1) * kPerList, test.queries) - 1;
    auto isVisible = [&](int64_t n) { return n * kSize <= last && (n + 1) * kSize > firstKey; };
    Vector importance(blocks.size(), 0);
    for (int64_t h = g * group; h < (g + 1) * group; ++h) {
      Pooled pooled(test.length);
      for (int64_t i = list * kPerList; i < std::min((list + 1) * kPerList, test.queries); ++i) {
        Vector x(static_cast<size_t>(test.length));
        for (int64_t d = 0; d < test.length; ++d)
          x[static_cast<size_t>(d)] = query.at({b, h, i, d});
        pooled.add(x);
      }
      pooled.divide();
      if (pooled.similarity() < limits[2])
        return all;
      Vector weights(blocks.size(), 0);
      for (size_t n = 0; n < blocks.size(); ++n)
        if (isVisible(static_cast<int64_t>(n)) && isSimilar(static_cast<int64_t>(n)))
          weights[n] = std::exp(
              kScale * std::inner_product(pooled.mean.begin(), pooled.mean.end(), blocks[n].mean.begin(), 0.0));
      double total = std::accumulate(weights.begin(), weights.end(), 0.0);
      for (size_t n = 0; n < blocks.size(); ++n)
        importance[n] += total > 0 ? weights[n] / total : 0;
    }
    double total = std::accumulate(importance.begin(), importance.end(), 0.0), seen = 0, count = 0, visible = 0;
    for (int64_t n = 0; n < static_cast<int64_t>(blocks.size()); ++n) {
      visible += isVisible(n) ? 1 : 0;
      if (n < begin || n >= end)
        seen += importance[static_cast<size_t>(n)], count += isVisible(n) ? 1 : 0;
      else
        (isSimilar(n) ? order : selected).push_back(n);
    }
    count += static_cast<double>(selected.size());
    std::ranges::sort(order, {}, [&](int64_t n) { return std::pair(-importance[static_cast<size_t>(n)], n); });
    for (int64_t n : order) {
      if (limits[1] < 1 && limits[0] < 1 && seen >= limits[1] * total && count >= limits[0] * visible)
        break;
      selected.push_back(n);
      seen += importance[static_cast<size_t>(n)], count += 1;
    }
    return selected;
  }
};

const Case kCases[] = {{2, 20, 1, 100, 0, 0.5, 0.1},
                       {4, 32, 64, 500, 0, 0.5, 0.1, 2},
                       {4, 32, 65, 65, 0.3, 0.9, 0.1},
                       {2, 16, 130, 700, 0, 0.5, 0.12, 2},
                       {2, 16, 130, 700, 0.43, 0.0, -1, 2},
                       {6, 20, 150, 800, 0.13, 0.7, 0.12, 1, {}, true},
                       {2, 64, 200, 1201, 0, 0.95, 0.06},
                       {4, 32, 190, 777, 0, 1.0, 0.05, 2},
                       {2, 20, 0, 100, 0, 0.5, 0.1},
                       {4, 20, 150, 600, 0.2, 0.6, 0.1, 1, {75, 0}},
                       {2, 16, 200, 200, 0, 0.8, 0.1, 2, {0, 130}, true}};

TEST_P(SelectMeans, KeysInRows) {
  for (const Case &test : kCases)
    for (Layout layout : {Layout::Dense, Layout::Swapped}) {
      Tensor keys({kBatch, kKeyHeads, test.keys, test.length}, layout);
      std::normal_distribution<float> normal;
      for (int64_t b = 0; b < kBatch; ++b)
        for (int64_t g = 0; g < kKeyHeads; ++g)
          for (int64_t d = 0; d < test.length; ++d) {
            float common = 0, all = normal(random); // a block has something in common, and so have all keys
            for (int64_t j = 0; j < test.keys; ++j) {
              common = j % kSize == 0 ? normal(random) : common;
              keys({b, g, j, d}) = 3 * all + static_cast<float>(j / kSize % 4) * 0.4f * common + normal(random);
            }
          }
      check("hone.select_means.f32", test, keys.view(),
            [&](int64_t b, int64_t g, int64_t j, int64_t d) { return keys.at({b, g, j, d}); });
    }
}

/// Caches whose keys are the same in all elements, sequences and heads: what is similar are keys of one sign.
TEST_P(SelectMeans, KeysInBlocks) {
  for (const Kind &kind : kKinds)
    for (const Case &test : kCases) {
      if (kind.form == Form::Rows)
        continue;
      GrowingCache keys(kind, true, kBatch, kKeyHeads, test.keys, test.length);
      std::vector<float> numbers; // of bf16
      std::normal_distribution<float> normal;
      for (int64_t position = 0; position < test.keys; ++position) {
        numbers.push_back(std::bit_cast<float>(std::bit_cast<uint32_t>(normal(random)) & 0xFFFF0000));
        keys.fill(position, numbers.back());
      }
      check("hone.select_means." + std::string(kind.kernel).substr(std::string("hone.attention.").size()), test,
            keys.view(0, kBatch, test.keys),
            [&](int64_t, int64_t, int64_t j, int64_t) { return numbers[static_cast<size_t>(j)]; });
    }
}

HONE_INSTANTIATE_LEVELS(SelectMeans);

} // namespace
} // namespace hone::test
