// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two layers with an activation between them, for many rows. A thread takes as many rows as its second-level cache holds through
// both, a slice of what is between them at a time: it is converted from the registers that finish it, and never goes to memory.

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
        slices(larger(ceilDivide(upRows.units, kSliceInputs / kUnitInputs), 1)),
        sliceUnits(ceilDivide(upRows.units, slices)), xBytes(up.blockBytes(upRows.blockRows, up.steps)),
        hiddenBytes(down.blockBytes(upRows.blockRows, mostSteps())), partBlocks(choosePart()), width(width),
        hidden(hidden), outputs(target, epilogue) {}

  /// False where threads would be idle, or take weights through the cache for too few rows.
  bool pays() const { return partBlocks * upRows.blockRows >= kFewestRows; }

  void run() const {
    int64_t parts = ceilDivide(upRows.blocks, partBlocks);
#pragma omp parallel
    {
      typename Engine::Worker upWorker(up, upRows), downWorker(down, downRows);
      Part part(*this);
#pragma omp for schedule(dynamic)
      for (int64_t index = 0; index < parts; ++index) {
        part.begin(index * partBlocks);
        for (int64_t slice = 0; slice < slices; ++slice)
          runSlice(part, slice, upWorker, downWorker);
      }
      BandOutputs::order();
    }
    outputs.finish();
  }

private:
  using Sums = typename Engine::Sums;
  static constexpr int64_t kFewestRows = 64, kPartBytes = 3 << 19; // of a second-level cache of 2 MiB
  static constexpr int64_t kUnitInputs = Engine::kPanels * kLanes, kUnitSteps = kUnitInputs / Engine::kStepInputs;
  static constexpr int64_t kSliceInputs = 1024;

  static BandDivision divide(const Engine &engine, int64_t rows) {
    return {rows,
            engine.steps,
            engine.panels,
            Engine::kPanels,
            {engine.limits(rows).blockRows, larger(engine.steps, 1), rows, rows}};
  }

  /// Steps of a slice: the last one has those that fill up weights as well.
  int64_t mostSteps() const {
    return larger(sliceUnits * kUnitSteps, down.steps - (slices - 1) * sliceUnits * kUnitSteps);
  }

  int64_t choosePart() const {
    int64_t blockBytes = xBytes + hiddenBytes + (1 + downRows.units) * static_cast<int64_t>(sizeof(Sums));
    int64_t wanted = smaller(larger(kPartBytes / blockBytes, 1), ceilDivide(upRows.blocks, omp_get_max_threads()));
    return ceilDivide(upRows.blocks, ceilDivide(upRows.blocks, wanted));
  }

  /// The rows that a thread works on: converted inputs of both layers, sums of a unit of the first and of all units of the second.
  struct Part {
    explicit Part(const BandMlp &mlp)
        : mlp(mlp), x(mlp.partBlocks * mlp.xBytes), hidden(mlp.partBlocks * mlp.hiddenBytes), upSums(mlp.partBlocks),
          downSums(mlp.partBlocks * mlp.downRows.units) {}

    void begin(int64_t block) {
      first = block;
      count = smaller(mlp.partBlocks, mlp.upRows.blocks - first);
      for (int64_t i = 0; i < count; ++i)
        mlp.up.convert(mlp.x, (first + i) * mlp.upRows.blockRows, mlp.upRows.rowsOf(first + i), 0, mlp.up.steps,
                       x.data() + i * mlp.xBytes);
    }

    const BandMlp &mlp;
    Scratch<uint8_t> x, hidden;
    Scratch<Sums> upSums, downSums;
    int64_t first = 0, count = 0;
  };

  void runSlice(const Part &part, int64_t slice, typename Engine::Worker &upWorker,
                typename Engine::Worker &downWorker) const {
    int64_t firstUnit = slice * sliceUnits, endUnit = smaller(firstUnit + sliceUnits, upRows.units);
    int64_t step = firstUnit * kUnitSteps, steps = (slice + 1 == slices ? down.steps : endUnit * kUnitSteps) - step;
    Hidden sink = {*this, part, firstUnit * Engine::kPanels, steps};
    for (int64_t unit = firstUnit; unit < endUnit; ++unit)
      multiplyUnit<Engine>(upWorker, upRows, unit, 0, up.steps,
                           {part.first, part.count, part.x.data(), xBytes, part.upSums.data()}, sink);
    for (int64_t unit = 0; unit < downRows.units; ++unit)
      multiplyUnit<Engine>(
          downWorker, downRows, unit, step, steps,
          {part.first, part.count, part.hidden.data(), hiddenBytes, part.downSums.data() + unit * partBlocks}, outputs);
  }

  /// Finished sums of the first layer as converted inputs of the second.
  struct Hidden {
    const BandMlp &mlp;
    const Part &part;
    int64_t firstPanel, steps; // of the slice

    NothingAhead ahead(int64_t, int64_t, int64_t, int64_t) const { return {}; }

    void write(int64_t row, int64_t count, int64_t panel, int64_t panels, const Sums &sums) const {
      uint8_t *block = part.hidden.data() + (row / mlp.upRows.blockRows - part.first) * mlp.hiddenBytes;
      int64_t width = mlp.width - panel * kLanes;
      RowEpilogue of = mlp.hidden.at(row, panel * kLanes); // the same for all rows
      withActivation(mlp.hidden.activationNumber(), [&](auto known) {
        mlp.down.convertSums(block, count, panel - firstPanel, panels, steps, [&](int64_t r, int64_t p) {
          return of.apply<known.kNumber>(sums.at(p, r), p * kLanes, width - p * kLanes);
        });
      });
      if (panel + panels == mlp.upRows.panels)
        mlp.down.clearInputs(block, count, (panel + panels - firstPanel) * kLanes, steps);
    }
  };

  const hone_tensor &x;
  const Engine &up, &down;
  BandDivision upRows, downRows;
  int64_t slices, sliceUnits, xBytes, hiddenBytes, partBlocks, width;
  const Epilogue &hidden;
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

/// A call's operands and attributes, as kernels.h lists them: x, up, up_bias, down, down_bias, residual, y, with `planes` operands
/// for a weight; ints begin {activation, I}.
struct PairCall {
  hone_tensor x, residual, y, none = {};
  const hone_tensor *up, *down; // first planes
  int64_t width;
  Epilogue hidden, epilogue;

  PairCall(const hone_tensor *operands, const int64_t *ints, int64_t planes)
      : x(withRowAxis(operands[0])), residual(withRowAxis(operands[3 + 2 * planes])),
        y(withRowAxis(operands[4 + 2 * planes])), up(operands + 1), down(up + planes + 1), width(ints[1]),
        hidden(vectorOf(up[planes]), none, none, ints[0]), epilogue(vectorOf(down[planes]), none, residual, kIdentity) {
  }
  PairCall(const PairCall &) = delete; // epilogues refer to what is here
  PairCall &operator=(const PairCall &) = delete;
};

/// Runs both layers. `withEngines(body)` calls `body(up, down)` with engines for many rows, if there are; where there are none or
/// they do not pay, `runLayer(x, weight, y, epilogue)` runs one layer after the other.
template <typename WithEngines, typename RunLayer>
void runPair(const PairCall &call, WithEngines withEngines, RunLayer runLayer) {
  if (isAbsent(call.y))
    return;
  bool isDone = false;
  withEngines([&](const auto &up, const auto &down) {
    BandMlp<__remove_cvref(decltype(up))> mlp(call.x, up, call.width, down, call.y, call.hidden, call.epilogue);
    isDone = mlp.pays();
    if (isDone)
      mlp.run();
  });
  if (isDone)
    return;
  Scratch<float> memory(countRows(call.y) * call.width);
  hone_tensor hidden = matrixOf(memory.data(), countRows(call.y), call.width);
  runLayer(call.x, call.up, hidden, call.hidden);
  runLayer(hidden, call.down, call.y, call.epilogue);
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_BAND_MLP_H
