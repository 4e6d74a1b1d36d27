// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over a rounded cache in blocks by vectors: sixteen keys are the lanes of a score, sixteen elements those of a sum, and
// products are of integers.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROUNDED_PRODUCTS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROUNDED_PRODUCTS_H

#include "blocked_products.h"
#include "rounded_softmax.h"

namespace {

template <typename Cache> class RoundedProducts {
public:
  RoundedProducts(const Attention &attention, int64_t mostRows)
      : attention(attention), keyLayout(Cache::kBits, attention.size()),
        valueLayout(Cache::kBits, attention.valueSize()), lines(keyLayout.bytes.width / keyLayout.kWord),
        runs(valueLayout.bytes.width / kLanes), columns(toLanes(attention.valueSize()) / kLanes),
        groupWords(lines * Cache::kPerByte * kRows * 2), queries(mostRows), starts(mostRows), totals(mostRows),
        words((mostRows + kRows - 1) / kRows * groupWords) {}

  /// Adds keys [begin, end) to the sums of the rows.
  void run(const RowBlock &of, int64_t begin, int64_t end) {
    block = &of;
    for (int64_t r = 0; r < of.count; ++r)
      beginRow(r);
    BlockedSteps<Cache> steps(attention, of.sequence, of.head, begin, end, of.count < kFewRows);
    for (int64_t i = 0; i < steps.count(); ++i) {
      Step step = steps[i];
      numbers.keys.take(step.keys, keyLayout.kUnit * keyLayout.bytes.width);
      numbers.values.take(step.values, valueLayout.kUnit * valueLayout.bytes.width);
      numbers.largest = numbers.values.normalize();
      for (int64_t first = 0; first < of.count; first += kRows)
        addRows<kRows>(step, first, smaller(kRows, of.count - first));
    }
    for (int64_t r = 0; r < of.count; ++r)
      finishRow<Cache>(of, r, totals.data()[r], columns);
  }

private:
  using Step = RoundedStep<Cache, kStepUnits>;
  static constexpr int kPieces = kStepUnits * Cache::kBlockWord, kRows = kRoundedSums / Cache::kPerByte;
  static constexpr int64_t kLineBytes = 64, kAhead = 1024; // bytes between what is read and what is asked for

  /// How many vectors a loop over ROWS rows takes at once.
  template <int ROWS, int DOTS> static constexpr int vectorsOf() {
    constexpr int most = kRoundedSums / (ROWS * DOTS);
    return most >= 4 ? 4 : most >= 2 ? 2 : 1;
  }

  /// The words of quad 0 of a row: those of the next quad lie 2 · kRows behind.
  int32_t *wordsOf(int64_t r) const { return words.data() + r / kRows * groupWords + r % kRows * 2; }

  void beginRow(int64_t r) {
    const float *query = block->queries + r * block->queryStride;
    RoundedQuery rounded(query, attention.size() == 0 ? 0 : toLanes(attention.size()));
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
      KeyLevels<Cache>::begin(start, to[0], to[1]);
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
    if (!block->sees(first, ROWS, step.begin, step.end))
      return;
    int64_t ahead = first == 0 && block->count < kFewRows ? kAhead : 0;
    constexpr int units = vectorsOf<ROWS, 1>();
    for (int unit = 0; unit < kStepUnits; unit += units)
      for (int part = 0; part < Cache::kBlockWord; ++part)
        multiplyKeys<ROWS, units>(step, unit, part, first, ahead);
    ValuesAhead<Step> asked(step, ahead != 0);
    for (int64_t r = 0; r < ROWS; ++r)
      scale(step, first, r);
    softmax.finishScaling(ROWS);
    for (int64_t r = 0; r < ROWS; ++r) {
      asked.ask(kPieces / 2);
      weigh(first, r);
    }
    constexpr int most = vectorsOf<ROWS, Cache::kPerByte>();
    int64_t run = 0;
    for (; run + most <= runs; run += most)
      multiplyValues<ROWS, most>(step, run, first, ahead);
    for (; run < runs; ++run)
      multiplyValues<ROWS, 1>(step, run, first, ahead);
  }

  /// Scores of the pieces `part` of UNITS units.
  template <int ROWS, int UNITS>
  void multiplyKeys(const Step &step, int unit, int part, int64_t first, int64_t ahead) {
    Dot dots[ROWS][UNITS];
    for (int r = 0; r < ROWS; ++r)
      for (int u = 0; u < UNITS; ++u)
        dots[r][u] = starts.data()[first + r];
    const int32_t *word = wordsOf(first);
    int64_t offset = part * lines * kLineBytes;
    for (int64_t line = 0; line < lines; ++line, offset += kLineBytes) {
      for (int u = 0; u < UNITS; ++u)
        __builtin_prefetch(step.keys[unit + u] + offset + ahead, 0, 3);
      for (int half = 0; half < Cache::kPerByte; ++half, word += 2 * kRows)
        for (int u = 0; u < UNITS; ++u) {
          KeyLevels<Cache> levels(levelsOf<Cache>(step.keys[unit + u] + offset, half));
          for (int r = 0; r < ROWS; ++r)
            levels.add(dots[r][u], word[2 * r], word[2 * r + 1]);
        }
    }
    for (int r = 0; r < ROWS; ++r)
      for (int u = 0; u < UNITS; ++u)
        store(scores[r][(unit + u) * Cache::kBlockWord + part], dots[r][u].sum());
  }

  void scale(const Step &step, int64_t first, int64_t r) {
    Vector logits[kPieces];
    for (int piece = 0; piece < kPieces; ++piece)
      logits[piece] = load(scores[r][piece]);
    softmax.scale<Cache, kStepUnits>(r, block->rows[first + r], queries.data()[first + r], step, attention.softcap,
                                     numbers.keys, logits);
    for (int piece = 0; piece < kPieces; ++piece)
      store(scores[r][piece], logits[piece]);
  }

  void weigh(int64_t first, int64_t r) {
    Vector logits[kPieces];
    for (int piece = 0; piece < kPieces; ++piece)
      logits[piece] = load(scores[r][piece]);
    auto result = softmax.weigh<Cache, kStepUnits>(r, numbers, logits, totals.data()[first + r]);
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

  /// sums += weights · values, for the elements of lines from sixteen times `run` on and of the next RUNS - 1 runs of sixteen
  template <int ROWS, int RUNS> void multiplyValues(const Step &step, int64_t run, int64_t first, int64_t ahead) const {
    constexpr int dotsOfRow = RUNS * Cache::kPerByte;
    Dot dots[ROWS][dotsOfRow] = {};
    for (int unit = 0; unit < kStepUnits; ++unit) {
      const uint8_t *from = step.values[unit] + run * kLanes * kLineBytes;
      for (int64_t i = 0; i < kLanes; ++i, from += kLineBytes)
        for (int d = 0; d < dotsOfRow; ++d) {
          const uint8_t *line = from + d / Cache::kPerByte * kLanes * kLineBytes;
          __builtin_prefetch(line + ahead, 0, 3);
          ValueLevels<Cache> levels(levelsOf<Cache>(line, d % Cache::kPerByte));
          for (int r = 0; r < ROWS; ++r)
            levels.add(dots[r][d], weights[r][unit][0][i], weights[r][unit][1][i]);
        }
    }
    for (int r = 0; r < ROWS; ++r)
      for (int d = 0; d < dotsOfRow; ++d) {
        int64_t column = run * Cache::kPerByte + d;
        float *to = block->sums + (first + r) * block->sumStride + column * kLanes;
        if (column < columns)
          store(to, load(to) + dots[r][d].sum() * weightSteps[r]);
      }
  }

  const Attention &attention;
  hone::cpu::RoundedKeyLayout keyLayout;
  hone::cpu::RoundedValueLayout valueLayout;
  int64_t lines, runs, columns, groupWords; // lines of sixteen keys, runs of sixteen lines of values
  Scratch<RoundedQuery> queries;
  Scratch<Dot> starts;
  Scratch<RowTotals> totals;
  Scratch<int32_t> words; // [group of rows][quad][row][first and second]
  const RowBlock *block = nullptr;
  CacheNumbers<Cache, kStepUnits> numbers;
  RoundedRows softmax;
  alignas(64) float scores[kRows][kPieces][kLanes];
  alignas(64) int32_t weights[kRows][kStepUnits][2][kLanes];
  float weightSteps[kRows];
};

template <int BITS> class BlockedProducts<RoundedCache<BITS>> : public RoundedProducts<RoundedCache<BITS>> {
  using RoundedProducts<RoundedCache<BITS>>::RoundedProducts;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROUNDED_PRODUCTS_H
