// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Many rows: weights are read once for as many rows as the second-level cache holds, activations are converted once into what
// the products read, sums are finished while they are near, and large outputs bypass the cache.
//
// An engine has the products. It says how many `panels` and `steps` of inputs its weights have, its `limits(rows)`, how many
// bytes `blockBytes(rows, steps)` converted inputs of a block have, how to `convert` them, and how to `convertSums` of a layer
// before, in `betweenBytes(rows, steps)`, and `finishInputs` once a slice of them has come, of `kSliceInputs`; whether it
// `kTakesUnits`. Its `Worker`, one a thread, is told `select(panel, panels, step, steps)` and then `multiply(x, rows, share,
// accumulates, sums, ahead)` for blocks of rows; share and ahead say what may be asked of memory meanwhile. `Sums` has
// at(panel, row).

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_BAND_LAYER_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_BAND_LAYER_H

#include "layer.h"

namespace {

struct BandLimits {
  int64_t blockRows;             // that are multiplied at once
  int64_t mostSteps;             // of a slice of inputs
  int64_t mostRows, mostCutRows; // of a part: where inputs are cut into slices, its sums have to lie in the cache too
  int64_t chunkSteps = 1;        // that no slice divides
};

/// How a layer is divided. Rows come in blocks, outputs in units of a few panels. A band of rows and a slice of inputs are
/// converted at a time; tasks are a part of the band's blocks by a unit, those of a part one after the other.
struct BandDivision {
  /// Threads wait for the last task of a band, which is to be a small part of it.
  static constexpr int64_t kTasksPerThread = 16;

  int64_t rows, blockRows, blocks, partBlocks, parts;
  int64_t steps, chunkSteps, sliceSteps, slices;
  int64_t panels, unitPanels, units;

  BandDivision(int64_t rows, int64_t steps, int64_t panels, int64_t unitPanels, const BandLimits &limits)
      : rows(rows), blockRows(limits.blockRows), blocks(ceilDivide(rows, blockRows)), steps(steps),
        chunkSteps(limits.chunkSteps), panels(panels), unitPanels(unitPanels), units(ceilDivide(panels, unitPanels)) {
    slices = blocks == 1 ? 1 : larger(ceilDivide(steps, limits.mostSteps), 1);
    sliceSteps = roundUpTo(ceilDivide(steps, slices), chunkSteps);
    int64_t most = ceilDivide(slices == 1 ? limits.mostRows : limits.mostCutRows, blockRows);
    int64_t threads = omp_get_max_threads(), wanted = threads == 1 ? 1 : threads * kTasksPerThread;
    partBlocks = ceilDivide(blocks, ceilDivide(blocks, most));
    parts = smaller(ceilDivide(wanted, larger(units, 1)), ceilDivide(blocks, partBlocks));
  }

  int64_t bandBlocks() const { return parts * partBlocks; }
  int64_t rowsOf(int64_t block) const { return smaller(blockRows, rows - block * blockRows); }
  int64_t panelsOf(int64_t unit) const { return smaller(unitPanels, panels - unit * unitPanels); }
};

/// Which of the blocks that pass by a unit of weights one is: each may bring a part of the thread's next unit nearer, `panelsAhead`
/// panels after this one, or before.
struct BlockShare {
  int64_t index, count, panelsAhead;
};

/// What else a product asks memory for: nothing.
struct NothingAhead {
  void ask(int64_t, int64_t) const {}
};

/// Finished rows of y.
class BandOutputs {
public:
  BandOutputs(const hone_tensor &target, const Epilogue &epilogue)
      : columns(target.sizes[target.rank - 1]), epilogue(epilogue), y(target),
        bypassesCache(countRows(target) * columns * static_cast<int64_t>(sizeof(float)) >= kBypassBytes) {}

  /// What the sums of `count` rows will be written to and combined with.
  class Ahead {
  public:
    Ahead(const BandOutputs &outputs, int64_t row, int64_t count, int64_t column, int64_t width)
        : outputs(outputs), row(row), count(count), column(column), width(width) {}

    /// Asks for one of `parts` parts of the rows.
    void ask(int64_t part, int64_t parts) const {
      if (outputs.bypassesCache && !outputs.epilogue.readsRows())
        return;
      int64_t each = ceilDivide(count, parts);
      for (int64_t r = part * each, end = smaller(r + each, count); r < end; ++r)
        askForRow(row + r);
    }

  private:
    void askForRow(int64_t r) const {
      RowEpilogue of = outputs.epilogue.at(r, column);
      const float *to = outputs.y.row(r) + column;
      for (int64_t i = 0; i < width; i += kLanes) {
        if (!outputs.bypassesCache)
          __builtin_prefetch(to + i, 1);
        if (of.factor.data)
          __builtin_prefetch(of.factor.data + i * of.factor.stride);
        if (of.residual.data)
          __builtin_prefetch(of.residual.data + i * of.residual.stride);
      }
    }

    const BandOutputs &outputs;
    int64_t row, count, column, width;
  };

  Ahead ahead(int64_t row, int64_t count, int64_t panel, int64_t panels) const {
    return {*this, row, count, panel * kLanes, panels * kLanes};
  }

  /// The sums of `count` rows from `row` on and `panels` panels from `panel` on.
  template <typename Sums>
  void write(int64_t row, int64_t count, int64_t panel, int64_t panels, const Sums &sums) const {
    withActivation(epilogue.activationNumber(),
                   [&](auto known) { writeRows<known.kNumber>(row, count, panel * kLanes, panels, sums); });
  }

  /// To be called by every thread once it has written, and by one once all have.
  static void order() { __builtin_ia32_sfence(); } // stores that bypass the cache are not ordered otherwise
  void finish() const { y.finish(); }

private:
  template <int64_t ACTIVATION, typename Sums>
  void writeRows(int64_t row, int64_t count, int64_t column, int64_t panels, const Sums &sums) const {
    int64_t width = smaller(panels * kLanes, columns - column);
    float *first = y.row(row) + column;
    bool streams =
        bypassesCache && (width | y.rowStride()) % kLanes == 0 && reinterpret_cast<uintptr_t>(first) % 64 == 0;
    epilogue.withColumns(width, [&](const auto &of) {
      for (int64_t r = 0; r < count; ++r)
        for (int64_t i = 0; i < width; i += kLanes) {
          Vector values = of.template apply<ACTIVATION>(sums.at(i / kLanes, r), row + r, column + i, width - i);
          float *to = first + r * y.rowStride() + i;
          if (streams)
            __builtin_nontemporal_store(values, reinterpret_cast<Vector *>(to));
          else
            of.write(to, values, width - i);
        }
    });
  }

  /// Outputs that a second-level cache does not hold are gone from it before they are read; writing them around it saves
  /// reading what they replace.
  static constexpr int64_t kBypassBytes = 4 << 20;

  int64_t columns;
  const Epilogue &epilogue;
  OutputRows y;
  bool bypassesCache;
};

/// Blocks of rows that pass by a unit of weights: their converted inputs, `blockBytes` each, and sums.
template <typename Engine> struct BandBlocks {
  int64_t first, count;
  const uint8_t *x;
  int64_t blockBytes;
  typename Engine::Sums *sums;
};

/// Multiplies blocks with a slice of a unit's inputs; `sink` takes the sums after the last slice. So many inputs at a time that their
/// weights stay in the first-level cache while all blocks pass by. The thread's next unit is `next`.
template <typename Engine, typename Sink>
void multiplyUnit(const Engine &engine, typename Engine::Worker &worker, const BandDivision &division, int64_t unit,
                  int64_t next, int64_t step, int64_t steps, const BandBlocks<Engine> &blocks, const Sink &sink) {
  int64_t panel = unit * division.unitPanels, panels = division.panelsOf(unit);
  int64_t pieces = blocks.count == 1 ? 1 : larger(ceilDivide(steps, Engine::kNearSteps), 1);
  int64_t some = roundUpTo(larger(ceilDivide(steps, pieces), 1), division.chunkSteps); // without inputs sums are zeros
  for (int64_t near = 0; near < larger(steps, 1); near += some) {
    int64_t count = smaller(some, steps - near);
    bool isLast = step + near + count == division.steps;
    worker.select(panel, panels, step + near, count);
    for (int64_t i = 0; i < blocks.count; ++i) {
      int64_t row = (blocks.first + i) * division.blockRows, rows = division.rowsOf(blocks.first + i);
      const uint8_t *x = blocks.x + i * blocks.blockBytes + engine.blockBytes(division.blockRows, near);
      BlockShare share = {i, blocks.count, (next - unit) * division.unitPanels};
      if (!isLast) {
        worker.multiply(x, rows, share, step + near != 0, blocks.sums[i], NothingAhead());
        continue;
      }
      worker.multiply(x, rows, share, step + near != 0, blocks.sums[i], sink.ahead(row, rows, panel, panels));
      sink.write(row, rows, panel, panels, blocks.sums[i]);
    }
  }
}

template <typename Engine> class BandLayer {
public:
  BandLayer(const hone_tensor &x, const Engine &engine, const hone_tensor &target, const Epilogue &epilogue)
      : x(x), engine(engine),
        division(countRows(target), engine.steps, engine.panels, Engine::kPanels, engine.limits(countRows(target))),
        blockBytes(engine.blockBytes(division.blockRows, division.sliceSteps)),
        converted(division.bandBlocks() * blockBytes),
        cutSums(division.slices == 1 ? 0 : division.units * division.bandBlocks()), outputs(target, epilogue) {}

  void run() const {
    Parts threads;
#pragma omp parallel
    threads.run(
        [&] {
          typename Engine::Worker worker(engine, division);
          Scratch<typename Engine::Sums> ownSums(division.slices == 1 ? division.partBlocks : 0);
          runBands(ownSums.data(), &worker);
          BandOutputs::order();
        },
        [&] { runBands(nullptr, nullptr); });
    threads.finish();
    outputs.finish();
  }

private:
  /// `worker` is null for a thread that has no memory for one.
  void runBands(typename Engine::Sums *ownSums, typename Engine::Worker *worker) const {
    for (int64_t band = 0; band < division.blocks; band += division.bandBlocks())
      for (int64_t slice = 0; slice < division.slices; ++slice)
        runSlice(band, slice, ownSums, worker);
  }

  /// All outputs of a band of rows from a slice of inputs; by all threads together.
  void runSlice(int64_t band, int64_t slice, typename Engine::Sums *ownSums, typename Engine::Worker *worker) const {
    int64_t step = slice * division.sliceSteps, steps = smaller(division.sliceSteps, division.steps - step);
    int64_t blocks = smaller(division.bandBlocks(), division.blocks - band), threads = omp_get_num_threads();
#pragma omp for schedule(static)
    for (int64_t block = 0; block < blocks; ++block)
      engine.convert(x, (band + block) * division.blockRows, division.rowsOf(band + block), step, steps,
                     converted.data() + block * blockBytes);
    int64_t tasks = ceilDivide(blocks, division.partBlocks) * division.units;
#pragma omp for schedule(dynamic)
    for (int64_t task = 0; task < tasks; ++task) {
      if (!worker)
        continue;
      int64_t first = task / division.units * division.partBlocks, unit = task % division.units;
      typename Engine::Sums *sums = ownSums ? ownSums : cutSums.data() + unit * division.bandBlocks() + first;
      int64_t next = (unit + threads) % division.units; // if threads take turns
      multiplyUnit<Engine>(engine, *worker, division, unit, next, step, steps,
                           {band + first, smaller(division.partBlocks, blocks - first),
                            converted.data() + first * blockBytes, blockBytes, sums},
                           outputs);
    }
  }

  const hone_tensor &x;
  const Engine &engine;
  BandDivision division;
  int64_t blockBytes;
  Scratch<uint8_t> converted;
  Scratch<typename Engine::Sums> cutSums;
  BandOutputs outputs;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_BAND_LAYER_H
