// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of experts, each of which some rows chose. Rows are sorted by expert, so that the weights of an expert are
// read once, and those of others never. Experts with a few rows are multiplied in one region of threads.
//
// A `Format` has the products: how many operands a weight has (`kPlanes`), those of some of its panels (`select`), and
// `runLayer(x, planes, ints, y, epilogue)`, ints from the group on.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_EXPERTS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_EXPERTS_H

#include "expert_rows.h"
#include "gemm_mlp.h"

namespace {

/// Products of rows that are sorted by expert with a layer of all experts, whose matrices lie one below the other:
/// expert e has `rows` rows from e · rows on, which may begin within a panel. Products have all columns of the panels
/// that an expert touches.
template <typename Format> class ExpertProducts {
public:
  ExpertProducts(const Routing &routing, const hone_tensor *planes, int64_t rows)
      : routing(routing), planes(planes), rows(rows), isThere(!isAbsent(*planes)),
        stride(rows % kPanelOutputs == 0 ? rows : roundUpTo(rows, kPanelOutputs) + kPanelOutputs),
        sums(isThere ? routing.count() * stride : 0) {}

  explicit operator bool() const { return isThere; }

  /// Multiplies rows of `size` inputs, one for each place.
  void multiply(float *from, int64_t size, const int64_t *groupInts) const {
    if (!isThere)
      return;
    Scratch<int64_t> few(routing.expertCount());
    int64_t fewCount = 0;
    for (int64_t expert = 0; expert < routing.expertCount(); ++expert)
      if (int64_t count = routing.rowsOf(expert); count > kMostGemvRows)
        multiplyPanels({from, size, groupInts}, expert, firstPanel(expert), endPanel(expert));
      else if (count > 0)
        few.data()[fewCount++] = expert;
    if (fewCount > 0)
      gemv({from, size, groupInts}, few.data(), fewCount);
  }

  /// The products of a place, with the bias `[experts, rows]` or absent of its expert.
  ExpertRow at(int64_t place, const hone_tensor &biases) const {
    int64_t expert = routing.expert(place);
    return {sums.data() + place * stride + expert * rows % kPanelOutputs,
            isAbsent(biases) ? Row{nullptr, 0} : rowOf(biases, expert)};
  }

private:
  /// As many as are memory-bound: one thread multiplies them with a part of a matrix, while others have other parts and
  /// experts.
  static constexpr int64_t kMostGemvRows = 16, kPartsPerThread = 4;

  struct Inputs {
    float *from;
    int64_t size;
    const int64_t *groupInts;
  };

  int64_t firstPanel(int64_t expert) const { return expert * rows / kPanelOutputs; }
  int64_t endPanel(int64_t expert) const { return ceilDivide((expert + 1) * rows, kPanelOutputs); }

  void multiplyPanels(const Inputs &inputs, int64_t expert, int64_t panel, int64_t end) const {
    if (panel == end)
      return;
    hone_tensor none = {}, some[Format::kPlanes];
    Format::select(planes, panel, end - panel, some);
    int64_t first = routing.first(expert), count = routing.rowsOf(expert);
    hone_tensor x = matrixOf(inputs.from + first * inputs.size, count, inputs.size);
    float *to = sums.data() + first * stride + (panel - firstPanel(expert)) * kPanelOutputs;
    hone_tensor y = matrixOf(to, count, (end - panel) * kPanelOutputs);
    y.strides[0] = stride;
    Format::runLayer(x, some, inputs.groupInts, y, {{nullptr, 0}, none, none, kIdentity});
  }

  /// Layers that a thread runs within a region have one thread.
  void gemv(const Inputs &inputs, const int64_t *experts, int64_t count) const {
    int64_t threads = omp_get_max_threads();
    int64_t parts = threads == 1 ? 1 : ceilDivide(kPartsPerThread * threads, count);
    Tasks left(count * parts);
    Parts workers;
#pragma omp parallel
    workers.run([&] {
      for (int64_t task; left.take(task);) {
        int64_t expert = experts[task / parts], part = task % parts;
        int64_t first = firstPanel(expert), panels = endPanel(expert) - first;
        multiplyPanels(inputs, expert, first + panels * part / parts, first + panels * (part + 1) / parts);
      }
    });
    workers.finish();
  }

  const Routing &routing;
  const hone_tensor *planes;
  int64_t rows;
  bool isThere;
  int64_t stride;
  Scratch<float> sums;
};

/// hone.expert_hidden.
template <typename Format> class ExpertHidden {
public:
  ExpertHidden(const hone_tensor *operands, const int64_t *ints)
      : x(withRowAxis(operands[0])), upBias(operands[2 + Format::kPlanes]), gateBias(operands[3 + 2 * Format::kPlanes]),
        hidden(operands[4 + 2 * Format::kPlanes]), activation(ints[0]), fused(ints[1]), groupInts(ints + 3),
        width(hidden.sizes[hidden.rank - 1]), routing(operands[1], ints[2]),
        up(routing, operands + 2, width * (fused ? 2 : 1)), gate(routing, operands + 3 + Format::kPlanes, width) {}

  void run() const {
    int64_t inputs = x.sizes[x.rank - 1];
    Scratch<float> rows(routing.count() * inputs);
    routing.gather(x, routing.choices(), rows.data());
    up.multiply(rows.data(), inputs, groupInts);
    gate.multiply(rows.data(), inputs, groupInts);
    withActivation(activation, [&](auto known) {
#pragma omp parallel for schedule(static) if (routing.count() * width > 1 << 15)
      for (int64_t choice = 0; choice < countRows(hidden); ++choice)
        writeRow<known.kNumber>(choice);
    });
  }

private:
  static constexpr int64_t kHalves = 1, kAlternate = 2;

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

  hone_tensor x;
  const hone_tensor &upBias, &gateBias, &hidden;
  int64_t activation, fused;
  const int64_t *groupInts;
  int64_t width;
  Routing routing;
  ExpertProducts<Format> up, gate;
};

/// hone.expert_sum.
template <typename Format> class ExpertSum {
public:
  ExpertSum(const hone_tensor *operands, const int64_t *ints)
      : hidden(operands[0]), weights(withRowAxis(operands[2])), bias(operands[3 + Format::kPlanes]),
        y(withRowAxis(operands[4 + Format::kPlanes])), groupInts(ints + 1), outputs(y.sizes[y.rank - 1]),
        routing(operands[1], ints[0]), down(routing, operands + 3, outputs) {}

  void run() const {
    int64_t inputs = hidden.sizes[hidden.rank - 1];
    Scratch<float> rows(routing.count() * inputs);
    routing.gather(hidden, 1, rows.data());
    down.multiply(rows.data(), inputs, groupInts);
#pragma omp parallel for schedule(static) if (routing.count() * outputs > 1 << 15)
    for (int64_t row = 0; row < countRows(y); ++row)
      writeRow(row, rowOf(weights, row), rowOf(y, row));
  }

private:
  void writeRow(int64_t row, Row factors, Row to) const {
    for (int64_t n = 0; n < outputs; n += kLanes) {
      Vector sum = 0;
      for (int64_t i = 0; i < routing.choices(); ++i)
        if (int64_t place = routing.place(row * routing.choices() + i); place >= 0)
          sum += factors[i] * down.at(place, bias).read(n, 1, outputs - n);
      writeColumns(to, n, sum, outputs - n);
    }
  }

  const hone_tensor &hidden;
  hone_tensor weights;
  const hone_tensor &bias;
  hone_tensor y;
  const int64_t *groupInts;
  int64_t outputs;
  Routing routing;
  ExpertProducts<Format> down;
};

template <typename Format> void runExpertHidden(const hone_tensor *operands, const int64_t *ints) {
  if (!isAbsent(operands[4 + 2 * Format::kPlanes]))
    ExpertHidden<Format>(operands, ints).run();
}

template <typename Format> void runExpertSum(const hone_tensor *operands, const int64_t *ints) {
  if (!isAbsent(operands[4 + Format::kPlanes]))
    ExpertSum<Format>(operands, ints).run();
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_EXPERTS_H
