// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over a cache in blocks by vectors: sixteen keys are the lanes of a score, sixteen elements those of a sum.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_PRODUCTS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_PRODUCTS_H

#include "kv_blocked_softmax.h"
#include "tree_paths.h"
#include "word_products.h"

namespace {

// Sums in registers: rows times vectors; a vector is two registers where registers have 256 bits.
#ifdef __AVX512F__
constexpr int kBlockedRows = 12, kBlockedVectors = 2;
#else
constexpr int kBlockedRows = 6, kBlockedVectors = 1;
#endif

template <typename Cache> class BlockedProducts {
public:
  BlockedProducts(const Attention &attention, int64_t mostRows)
      : attention(attention), width(hone::cpu::BlockedKeyLayout(kWord, attention.size()).width),
        columns(toLanes(attention.valueSize()) / kLanes), queries(mostRows, width), totals(mostRows * kLanes),
        gatheredKeys(attention, {kWord, attention.size()}, attention.size(), kUnitKeys,
                     Keys::keyElements(kUnitKeys, attention.size()), kStepKeys),
        gatheredValues(attention, {kWord, attention.valueSize()}, attention.valueSize(), kUnitKeys,
                       Keys::valueElements(kUnitKeys, attention.valueSize()), kStepKeys) {}

  /// Adds keys [begin, end) to the sums of the rows.
  void run(const RowBlock &of, int64_t begin, int64_t end) {
    block = &of;
    gathered = firstGathered(attention, of.sequence, kStepKeys);
    queries.take(of);
    for (int64_t r = 0; r < of.count; ++r) {
      Vector total = 0;
      total[0] = of.rows[r].sum;
      store(totalOf(r), total);
    }
    addSteps({attention, of.sequence, of.head, of.seen, begin, smaller(end, gathered)}, 0, of.count);
    if (end > gathered)
      forEachQuery(of, [&](int64_t first, int64_t count) { addPath(first, count, larger(begin, gathered), end); });
    for (int64_t r = 0; r < of.count; ++r)
      of.rows[r].sum = sumLanes(load(totalOf(r)));
  }

private:
  /// Adds the gathered ones of keys [begin, end) to the sums of a query's rows.
  void addPath(int64_t first, int64_t count, int64_t begin, int64_t end) {
    auto take = [&](const auto &memory, const hone_tensor &tensor) {
      return memory.take(firstElementOf<Element>(tensor, block->sequence, block->head), block->sequence,
                         block->rows[first].query);
    };
    addSteps({attention, take(gatheredKeys, attention.key), take(gatheredValues, attention.value), gathered, begin,
              smaller(end, block->rows[first].end)},
             first, count);
  }

  /// Adds the keys of steps to the sums of the rows [begin, begin + count).
  void addSteps(const BlockedSteps<Cache> &steps, int64_t begin, int64_t count) {
    int64_t groups = (count + kBlockedRows - 1) / kBlockedRows, end = begin + count;
    int64_t height = groups == 0 ? 1 : (count + groups - 1) / groups; // nearly equal
    for (int64_t i = 0; i < steps.count(); ++i) {
      Step step = i == 0 ? steps[0] : next;
      next = steps[smaller(i + 1, steps.count() - 1)];
      for (int64_t first = begin; first < end; first += height)
        addRows<kBlockedRows>(step, first, smaller(height, end - first));
    }
  }

  using Keys = BlockedCache<Cache>;
  using Step = BlockedStep<Cache>;
  using Products = WordProducts<Cache>;
  using Factor = typename Products::Factor;
  using Numbers = typename Products::Numbers;
  using Element = typename Cache::Element;
  static constexpr int kFactors = Products::kFactors, kWord = Keys::kWord, kPieces = Keys::kPieces;
  static constexpr int64_t kUnitKeys = Step::kUnitKeys, kStepKeys = kStepUnits * kUnitKeys;

  float *totalOf(int64_t r) const { return totals.data() + r * kLanes; }

  template <int ROWS> void addRows(const Step &step, int64_t first, int64_t rows) {
    if constexpr (ROWS > 1)
      if (rows < ROWS)
        return addRows<ROWS - 1>(step, first, rows);
    if (!block->seesStep(first, ROWS, step))
      return;
    bool prefetches = first == 0 && block->count < kGemvRows;
    const Step &prefetched = prefetches ? next : step;
    for (int unit = 0; unit < step.present; unit += kBlockedVectors)
      for (int part = 0; part < kWord; ++part)
        multiplyKeys<ROWS>(step, unit, part, first, prefetched);
    ValuePrefetcher<Step> values(step, prefetches && !(attention.skip > 0)); // of what may be skipped, none are read
    bool hasWeights = false;
    for (int64_t r = 0; r < ROWS; ++r)
      hasWeights |= exponentiate(step, first + r, r, values);
    if (!hasWeights)
      return;
    if (step.present == kStepUnits)
      multiplyColumns<ROWS>([](const Step &) { return kStepUnits; }, step, first, prefetched);
    else
      multiplyColumns<ROWS>([](const Step &some) { return some.present; }, step, first, prefetched);
  }

  /// Scores of the pieces `part` of kBlockedVectors KV micro-blocks.
  template <int ROWS> void multiplyKeys(const Step &step, int unit, int part, int64_t first, const Step &prefetched) {
    Vector sums[ROWS][kBlockedVectors] = {};
    const Factor *query = queries.data() + first * queries.stride(), *end = query + width / kWord * kFactors;
    for (int64_t offset = part * kLanes * width; query < end; offset += Keys::kWordsElements, query += kFactors) {
      Numbers numbers[kBlockedVectors][kFactors];
      for (int v = 0; v < kBlockedVectors; ++v) {
        Products::read(step.keys[unit + v] + offset, numbers[v]);
        __builtin_prefetch(prefetched.keys[unit + v] + offset, 0, 3);
      }
      for (int e = 0; e < kFactors; ++e)
        for (int r = 0; r < ROWS; ++r)
          for (int v = 0; v < kBlockedVectors; ++v)
            Products::add(sums[r][v], query[r * queries.stride() + e], numbers[v][e]);
    }
    for (int r = 0; r < ROWS; ++r)
      for (int v = 0; v < kBlockedVectors; ++v)
        store(scores[r] + ((unit + v) * kWord + part) * kLanes, sums[r][v]);
  }

  /// Weights of row `r`, whose scores are number `index` of what is worked on; whether it does not skip the step.
  bool exponentiate(const Step &step, int64_t r, int64_t index, ValuePrefetcher<Step> &values) {
    Vector logits[kPieces], total = load(totalOf(r));
    for (int piece = 0; piece < kPieces; ++piece)
      logits[piece] = load(scores[index] + piece * kLanes);
    values.prefetch(kPieces);
    adjustPieces(block->rows[r], step, attention.softcap, logits);
    if (block->rows[r].skips(maximumOf(logits))) {
      __builtin_memset(weights[index], 0, sizeof weights[index]);
      return false;
    }
    float correction = softmaxPieces(block->rows[r], logits, total);
    for (int unit = 0; unit < kStepUnits; ++unit)
      Products::storeWeights(logits + unit * kWord, weights[index] + unit * kFactors * kLanes);
    store(totalOf(r), total);
    if (correction == 1.0f)
      return true;
    float *sums = block->sums + r * block->sumStride;
    for (int64_t column = 0; column < columns; ++column, sums += kLanes)
      store(sums, load(sums) * correction);
    return true;
  }

  /// sums += weights · values, for the KV micro-blocks that exist, whose number may be known when this is compiled.
  template <int ROWS, typename Units>
  void multiplyColumns(Units units, const Step &step, int64_t first, const Step &prefetched) const {
    int64_t column = 0;
    for (; column + kBlockedVectors <= columns; column += kBlockedVectors)
      multiplyValues<ROWS, kBlockedVectors>(units, step, column, first, prefetched);
    for (; column < columns; ++column)
      multiplyValues<ROWS, 1>(units, step, column, first, prefetched);
  }

  /// For sixteen elements from 16 · `column` on and those of the next VECTORS - 1 columns.
  template <int ROWS, int VECTORS, typename Units>
  void multiplyValues(Units units, const Step &step, int64_t column, int64_t first, const Step &prefetched) const {
    Vector sums[ROWS][VECTORS];
    float *to = block->sums + first * block->sumStride + column * kLanes;
    for (int r = 0; r < ROWS; ++r)
      for (int v = 0; v < VECTORS; ++v)
        sums[r][v] = load(to + r * block->sumStride + v * kLanes);
    for (int64_t i = 0; i < kLanes; ++i)
      for (int unit = 0; unit < units(step); ++unit) {
        Numbers numbers[VECTORS][kFactors];
        for (int v = 0; v < VECTORS; ++v) {
          int64_t offset = ((column + v) * kLanes + i) * Keys::kWordsElements;
          Products::read(step.values[unit] + offset, numbers[v]);
          __builtin_prefetch(prefetched.values[unit] + offset, 0, 3);
        }
        for (int e = 0; e < kFactors; ++e)
          for (int r = 0; r < ROWS; ++r)
            for (int v = 0; v < VECTORS; ++v)
              Products::add(sums[r][v], weights[r][(unit * kFactors + e) * kLanes + i], numbers[v][e]);
      }
    for (int r = 0; r < ROWS; ++r)
      for (int v = 0; v < VECTORS; ++v)
        store(to + r * block->sumStride + v * kLanes, sums[r][v]);
  }

  const Attention &attention;
  int64_t width, columns;
  QueryFactors<Cache> queries;
  Scratch<float> totals; // [row][lane]
  int64_t gathered = 0;  // the first key that is gathered
  GatheredBlocks<hone::cpu::BlockedKeyLayout, Element> gatheredKeys;
  GatheredBlocks<hone::cpu::BlockedValueLayout, Element> gatheredValues;
  const RowBlock *block = nullptr;
  Step next; // the step after the one that is worked on
  alignas(64) float scores[kBlockedRows][kPieces * kLanes];
  alignas(64) Factor weights[kBlockedRows][kStepUnits * kFactors * kLanes];
};

/// Tiles of a cache in blocks. This one takes none.
template <typename Cache> class BlockedTiles {
public:
  BlockedTiles(const Attention &, int64_t) {}
  bool takes(int64_t) const { return false; }
  void run(const RowBlock &, int64_t, int64_t) {}
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_PRODUCTS_H
