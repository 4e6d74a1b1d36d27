// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMM (large M). An M-block is as many rows as the L2 cache holds; weights are read once for each. Activations are
// packed once into the operand layout of the engine, the epilogue runs on sums in the L1 cache, and large outputs use
// non-temporal stores.
//
// An engine has the products. It says how many `panels` and `steps` of inputs its weights have, its `limits(rows)`, how
// many bytes `blockBytes(rows, steps)` converted inputs of a block have, how to `convert` them, and how to
// `convertSums` of a layer before, in `betweenBytes(rows, steps)`, and `finishInputs` once a slice of them has come, of
// `kSliceInputs`; whether it `kTakesNTiles`. Its `Worker`, one a thread, is told `select(panel, panels, step, steps)`
// and then `multiply(x, rows, share, accumulates, sums, prefetcher)` for blocks of rows; share and prefetcher say what
// it prefetches meanwhile. `Sums` has at(panel, row), and the address of that in lanes(panel, row).

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMM_LAYER_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMM_LAYER_H

#include "packed_layer.h"

namespace {

struct GemmLimits {
  int64_t blockRows;             // that are multiplied at once
  int64_t mostSteps;             // of a slice of inputs
  int64_t mostRows, mostCutRows; // of a part: where inputs are cut into slices, its sums have to lie in the cache too
  int64_t chunkSteps = 1;        // that no slice divides
};

/// The tiling of a layer: M-blocks of blocks of rows, N-tiles of a few panels, K-slices of inputs. One M-block and
/// K-slice is packed at a time. A task is a part of the blocks of an M-block by one N-tile; the tasks of a part follow
/// each other.
struct GemmTiling {
  /// Threads wait for the last task of an M-block, which is to be a small part of it.
  static constexpr int64_t kTasksPerThread = 16;

  int64_t rows, blockRows, blocks, partBlocks, parts;
  int64_t steps, chunkSteps, sliceSteps, slices;
  int64_t panels, nTilePanels, nTiles;

  GemmTiling(int64_t rows, int64_t steps, int64_t panels, int64_t nTilePanels, const GemmLimits &limits)
      : rows(rows), blockRows(limits.blockRows), blocks(ceilDivide(rows, blockRows)), steps(steps),
        chunkSteps(limits.chunkSteps), panels(panels), nTilePanels(nTilePanels),
        nTiles(ceilDivide(panels, nTilePanels)) {
    slices = blocks == 1 ? 1 : larger(ceilDivide(steps, limits.mostSteps), 1);
    sliceSteps = roundUpTo(ceilDivide(steps, slices), chunkSteps);
    int64_t most = ceilDivide(slices == 1 ? limits.mostRows : limits.mostCutRows, blockRows);
    int64_t threads = omp_get_max_threads(), wanted = threads == 1 ? 1 : threads * kTasksPerThread;
    partBlocks = ceilDivide(blocks, ceilDivide(blocks, most));
    parts = smaller(ceilDivide(wanted, larger(nTiles, 1)), ceilDivide(blocks, partBlocks));
  }

  int64_t mBlockSize() const { return parts * partBlocks; }
  int64_t rowsOf(int64_t block) const { return smaller(blockRows, rows - block * blockRows); }
  int64_t panelsOf(int64_t nTile) const { return smaller(nTilePanels, panels - nTile * nTilePanels); }
};

/// Finishes sums where they are, of a layer whose epilogue has no operands that differ from row to row: `panels` panels
/// from column `column` on, of which `width` columns count. Out of line, once for all engines that have these sums.
template <typename Sums>
[[gnu::noinline]] void finishSums(const Epilogue &epilogue, int64_t rows, int64_t panels, int64_t column, int64_t width,
                                  Sums &sums) {
  if (epilogue.isIdentity())
    return;
  withActivation(epilogue.activationNumber(), [&](auto known) {
    epilogue.withColumns(width, [&](const auto &of) {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t p = 0; p < panels; ++p) {
          float *lanes = sums.lanes(p, r);
          store(lanes, of.template apply<known.kNumber>(load(lanes), 0, column + p * kLanes, width - p * kLanes));
        }
    });
  });
}

/// Multiplies sums by others.
template <typename Sums> void multiplySums(Sums &sums, const Sums &factors, int64_t rows, int64_t panels) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t p = 0; p < panels; ++p)
      store(sums.lanes(p, r), sums.at(p, r) * factors.at(p, r));
}

/// Which of the blocks of rows of an N-tile this is. Each prefetches its share of the thread's next N-tile, which is
/// `panelsToNext` panels away.
struct BlockShare {
  int64_t index, count, panelsToNext;
};

/// Prefetches nothing.
struct NoPrefetcher {
  void prefetch(int64_t, int64_t) const {}
};

/// Finished rows of y.
class GemmOutputs {
public:
  GemmOutputs(const hone_tensor &target, const Epilogue &epilogue)
      : columns(target.sizes[target.rank - 1]), epilogue(epilogue), y(target),
        bypassesCache(countRows(target) * columns * static_cast<int64_t>(sizeof(float)) >= kBypassBytes) {}

  /// Prefetches what the sums of `count` rows will be written to and combined with.
  class Prefetcher {
  public:
    Prefetcher(const GemmOutputs &outputs, int64_t row, int64_t count, int64_t column, int64_t width)
        : outputs(outputs), row(row), count(count), column(column), width(width) {}

    /// Part `part` of `parts` of the rows.
    void prefetch(int64_t part, int64_t parts) const {
      if (outputs.bypassesCache && !outputs.epilogue.readsRows())
        return;
      int64_t each = ceilDivide(count, parts);
      for (int64_t r = part * each, end = smaller(r + each, count); r < end; ++r)
        prefetchRow(row + r);
    }

  private:
    void prefetchRow(int64_t r) const {
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

    const GemmOutputs &outputs;
    int64_t row, count, column, width;
  };

  Prefetcher prefetcher(int64_t row, int64_t count, int64_t panel, int64_t panels) const {
    return {*this, row, count, panel * kLanes, panels * kLanes};
  }

  /// The sums of `count` rows from `row` on and `panels` panels from `panel` on. Out of line, once for all engines that
  /// have these sums.
  template <typename Sums>
  [[gnu::noinline]] void write(int64_t row, int64_t count, int64_t panel, int64_t panels, const Sums &sums) const {
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

  /// Outputs that a L2 cache does not hold are gone from it before they are read; writing them around it saves
  /// reading what they replace.
  static constexpr int64_t kBypassBytes = 4 << 20;

  int64_t columns;
  const Epilogue &epilogue;
  OutputRows y;
  bool bypassesCache;
};

/// Blocks of rows that are multiplied with an N-tile of weights: their converted inputs, `blockBytes` each, and sums.
template <typename Engine> struct GemmBlocks {
  int64_t first, count;
  const uint8_t *x;
  int64_t blockBytes;
  typename Engine::Sums *sums;
};

/// Multiplies blocks with a slice of an N-tile's inputs; `sink` takes the sums after the last slice. So many inputs at
/// a time that their weights stay in the L1 cache while all blocks are multiplied. The thread's next N-tile is `next`.
template <typename Engine, typename Sink>
void multiplyNTile(const Engine &engine, typename Engine::Worker &worker, const GemmTiling &division, int64_t nTile,
                   int64_t next, int64_t step, int64_t steps, const GemmBlocks<Engine> &blocks, const Sink &sink) {
  int64_t panel = nTile * division.nTilePanels, panels = division.panelsOf(nTile);
  int64_t pieces = blocks.count == 1 ? 1 : larger(ceilDivide(steps, Engine::kL1Steps), 1);
  int64_t some = roundUpTo(larger(ceilDivide(steps, pieces), 1), division.chunkSteps); // without inputs sums are zeros
  for (int64_t kStep = 0; kStep < larger(steps, 1); kStep += some) {
    int64_t count = smaller(some, steps - kStep);
    bool isLast = step + kStep + count == division.steps;
    worker.select(panel, panels, step + kStep, count);
    for (int64_t i = 0; i < blocks.count; ++i) {
      int64_t row = (blocks.first + i) * division.blockRows, rows = division.rowsOf(blocks.first + i);
      const uint8_t *x = blocks.x + i * blocks.blockBytes + engine.blockBytes(division.blockRows, kStep);
      BlockShare share = {i, blocks.count, (next - nTile) * division.nTilePanels};
      if (!isLast) {
        worker.multiply(x, rows, share, step + kStep != 0, blocks.sums[i], NoPrefetcher());
        continue;
      }
      worker.multiply(x, rows, share, step + kStep != 0, blocks.sums[i], sink.prefetcher(row, rows, panel, panels));
      sink.write(row, rows, panel, panels, blocks.sums[i]);
    }
  }
}

template <typename Engine> class GemmLayer {
public:
  GemmLayer(const hone_tensor &x, const Engine &engine, const hone_tensor &target, const Epilogue &epilogue)
      : x(x), engine(engine),
        division(countRows(target), engine.steps, engine.panels, Engine::kPanels, engine.limits(countRows(target))),
        blockBytes(engine.blockBytes(division.blockRows, division.sliceSteps)),
        converted(division.mBlockSize() * blockBytes),
        cutSums(division.slices == 1 ? 0 : division.nTiles * division.mBlockSize()), outputs(target, epilogue) {}

  void run() const {
    runRegion(
        [&] {
          typename Engine::Worker worker(engine, division);
          Scratch<typename Engine::Sums> ownSums(division.slices == 1 ? division.partBlocks : 0);
          runMBlocks(ownSums.data(), &worker);
          GemmOutputs::order();
        },
        [&] { runMBlocks(nullptr, nullptr); });
    outputs.finish();
  }

private:
  /// `worker` is null for a thread that has no memory for one.
  void runMBlocks(typename Engine::Sums *ownSums, typename Engine::Worker *worker) const {
    for (int64_t mBlock = 0; mBlock < division.blocks; mBlock += division.mBlockSize())
      for (int64_t slice = 0; slice < division.slices; ++slice)
        runSlice(mBlock, slice, ownSums, worker);
  }

  /// All outputs of an M-block of rows from a slice of inputs; by all threads together.
  void runSlice(int64_t mBlock, int64_t slice, typename Engine::Sums *ownSums, typename Engine::Worker *worker) const {
    int64_t step = slice * division.sliceSteps, steps = smaller(division.sliceSteps, division.steps - step);
    int64_t blocks = smaller(division.mBlockSize(), division.blocks - mBlock), threads = omp_get_num_threads();
    shareEvenly(blocks, [&](int64_t block) {
      engine.convert(x, (mBlock + block) * division.blockRows, division.rowsOf(mBlock + block), step, steps,
                     converted.data() + block * blockBytes);
    });
    int64_t tasks = ceilDivide(blocks, division.partBlocks) * division.nTiles;
    shareAsFree(tasks, [&](int64_t task) {
      if (!worker)
        return;
      int64_t first = task / division.nTiles * division.partBlocks, nTile = task % division.nTiles;
      typename Engine::Sums *sums = ownSums ? ownSums : cutSums.data() + nTile * division.mBlockSize() + first;
      int64_t next = (nTile + threads) % division.nTiles; // if threads alternate
      multiplyNTile<Engine>(engine, *worker, division, nTile, next, step, steps,
                            {mBlock + first, smaller(division.partBlocks, blocks - first),
                             converted.data() + first * blockBytes, blockBytes, sums},
                            outputs);
    });
  }

  const hone_tensor &x;
  const Engine &engine;
  GemmTiling division;
  int64_t blockBytes;
  Scratch<uint8_t> converted;
  Scratch<typename Engine::Sums> cutSums;
  GemmOutputs outputs;
};

/// Runs a layer as GEMM where `Layer` (entries.h) has an engine for so many rows, else as GEMV.
template <typename Layer, typename Weight>
void runLayer(const hone_tensor &x, const Weight &weight, const hone_tensor &y, const Epilogue &epilogue) {
  auto runGemm = [&](auto make) {
    auto engine = make(weight);
    GemmLayer<decltype(engine)>(x, engine, y, epilogue).run();
  };
  if (!Layer::withEngine(weight, countRows(y), runGemm))
    Layer::runGemv(x, weight, y, epilogue);
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMM_LAYER_H
