// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two layers with an activation between them, for many rows. A thread takes as many rows as its second-level cache holds through
// both: what is between them is converted from the registers that finish it, and never goes to memory.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_BAND_MLP_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_BAND_MLP_H

#include "band_layer.h"

namespace {

template <typename Engine> class BandMlp {
public:
  /// `width`: outputs of the first layer.
  BandMlp(const hone_tensor &x, const Engine &up, int64_t width, const Engine &down, const hone_tensor &target,
          const Epilogue &hidden, const Epilogue &epilogue)
      : x(x), up(up), down(down), upRows(divide(up, countRows(target))), downRows(divide(down, countRows(target))),
        xBytes(up.blockBytes(upRows.blockRows, up.steps)), hiddenBytes(down.blockBytes(upRows.blockRows, down.steps)),
        partBlocks(choosePart()), width(width), hidden(hidden), outputs(target, epilogue) {}

  /// False where threads would be idle, or take weights through the cache for too few rows.
  bool pays() const { return partBlocks * upRows.blockRows >= kFewestRows; }

  void run() const {
    int64_t parts = ceilDivide(upRows.blocks, partBlocks);
#pragma omp parallel
    {
      typename Engine::Worker upWorker(up, upRows), downWorker(down, downRows);
      Scratch<uint8_t> converted(partBlocks * xBytes), between(partBlocks * hiddenBytes);
      Scratch<typename Engine::Sums> sums(partBlocks);
#pragma omp for schedule(dynamic)
      for (int64_t part = 0; part < parts; ++part) {
        int64_t first = part * partBlocks, count = smaller(partBlocks, upRows.blocks - first);
        for (int64_t i = 0; i < count; ++i)
          up.convert(x, (first + i) * upRows.blockRows, upRows.rowsOf(first + i), 0, up.steps,
                     converted.data() + i * xBytes);
        multiply(upWorker, upRows, {first, count, converted.data(), xBytes, sums.data()},
                 Hidden{*this, first, between.data()});
        multiply(downWorker, downRows, {first, count, between.data(), hiddenBytes, sums.data()}, outputs);
      }
      BandOutputs::order();
    }
    outputs.finish();
  }

private:
  static constexpr int64_t kFewestRows = 64, kPartBytes = 3 << 19; // of a second-level cache of 2 MiB

  static BandDivision divide(const Engine &engine, int64_t rows) {
    return {rows,
            engine.steps,
            engine.panels,
            Engine::kPanels,
            {engine.limits(rows).blockRows, larger(engine.steps, 1), rows, rows}};
  }

  int64_t choosePart() const {
    int64_t most = larger(kPartBytes / larger(xBytes + hiddenBytes, 1), 1);
    int64_t wanted = smaller(most, ceilDivide(upRows.blocks, omp_get_max_threads()));
    return ceilDivide(upRows.blocks, ceilDivide(upRows.blocks, wanted));
  }

  template <typename Sink>
  static void multiply(typename Engine::Worker &worker, const BandDivision &division, const BandBlocks<Engine> &blocks,
                       const Sink &sink) {
    for (int64_t unit = 0; unit < division.units; ++unit)
      multiplyUnit<Engine>(worker, division, unit, 0, division.steps, blocks, sink);
  }

  /// Finished sums of the first layer as converted inputs of the second.
  struct Hidden {
    const BandMlp &mlp;
    int64_t firstBlock;
    uint8_t *to;

    NothingAhead ahead(int64_t, int64_t, int64_t, int64_t) const { return {}; }

    void write(int64_t row, int64_t count, int64_t panel, int64_t panels, const typename Engine::Sums &sums) const {
      uint8_t *block = to + (row / mlp.upRows.blockRows - firstBlock) * mlp.hiddenBytes;
      int64_t width = mlp.width - panel * kLanes;
      RowEpilogue of = mlp.hidden.at(row, panel * kLanes); // the same for all rows
      withActivation(mlp.hidden.activationNumber(), [&](auto known) {
        mlp.down.convertSums(block, count, panel, panels, [&](int64_t r, int64_t p) {
          return of.apply<known.kNumber>(sums.at(p, r), p * kLanes, width - p * kLanes);
        });
      });
      if (panel + panels == mlp.upRows.panels)
        mlp.down.clearInputs(block, count, mlp.upRows.panels * kLanes);
    }
  };

  const hone_tensor &x;
  const Engine &up, &down;
  BandDivision upRows, downRows;
  int64_t xBytes, hiddenBytes, partBlocks, width;
  const Epilogue &hidden;
  BandOutputs outputs;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_BAND_MLP_H
