// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMM (large M) by tiles of bytes: weights of 8 bits without groups are tiles as they lie, and x is rounded to 8 bits
// once for a layer, or while what is between the layers of a feed-forward block is in the cache. Integer sums of a
// chunk of inputs are added to floats.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_TILE_BYTES_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_TILE_BYTES_H

#ifdef __AMX_TILE__

#include "quantized_weight.h"
#include "tiles.h"

namespace {

/// Blocks of 32 rows in bytes, a chunk of inputs after the other: [step][tile][row][64 inputs] and then scales and sums
/// of the integers of the rows. Rows that a block has beyond those of x are zeros, and inputs that x lacks.
struct ByteTiles {
  static constexpr int64_t kRows = 2 * kTileRows, kStepInputs = kTileRowBytes, kStepBytes = kRows * kTileRowBytes;
  static constexpr int64_t kChunkSteps = 8, kChunkInputs = kChunkSteps * kStepInputs; // 512, as chunkInputs says
  static constexpr int64_t kScalesBytes = 2 * kRows * static_cast<int64_t>(sizeof(float));

  /// Of so many steps from the begin of a chunk on.
  static int64_t bytes(int64_t steps) { return steps * kStepBytes + ceilDivide(steps, kChunkSteps) * kScalesBytes; }

  /// The scale of each row of a chunk of so many steps, followed by the sums.
  static float *scales(uint8_t *chunk, int64_t steps) { return reinterpret_cast<float *>(chunk + steps * kStepBytes); }
  static const float *scales(const uint8_t *chunk, int64_t steps) {
    return reinterpret_cast<const float *>(chunk + steps * kStepBytes);
  }

  /// Magnitudes compare as the integers of their bits do, and integers have one order.
  static Integers magnitudes(Vector values) { return loadAs<Integers>(&values) & 0x7fffffff; }

  /// Rounds a row of a chunk: `read(i)` gives sixteen of its inputs from 16 i on, `most` is the largest of their
  /// magnitudes.
  template <typename Read>
  static void round(uint8_t *chunk, int64_t steps, int64_t row, Integers magnitudes, Read read) {
    int32_t bits = _mm512_reduce_max_epi32((__m512i)magnitudes);
    auto largest = loadAs<float>(&bits);
    Vector factor = largest > 0 ? 127.0f / largest : 0.0f;
    __m512i sum = _mm512_setzero_si512();
    uint8_t *to = chunk + row * kTileRowBytes;
    for (int64_t step = 0; step < steps; ++step, to += kStepBytes) {
      auto integers = [&](int64_t i) { return _mm512_cvtps_epi32((__m512)(read(4 * step + i) * factor)); };
      // Packing leaves the quads of bytes in the order 0 4 8 12 1 5 …
      const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      __m512i bytes = _mm512_packs_epi16(_mm512_packs_epi32(integers(0), integers(1)),
                                         _mm512_packs_epi32(integers(2), integers(3)));
      bytes = _mm512_permutexvar_epi32(order, bytes);
      sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(1), bytes);
      _mm512_store_si512(to, bytes);
    }
    scales(chunk, steps)[row] = largest / 127.0f;
    scales(chunk, steps)[kRows + row] = static_cast<float>(_mm512_reduce_add_epi32(sum));
  }

  static void clear(uint8_t *chunk, int64_t steps, int64_t row) {
    round(chunk, steps, row, Integers(0), [](int64_t) { return Vector(0.0f); });
  }
};

class ByteTileEngine {
public:
  static constexpr int64_t kPanels = 2, kStepInputs = ByteTiles::kStepInputs;
  static constexpr int64_t kL1Steps = ByteTiles::kChunkSteps;
  static constexpr int64_t kSliceInputs = ByteTiles::kChunkInputs;
  static constexpr int64_t kPartBytes = 3 << 20;
  static constexpr bool kTakesNTiles = true;

  using Sums = TileBlockSums;

  explicit ByteTileEngine(const QuantizedWeight &weight)
      : panels(weight.panels), steps(weight.lines / kTileRows), weight(weight) {}

  static GemmLimits limits(int64_t) { return {ByteTiles::kRows, 40, 512, 256, ByteTiles::kChunkSteps}; }
  static int64_t blockBytes(int64_t, int64_t steps) { return ByteTiles::bytes(steps); }

  static void convert(const hone_tensor &x, int64_t row, int64_t rows, int64_t step, int64_t steps, uint8_t *to) {
    for (int64_t done = 0; done < steps; done += ByteTiles::kChunkSteps) {
      int64_t some = smaller(ByteTiles::kChunkSteps, steps - done);
      for (int64_t r = 0; r < ByteTiles::kRows; ++r)
        if (r < rows)
          convertRow(rowOf(x, row + r), x.sizes[x.rank - 1], step + done, some, r, to + ByteTiles::bytes(done));
        else
          ByteTiles::clear(to + ByteTiles::bytes(done), some, r);
    }
  }

  /// What is between two layers: converted inputs, the largest magnitudes of each row, and floats as they come,
  /// [panel][row][16 inputs].
  static int64_t betweenBytes(int64_t, int64_t steps) {
    return ByteTiles::bytes(steps) + (1 + steps * kStepInputs / kLanes) * kBetweenPanelBytes;
  }

  /// Outputs of `panels` panels as inputs of a block that has `steps`, from input 16 · `panel` on.
  static void convertSums(uint8_t *block, int64_t rows, int64_t panel, int64_t panels, int64_t steps,
                          const Sums &sums) {
    auto *magnitudes = reinterpret_cast<Integers *>(block + ByteTiles::bytes(steps));
    auto *floats = reinterpret_cast<Vector *>(magnitudes) + (1 + panel) * ByteTiles::kRows;
    for (int64_t r = 0; r < rows; ++r) {
      Integers most = panel == 0 ? Integers(0) : magnitudes[r];
      for (int64_t p = 0; p < panels; ++p) {
        Vector values = sums.at(p, r);
        floats[p * ByteTiles::kRows + r] = values;
        most = __builtin_elementwise_max(most, ByteTiles::magnitudes(values));
      }
      magnitudes[r] = most;
    }
  }

  /// Once all inputs of a slice have come, `panels` panels of them.
  static void finishInputs(uint8_t *block, int64_t rows, int64_t panels, int64_t steps) {
    const auto *magnitudes = reinterpret_cast<const Integers *>(block + ByteTiles::bytes(steps));
    const auto *floats = reinterpret_cast<const Vector *>(magnitudes) + ByteTiles::kRows;
    for (int64_t r = 0; r < ByteTiles::kRows; ++r)
      if (r < rows)
        ByteTiles::round(block, steps, r, magnitudes[r],
                         [&](int64_t i) { return i < panels ? floats[i * ByteTiles::kRows + r] : Vector(0.0f); });
      else
        ByteTiles::clear(block, steps, r);
  }

  class Worker {
  public:
    Worker(const ByteTileEngine &engine, const GemmTiling &) : engine(engine), registers(kTileRows, kTileRowBytes) {}

    void select(int64_t panel, int64_t count, int64_t step, int64_t some) {
      from = engine.weight.data + panel * engine.weight.panelBytes + step * kTileBytes;
      width = count;
      steps = some;
      isLast = step + some == engine.steps;
      WeightScales of = engine.weight.scales.from(0, panel, 1);
      for (int64_t p = 0; p < count; ++p) {
        scales[p] = of.scale(0, p);
        zeros[p] = of.zero(0, p, 1 << 7);
      }
    }

    template <typename Prefetcher>
    void multiply(const uint8_t *x, int64_t, BlockShare share, bool accumulates, Sums &sums,
                  const Prefetcher &prefetcher) {
      if (steps == 0)
        sums = {};
      for (int64_t step = 0; step < steps; step += ByteTiles::kChunkSteps) {
        const uint8_t *chunk = x + ByteTiles::bytes(step);
        int64_t some = smaller(ByteTiles::kChunkSteps, steps - step);
        TileOperands operands = {chunk,
                                 chunk + kTileBytes,
                                 kTileRowBytes,
                                 ByteTiles::kStepBytes,
                                 kTileRowBytes,
                                 from + step * kTileBytes,
                                 engine.weight.panelBytes,
                                 some,
                                 tilePrefetch(share, step)};
        multiplyTiles<ByteProducts>(operands, 2, width, integers, prefetcher);
        bool begins = !accumulates && step == 0, ends = isLast && step + some == steps;
        addScaled(ByteTiles::scales(chunk, some), begins, ends, sums);
      }
    }

  private:
    static constexpr int64_t kTileBytes = kTileRows * kTileRowBytes;

    /// While blocks are multiplied, the next N-tile is prefetched; where there is one alone, its own tiles.
    TilePrefetch tilePrefetch(BlockShare share, int64_t step) const {
      if (share.count == 1)
        return {from + (step + 2) * kTileBytes, kTileRows, true};
      int64_t lines = ceilDivide(kTileRows, share.count);
      return {from + share.panelsToNext * engine.weight.panelBytes + step * kTileBytes +
                  share.index * steps * lines * kTileRowBytes,
              lines, false};
    }

    void addScaled(const float *ofRows, bool begins, bool ends, Sums &sums) const {
      if (width == kPanels)
        return begins
                   ? ends ? addScaled<kPanels, true, true>(ofRows, sums) : addScaled<kPanels, true, false>(ofRows, sums)
               : ends ? addScaled<kPanels, false, true>(ofRows, sums)
                      : addScaled<kPanels, false, false>(ofRows, sums);
      return begins ? ends ? addScaled<1, true, true>(ofRows, sums) : addScaled<1, true, false>(ofRows, sums)
             : ends ? addScaled<1, false, true>(ofRows, sums)
                    : addScaled<1, false, false>(ofRows, sums);
    }

    /// The sums of a chunk under the scales of its rows; those of the weights are the same for all chunks, and follow
    /// the last.
    template <int WIDTH, bool BEGINS, bool ENDS> void addScaled(const float *ofRows, Sums &sums) const {
      for (int64_t r = 0; r < ByteTiles::kRows; ++r)
        for (int64_t p = 0; p < WIDTH; ++p) {
          float *to = sums.lanes(p, r);
          Vector exact = integers.integers(Sums::sumOf(p, r), r % kTileRows) - zeros[p] * ofRows[ByteTiles::kRows + r];
          Vector total = exact * ofRows[r];
          if constexpr (!BEGINS)
            total += load(to);
          if constexpr (ENDS)
            total *= scales[p];
          store(to, total);
        }
    }

    const ByteTileEngine &engine;
    TileRegisters registers;
    TileSums integers;
    Vector scales[kPanels] = {}, zeros[kPanels] = {};
    const uint8_t *from = nullptr;
    int64_t width = 0, steps = 0;
    bool isLast = false;
  };

  int64_t panels, steps; // a step is a tile

private:
  static constexpr int64_t kBetweenPanelBytes = ByteTiles::kRows * static_cast<int64_t>(sizeof(Vector));

  static void convertRow(Row from, int64_t given, int64_t step, int64_t steps, int64_t r, uint8_t *chunk) {
    int64_t first = step * kStepInputs, count = smaller(given - first, steps * kStepInputs);
    float inputs[ByteTiles::kChunkInputs];
    const float *values = from.data + first;
    if (from.stride != 1) {
      for (int64_t k = 0; k < count; ++k)
        inputs[k] = from[first + k];
      values = inputs;
    }
    Integers most = 0;
    for (int64_t i = 0; i < count; i += kLanes)
      most = __builtin_elementwise_max(most, ByteTiles::magnitudes(loadColumns(values + i, count - i)));
    auto whole = [&](int64_t i) { return load(values + i * kLanes); };
    auto part = [&](int64_t i) { return loadColumns(values + i * kLanes, count - i * kLanes); };
    count == steps *kStepInputs ? ByteTiles::round(chunk, steps, r, most, whole)
                                : ByteTiles::round(chunk, steps, r, most, part);
  }

  QuantizedWeight weight;
};

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_TILE_BYTES_H
