// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The blocks of keys that blocks of queries see, by sums over antidiagonals. A group of keys is a row of floats, the keys one after the
// other, and one of queries likewise, from the last to the first, so that a sum is the product of two rows: a GEMM whose K is the stride
// times the size of a head. Both factors are packed: sixteen groups of keys to a panel, and as many groups of queries as there are
// accumulators for.

#include "../entry.h"

#include "../parallel_for.h"
#include "../scratch.h"
#include "block_importance.h"
#include "key_elements.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

using SelectCall = kernels::Call<kernels::SelectAntidiagonals, kernels::NoWeight>;

constexpr int64_t kTileRows = 6;   // groups of queries that are multiplied at once
constexpr int64_t kChunkRows = 36; // those that stay in the cache while they meet the panels of keys
#ifdef __AVX512F__
constexpr int64_t kTilePanels = 2; // twelve accumulators of 512 bits, or of 256
#else
constexpr int64_t kTilePanels = 1;
#endif

template <typename Keys> class Selection {
public:
  explicit Selection(const SelectCall &call)
      : call(call), lists(call), o(call.operands), queries(o.query.sizes[2]), keys(o.keys.sizes[2]),
        length(o.query.sizes[3]), stride(call.ints.stride), group(o.query.sizes[1] / o.keys.sizes[1]),
        depth(stride * length), groups(roundUp(keys, stride) / stride), room(roundUp(groups, kTilePanels * kLanes)),
        vectors(lists.areSelected() ? o.keys.sizes[0] * o.keys.sizes[1] * room * depth : 0) {}

  void run() {
    int64_t panels = room / kLanes;
    if (lists.areSelected())
      parallelFor(o.keys.sizes[0] * o.keys.sizes[1] * panels, true,
                  [&](int64_t i) { packKeys(i / panels, i % panels); });
    lists.fill([&](int64_t sequenceHead, int64_t block, int64_t begin, int64_t end, List list) {
      return listShare(sequenceHead, block, begin, end, list);
    });
  }

private:
  static int64_t roundUp(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

  /// Sixteen groups of keys: [element][group].
  float *panelOf(int64_t sequenceHead, int64_t panel) const {
    return vectors.data() + (sequenceHead * room + panel * kLanes) * depth;
  }

  void packKeys(int64_t sequenceHead, int64_t panel) const {
    int64_t heads = o.keys.sizes[1], first = lists.firstKeyOf(sequenceHead / heads);
    Keys from(o.keys, sequenceHead / heads * o.keys.strides[0] + sequenceHead % heads * o.keys.strides[1]);
    float *to = panelOf(sequenceHead, panel);
    for (int64_t lane = 0; lane < kLanes; ++lane)
      for (int64_t s = 0; s < stride; ++s) {
        int64_t position = (panel * kLanes + lane) * stride + s;
        bool exists = position >= first && position < keys;
        for (int64_t d = 0; d < length; ++d)
          to[(s * length + d) * kLanes + lane] = exists ? from.at(position, d) : 0;
      }
  }

  /// Group `number` of the queries of a head, scaled: column `row` of a tile of `rows`, [element][row].
  void packQueries(int64_t sequence, int64_t head, int64_t number, float *tile, int64_t row, int64_t rows) const {
    const float *from = floats(o.query) + sequence * o.query.strides[0] + head * o.query.strides[1];
    float scale = static_cast<float>(call.floats.scale) / static_cast<float>(stride);
    for (int64_t s = 0; s < stride; ++s) {
      int64_t query = (number + 1) * stride - 1 - s;
      const float *at = from + query * o.query.strides[2];
      for (int64_t d = 0; d < length; ++d)
        tile[(s * length + d) * rows + row] = query < queries ? at[d * o.query.strides[3]] * scale : 0;
    }
  }

  /// products[row][key group], rows `room` apart: a tile of ROWS groups of queries with the panels from `panel` on.
  template <int ROWS> void multiplyTile(const float *tile, int64_t sequenceHead, int64_t panel, float *products) const {
    Vector sums[ROWS][kTilePanels] = {};
    const float *with[kTilePanels];
    for (int64_t p = 0; p < kTilePanels; ++p)
      with[p] = panelOf(sequenceHead, panel + p);
    for (int64_t i = 0; i < depth; ++i)
      for (int64_t p = 0; p < kTilePanels; ++p) {
        Vector key = load(with[p] + i * kLanes);
        for (int64_t r = 0; r < ROWS; ++r)
          sums[r][p] += tile[i * ROWS + r] * key;
      }
    for (int64_t r = 0; r < ROWS; ++r)
      for (int64_t p = 0; p < kTilePanels; ++p)
        store(products + r * room + (panel + p) * kLanes, sums[r][p]);
  }

  /// The same for `rows` groups, at most kTileRows.
  template <int ROWS = kTileRows>
  void multiply(int64_t rows, const float *tile, int64_t sequenceHead, int64_t panel, float *products) const {
    if constexpr (ROWS > 0) {
      if (rows == ROWS)
        multiplyTile<ROWS>(tile, sequenceHead, panel, products);
      else
        multiply<ROWS - 1>(rows, tile, sequenceHead, panel, products);
    }
  }

  /// Adds up, for each group of keys, what the groups of queries of block `block` attend to it.
  void addImportance(int64_t sequenceHead, int64_t block, float *importance) const {
    int64_t firstGroup = block * call.ints.queries / stride, end = smaller((block + 1) * call.ints.queries, queries);
    int64_t count = roundUp(end, stride) / stride - firstGroup, rows = count * group;
    int64_t begin = lists.firstKeyOf(sequenceHead / o.keys.sizes[1]) / stride;
    // Group m of the block sees the groups of keys up to that of its last query.
    auto visibleFrom = [&](int64_t m) {
      return smaller((keys - queries + (firstGroup + m + 1) * stride - 1) / stride + 1, groups);
    };
    Scratch<float> scratch(smaller(rows, kChunkRows) * (depth + room));
    float *tiles = scratch.data(), *products = tiles + smaller(rows, kChunkRows) * depth;
    for (int64_t first = 0; first < rows; first += kChunkRows) {
      int64_t chunk = smaller(rows - first, kChunkRows);
      packChunk(sequenceHead, firstGroup, count, first, chunk, tiles);
      for (int64_t panel = 0; panel * kLanes < visibleFrom(count - 1); panel += kTilePanels)
        for (int64_t row = 0; row < chunk; row += kTileRows)
          multiply(smaller(chunk - row, kTileRows), tiles + row * depth, sequenceHead, panel, products + row * room);
      for (int64_t row = 0; row < chunk; ++row) {
        float *scores = products + row * room;
        int64_t visible = visibleFrom((first + row) % count);
        for (int64_t j = 0; j < smaller(begin, visible); ++j)
          scores[j] = -__builtin_inff();
        if (begin < visible)
          addSoftmax(scores, visible, importance);
      }
    }
  }

  /// Rows [first, first + chunk) of the heads' groups of queries, `count` a head from `firstGroup` on, in tiles one after the other.
  void packChunk(int64_t sequenceHead, int64_t firstGroup, int64_t count, int64_t first, int64_t chunk,
                 float *tiles) const {
    int64_t heads = o.keys.sizes[1];
    for (int64_t row = 0; row < chunk; ++row) {
      int64_t inTile = row % kTileRows, begin = row - inTile;
      packQueries(sequenceHead / heads, sequenceHead % heads * group + (first + row) / count,
                  firstGroup + (first + row) % count, tiles + begin * depth, inTile, smaller(chunk - begin, kTileRows));
    }
  }

  /// Lists blocks from `begin` to `end` until those that are seen have the share; how many they are is the result.
  int64_t listShare(int64_t sequenceHead, int64_t block, int64_t begin, int64_t end, List list) const {
    int64_t places = o.blocks.sizes[3], perBlock = call.ints.size / stride, count = larger(end - begin, 0);
    int64_t candidates = roundUp(count, kLanes);
    Scratch<float> scratch(room + candidates);
    float *importance = scratch.data(), *values = importance + room, total = 0, seen = 0;
    for (int64_t i = 0; i < room; ++i)
      importance[i] = 0;
    for (int64_t i = 0; i < candidates; ++i)
      values[i] = -1;
    addImportance(sequenceHead, block, importance);
    for (int64_t n = 0; n < places; ++n) {
      float sum = 0;
      for (int64_t j = n * perBlock; j < smaller((n + 1) * perBlock, groups); ++j)
        sum += importance[j];
      total += sum;
      if (n >= begin && n < end)
        values[n - begin] = sum;
      else
        seen += sum;
    }
    auto share = static_cast<float>(call.floats.share);
    Seen goal{share == 1 ? __builtin_inff() : share * total, 0}; // all of it are all blocks
    return listGreatest(values, count, begin, {seen, 0}, goal, list);
  }

  const SelectCall &call;
  BlockLists<SelectCall> lists;
  decltype(SelectCall::operands) o;
  int64_t queries, keys, length, stride, group, depth; // elements of a group
  int64_t groups, room;                                // of keys, and how many whole tiles of panels have
  Scratch<float> vectors;                              // [sequence and head][panel of keys][element][16]
};

template <typename Keys> void run(const SelectCall &call) {
  if (!isAbsent(call.operands.blocks))
    Selection<Keys>(call).run();
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cpu/select_antidiagonals.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
