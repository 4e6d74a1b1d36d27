// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A fused feed-forward block (MLP, gated or not) for large M. A thread takes as many rows as its L2 cache holds through
// all layers, a K-slice of the hidden activations at a time: finished sums are packed from registers as operands of the
// last layer, and the hidden activations never go to memory.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMM_MLP_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMM_MLP_H

#include "gemm_layer.h"
#include "hone/kernels/arguments.h"

namespace {

/// What finishes the rows of a block: those of the gate, which has an activation, of the layer beside it, and of y.
/// Without a gate the activation is the layer's.
struct MlpEpilogues {
  Epilogue gate, hidden, output;
};

template <typename Engine> class GemmMlp {
public:
  /// `gate` is null where there is none; `width`: outputs of the first layer.
  GemmMlp(const hone_tensor &x, const Engine *gate, const Engine &up, int64_t width, const Engine &down,
          const hone_tensor &target, const MlpEpilogues &epilogues)
      : x(x), gate(gate), up(up), down(down), upRows(divide(up, countRows(target))),
        downRows(divide(down, countRows(target))),
        slices(larger(ceilDivide(upRows.nTiles, Engine::kSliceInputs / kNTileInputs), 1)),
        sliceNTiles(roundUpTo(ceilDivide(upRows.nTiles, slices),
                              ceilDivide(upRows.chunkSteps * Engine::kStepInputs, kNTileInputs))),
        xBytes(up.blockBytes(upRows.blockRows, up.steps)),
        hiddenBytes(down.betweenBytes(upRows.blockRows, mostSteps())), parts(chooseParts()),
        partBlocks(ceilDivide(upRows.blocks, parts)), width(width), epilogues(epilogues),
        outputs(target, epilogues.output) {}

  /// False where threads would be idle, or take weights through the cache for too few rows.
  bool pays() const { return partBlocks * upRows.blockRows >= kFewestRows; }

  void run() const {
    Tasks left(parts);
    runRegion([&] {
      typename Engine::Worker gateWorker(gate ? *gate : up, upRows), upWorker(up, upRows), downWorker(down, downRows);
      Part part(*this);
      for (int64_t index; left.take(index);) {
        part.begin(firstBlock(index), firstBlock(index + 1));
        for (int64_t slice = 0; slice < slices; ++slice)
          runSlice(part, slice, gateWorker, upWorker, downWorker);
      }
      GemmOutputs::order();
    });
    outputs.finish();
  }

private:
  using Sums = typename Engine::Sums;
  static constexpr int64_t kFewestRows = 64;
  static constexpr int64_t kNTileInputs = Engine::kPanels * kLanes;

  static GemmTiling divide(const Engine &engine, int64_t rows) {
    return {rows,
            engine.steps,
            engine.panels,
            Engine::kPanels,
            {engine.limits(rows).blockRows, roundUpTo(larger(engine.steps, 1), engine.limits(rows).chunkSteps), rows,
             rows, engine.limits(rows).chunkSteps}};
  }

  /// Of the last layer, where a slice begins.
  static int64_t stepOf(int64_t nTile) { return ceilDivide(nTile * kNTileInputs, Engine::kStepInputs); }

  /// Steps of a slice: the last one has those that fill up weights as well.
  int64_t mostSteps() const { return larger(stepOf(sliceNTiles), down.steps - stepOf((slices - 1) * sliceNTiles)); }

  /// As many for each thread, which waits for the others at the end.
  int64_t chooseParts() const {
    int64_t blockBytes = xBytes + hiddenBytes + ((gate ? 2 : 1) + downRows.nTiles) * static_cast<int64_t>(sizeof(Sums));
    int64_t least = ceilDivide(upRows.blocks, larger(Engine::kPartBytes / blockBytes, 1));
    return smaller(roundUpTo(least, omp_get_max_threads()), upRows.blocks);
  }

  int64_t firstBlock(int64_t part) const { return part * upRows.blocks / parts; }

  /// The rows that a thread works on: converted inputs of x and of what is between, sums of an N-tile of the gate and
  /// of the first, and of all N-tiles of the last.
  struct Part {
    explicit Part(const GemmMlp &mlp)
        : mlp(mlp), x(mlp.partBlocks * mlp.xBytes), hidden(mlp.partBlocks * mlp.hiddenBytes),
          gateSums(mlp.gate ? mlp.partBlocks : 0), upSums(mlp.partBlocks),
          downSums(mlp.partBlocks * mlp.downRows.nTiles) {}

    void begin(int64_t block, int64_t end) {
      first = block;
      count = end - block;
      for (int64_t i = 0; i < count; ++i)
        mlp.up.convert(mlp.x, (first + i) * mlp.upRows.blockRows, mlp.upRows.rowsOf(first + i), 0, mlp.up.steps,
                       x.data() + i * mlp.xBytes);
    }

    const GemmMlp &mlp;
    Scratch<uint8_t> x, hidden;
    Scratch<Sums> gateSums, upSums, downSums;
    int64_t first = 0, count = 0;
  };

  void runSlice(const Part &part, int64_t slice, typename Engine::Worker &gateWorker, typename Engine::Worker &upWorker,
                typename Engine::Worker &downWorker) const {
    int64_t firstNTile = slice * sliceNTiles, endNTile = smaller(firstNTile + sliceNTiles, upRows.nTiles);
    int64_t step = stepOf(firstNTile), steps = (slice + 1 == slices ? down.steps : stepOf(endNTile)) - step;
    auto blocks = [&](const Scratch<uint8_t> &inputs, int64_t bytes, Sums *sums) {
      return GemmBlocks<Engine>{part.first, part.count, inputs.data(), bytes, sums};
    };
    Hidden sink = {*this, part, firstNTile * Engine::kPanels, smaller(endNTile * Engine::kPanels, upRows.panels),
                   steps};
    for (int64_t nTile = firstNTile; nTile < endNTile; ++nTile) {
      if (gate)
        multiplyNTile(*gate, gateWorker, upRows, nTile, nTile + 1, 0, up.steps,
                      blocks(part.x, xBytes, part.gateSums.data()), GateSums{*this});
      multiplyNTile(up, upWorker, upRows, nTile, nTile + 1, 0, up.steps, blocks(part.x, xBytes, part.upSums.data()),
                    sink);
    }
    for (int64_t nTile = 0; nTile < downRows.nTiles; ++nTile)
      multiplyNTile(down, downWorker, downRows, nTile, nTile + 1, step, steps,
                    blocks(part.hidden, hiddenBytes, part.downSums.data() + nTile * partBlocks), outputs);
  }

  /// Sums of the gate are finished where they are.
  struct GateSums {
    const GemmMlp &mlp;

    NoPrefetcher prefetcher(int64_t, int64_t, int64_t, int64_t) const { return {}; }
    void write(int64_t, int64_t count, int64_t panel, int64_t panels, Sums &sums) const {
      mlp.finish(mlp.epilogues.gate, count, panel, panels, sums);
    }
  };

  /// Sums of the first layer become converted inputs of the last.
  struct Hidden {
    const GemmMlp &mlp;
    const Part &part;
    int64_t firstPanel, endPanel, steps; // of the slice

    NoPrefetcher prefetcher(int64_t, int64_t, int64_t, int64_t) const { return {}; }

    void write(int64_t row, int64_t count, int64_t panel, int64_t panels, Sums &sums) const {
      int64_t index = row / mlp.upRows.blockRows - part.first;
      uint8_t *block = part.hidden.data() + index * mlp.hiddenBytes;
      mlp.finish(mlp.epilogues.hidden, count, panel, panels, sums);
      if (mlp.gate)
        multiplySums(sums, part.gateSums.data()[index], count, panels);
      mlp.down.convertSums(block, count, panel - firstPanel, panels, steps, sums);
      if (panel + panels == endPanel)
        mlp.down.finishInputs(block, count, endPanel - firstPanel, steps);
    }
  };

  /// Neither layer has operands that differ from row to row.
  void finish(const Epilogue &epilogue, int64_t rows, int64_t panel, int64_t panels, Sums &sums) const {
    finishSums(epilogue, rows, panels, panel * kLanes, smaller(panels * kLanes, width - panel * kLanes), sums);
  }

  const hone_tensor &x;
  const Engine *gate;
  const Engine &up, &down;
  GemmTiling upRows, downRows;
  int64_t slices, sliceNTiles, xBytes, hiddenBytes, parts, partBlocks, width;
  const MlpEpilogues &epilogues;
  GemmOutputs outputs;
};

/// A dense matrix.
inline hone_tensor matrixOf(float *data, int64_t rows, int64_t columns) {
  hone_tensor tensor = {};
  tensor.data = data;
  tensor.dtype = HONE_F32;
  tensor.rank = 2;
  tensor.sizes[0] = rows;
  tensor.sizes[1] = tensor.strides[0] = columns;
  tensor.strides[1] = 1;
  return tensor;
}

/// The arguments of a call, and what follows from them.
struct MlpCall {
  hone_tensor x, residual, y, none = {};
  const hone_tensor *gate, *up, *down; // first planes; of the gate null where it is absent
  int64_t width;
  Row upBias;
  MlpEpilogues epilogues;

  template <typename Format>
  explicit MlpCall(const hone::kernels::Call<hone::kernels::Mlp, Format> &call)
      : x(withRowAxis(call.operands.x)), residual(withRowAxis(call.operands.residual)), y(withRowAxis(call.operands.y)),
        gate(isAbsent(*call.operands.gate) ? nullptr : call.operands.gate), up(call.operands.up),
        down(call.operands.down), width(call.ints.width), upBias(vectorOf(call.operands.upBias)),
        epilogues{{vectorOf(call.operands.gateBias), none, none, call.ints.activation},
                  {upBias, none, none, gate ? int64_t{kIdentity} : call.ints.activation},
                  {vectorOf(call.operands.downBias), none, residual, kIdentity}} {}
  MlpCall(const MlpCall &) = delete; // epilogues refer to what is here
  MlpCall &operator=(const MlpCall &) = delete;
};

/// Runs the block. `withEngines(body)` calls `body(make)`, which makes the engine of a weight's planes for GEMM (large
/// M), if there is one; where there is none or it does not pay, `runLayer(x, weight, y, epilogue)` runs one layer after
/// the other.
template <typename WithEngines, typename RunLayer>
void runMlpCall(const MlpCall &call, WithEngines withEngines, RunLayer runLayer) {
  if (isAbsent(call.y))
    return;
  bool isDone = false;
  withEngines([&](auto make) {
    auto up = make(call.up), down = make(call.down), gate = make(call.gate ? call.gate : call.up);
    GemmMlp<decltype(up)> mlp(call.x, call.gate ? &gate : nullptr, up, call.width, down, call.y, call.epilogues);
    isDone = mlp.pays();
    if (isDone)
      mlp.run();
  });
  if (isDone)
    return;
  int64_t rows = countRows(call.y), size = rows * call.width;
  Scratch<float> memory(size), gateMemory(call.gate ? size : 0);
  hone_tensor hidden = matrixOf(memory.data(), rows, call.width), factor = call.none;
  if (call.gate) {
    factor = matrixOf(gateMemory.data(), rows, call.width);
    runLayer(call.x, call.gate, factor, call.epilogues.gate);
  }
  runLayer(call.x, call.up, hidden, {call.upBias, factor, call.none, call.epilogues.hidden.activationNumber()});
  runLayer(hidden, call.down, call.y, call.epilogues.output);
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMM_MLP_H
