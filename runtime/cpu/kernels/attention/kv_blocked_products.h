// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over a cache in blocks by vectors: sixteen keys are the lanes of a score, sixteen elements those of a sum.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_PRODUCTS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_PRODUCTS_H

#include "kv_blocked_softmax.h"
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
        columns(toLanes(attention.valueSize()) / kLanes), queries(mostRows, width), totals(mostRows * kLanes) {}

  /// Adds keys [begin, end) to the sums of the rows.
  void run(const RowBlock &of, int64_t begin, int64_t end) {
    BlockedSteps<Cache> steps(attention, of.sequence, of.head, of.seen, begin, end, of.count < kGemvRows);
    block = &of;
    queries.take(of);
    for (int64_t r = 0; r < of.count; ++r) {
      Vector total = 0;
      total[0] = of.rows[r].sum;
      store(totalOf(r), total);
    }
    int64_t groups = (of.count + kBlockedRows - 1) / kBlockedRows;
    int64_t height = groups == 0 ? 1 : (of.count + groups - 1) / groups; // nearly equal
    for (int64_t i = 0; i < steps.count(); ++i)
      for (int64_t first = 0; first < of.count; first += height)
        addRows<kBlockedRows>(steps[i], first, smaller(height, of.count - first));
    for (int64_t r = 0; r < of.count; ++r)
      of.rows[r].sum = sumLanes(load(totalOf(r)));
  }

private:
  using Keys = BlockedCache<Cache>;
  using Step = BlockedStep<Cache>;
  using Products = WordProducts<Cache>;
  using Factor = typename Products::Factor;
  using Numbers = typename Products::Numbers;
  static constexpr int kFactors = Products::kFactors, kWord = Keys::kWord, kPieces = Keys::kPieces;
  // Elements between what is read and what is prefetched, as measured: memory needs what a few KiB of keys take to be
  // multiplied.
  static constexpr int64_t kKeyPrefetchDistance = 3072 / sizeof(typename Cache::Element);
  static constexpr int64_t kValuePrefetchDistance = 2048 / sizeof(typename Cache::Element);

  float *totalOf(int64_t r) const { return totals.data() + r * kLanes; }

  template <int ROWS> void addRows(const Step &step, int64_t first, int64_t rows) {
    if constexpr (ROWS > 1)
      if (rows < ROWS)
        return addRows<ROWS - 1>(step, first, rows);
    if (!block->seesStep(first, ROWS, step))
      return;
    bool prefetches = first == 0 && block->count < kGemvRows;
    int64_t keyPrefetchDistance = prefetches ? kKeyPrefetchDistance : 0,
            valuePrefetchDistance = prefetches ? kValuePrefetchDistance : 0;
    for (int unit = 0; unit < kStepUnits; unit += kBlockedVectors)
      for (int part = 0; part < kWord; ++part)
        multiplyKeys<ROWS>(step, unit, part, first, keyPrefetchDistance);
    ValuePrefetcher<Step> values(step, prefetches);
    for (int64_t r = 0; r < ROWS; ++r)
      exponentiate(step, first + r, r, values);
    int64_t column = 0;
    for (; column + kBlockedVectors <= columns; column += kBlockedVectors)
      multiplyValues<ROWS, kBlockedVectors>(step, column, first, valuePrefetchDistance);
    for (; column < columns; ++column)
      multiplyValues<ROWS, 1>(step, column, first, valuePrefetchDistance);
  }

  /// Scores of the pieces `part` of kBlockedVectors KV micro-blocks.
  template <int ROWS> void multiplyKeys(const Step &step, int unit, int part, int64_t first, int64_t prefetchDistance) {
    Vector sums[ROWS][kBlockedVectors] = {};
    const Factor *query = queries.data() + first * queries.stride(), *end = query + width / kWord * kFactors;
    for (int64_t offset = part * kLanes * width; query < end; offset += Keys::kWordsElements, query += kFactors) {
      Numbers numbers[kBlockedVectors][kFactors];
      for (int v = 0; v < kBlockedVectors; ++v) {
        Products::read(step.keys[unit + v] + offset, numbers[v]);
        __builtin_prefetch(step.keys[unit + v] + offset + prefetchDistance, 0, 3);
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

  /// Weights of row `r`, whose scores are number `index` of what is worked on.
  void exponentiate(const Step &step, int64_t r, int64_t index, ValuePrefetcher<Step> &values) {
    Vector logits[kPieces], total = load(totalOf(r));
    for (int piece = 0; piece < kPieces; ++piece)
      logits[piece] = load(scores[index] + piece * kLanes);
    values.prefetch(kPieces);
    adjustPieces(block->rows[r], step, attention.softcap, logits);
    float correction = softmaxPieces(block->rows[r], logits, total);
    for (int unit = 0; unit < kStepUnits; ++unit)
      Products::storeWeights(logits + unit * kWord, weights[index] + unit * kFactors * kLanes);
    store(totalOf(r), total);
    if (correction == 1.0f)
      return;
    float *sums = block->sums + r * block->sumStride;
    for (int64_t column = 0; column < columns; ++column, sums += kLanes)
      store(sums, load(sums) * correction);
  }

  /// sums += weights · values, for sixteen elements from 16 · `column` on and those of the next VECTORS - 1 columns
  template <int ROWS, int VECTORS>
  void multiplyValues(const Step &step, int64_t column, int64_t first, int64_t prefetchDistance) const {
    Vector sums[ROWS][VECTORS];
    float *to = block->sums + first * block->sumStride + column * kLanes;
    for (int r = 0; r < ROWS; ++r)
      for (int v = 0; v < VECTORS; ++v)
        sums[r][v] = load(to + r * block->sumStride + v * kLanes);
    for (int64_t i = 0; i < kLanes; ++i)
      for (int unit = 0; unit < kStepUnits; ++unit) {
        Numbers numbers[VECTORS][kFactors];
        for (int v = 0; v < VECTORS; ++v) {
          const auto *from = step.values[unit] + ((column + v) * kLanes + i) * Keys::kWordsElements;
          Products::read(from, numbers[v]);
          __builtin_prefetch(from + prefetchDistance, 0, 3);
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
  const RowBlock *block = nullptr;
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
