// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pooled keys of caches in blocks against means and extremes of the keys, and the blocks that are selected against plain loops.

#include "hone/cpu/packing/cache_blocks.h"
#include "kernel_tensor.h"

namespace hone::test {
namespace {

class PoolKeys : public KernelTest {
protected:
  /// The last `fresh` rows for `count` keys of f32 in blocks, those before the first of `begins` left out.
  void expectPooled(int64_t count, int64_t fresh, int64_t keySize, int64_t size, const std::vector<int64_t> &begins,
                    bool hasBounds) {
    Tensor keys = Tensor({2, 3, count, keySize}).randomize(random);
    cpu::BlockedKeyLayout blocks(1, keySize);
    int64_t head = 256 * blocks.width, elements = hasBounds ? 2 * keySize : keySize;
    int64_t width = (elements + size - 1) / size;
    std::vector<float> memory(static_cast<size_t>(6 * head), std::numeric_limits<float>::quiet_NaN());
    keys.forEach([&](const std::vector<int64_t> &i) {
      int64_t place = (i[0] * 3 + i[1]) * head + blocks.ofPosition(i[2]) + blocks.ofElement(i[3]);
      memory[static_cast<size_t>(place)] = keys.at(i);
    });
    hone_tensor cache = {memory.data(), HONE_F32, 4, {2, 3, count, keySize}, {3 * head, head, blocks.width, 1}};
    Tensor pooled({2, 3, fresh, width}, Layout::Gaps), expected({2, 3, fresh, width});
    run(hasBounds ? "hone.pool_keys.bounds.blocks.f32" : "hone.pool_keys.blocks.f32",
        {cache, listOf(begins), pooled.view()}, {size});
    expected.forEach([&](const std::vector<int64_t> &i) {
      int64_t position = count - fresh + i[2], end = position / size * size, d = position % size * width + i[3];
      int64_t begin = std::max<int64_t>(end - size, begins.empty() ? 0 : begins[static_cast<size_t>(i[0])]);
      std::vector<double> of;
      for (int64_t key = begin; d < elements && key < end; ++key)
        of.push_back(keys.at({i[0], i[1], key, d % keySize}));
      double sum = std::accumulate(of.begin(), of.end(), 0.0);
      double one = of.empty()    ? 0
                   : !hasBounds  ? sum / static_cast<double>(of.size())
                   : d < keySize ? *std::ranges::max_element(of)
                                 : *std::ranges::min_element(of);
      expected(i) = static_cast<float>(one);
    });
    expectClose(pooled, expected, hasBounds ? 0 : 1e-6f, "pooled keys");
  }
};

TEST_P(PoolKeys, RowsAreOfTheBlockBefore) {
  for (auto [count, fresh] : {std::pair<int64_t, int64_t>(200, 200), {200, 1}, {193, 70}, {64, 64}, {5, 2}})
    for (auto [keySize, size] : {std::pair<int64_t, int64_t>(64, 64), {20, 64}, {96, 64}, {128, 64}, {20, 16}})
      for (const std::vector<int64_t> &begins : {std::vector<int64_t>{}, {0, 70}, {3, 64}})
        for (bool hasBounds : {false, true})
          expectPooled(count, fresh, keySize, size, begins, hasBounds);
}

HONE_INSTANTIATE_LEVELS(PoolKeys);

class SelectBlocks : public KernelTest {
protected:
  static constexpr int64_t kSize = 16, kKeyHeads = 2, kRows = 800;

  /// Of the blocks [begin, end), by their importance.
  static std::vector<int64_t> select(const Tensor &query, const Tensor &pooled, int64_t sequence, int64_t head,
                                     int64_t row, int64_t begin, int64_t end, size_t places, bool hasBounds) {
    int64_t group = query.sizes[1] / kKeyHeads, length = query.sizes[3], width = pooled.sizes[3];
    std::vector<std::pair<double, int64_t>> blocks; // minus importance
    for (int64_t block = begin; block < end; ++block)
      blocks.emplace_back(0, block);
    for (int64_t h = head * group; h < (head + 1) * group; ++h) {
      std::vector<double> weights;
      for (auto [importance, block] : blocks) {
        double score = 0;
        for (int64_t d = 0; d < length; ++d) {
          auto of = [&, block = block](int64_t element) {
            return 0.5 * query.at({sequence, h, row, d}) *
                   pooled.at({sequence, head, (block + 1) * kSize + element / width, element % width});
          };
          score += hasBounds ? std::max(of(d), of(length + d)) : of(d);
        }
        weights.push_back(std::exp(score));
      }
      double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
      for (size_t i = 0; i < weights.size(); ++i)
        blocks[i].first -= weights[i] / sum;
    }
    std::ranges::sort(blocks);
    std::vector<int64_t> list(places, -1);
    for (size_t i = 0; i < std::min(places, blocks.size()); ++i)
      list[i] = blocks[i].second;
    return list;
  }

  void expectSelected(int64_t heads, int64_t length, int64_t places, Layout layout, int64_t sequences, bool hasBounds) {
    int64_t queries = 5, width = ((hasBounds ? 2 * length : length) + kSize - 1) / kSize;
    Tensor query = Tensor({2, heads, queries, length}, layout).randomize(random);
    Tensor pooled = Tensor({2, kKeyHeads, kRows, width}, layout).randomize(random);
    std::vector<int64_t> begins, ends;
    for (int64_t i = 0; i < sequences * queries; ++i) {
      begins.push_back(static_cast<int64_t>(random() % 20));
      ends.push_back(i % 5 == 4 ? begins.back() - 1 : begins.back() + 1 + static_cast<int64_t>(random() % 29));
    }
    auto bounds = [&](std::vector<int64_t> &of) {
      return hone_tensor{of.data(), HONE_I64, 2, {sequences, queries}, {queries, 1}};
    };
    std::vector<int64_t> lists(static_cast<size_t>(2 * kKeyHeads * queries * places), -7);
    hone_tensor blocks = {lists.data(),
                          HONE_I64,
                          4,
                          {2, kKeyHeads, queries, places},
                          {kKeyHeads * queries * places, queries * places, places, 1}};
    run(hasBounds ? "hone.select_blocks.bounds.f32" : "hone.select_blocks.f32",
        {query.view(), pooled.view(), bounds(begins), bounds(ends), blocks}, {kSize}, {0.5});
    for (int64_t row = 0; row < 2 * kKeyHeads * queries; ++row) {
      int64_t sequence = row / (kKeyHeads * queries), at = (sequences == 1 ? 0 : sequence * queries) + row % queries;
      auto from = lists.begin() + row * places;
      EXPECT_EQ(std::vector<int64_t>(from, from + places),
                select(query, pooled, sequence, row / queries % kKeyHeads, row % queries,
                       begins[static_cast<size_t>(at)], ends[static_cast<size_t>(at)], static_cast<size_t>(places),
                       hasBounds))
          << "row " << row << " of " << heads << " heads of " << length;
    }
  }
};

TEST_P(SelectBlocks, MostImportantBlocksAreListed) {
  for (int64_t heads : {2, 6})
    for (int64_t length : {16, 20, 64})
      for (int64_t places : {1, 4, 40})
        for (Layout layout : kLayouts)
          for (int64_t sequences : {1, 2})
            for (bool hasBounds : {false, true})
              expectSelected(heads, length, places, layout, sequences, hasBounds);
}

HONE_INSTANTIATE_LEVELS(SelectBlocks);

} // namespace
} // namespace hone::test
