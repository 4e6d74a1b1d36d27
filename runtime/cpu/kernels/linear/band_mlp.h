// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A feed-forward block for many rows: one layer with an activation, or a gate with one times a layer, and a layer of that. A thread
// takes as many rows as its second-level cache holds through all, a slice of what is between them at a time: it is converted from
// the registers that finish it, and never goes to memory.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_BAND_MLP_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_BAND_MLP_H

#include "band_layer.h"

namespace {

/// What finishes the rows of a block: those of the gate, which has an activation, of the layer beside it, and of y. Without a gate
/// the activation is the layer's.
struct MlpEpilogues {
  Epilogue gate, hidden, output;
};

template <typename Engine> class BandMlp {
public:
  /// `gate` is null where there is none; `width`: outputs of the first layer.
  BandMlp(const hone_tensor &x, const Engine *gate, const Engine &up, int64_t width, const Engine &down,
          const hone_tensor &target, const MlpEpilogues &epilogues)
      : x(x), gate(gate), up(up), down(down), upRows(divide(up, countRows(target))),
        downRows(divide(down, countRows(target))),
        slices(larger(ceilDivide(upRows.units, Engine::kSliceInputs / kUnitInputs), 1)),
        sliceUnits(roundUpTo(ceilDivide(upRows.units, slices),
                             ceilDivide(upRows.chunkSteps * Engine::kStepInputs, kUnitInputs))),
        xBytes(up.blockBytes(upRows.blockRows, up.steps)),
        hiddenBytes(down.betweenBytes(upRows.blockRows, mostSteps())), parts(chooseParts()),
        partBlocks(ceilDivide(upRows.blocks, parts)), width(width), epilogues(epilogues),
        outputs(target, epilogues.output) {}

  /// False where threads would be idle, or take weights through the cache for too few rows.
  bool pays() const { return partBlocks * upRows.blockRows >= kFewestRows; }

  void run() const {
    Parts threads;
    Tasks left(parts);
#pragma omp parallel
    threads.run([&] {
      typename Engine::Worker gateWorker(gate ? *gate : up, upRows), upWorker(up, upRows), downWorker(down, downRows);
      Part part(*this);
      for (int64_t index; left.take(index);) {
        part.begin(firstBlock(index), firstBlock(index + 1));
        for (int64_t slice = 0; slice < slices; ++slice)
          runSlice(part, slice, gateWorker, upWorker, downWorker);
      }
      BandOutputs::order();
    });
    threads.finish();
    outputs.finish();
  }

private:
  using Sums = typename Engine::Sums;
  static constexpr int64_t kFewestRows = 64;
  static constexpr int64_t kUnitInputs = Engine::kPanels * kLanes;

  static BandDivision divide(const Engine &engine, int64_t rows) {
    return {rows,
            engine.steps,
            engine.panels,
            Engine::kPanels,
            {engine.limits(rows).blockRows, roundUpTo(larger(engine.steps, 1), engine.limits(rows).chunkSteps), rows,
             rows, engine.limits(rows).chunkSteps}};
  }

  /// Of the last layer, where a slice begins.
  static int64_t stepOf(int64_t unit) { return ceilDivide(unit * kUnitInputs, Engine::kStepInputs); }

  /// Steps of a slice: the last one has those that fill up weights as well.
  int64_t mostSteps() const { return larger(stepOf(sliceUnits), down.steps - stepOf((slices - 1) * sliceUnits)); }

  /// As many for each thread, which waits for the others at the end.
  int64_t chooseParts() const {
    int64_t blockBytes = xBytes + hiddenBytes + ((gate ? 2 : 1) + downRows.units) * static_cast<int64_t>(sizeof(Sums));
    int64_t least = ceilDivide(upRows.blocks, larger(Engine::kPartBytes / blockBytes, 1));
    return smaller(roundUpTo(least, omp_get_max_threads()), upRows.blocks);
  }

  int64_t firstBlock(int64_t part) const { return part * upRows.blocks / parts; }

  /// The rows that a thread works on: converted inputs of x and of what is between, sums of a unit of the gate and of the first, and of all units of
  /// the last.
  struct Part {
    explicit Part(const BandMlp &mlp)
        : mlp(mlp), x(mlp.partBlocks * mlp.xBytes), hidden(mlp.partBlocks * mlp.hiddenBytes),
          gateSums(mlp.gate ? mlp.partBlocks : 0), upSums(mlp.partBlocks),
          downSums(mlp.partBlocks * mlp.downRows.units) {}

    void begin(int64_t block, int64_t end) {
      first = block;
      count = end - block;
      for (int64_t i = 0; i < count; ++i)
        mlp.up.convert(mlp.x, (first + i) * mlp.upRows.blockRows, mlp.upRows.rowsOf(first + i), 0, mlp.up.steps,
                       x.data() + i * mlp.xBytes);
    }

    const BandMlp &mlp;
    Scratch<uint8_t> x, hidden;
    Scratch<Sums> gateSums, upSums, downSums;
    int64_t first = 0, count = 0;
  };

  void runSlice(const Part &part, int64_t slice, typename Engine::Worker &gateWorker, typename Engine::Worker &upWorker,
                typename Engine::Worker &downWorker) const {
    int64_t firstUnit = slice * sliceUnits, endUnit = smaller(firstUnit + sliceUnits, upRows.units);
    int64_t step = stepOf(firstUnit), steps = (slice + 1 == slices ? down.steps : stepOf(endUnit)) - step;
    auto blocks = [&](const Scratch<uint8_t> &inputs, int64_t bytes, Sums *sums) {
      return BandBlocks<Engine>{part.first, part.count, inputs.data(), bytes, sums};
    };
    Hidden sink = {*this, part, firstUnit * Engine::kPanels, smaller(endUnit * Engine::kPanels, upRows.panels), steps};
    for (int64_t unit = firstUnit; unit < endUnit; ++unit) {
      if (gate)
        multiplyUnit(*gate, gateWorker, upRows, unit, unit + 1, 0, up.steps,
                     blocks(part.x, xBytes, part.gateSums.data()), KeptSums());
      multiplyUnit(up, upWorker, upRows, unit, unit + 1, 0, up.steps, blocks(part.x, xBytes, part.upSums.data()), sink);
    }
    for (int64_t unit = 0; unit < downRows.units; ++unit)
      multiplyUnit(down, downWorker, downRows, unit, unit + 1, step, steps,
                   blocks(part.hidden, hiddenBytes, part.downSums.data() + unit * partBlocks), outputs);
  }

  /// Sums of the gate stay where they are.
  struct KeptSums {
    NothingAhead ahead(int64_t, int64_t, int64_t, int64_t) const { return {}; }
    void write(int64_t, int64_t, int64_t, int64_t, const Sums &) const {}
  };

  /// Finished sums of the first layer as converted inputs of the last.
  struct Hidden {
    const BandMlp &mlp;
    const Part &part;
    int64_t firstPanel, endPanel, steps; // of the slice

    NothingAhead ahead(int64_t, int64_t, int64_t, int64_t) const { return {}; }

    void write(int64_t row, int64_t count, int64_t panel, int64_t panels, const Sums &sums) const {
      int64_t index = row / mlp.upRows.blockRows - part.first;
      uint8_t *block = part.hidden.data() + index * mlp.hiddenBytes;
      int64_t column = panel * kLanes, width = smaller(panels * kLanes, mlp.width - column);
      // Neither layer has operands that differ from row to row.
      mlp.epilogues.hidden.withColumns(width, [&](const auto &of) {
        auto convert = [&](auto finish) {
          mlp.down.convertSums(block, count, panel - firstPanel, panels, steps, finish);
        };
        if (!mlp.gate)
          return withActivation(mlp.epilogues.hidden.activationNumber(), [&](auto known) {
            convert([&](int64_t r, int64_t p) {
              return of.template apply<known.kNumber>(sums.at(p, r), 0, column + p * kLanes, width - p * kLanes);
            });
          });
        const Sums &gateSums = part.gateSums.data()[index];
        mlp.epilogues.gate.withColumns(width, [&](const auto &ofGate) {
          withActivation(mlp.epilogues.gate.activationNumber(), [&](auto known) {
            convert([&](int64_t r, int64_t p) {
              int64_t from = column + p * kLanes, left = width - p * kLanes;
              return ofGate.template apply<known.kNumber>(gateSums.at(p, r), 0, from, left) *
                     of.template apply<kIdentity>(sums.at(p, r), 0, from, left);
            });
          });
        });
      });
      if (panel + panels == endPanel)
        mlp.down.finishInputs(block, count, endPanel - firstPanel, steps);
    }
  };

  const hone_tensor &x;
  const Engine *gate;
  const Engine &up, &down;
  BandDivision upRows, downRows;
  int64_t slices, sliceUnits, xBytes, hiddenBytes, parts, partBlocks, width;
  const MlpEpilogues &epilogues;
  BandOutputs outputs;
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

/// A call's operands and attributes, as kernels.h lists them: x, gate, gate_bias, up, up_bias, down, down_bias, residual, y, with
/// `planes` operands for a weight; ints begin {activation, I}.
struct MlpCall {
  hone_tensor x, residual, y, none = {};
  const hone_tensor *gate, *up, *down; // first planes; of the gate null where it is absent
  int64_t width;
  Row upBias;
  MlpEpilogues epilogues;

  MlpCall(const hone_tensor *operands, const int64_t *ints, int64_t planes)
      : x(withRowAxis(operands[0])), residual(withRowAxis(operands[4 + 3 * planes])),
        y(withRowAxis(operands[5 + 3 * planes])), gate(isAbsent(operands[1]) ? nullptr : operands + 1),
        up(operands + planes + 2), down(up + planes + 1), width(ints[1]), upBias(vectorOf(up[planes])),
        epilogues{{vectorOf(operands[1 + planes]), none, none, ints[0]},
                  {upBias, none, none, gate ? int64_t{kIdentity} : ints[0]},
                  {vectorOf(down[planes]), none, residual, kIdentity}} {}
  MlpCall(const MlpCall &) = delete; // epilogues refer to what is here
  MlpCall &operator=(const MlpCall &) = delete;
};

/// Runs the block. `withEngines(body)` calls `body(make)`, which makes the engine of a weight's planes for many rows, if there is one;
/// where there is none or it does not pay, `runLayer(x, weight, y, epilogue)` runs one layer after the other.
template <typename WithEngines, typename RunLayer>
void runMlpCall(const MlpCall &call, WithEngines withEngines, RunLayer runLayer) {
  if (isAbsent(call.y))
    return;
  bool isDone = false;
  withEngines([&](auto make) {
    auto up = make(call.up), down = make(call.down), gate = make(call.gate ? call.gate : call.up);
    BandMlp<decltype(up)> mlp(call.x, call.gate ? &gate : nullptr, up, call.width, down, call.y, call.epilogues);
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

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_BAND_MLP_H
