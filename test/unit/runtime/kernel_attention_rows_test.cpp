// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What attention gives a query is the same to the last bit whether it is alone, as in decoding, or one of several, as in
// verification, whatever sequences are beside its own, and whatever the number of threads.

#include "attention_masks.h"
#include "growing_cache.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <omp.h>

namespace hone::test {
namespace {

constexpr int64_t kMostQueries = 33;

/// `earlier` keys precede those of the queries.
struct Case {
  int64_t earlier, heads = 7, keyHeads = 1, size = 64, valueSize = 64, batch = 1;
  int64_t window = -1, blockKeys = 0, listed = 3;
  double softcap = 0, skip = 0;
  bool isTree = false, hasPositions = false, hasBias = false, hasAlibi = false, hasSinks = false, hasLse = false;
  std::vector<int64_t> keyBegin = {}, lags = {};
};

/// The rows [first, first + count) of axis `axis`.
hone_tensor slice(hone_tensor tensor, int32_t axis, int64_t first, int64_t count) {
  if (tensor.rank <= axis || tensor.sizes[axis] == 0)
    return tensor;
  if (tensor.data)
    tensor.data = static_cast<uint8_t *>(tensor.data) +
                  first * tensor.strides[axis] * io::dtypeBytes(static_cast<hone_dtype>(tensor.dtype));
  tensor.sizes[axis] = count;
  return tensor;
}

class AttentionRows : public KernelTest {
protected:
  void TearDown() override { omp_set_num_threads(threads); }

  void checkAll(const Case &test, std::initializer_list<int64_t> counts) {
    for (const Kind &kind : kKinds)
      check(kind, test, counts);
  }

  /// Compares calls with each of `counts` queries with calls that have one query of one sequence, or as few as a tree can
  /// be cut down to.
  void check(const Kind &kind, const Case &test, std::initializer_list<int64_t> counts) {
    int64_t most = std::ranges::max(counts), capacity = test.earlier + most;
    GrowingCache keys(kind, true, test.batch, test.keyHeads, capacity, test.size);
    GrowingCache values(kind, false, test.batch, test.keyHeads, capacity, test.valueSize);
    for (int64_t position = 0; position < test.earlier; ++position)
      keys.append(position, random), values.append(position, random);
    Operands operands(test, most, capacity, random);
    Tensor expected({test.batch, test.heads, most, test.valueSize}), expectedLse({test.batch, test.heads, most});
    omp_set_num_threads(1);
    for (int64_t i = 0; i < most; ++i) {
      keys.append(test.earlier + i, random), values.append(test.earlier + i, random);
      for (int64_t b = 0; b < test.batch; ++b)
        call(kind, test, operands, keys, values, {b, 1, test.isTree ? 0 : i, i + 1}, expected, expectedLse);
    }
    for (int64_t count : counts)
      for (int threadCount : {1, 2}) {
        omp_set_num_threads(threadCount);
        Tensor out(expected.sizes), lse(expectedLse.sizes);
        call(kind, test, operands, keys, values, {0, test.batch, 0, count}, out, lse);
        compare(kind, test, count, out, expected);
        if (test.hasLse)
          compare(kind, test, count, lse, expectedLse);
      }
  }

  /// Those that gather the keys of a path: with AMX, where floats of f32 are kept, and none are rounded.
  static std::vector<Kind> getGatheredKinds() {
    std::vector<Kind> kinds;
    for (const Kind &kind : kKinds)
      if (GetParam() != cpu::Isa::Amx ||
          (kind.dtype == HONE_F32 && kind.kernel != std::string_view("hone.attention.pairs.f32")))
        kinds.push_back(kind);
    return kinds;
  }

  /// Compares the queries of trees, one for each sequence, with decoding steps that have the keys of their paths, one after the other.
  void checkPaths(const Kind &kind, const Case &test, int64_t queries) {
    int64_t capacity = test.earlier + queries;
    GrowingCache keys(kind, true, test.batch, test.keyHeads, capacity, test.size);
    GrowingCache values(kind, false, test.batch, test.keyHeads, capacity, test.valueSize);
    for (int64_t position = 0; position < capacity; ++position)
      keys.append(position, random), values.append(position, random);
    Operands operands(test, queries, capacity, random);
    Tensor out({test.batch, test.heads, queries, test.valueSize}), lse({test.batch, test.heads, queries});
    Tensor expected(out.sizes), expectedLse(lse.sizes);
    omp_set_num_threads(1);
    for (int64_t b = 0; b < test.batch; ++b)
      for (int64_t i = 0; i < queries; ++i)
        callPath(kind, test, operands, keys, values, b, i, expected, expectedLse);
    for (int threadCount : {1, 2}) {
      omp_set_num_threads(threadCount);
      call(kind, test, operands, keys, values, {0, test.batch, 0, queries}, out, lse);
      compare(kind, test, queries, out, expected);
      if (test.hasLse)
        compare(kind, test, queries, lse, expectedLse);
    }
  }

private:
  struct Operands {
    Tensor query, bias, alibi, sinks;
    IntegerTensor positions, lists, ancestors;
    std::vector<int64_t> keyBegin, lags;

    Operands(const Case &test, int64_t queries, int64_t keys, std::mt19937 &random)
        : query(Tensor({test.batch, test.heads, queries, test.size}).randomize(random)),
          bias(test.hasBias ? Tensor({test.batch, 1, queries, keys}).randomize(random) : Tensor::absent()),
          alibi(test.hasAlibi ? Tensor({test.heads}).randomize(random, 0.01f) : Tensor::absent()),
          sinks(test.hasSinks ? Tensor({test.heads}).randomize(random) : Tensor::absent()),
          positions({test.hasPositions ? test.batch : 0, keys}),
          lists({test.blockKeys > 0 ? test.batch : 0, 1, queries, test.listed}),
          ancestors({test.isTree ? test.batch : 0, queries, 1}), keyBegin(test.keyBegin), lags(test.lags) {
      for (size_t i = 0; i < positions.values.size(); ++i) // a compacted cache: positions have gaps, and some are dead
        positions.values[i] = random() % 5 == 0 ? -1 : static_cast<int64_t>(i) % keys * 2;
      for (int64_t &block : lists.values)
        block = static_cast<int64_t>(random()) % (keys / std::max<int64_t>(test.blockKeys, 1) + 1);
      for (size_t i = 0; i < ancestors.values.size(); ++i) {
        size_t node = i % static_cast<size_t>(queries);
        int64_t ofParent = node == 0 ? 0 : ancestors.values[i - 1 - random() % node];
        ancestors.values[i] = ofParent | static_cast<int64_t>(uint64_t{1} << node);
      }
    }
  };

  /// The part of all queries that a call has; the queries before `end` have keys.
  struct Part {
    int64_t sequence, sequences, begin, end;
  };

  /// The decoding step of a query of a tree.
  void callPath(const Kind &kind, const Case &test, Operands &all, const GrowingCache &keys, const GrowingCache &values,
                int64_t sequence, int64_t query, Tensor &out, Tensor &lse) {
    GrowingCache pathKeys = keys, pathValues = values;
    auto b = static_cast<size_t>(sequence);
    int64_t queries = all.ancestors.sizes[1], first = test.earlier - (test.lags.empty() ? 0 : test.lags[b]),
            end = first;
    for (int64_t key = first; key < test.earlier + queries; ++key)
      pathKeys.take(key), pathValues.take(key);
    for (int64_t j = 0; j <= query; ++j)
      if (all.ancestors.values[b * static_cast<size_t>(queries) + static_cast<size_t>(query)] >> j & 1) {
        pathKeys.take(end, &keys, first + j);
        pathValues.take(end++, &values, first + j);
      }
    auto cut = [&](hone_tensor tensor) { return slice(slice(tensor, 2, query, 1), 0, sequence, 1); };
    AttentionOperands one = attentionOf(cut(all.query.view()), pathKeys.view(sequence, 1, end),
                                        pathValues.view(sequence, 1, end), cut(out.view()));
    one.sinks = all.sinks.view(), one.keyBegin = slice(listOf(all.keyBegin), 0, sequence, 1);
    if (test.hasLse)
      one.lse = cut(lse.view());
    run(kind.kernel, listOperands(one), {true, -1, 0, 1}, {0.2, test.softcap, test.skip});
  }

  void call(const Kind &kind, const Case &test, Operands &all, GrowingCache &keys, GrowingCache &values,
            const Part &part, Tensor &out, Tensor &lse) {
    int64_t queries = part.end - part.begin, count = test.earlier + part.end;
    auto cut = [&](hone_tensor tensor, int32_t axis) {
      return slice(slice(tensor, axis, part.begin, queries), 0, part.sequence, part.sequences);
    };
    AttentionOperands operands = attentionOf(cut(all.query.view(), 2), keys.view(part.sequence, part.sequences, count),
                                             values.view(part.sequence, part.sequences, count), cut(out.view(), 2));
    operands.bias = slice(cut(all.bias.view(), 2), 3, 0, count);
    operands.alibi = all.alibi.view(), operands.sinks = all.sinks.view();
    operands.keyBegin = slice(listOf(all.keyBegin), 0, part.sequence, part.sequences);
    operands.lags = slice(listOf(all.lags), 0, part.sequence, part.sequences);
    operands.keyPositions = slice(slice(all.positions.view(), 1, 0, count), 0, part.sequence, part.sequences);
    operands.blocks = cut(all.lists.view(), 2);
    operands.ancestors = cut(all.ancestors.view(), 1);
    if (test.hasLse)
      operands.lse = cut(lse.view(), 2);
    run(kind.kernel, listOperands(operands), {!test.isTree, test.window, test.blockKeys, 1},
        {0.2, test.softcap, test.skip});
  }

  /// To the last bit. Between the checks of UndefinedBehaviorSanitizer, which comes with AddressSanitizer, some products are not contracted
  /// into the sums that take them, and others are: a few units in the last place of what is added up.
  static bool isSame(float actual, float expected) {
#if __has_feature(address_sanitizer)
    if (std::abs(actual - expected) <= 1e-5f * std::max(1.0f, std::abs(expected)))
      return true;
#endif
    return std::bit_cast<uint32_t>(actual) == std::bit_cast<uint32_t>(expected);
  }

  static void compare(const Kind &kind, const Case &test, int64_t count, const Tensor &actual, const Tensor &expected) {
    bool hasFailed = false;
    expected.forEach([&](const std::vector<int64_t> &index) {
      float a = actual.at(index), e = expected.at(index);
      if (hasFailed || index[2] >= count || isSame(a, e))
        return;
      hasFailed = true;
      ADD_FAILURE() << kind.kernel << " with " << test.earlier << " earlier keys: at " << io::shapeText(index) << " of "
                    << count << " queries expected " << e << ", but got " << a;
    });
  }

  int threads = omp_get_max_threads();
};

// Around the borders of what is read, multiplied and summed at once.
constexpr int64_t kBorders[] = {0, 1, 15, 16, 17, 63, 64, 511, 512, 4095, 4096, 5000};

TEST_P(AttentionRows, Grouped) {
  for (int64_t earlier : kBorders)
    checkAll({.earlier = earlier}, {1, 2, 5, 8, 19, 32, 33});
}

TEST_P(AttentionRows, EveryNumberOfQueries) {
  for (int64_t earlier : {50, 480})
    checkAll({.earlier = earlier, .heads = 2, .size = 32, .valueSize = 32},
             {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,          17,
              18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, kMostQueries});
}

TEST_P(AttentionRows, ManyHeadsAndSizes) {
  for (int64_t earlier : {17, 700, 4090})
    for (int64_t keyHeads : {1, 2, 4})
      for (int64_t size : {19, 128})
        checkAll({.earlier = earlier, .heads = 4, .keyHeads = keyHeads, .size = size, .valueSize = size}, {4, 9});
}

TEST_P(AttentionRows, LongCaches) {
  for (int64_t earlier : {8185, 12286, 16500, 33000})
    checkAll({.earlier = earlier, .heads = 2, .size = 32, .valueSize = 32, .hasSinks = true, .hasLse = true}, {3, 8});
}

TEST_P(AttentionRows, Windows) {
  for (int64_t earlier : {64, 500, 5000, 9000})
    for (int64_t window : {1, 70, 3000})
      checkAll({.earlier = earlier, .heads = 3, .window = window, .hasSinks = true}, {3, 8, 33});
}

/// Of most steps all logits lie below the running maximum by more than log 8.
TEST_P(AttentionRows, Skipping) {
  for (int64_t earlier : {60, 500, 4095, 9000}) {
    checkAll({.earlier = earlier, .size = 128, .skip = 1e4, .hasLse = true}, {1, 5, 33});
    checkAll({.earlier = earlier,
              .heads = 4,
              .keyHeads = 2,
              .size = 128,
              .batch = 2,
              .window = 700,
              .skip = 1e4,
              .hasSinks = true},
             {3, 9});
  }
  for (const Kind &kind : getGatheredKinds())
    checkPaths(kind, {.earlier = 5000, .size = 128, .skip = 1e4, .isTree = true}, 40);
}

TEST_P(AttentionRows, Batches) {
  for (int64_t earlier : {15, 500, 4095})
    checkAll({.earlier = earlier, .heads = 4, .keyHeads = 2, .batch = 3, .hasLse = true}, {1, 4, 17});
  checkAll({.earlier = 300, .heads = 2, .batch = 3, .keyBegin = {0, 100, 299}}, {1, 6});
}

TEST_P(AttentionRows, WhatLogitsHaveBesidesProducts) {
  for (int64_t earlier : {60, 300, 4090}) {
    checkAll({.earlier = earlier, .heads = 3, .softcap = 2}, {3, 9});
    checkAll({.earlier = earlier, .heads = 3, .hasBias = true, .hasSinks = true}, {3, 9});
    checkAll({.earlier = earlier, .heads = 3, .hasAlibi = true, .hasLse = true}, {3, 9});
  }
}

TEST_P(AttentionRows, Trees) {
  for (int64_t earlier : {0, 15, 62, 500, 4090}) {
    checkAll({.earlier = earlier, .isTree = true}, {2, 9, 33});
    checkAll({.earlier = earlier, .heads = 2, .batch = 2, .window = 70, .isTree = true}, {2, 9, 33});
  }
}

TEST_P(AttentionRows, TreesAreChains) {
  for (const Kind &kind : getGatheredKinds()) {
    for (int64_t earlier : {0, 1, 15, 63, 64, 250, 511, 4070, 4096, 5000})
      checkPaths(kind, {.earlier = earlier, .heads = 7, .isTree = true}, 40);
    for (int64_t size : {19, 128})
      checkPaths(kind,
                 {.earlier = 300,
                  .heads = 4,
                  .keyHeads = 2,
                  .size = size,
                  .valueSize = size,
                  .batch = 2,
                  .softcap = 2,
                  .isTree = true,
                  .hasSinks = true,
                  .hasLse = true,
                  .keyBegin = {0, 100}},
                 64);
    checkPaths(kind, {.earlier = 70, .heads = 80, .size = 32, .valueSize = 32, .isTree = true}, 9);
    for (int64_t earlier : {70, 511, 4100})
      checkPaths(kind,
                 {.earlier = earlier,
                  .heads = 4,
                  .keyHeads = 2,
                  .batch = 3,
                  .isTree = true,
                  .hasLse = true,
                  .lags = {7, 0, 70}},
                 17);
  }
}

TEST_P(AttentionRows, ListsAndPositions) {
  for (int64_t earlier : {40, 700, 9000}) {
    for (int64_t blockKeys : {16, 64, 128})
      checkAll({.earlier = earlier, .heads = 4, .keyHeads = 2, .blockKeys = blockKeys, .listed = 9}, {2, 9, 33});
    checkAll({.earlier = earlier, .heads = 4, .window = 300, .hasPositions = true}, {2, 9, 33});
  }
}

HONE_INSTANTIATE_LEVELS(AttentionRows);

} // namespace
} // namespace hone::test
