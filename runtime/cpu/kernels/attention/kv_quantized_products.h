// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over a rounded cache in blocks by vectors: sixteen keys are the lanes of a score, sixteen elements those of
// a sum, and products are of integers.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_QUANTIZED_PRODUCTS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_QUANTIZED_PRODUCTS_H

#include "kv_blocked_products.h"
#include "kv_quantized_softmax.h"

namespace {

template <typename Cache> class QuantizedProducts {
public:
  QuantizedProducts(const Attention &attention, int64_t mostRows)
      : attention(attention), keyLayout(Cache::kBits, attention.size()),
        valueLayout(Cache::kBits, attention.valueSize()), lines(keyLayout.bytes.width / keyLayout.kWord),
        columns(toLanes(attention.valueSize()) / kLanes), groupWords(lines * Cache::kPerByte * kRows * 2),
        queries(mostRows), starts(mostRows), totals(mostRows), words((mostRows + kRows - 1) / kRows * groupWords),
        gatheredKeys(attention, keyLayout, attention.size(), kUnitKeys, keyLayout.blockBytes(), kStepKeys),
        gatheredValues(attention, valueLayout, attention.valueSize(), kUnitKeys, valueLayout.blockBytes(), kStepKeys) {}

  /// Adds keys [begin, end) to the sums of the rows.
  void run(const RowBlock &of, int64_t begin, int64_t end) {
    block = &of;
    gathered = firstGathered(attention, of.sequence, kStepKeys);
    int64_t groups = larger((of.count + kRows - 1) / kRows, 1);
    height = larger((of.count + groups - 1) / groups, 1); // nearly equal
    for (int64_t r = 0; r < of.count; ++r)
      beginRow(r);
    addSteps({attention, of.sequence, of.head, of.seen, begin, smaller(end, gathered)}, 0, of.count);
    if (end > gathered)
      forEachQuery(of, [&](int64_t first, int64_t count) { addPath(first, count, larger(begin, gathered), end); });
    for (int64_t r = 0; r < of.count; ++r)
      finishRow<Cache>(of, r, totals.data()[r], columns);
  }

private:
  /// Adds the gathered ones of keys [begin, end) to the sums of a query's rows.
  void addPath(int64_t first, int64_t count, int64_t begin, int64_t end) {
    auto take = [&](const auto &memory, const hone_tensor &tensor) {
      return memory.take(firstElementOf<uint8_t>(tensor, block->sequence, block->head), block->sequence,
                         block->rows[first].query);
    };
    addSteps({attention, take(gatheredKeys, attention.key), take(gatheredValues, attention.value), gathered, begin,
              smaller(end, block->rows[first].end)},
             first, count);
  }

  /// Adds the keys of steps to the sums of the rows [begin, begin + count).
  void addSteps(const BlockedSteps<Cache> &steps, int64_t begin, int64_t count) {
    for (int64_t i = 0; i < steps.count(); ++i) {
      Step step = steps[i];
      if (block->count < kGemvRows && i + 1 < steps.count())
        prefetchElements(steps[i + 1]);
      numbers.take(step, keyLayout.kBlock * keyLayout.bytes.width, valueLayout.kBlock * valueLayout.bytes.width);
      // The words of a group of rows lie together.
      for (int64_t first = begin, some; first < begin + count; first += some) {
        some = smaller(height - first % height, begin + count - first);
        addRows<kRows>(step, first, some);
      }
    }
  }

  using Step = QuantizedStep<Cache, kStepUnits>;
  static constexpr int64_t kUnitKeys = Step::kUnitKeys, kStepKeys = kStepUnits * kUnitKeys;
  static constexpr int kPieces = kStepUnits * Cache::kBlockWord, kRows = kQuantizedKvRows;
  static constexpr int64_t kLineBytes = 64, kWordBytes = 4;
  static constexpr int64_t kPrefetchDistance =
      2048 * Cache::kPerByte; // bytes between what is read and what is prefetched, as measured

  /// How many vectors a loop over ROWS rows takes at once.
  template <int ROWS> static constexpr int vectorsOf() {
    constexpr int most = kQuantizedKvSums / ROWS;
    return most >= 4 ? 4 : most >= 2 ? 2 : 1;
  }

  /// Prefetches the steps and bases of a step to come, which are read before its codes.
  void prefetchElements(const Step &step) const {
    constexpr int64_t numberBytes = 2 * hone::cpu::kCacheBlockPositions * Cache::kPerByte;
    for (int unit = 0; unit < kStepUnits; ++unit)
      for (int64_t at = 0; at < numberBytes; at += kLineBytes) {
        __builtin_prefetch(step.keys[unit] + keyLayout.kBlock * keyLayout.bytes.width + at, 0, 2);
        __builtin_prefetch(step.values[unit] + valueLayout.kBlock * valueLayout.bytes.width + at, 0, 2);
      }
  }

  /// The words of quad 0 of a row: those of the next quad lie 2 · kRows after.
  int32_t *wordsOf(int64_t r) const { return words.data() + r / height * groupWords + r % height * 2; }

  void beginRow(int64_t r) {
    const float *query = block->queries + r * block->queryStride;
    QuantizedQuery rounded(query, attention.size() == 0 ? 0 : toLanes(attention.size()));
    queries.data()[r] = rounded;
    Dot start = {};
    int32_t *to = wordsOf(r);
    for (int64_t quad = 0; quad < lines * Cache::kPerByte; ++quad, to += 2 * kRows) {
      Integers four[4];
      for (int64_t i = 0; i < 4; ++i)
        four[i] = rounded.round((Vector)query[4 * quad + i]);
      FactorWords both = queryWords(four);
      to[0] = static_cast<int32_t>(both.first[0]);
      to[1] = static_cast<int32_t>(both.second[0]);
      KeyCodes<Cache>::begin(start, to[0], to[1]);
    }
    starts.data()[r] = start;
    RowTotals total = {0, 0};
    total.weights[0] = block->rows[r].sum;
    totals.data()[r] = total;
  }

  template <int ROWS> void addRows(const Step &step, int64_t first, int64_t rows) {
    if constexpr (ROWS > 1)
      if (rows < ROWS)
        return addRows<ROWS - 1>(step, first, rows);
    if (!block->seesStep(first, ROWS, step))
      return;
    int64_t prefetchDistance = first == 0 && block->count < kGemvRows ? kPrefetchDistance : 0;
    constexpr int units = vectorsOf<ROWS>();
    for (int unit = 0; unit < step.present; unit += units)
      for (int part = 0; part < Cache::kBlockWord; ++part)
        multiplyKeys<ROWS, units>(step, unit, part, first, prefetchDistance);
    ValuePrefetcher<Step> prefetcher(step, prefetchDistance != 0);
    bool hasWeights = false;
    for (int64_t r = 0; r < ROWS; ++r)
      hasWeights |= scale(step, first, r);
    if (!hasWeights)
      return;
    softmax.finishScaling(ROWS);
    for (int64_t r = 0; r < ROWS; ++r) {
      prefetcher.prefetch(kPieces / 2);
      exponentiate(first, r);
    }
    constexpr int most = vectorsOf<ROWS>();
    constexpr int64_t linesAtOnce = most / Cache::kPerByte * kLanes;
    int64_t column = 0;
    if (prefetchDistance != 0)
      prefetchDistance = larger(prefetchDistance, linesAtOnce * kLineBytes); // after what is read at once
    if constexpr (most > 1)
      for (; column + most <= columns; column += most)
        multiplyValues<ROWS, most>(step, column, first, prefetchDistance);
    for (; column < columns; ++column)
      if (column % Cache::kPerByte == 0)
        multiplyValues<ROWS, 1>(step, column, first, prefetchDistance);
      else
        multiplyValues<ROWS, 1, 1>(step, column, first, 0);
  }

  /// Scores of the pieces `part` of UNITS KV micro-blocks.
  template <int ROWS, int UNITS>
  void multiplyKeys(const Step &step, int unit, int part, int64_t first, int64_t prefetchDistance) {
    for (int lane = 0; lane < kLanes; lane += kDotLanes) {
      Dot dots[ROWS][UNITS];
      for (int r = 0; r < ROWS; ++r)
        for (int u = 0; u < UNITS; ++u)
          dots[r][u] = starts.data()[first + r];
      const int32_t *word = wordsOf(first);
      int64_t offset = part * lines * kLineBytes + lane * kWordBytes;
      for (int64_t line = 0; line < lines; ++line, offset += kLineBytes) {
        for (int u = 0; u < UNITS; ++u)
          __builtin_prefetch(step.keys[unit + u] + offset + prefetchDistance, 0, 3);
        for (int half = 0; half < Cache::kPerByte; ++half, word += 2 * kRows) {
          KeyCodes<Cache> codes[UNITS];
          for (int u = 0; u < UNITS; ++u)
            codes[u] = {loadAs<DotWords>(step.keys[unit + u] + offset), half};
          for (int r = 0; r < ROWS; ++r)
            KeyCodes<Cache>::add(dots[r], codes, word[2 * r], word[2 * r + 1]);
        }
      }
      for (int r = 0; r < ROWS; ++r)
        for (int u = 0; u < UNITS; ++u)
          storeLanes(scores[r][(unit + u) * Cache::kBlockWord + part] + lane, dots[r][u].sum());
    }
  }

  static void storeLanes(float *to, DotFloats floats) { __builtin_memcpy(to, &floats, sizeof floats); }

  /// Whether row `r` does not skip the step.
  bool scale(const Step &step, int64_t first, int64_t r) {
    Vector logits[kPieces];
    for (int piece = 0; piece < kPieces; ++piece)
      logits[piece] = load(scores[r][piece]);
    bool hasWeights = softmax.scale<Cache, kStepUnits>(r, block->rows[first + r], queries.data()[first + r], step,
                                                       attention.softcap, numbers.keys, logits);
    for (int piece = 0; piece < kPieces; ++piece)
      store(scores[r][piece], logits[piece]);
    return hasWeights;
  }

  void exponentiate(int64_t first, int64_t r) {
    Vector logits[kPieces];
    for (int piece = 0; piece < kPieces; ++piece)
      logits[piece] = load(scores[r][piece]);
    auto result = softmax.exponentiate<Cache, kStepUnits>(r, numbers, logits, totals.data()[first + r]);
    weightSteps[r] = result.step;
    for (int unit = 0; unit < kStepUnits; ++unit) {
      __builtin_memcpy(weights[r][unit][0], &result.words[unit].first, sizeof weights[r][unit][0]);
      __builtin_memcpy(weights[r][unit][1], &result.words[unit].second, sizeof weights[r][unit][1]);
    }
    if (result.correction == 1.0f)
      return;
    float *sums = block->sums + (first + r) * block->sumStride;
    for (int64_t column = 0; column < columns; ++column, sums += kLanes)
      store(sums, load(sums) * result.correction);
  }

  /// sums += weights · values, for the elements of `column`, which are part HALF of their lines, and of the next
  /// COLUMNS - 1 columns
  template <int ROWS, int COLUMNS, int HALF = 0>
  void multiplyValues(const Step &step, int64_t column, int64_t first, int64_t prefetchDistance) const {
    constexpr int lines = (COLUMNS + Cache::kPerByte - 1) / Cache::kPerByte;
    for (int lane = 0; lane < kLanes; lane += kDotLanes) {
      Dot dots[ROWS][COLUMNS] = {};
      for (int unit = 0; unit < step.present; ++unit) {
        const uint8_t *from = step.values[unit] + column / Cache::kPerByte * kLanes * kLineBytes + lane * kWordBytes;
        for (int64_t i = 0; i < kLanes; ++i, from += kLineBytes) {
          for (int line = 0; line < lines; ++line)
            __builtin_prefetch(from + line * kLanes * kLineBytes + prefetchDistance, 0, 3);
          ValueCodes<Cache> codes[COLUMNS];
          for (int c = 0; c < COLUMNS; ++c)
            codes[c] = {loadAs<DotWords>(from + c / Cache::kPerByte * kLanes * kLineBytes), HALF + c % Cache::kPerByte};
          for (int r = 0; r < ROWS; ++r)
            ValueCodes<Cache>::add(dots[r], codes, weights[r][unit][0][i], weights[r][unit][1][i]);
        }
      }
      for (int r = 0; r < ROWS; ++r)
        for (int c = 0; c < COLUMNS; ++c) {
          float *to = block->sums + (first + r) * block->sumStride + (column + c) * kLanes + lane;
          storeLanes(to, loadAs<DotFloats>(to) + dots[r][c].sum() * weightSteps[r]);
        }
    }
  }

  const Attention &attention;
  hone::cpu::QuantizedKeyLayout keyLayout;
  hone::cpu::QuantizedValueLayout valueLayout;
  int64_t lines, columns, groupWords; // lines of sixteen keys, sixteens of elements of a value
  Scratch<QuantizedQuery> queries;
  Scratch<Dot> starts;
  Scratch<RowTotals> totals;
  Scratch<int32_t> words; // [group of rows][quad][row][first and second]
  int64_t gathered = 0;   // the first key that is gathered
  GatheredBlocks<hone::cpu::QuantizedKeyLayout, uint8_t> gatheredKeys;
  GatheredBlocks<hone::cpu::QuantizedValueLayout, uint8_t> gatheredValues;
  const RowBlock *block = nullptr;
  int64_t height = 1; // rows of a group
  CacheNumbers<Cache, kStepUnits> numbers;
  QuantizedRows softmax;
  alignas(64) float scores[kRows][kPieces][kLanes];
  alignas(64) int32_t weights[kRows][kStepUnits][2][kLanes];
  float weightSteps[kRows];
};

template <int BITS> class BlockedProducts<QuantizedCache<BITS>> : public QuantizedProducts<QuantizedCache<BITS>> {
  using QuantizedProducts<QuantizedCache<BITS>>::QuantizedProducts;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_QUANTIZED_PRODUCTS_H
