// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pooled keys, and the blocks that are selected by them, on the device against plain loops in double precision.

#include "parity.h"

#include "cuda/kernels/attention/select_blocks.h"

#include <algorithm>

namespace hone::test {
namespace {

class PoolKeysParity : public ParityTest {
protected:
  /// The last `fresh` rows for `count` keys of two sequences and three heads; keys before the sequence's of `begins` are left out.
  void expectMeans(int64_t count, int64_t fresh, int64_t keySize, int64_t size, const std::vector<int64_t> &begins,
                   int32_t type = HONE_F32, Layout layout = Layout::Dense) {
    Tensor keys = Tensor({2, 3, count, keySize}, type, layout).randomize(random);
    Tensor keyBegin = begins.empty() ? Tensor::absent() : Tensor({2}, HONE_I64);
    for (size_t i = 0; i < begins.size(); ++i)
      keyBegin.set({static_cast<int64_t>(i)}, static_cast<double>(begins[i]));
    Tensor pooled({2, 3, fresh, (keySize + size - 1) / size}, HONE_F32, layout);
    run({&keys, &keyBegin, &pooled}, 1, {size});
    pooled.forEach([&](const std::vector<int64_t> &i) {
      int64_t position = count - fresh + i[2], end = position / size * size,
              d = position % size * pooled.sizes[3] + i[3];
      int64_t begin = std::max<int64_t>(end - size, begins.empty() ? 0 : begins[static_cast<size_t>(i[0])]);
      double sum = 0;
      for (int64_t key = std::max<int64_t>(begin, 0); d < keySize && key < end; ++key)
        sum += keys.at({i[0], i[1], key, d});
      double expected = sum / static_cast<double>(std::max<int64_t>(end - std::max<int64_t>(begin, 0), 1));
      EXPECT_NEAR(pooled.at(i), expected, 1e-6 * (1 + std::abs(expected))) // up to 64 keys added in f32
          << kernel() << " row " << i[2] << " of " << fresh << ", column " << i[3] << ", blocks of " << size;
    });
  }
};

TEST_P(PoolKeysParity, RowsAreMeansOfTheBlockBefore) {
  for (auto [count, fresh] : {std::pair<int64_t, int64_t>(200, 200), {200, 1}, {193, 70}, {64, 64}, {5, 2}, {5, 0}})
    for (auto [keySize, size] : {std::pair<int64_t, int64_t>(64, 64), {20, 64}, {130, 64}, {20, 16}, {3, 1}})
      for (const std::vector<int64_t> &begins : {std::vector<int64_t>{}, {0, 70}, {3, 64}})
        expectMeans(count, fresh, keySize, size, begins);
}

TEST_P(PoolKeysParity, TakesTypesAndLayouts) {
  for (int32_t type : {HONE_F32, HONE_F16, HONE_BF16})
    for (Layout layout : {Layout::Dense, Layout::Swapped, Layout::Gaps, Layout::HeadsInside})
      expectMeans(40, 25, 20, 16, {0, 5}, type, layout);
}

INSTANTIATE_TEST_SUITE_P(PoolKeys, PoolKeysParity, testing::Values("cuda.pool_keys.f32"));

constexpr double kScale = 0.5;

struct Shape {
  int64_t sequences, heads, group, queries, size, blockSize, blocks, places; // of KV heads, and blocks that are whole
  bool isShared = false;                                                     // the bounds, by all sequences
};

class SelectBlocksParity : public ParityTest {
protected:
  struct Operands {
    Tensor query, pooled, begin, end, blocks;

    Operands(const Shape &s, int32_t type, Layout layout, std::mt19937 &random)
        : query({s.sequences, s.heads * s.group, s.queries, s.size}, type, layout),
          pooled({s.sequences, s.heads, (s.blocks + 1) * s.blockSize, (s.size + s.blockSize - 1) / s.blockSize},
                 HONE_F32, layout),
          begin({s.isShared ? 1 : s.sequences, s.queries}, HONE_I64, layout),
          end({s.isShared ? 1 : s.sequences, s.queries}, HONE_I64, layout),
          blocks({s.sequences, s.heads, s.queries, s.places}, HONE_I64, layout) {
      query.randomize(random), pooled.randomize(random);
      begin.forEach([&](const std::vector<int64_t> &i) {
        auto first = static_cast<int64_t>(random() % static_cast<uint32_t>(s.blocks / 4 + 1));
        begin.set(i, static_cast<double>(first));
        bool isEmpty = i[1] % 5 == 4; // with an end before the begin
        end.set(i, static_cast<double>(isEmpty ? first - 1 : i[1] % 2 ? s.blocks : (s.blocks + first) / 2));
      });
    }
  };

  /// Blocks [begin, end) with what they are to a query.
  static std::map<int64_t, double> importanceOf(const Operands &o, const Shape &s, int64_t sequence, int64_t head,
                                                int64_t query) {
    int64_t row = s.isShared ? 0 : sequence, width = o.pooled.sizes[3];
    auto first = static_cast<int64_t>(o.begin.at({row, query})), last = static_cast<int64_t>(o.end.at({row, query}));
    std::map<int64_t, double> importance;
    for (int64_t h = head * s.group; h < (head + 1) * s.group; ++h) {
      std::map<int64_t, double> weights;
      double sum = 0;
      for (int64_t block = first; block < last; ++block) {
        double score = 0;
        for (int64_t d = 0; d < s.size; ++d)
          score += kScale * o.query.at({sequence, h, query, d}) *
                   o.pooled.at({sequence, head, (block + 1) * s.blockSize + d / width, d % width});
        sum += weights[block] = std::exp(score);
      }
      for (auto [block, weight] : weights)
        importance[block] += weight / sum;
    }
    return importance;
  }

  /// The list has the greatest in order, where two that are nearly equal may change places.
  void expectList(const Operands &o, const Shape &s, const std::vector<int64_t> &row) {
    std::map<int64_t, double> importance = importanceOf(o, s, row[0], row[1], row[2]);
    std::vector<double> expected;
    for (auto [block, value] : importance)
      expected.push_back(value);
    std::ranges::sort(expected, std::greater<>());
    for (int64_t place = 0; place < s.places; ++place) {
      auto block = static_cast<int64_t>(o.blocks.at({row[0], row[1], row[2], place}));
      std::string what = "query " + std::to_string(row[2]) + " of head " + std::to_string(row[1]) + ", place " +
                         std::to_string(place) + " of " + std::to_string(s.places);
      if (place >= static_cast<int64_t>(expected.size())) {
        EXPECT_EQ(block, -1) << what;
        continue;
      }
      ASSERT_TRUE(importance.contains(block)) << what << ": block " << block << " is none, or twice in the list";
      double wanted = expected[static_cast<size_t>(place)]; // sums in f32 err by less than 1e-5
      EXPECT_NEAR(importance[block], wanted, 1e-5 * wanted) << what;
      importance.erase(block);
    }
  }

  void expectSelected(const Shape &s, int32_t type = HONE_F32, Layout layout = Layout::Dense) {
    Operands o(s, type, layout, random);
    run({&o.query, &o.pooled, &o.begin, &o.end, &o.blocks}, 1, {s.blockSize}, {kScale});
    o.blocks.forEach([&](const std::vector<int64_t> &i) {
      if (i[3] == 0)
        expectList(o, s, i);
    });
  }
};

TEST_P(SelectBlocksParity, ListsTheMostImportant) {
  for (int64_t group : {1, 3, 5})
    for (auto [size, blockSize] : {std::pair<int64_t, int64_t>(64, 64), {20, 16}, {130, 64}, {1, 1}})
      for (int64_t places : {1, 4, 40})
        expectSelected({2, 2, group, 5, size, blockSize, 30, places});
  expectSelected({1, 1, 4, 2, 128, 64, 700, 16}); // more than a kernel's first look
}

TEST_P(SelectBlocksParity, TakesTypesAndLayouts) {
  for (int32_t type : {HONE_F32, HONE_F16, HONE_BF16})
    for (Layout layout : {Layout::Dense, Layout::Swapped, Layout::Gaps, Layout::HeadsInside})
      for (bool isShared : {false, true})
        expectSelected({2, 3, 2, 6, 24, 8, 20, 5, isShared}, type, layout);
}

TEST_P(SelectBlocksParity, EmptyOperands) {
  for (Shape s : {Shape{0, 2, 2, 3, 16, 8, 4, 3}, Shape{2, 2, 2, 0, 16, 8, 4, 3}, Shape{2, 2, 2, 3, 16, 8, 0, 3},
                  Shape{2, 2, 2, 3, 16, 8, 4, 0}})
    expectSelected(s);
}

/// Both divisions of work, which list the same blocks to the last bit.
TEST_P(SelectBlocksParity, ScoresInParts) {
  Shape s = {1, 2, 6, 7, 64, 16, 300, 12};
  Operands o(s, HONE_F32, Layout::Dense, random);
  std::vector<uint8_t> lists;
  for (int32_t multiprocessors : {1, 1000}) {
    int32_t before = device->pretendMultiprocessors(multiprocessors);
    device->takeLaunched();
    run({&o.query, &o.pooled, &o.begin, &o.end, &o.blocks}, 1, {s.blockSize}, {kScale});
    device->pretendMultiprocessors(before);
    EXPECT_EQ(device->takeLaunched().contains("score_blocks"), multiprocessors > 1);
    EXPECT_TRUE(lists.empty() || lists == o.blocks.memory);
    lists = o.blocks.memory;
  }
}

/// Steps list what a prompt lists, to the last bit: pooled keys in rows that are apart are gathered for many queries alone.
TEST_P(SelectBlocksParity, QueriesSelectAlone) {
  Shape s = {2, 2, 3, 9, 40, 16, 50, 12};
  Operands all(s, HONE_F32, Layout::Gaps, random);
  device->takeLaunched();
  run({&all.query, &all.pooled, &all.begin, &all.end, &all.blocks}, 1, {s.blockSize}, {kScale});
  EXPECT_TRUE(device->takeLaunched().contains("gather_pooled"));
  s.queries = 1;
  for (int64_t query = 0; query < 9; ++query) {
    Operands one(s, HONE_F32, Layout::Dense, random);
    auto take = [&](Tensor &to, const Tensor &from, size_t axis) {
      to.forEach([&](std::vector<int64_t> i) {
        std::vector<int64_t> at = i;
        at[axis] = query;
        to.set(i, from.at(at));
      });
    };
    take(one.query, all.query, 2), take(one.begin, all.begin, 1), take(one.end, all.end, 1);
    run({&one.query, &all.pooled, &one.begin, &one.end, &one.blocks}, 1, {s.blockSize}, {kScale});
    EXPECT_FALSE(device->takeLaunched().contains("gather_pooled"));
    one.blocks.forEach([&](std::vector<int64_t> i) {
      EXPECT_EQ(one.blocks.at(i), all.blocks.at({i[0], i[1], query, i[3]})) << "query " << query << ", place " << i[3];
    });
  }
}

/// Of equal blocks the earlier are listed, in their order.
TEST_P(SelectBlocksParity, EqualBlocksKeepTheirOrder) {
  Shape s = {1, 1, 2, 2, 16, 8, 200, 150};
  Operands o(s, HONE_F32, Layout::Dense, random);
  o.pooled.forEach([&](const std::vector<int64_t> &i) { o.pooled.set(i, i[2] / 8 % 3 == 1 ? 1 : 0); });
  o.query.forEach([&](const std::vector<int64_t> &i) { o.query.set(i, 1); });
  for (int64_t query : {0, 1})
    o.begin.set({0, query}, 0), o.end.set({0, query}, 200);
  run({&o.query, &o.pooled, &o.begin, &o.end, &o.blocks}, 1, {s.blockSize}, {kScale});
  std::vector<int64_t> expected;
  for (bool isGreat : {true, false})
    for (int64_t block = 0; block < 200; ++block)
      if (((block + 1) % 3 == 1) == isGreat)
        expected.push_back(block);
  for (int64_t place = 0; place < s.places; ++place)
    EXPECT_EQ(o.blocks.at({0, 0, 1, place}), expected[static_cast<size_t>(place)]) << "place " << place;
}

INSTANTIATE_TEST_SUITE_P(SelectBlocks, SelectBlocksParity, testing::Values("cuda.select_blocks.f32"));

} // namespace
} // namespace hone::test
