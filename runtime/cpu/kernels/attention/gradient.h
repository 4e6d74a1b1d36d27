// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradients of attention, by blocks of query rows and keys whose probabilities are computed anew from lse (Dao 2023,
// "FlashAttention-2", section 3.1): no more of them than a block are in memory at once.
//
//   P = exp(logit - lse)   dV = Pᵀ dO   dP = dO Vᵀ   dS = P (dP - subtracted)   dQ = scale dS K   dK = scale dSᵀ Q

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_GRADIENT_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_GRADIENT_H

#include "../parts.h"
#include "../precision.h"
#include "../tasks.h"
#include "marked_keys.h"
#include "tile_products.h"

#include <omp.h>

namespace {

constexpr int64_t kGradientRows = 64; // of queries, that are worked on at a time

using GradientCall = hone::kernels::Call<hone::kernels::AttentionGradient, hone::kernels::NoWeight>;

/// How sequences and key heads are divided over threads: the rows of one into `parts`, each of which has every so-manieth block of them and
/// sums of its own.
struct GradientDivision {
  int64_t sequenceHeads, rows, blocks, parts, keys, size, valueSize; // the last three are padded

  explicit GradientDivision(const Attention &attention)
      : sequenceHeads(attention.batch() * attention.keyHeads()), rows(attention.group() * attention.queries()),
        blocks((rows + kGradientRows - 1) / kGradientRows), parts(1),
        keys((attention.keys() + kBlockKeys - 1) / kBlockKeys * kBlockKeys), size(toLanes(attention.size())),
        valueSize(toLanes(attention.valueSize())) {
    int64_t threads = omp_get_max_threads();
    if (sequenceHeads > 0 && sequenceHeads < threads)
      parts = larger(smaller((threads + sequenceHeads - 1) / sequenceHeads, blocks), 1);
  }

  int64_t keySums() const { return keys * size; }
  int64_t sums() const { return keys * (size + valueSize); }
};

/// Copies `size` elements times `factor`, and zeros up to `padded`.
inline void copyScaled(Row from, int64_t size, int64_t padded, float factor, float *to) {
  withKnownStrides(
      [=](Row known) {
        for (int64_t d = 0; d < size; ++d)
          to[d] = known[d] * factor;
      },
      from);
  for (int64_t d = size; d < padded; ++d)
    to[d] = 0;
}

inline void writeScaled(const float *from, int64_t size, float factor, Row to) {
  withKnownStrides(
      [=](Row known) {
        for (int64_t d = 0; d < size; ++d)
          known[d] = from[d] * factor;
      },
      to);
}

/// What a thread needs for the rows of one sequence and key head.
template <typename Products> class GradientHead {
public:
  GradientHead(const GradientCall &call, const Attention &attention, const GradientDivision &division)
      : call(call), attention(attention), division(division), seenKeys(attention, kGradientRows),
        keyMemory(2 * division.keySums() + division.keys * division.valueSize),
        rowMemory(kGradientRows * (2 * division.size + division.valueSize + 3 * kBlockKeys)), keyRows(keyMemory.data()),
        transposedKeys(keyRows + division.keySums()), transposedValues(transposedKeys + division.keySums()),
        queries(rowMemory.data()), querySums(queries + kGradientRows * division.size),
        gradients(querySums + kGradientRows * division.size), scores(gradients + kGradientRows * division.valueSize),
        slopes(scores + kGradientRows * kBlockKeys), transposed(slopes + kGradientRows * kBlockKeys),
        keyFactors(division.keys / kBlockKeys), packedKeys(division.keys / kBlockKeys * keyBytes()),
        packedRows(rowBytes()) {}

  /// Writes the gradients of the queries of part `part`, and makes `sums` what they give those of keys and values.
  void run(int64_t b, int64_t keyHead, int64_t part, float *sums) {
    sequence = b;
    head = keyHead;
    keySums = sums;
    valueSums = sums + division.keySums();
    for (int64_t i = 0; i < division.keySums(); ++i)
      keySums[i] = 0;
    takeKeys();
    for (int64_t block = part; block < division.blocks; block += division.parts)
      runRows(block * kGradientRows);
  }

private:
  /// Factors of a block of keys: keys and values transposed, and keys as rows.
  struct KeyFactors {
    typename Products::Right keys, values, rows;
  };

  int64_t keyBytes() const {
    return Products::rightBytes(division.size, kBlockKeys) + Products::rightBytes(division.valueSize, kBlockKeys) +
           Products::rightBytes(kBlockKeys, division.size);
  }

  /// Of queries and gradients from the left and from the right, and of probabilities or slopes.
  int64_t rowBytes() const {
    return Products::leftBytes(kGradientRows, division.size) + Products::leftBytes(kGradientRows, division.valueSize) +
           Products::rightBytes(kGradientRows, division.size) +
           Products::rightBytes(kGradientRows, division.valueSize) +
           Products::leftBytes(larger(kGradientRows, kBlockKeys), larger(kGradientRows, kBlockKeys));
  }

  /// Keys as rows, and keys and values transposed by blocks. What is after the keys of the sequence is 0.
  void takeKeys() {
    int64_t known = hone::kernels::keyCountOf(attention.visibility, sequence);
    for (int64_t first = 0; first < division.keys; first += kBlockKeys) {
      copyBlock(attention.key, first, known, division.size, keyRows + first * division.size);
      transposeBlock(keyRows + first * division.size, division.size, transposedKeys + first * division.size);
      // Rows of values are needed until they are transposed alone, and lie where their sums will.
      float *rows = valueSums + first * division.valueSize;
      copyBlock(attention.value, first, known, division.valueSize, rows);
      transposeBlock(rows, division.valueSize, transposedValues + first * division.valueSize);
      for (int64_t i = 0; i < kBlockKeys * division.valueSize; ++i)
        rows[i] = 0;
      packKeys(first);
    }
  }

  void packKeys(int64_t first) {
    int64_t size = division.size, valueSize = division.valueSize;
    uint8_t *to = packedKeys.data() + first / kBlockKeys * keyBytes();
    KeyFactors &factors = keyFactors.data()[first / kBlockKeys];
    factors.keys = Products::packRight(transposedKeys + first * size, kBlockKeys, size, kBlockKeys, to);
    to += Products::rightBytes(size, kBlockKeys);
    factors.values = Products::packRight(transposedValues + first * valueSize, kBlockKeys, valueSize, kBlockKeys, to);
    to += Products::rightBytes(valueSize, kBlockKeys);
    factors.rows = Products::packRight(keyRows + first * size, size, kBlockKeys, size, to);
  }

  /// Queries and gradients of `count` rows.
  void packRows() {
    int64_t size = division.size, valueSize = division.valueSize;
    uint8_t *to = packedRows.data();
    leftQueries = Products::packLeft(queries, size, count, size, to);
    to += Products::leftBytes(kGradientRows, size);
    leftGradients = Products::packLeft(gradients, valueSize, count, valueSize, to);
    to += Products::leftBytes(kGradientRows, valueSize);
    rightQueries = Products::packRight(queries, size, count, size, to);
    to += Products::rightBytes(kGradientRows, size);
    rightGradients = Products::packRight(gradients, valueSize, count, valueSize, to);
    packedBlock = to + Products::rightBytes(kGradientRows, valueSize);
  }

  void copyBlock(const hone_tensor &from, int64_t first, int64_t known, int64_t padded, float *to) const {
    for (int64_t j = 0; j < kBlockKeys; ++j) {
      bool isKey = first + j < known;
      Row row = {floats(from) + (isKey ? offsetOf(from, sequence, head, first + j) : 0), from.strides[3]};
      copyScaled(row, isKey ? from.sizes[3] : 0, padded, 1.0f, to + j * padded);
    }
  }

  static void transposeBlock(const float *rows, int64_t size, float *to) {
    for (int64_t j = 0; j < kBlockKeys; j += kLanes)
      transposeFloats(rows + j * size, size, kLanes, size, to + j, kBlockKeys);
  }

  void runRows(int64_t first) {
    count = smaller(kGradientRows, division.rows - first);
    int64_t begin = attention.keys(), end = 0;
    for (int64_t r = 0; r < count; ++r)
      beginRow(r, first + r);
    packRows();
    SeenKeys seen = seenKeys.mark(sequence, rows, count, {0, attention.keys()});
    for (int64_t r = 0; r < count; ++r) {
      begin = smaller(begin, rows[r].begin);
      end = larger(end, rows[r].end);
    }
    KeyBlocks blocks(seen, begin, end);
    for (int64_t i = 0; i < blocks.count(); ++i)
      if (blocks.keyCount(i) > 0)
        addKeys(blocks.firstKey(i), blocks.keyCount(i));
    for (int64_t r = 0; r < count; ++r)
      writeScaled(querySums + r * division.size, attention.size(), attention.scale,
                  attention.rowAt(call.operands.queryGradient, sequence, head, first + r));
  }

  void beginRow(int64_t r, int64_t index) {
    describeRow(attention, sequence, attention.headOf(head, index), attention.queryOf(index), rows[r]);
    copyScaled(attention.rowAt(attention.query, sequence, head, index), attention.size(), division.size,
               attention.scale, queries + r * division.size);
    copyScaled(attention.rowAt(attention.out, sequence, head, index), attention.valueSize(), division.valueSize, 1.0f,
               gradients + r * division.valueSize);
    for (int64_t d = 0; d < division.size; ++d)
      querySums[r * division.size + d] = 0;
    float lse = numberOf(attention.lse, rows[r]);
    references[r] = lse == -__builtin_inff() ? 0.0f : lse; // of a row that sees nothing
    subtracted[r] = numberOf(call.operands.subtracted, rows[r]);
  }

  float numberOf(const hone_tensor &tensor, const QueryRow &row) const {
    return floats(tensor)[offsetOf(tensor, sequence, row.head, row.query)];
  }

  void addKeys(int64_t first, int64_t keyCount) {
    int64_t size = division.size, valueSize = division.valueSize;
    const KeyFactors &factors = keyFactors.data()[first / kBlockKeys];
    products.multiply(leftQueries, factors.keys, size, scores, kBlockKeys, false, count, kBlockKeys);
    products.multiply(leftGradients, factors.values, valueSize, slopes, kBlockKeys, false, count, kBlockKeys);
    for (int64_t r = 0; r < count; ++r)
      differentiateRow(r, first, keyCount);
    addTransposed(scores, rightGradients, valueSize, valueSums + first * valueSize);
    addTransposed(slopes, rightQueries, size, keySums + first * size);
    typename Products::Left left = Products::packLeft(slopes, kBlockKeys, count, kBlockKeys, packedBlock);
    products.multiply(left, factors.rows, kBlockKeys, querySums, size, true, count, size);
  }

  /// sums += blockᵀ · rows
  void addTransposed(const float *block, typename Products::Right of, int64_t size, float *sums) const {
    for (int64_t r = 0; r < count; r += kLanes)
      transposeFloats(block + r * kBlockKeys, kBlockKeys, smaller(kLanes, count - r), kBlockKeys, transposed + r,
                      kGradientRows);
    typename Products::Left left = Products::packLeft(transposed, kGradientRows, kBlockKeys, count, packedBlock);
    products.multiply(left, of, count, sums, size, true, kBlockKeys, size);
  }

  /// Makes products with keys the probabilities of a row, and products with values the gradients of the logits.
  void differentiateRow(int64_t r, int64_t first, int64_t keyCount) {
    float *score = scores + r * kBlockKeys, *slope = slopes + r * kBlockKeys;
    alignas(64) float factors[kBlockKeys]; // of the cap: 1 - tanh²
    bool isCapped = attention.softcap > 0;
    for (int64_t j = 0; isCapped && j < kBlockKeys; ++j) {
      score[j] = capLogit(score[j], attention.softcap);
      float part = score[j] / attention.softcap;
      factors[j] = 1.0f - part * part;
    }
    rows[r].adjust(score, first, keyCount, 0.0f);
    bool isVisible = rows[r].maskScores(score, first, keyCount);
    for (int64_t j = 0; j < kBlockKeys; j += kLanes) {
      Vector probability = isVisible ? boundedExp(load(score + j) - references[r]) : (Vector)0.0f;
      Vector gradient = isVisible ? probability * (load(slope + j) - subtracted[r]) : (Vector)0.0f;
      store(score + j, probability);
      store(slope + j, isCapped ? gradient * load(factors + j) : gradient);
    }
  }

  const GradientCall &call;
  const Attention &attention;
  const GradientDivision &division;
  MarkedKeys seenKeys;
  Scratch<float> keyMemory, rowMemory;
  float *keyRows, *transposedKeys, *transposedValues;
  float *queries, *querySums, *gradients, *scores, *slopes, *transposed;
  Scratch<KeyFactors> keyFactors;
  Scratch<uint8_t> packedKeys, packedRows;
  Products products;
  typename Products::Left leftQueries = {}, leftGradients = {};
  typename Products::Right rightQueries = {}, rightGradients = {};
  uint8_t *packedBlock = nullptr;
  float *keySums = nullptr, *valueSums = nullptr;
  QueryRow rows[kGradientRows];
  float references[kGradientRows], subtracted[kGradientRows];
  int64_t sequence = 0, head = 0, count = 0;
};

template <typename Products> class GradientRun {
public:
  explicit GradientRun(const GradientCall &call)
      : call(call), attention(call), division(attention),
        partial(division.parts == 1 ? 0 : division.sequenceHeads * division.parts * division.sums()) {}

  void run() const {
    Tasks parts(division.sequenceHeads * division.parts), wholes(division.parts == 1 ? 0 : division.sequenceHeads);
    Parts threads;
#pragma omp parallel
    threads.run(
        [&] {
          GradientHead<Products> head(call, attention, division);
          Scratch<float> own(division.parts == 1 ? division.sums() : 0);
          runTasks(&head, own.data(), parts, wholes);
        },
        [&] { runTasks(nullptr, nullptr, parts, wholes); });
    threads.finish();
  }

private:
  /// `head` is null for a thread that has no memory for one.
  void runTasks(GradientHead<Products> *head, float *own, Tasks &parts, Tasks &wholes) const {
    for (int64_t task; head && parts.take(task);) {
      int64_t index = task / division.parts;
      float *sums = own ? own : partial.data() + task * division.sums();
      head->run(index / attention.keyHeads(), index % attention.keyHeads(), task % division.parts, sums);
      if (division.parts == 1)
        write(index, sums);
    }
    if (division.parts > 1) {
#pragma omp barrier
      for (int64_t index; head && wholes.take(index);)
        merge(index);
    }
  }

  /// Adds up the parts of a sequence and key head, from the first to the last.
  void merge(int64_t index) const {
    float *sums = partial.data() + index * division.parts * division.sums();
    for (int64_t part = 1; part < division.parts; ++part)
      for (int64_t i = 0; i < division.sums(); ++i)
        sums[i] += sums[part * division.sums() + i];
    write(index, sums);
  }

  void write(int64_t index, const float *sums) const {
    int64_t sequence = index / attention.keyHeads(), head = index % attention.keyHeads();
    const hone_tensor &keys = call.operands.keyGradient, &values = call.operands.valueGradient;
    for (int64_t j = 0; j < attention.keys(); ++j) {
      writeScaled(sums + j * division.size, attention.size(), 1.0f,
                  {floats(keys) + offsetOf(keys, sequence, head, j), keys.strides[3]});
      writeScaled(sums + division.keySums() + j * division.valueSize, attention.valueSize(), 1.0f,
                  {floats(values) + offsetOf(values, sequence, head, j), values.strides[3]});
    }
  }

  const GradientCall &call;
  Attention attention;
  GradientDivision division;
  Scratch<float> partial;
};

template <typename Precision> void run(const GradientCall &call) {
#ifdef __AMX_TILE__
  if constexpr (__is_same(Precision, RoundedProducts))
    return GradientRun<TileProducts>(call).run();
#endif
  GradientRun<FloatProducts>(call).run();
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_GRADIENT_H
