// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of experts, each of which some rows chose. Rows are sorted by expert, so that the weights of an expert are
// read once, and those of others never. Experts with a few rows are multiplied in one region of threads.
//
// A `Layer` (entries.h) has the products.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_EXPERTS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_EXPERTS_H

#include "expert_rows.h"
#include "gemm_mlp.h"

namespace {

/// The products of each place with a layer of all experts, whose matrices lie one below the other: expert e has `rows`
/// rows from e · rows on, which may begin within a panel. Products have all columns of the panels that an expert touches.
class ExpertSums {
public:
  ExpertSums(const Routing &routing, bool isThere, int64_t rows)
      : routing(routing), isThere(isThere), rows(rows),
        stride(rows % kPanelOutputs == 0 ? rows : roundUpTo(rows, kPanelOutputs) + kPanelOutputs),
        sums(isThere ? routing.count() * stride : 0) {}

  explicit operator bool() const { return isThere; }

  /// The products of a place, with the bias `[experts, rows]` or absent of its expert.
  ExpertRow at(int64_t place, const hone_tensor &biases) const {
    int64_t expert = routing.expert(place);
    return {sums.data() + place * stride + expert * rows % kPanelOutputs,
            isAbsent(biases) ? Row{nullptr, 0} : rowOf(biases, expert)};
  }

protected:
  const Routing &routing;
  bool isThere;
  int64_t rows, stride;
  Scratch<float> sums;
};

/// Makes the products of rows that are sorted by expert.
template <typename Layer> class ExpertProducts : public ExpertSums {
public:
  using Format = typename Layer::Format;
  using FormatInts = typename Format::Ints;

  ExpertProducts(const Routing &routing, const hone_tensor *planes, int64_t rows)
      : ExpertSums(routing, !isAbsent(*planes), rows), planes(planes) {}

  /// Multiplies rows of `size` inputs, one for each place.
  void multiply(float *from, int64_t size, const FormatInts &formatInts) const {
    if (!isThere)
      return;
    Scratch<int64_t> few(routing.expertCount());
    int64_t fewCount = 0;
    for (int64_t expert = 0; expert < routing.expertCount(); ++expert)
      if (int64_t count = routing.rowsOf(expert); count > kMostGemvRows)
        multiplyPanels({from, size, formatInts}, expert, firstPanel(expert), endPanel(expert));
      else if (count > 0)
        few.data()[fewCount++] = expert;
    if (fewCount > 0)
      gemv({from, size, formatInts}, few.data(), fewCount);
  }

private:
  /// As many as are memory-bound: one thread multiplies them with a part of a matrix, while others have other parts and
  /// experts.
  static constexpr int64_t kMostGemvRows = 16, kPartsPerThread = 4;

  struct Inputs {
    float *from;
    int64_t size;
    const FormatInts &formatInts;
  };

  int64_t firstPanel(int64_t expert) const { return expert * rows / kPanelOutputs; }
  int64_t endPanel(int64_t expert) const { return ceilDivide((expert + 1) * rows, kPanelOutputs); }

  void multiplyPanels(const Inputs &inputs, int64_t expert, int64_t panel, int64_t end) const {
    if (panel == end)
      return;
    hone_tensor none = {}, some[Format::kPlanes];
    selectPanels<Format>(planes, panel, end - panel, some);
    int64_t first = routing.first(expert), count = routing.rowsOf(expert);
    hone_tensor x = matrixOf(inputs.from + first * inputs.size, count, inputs.size);
    float *to = sums.data() + first * stride + (panel - firstPanel(expert)) * kPanelOutputs;
    hone_tensor y = matrixOf(to, count, (end - panel) * kPanelOutputs);
    y.strides[0] = stride;
    runLayer<Layer>(x, Layer::weightOf(some, inputs.formatInts), y, {{nullptr, 0}, none, none, kIdentity});
  }

  /// Layers that a thread runs within a region have one thread.
  void gemv(const Inputs &inputs, const int64_t *experts, int64_t count) const {
    int64_t threads = omp_get_max_threads();
    int64_t parts = threads == 1 ? 1 : ceilDivide(kPartsPerThread * threads, count);
    Tasks left(count * parts);
    runRegion([&] {
      for (int64_t task; left.take(task);) {
        int64_t expert = experts[task / parts], part = task % parts;
        int64_t first = firstPanel(expert), panels = endPanel(expert) - first;
        multiplyPanels(inputs, expert, first + panels * part / parts, first + panels * (part + 1) / parts);
      }
    });
  }

  const hone_tensor *planes;
};

/// What experts make of their products in hone.expert_hidden, the same for all formats of weights. `gate` is false where
/// there is none, or its columns are among those of `up`.
struct HiddenRows {
  static constexpr int64_t kHalves = 1, kAlternate = 2; // how the gate lies in `up`; 0: it does not

  const Routing &routing;
  const ExpertSums &up, &gate;
  const hone_tensor &upBias, &gateBias, &hidden;
  int64_t fused, width;

  [[gnu::noinline]] void write(int64_t activation) const {
    withActivation(activation, [&](auto known) {
      parallelFor(countRows(hidden), routing.count() * width > 1 << 15,
                  [&](int64_t choice) { writeRow<known.kNumber>(choice); });
    });
  }

private:
  template <int64_t ACTIVATION> void writeRow(int64_t choice) const {
    Row to = rowOf(hidden, choice);
    int64_t place = routing.place(choice);
    if (place < 0) {
      for (int64_t i = 0; i < width; ++i)
        to[i] = 0;
      return;
    }
    int64_t step = fused == kAlternate ? 2 : 1;
    ExpertRow ups = up.at(place, upBias), gates = gate ? gate.at(place, gateBias) : ups;
    if (fused)
      ups = ups.from(fused == kHalves ? width : 1);
    for (int64_t i = 0; i < width; i += kLanes) {
      Vector values = ups.read(i, step, width - i);
      values =
          fused || gate ? activate<ACTIVATION>(gates.read(i, step, width - i)) * values : activate<ACTIVATION>(values);
      writeColumns(to, i, values, width - i);
    }
  }
};

/// hone.expert_hidden.
template <typename Layer> class ExpertHidden {
public:
  explicit ExpertHidden(const hone::kernels::Call<hone::kernels::ExpertHidden, typename Layer::Format> &call)
      : call(call), x(withRowAxis(call.operands.x)), hidden(call.operands.hidden), fused(call.ints.fused),
        width(hidden.sizes[hidden.rank - 1]), routing(call.operands.ids, call.ints.experts),
        up(routing, call.operands.up, width * (fused ? 2 : 1)), gate(routing, call.operands.gate, width) {}

  void run() const {
    int64_t inputs = x.sizes[x.rank - 1];
    Scratch<float> rows(routing.count() * inputs);
    routing.gather(x, routing.choices(), rows.data());
    up.multiply(rows.data(), inputs, call.formatInts);
    gate.multiply(rows.data(), inputs, call.formatInts);
    HiddenRows{routing, up, gate, call.operands.upBias, call.operands.gateBias, hidden, fused, width}.write(
        call.ints.activation);
  }

private:
  const hone::kernels::Call<hone::kernels::ExpertHidden, typename Layer::Format> &call;
  hone_tensor x;
  const hone_tensor &hidden;
  int64_t fused, width;
  Routing routing;
  ExpertProducts<Layer> up, gate;
};

/// hone.expert_sum.
template <typename Layer> class ExpertSum {
public:
  explicit ExpertSum(const hone::kernels::Call<hone::kernels::ExpertSum, typename Layer::Format> &call)
      : call(call), hidden(call.operands.hidden), weights(withRowAxis(call.operands.expertWeights)),
        y(withRowAxis(call.operands.y)), outputs(y.sizes[y.rank - 1]), routing(call.operands.ids, call.ints.experts),
        down(routing, call.operands.down, outputs) {}

  void run() const {
    int64_t inputs = hidden.sizes[hidden.rank - 1];
    Scratch<float> rows(routing.count() * inputs);
    routing.gather(hidden, 1, rows.data());
    down.multiply(rows.data(), inputs, call.formatInts);
    parallelFor(countRows(y), routing.count() * outputs > 1 << 15,
                [&](int64_t row) { writeRow(row, rowOf(weights, row), rowOf(y, row)); });
  }

private:
  void writeRow(int64_t row, Row factors, Row to) const {
    for (int64_t n = 0; n < outputs; n += kLanes) {
      Vector sum = 0;
      for (int64_t i = 0; i < routing.choices(); ++i)
        if (int64_t place = routing.place(row * routing.choices() + i); place >= 0)
          sum += factors[i] * down.at(place, call.operands.downBias).read(n, 1, outputs - n);
      writeColumns(to, n, sum, outputs - n);
    }
  }

  const hone::kernels::Call<hone::kernels::ExpertSum, typename Layer::Format> &call;
  const hone_tensor &hidden;
  hone_tensor weights, y;
  int64_t outputs;
  Routing routing;
  ExpertProducts<Layer> down;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_EXPERTS_H
