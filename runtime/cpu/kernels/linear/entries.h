// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels that a format of weights has: linear layers, feed-forward blocks and layers of experts. A source has a
// `Layer<Elements, FORMAT>`, with the type of a row and its format:
//
//   Format                                 that format
//   weightOf(planes, ints)                 the weight
//   withEngine(weight, rows, body)         calls body(make), where make(weight) is the engine for GEMM (large M), or
//                                          returns false for GEMV
//   runGemv(x, weight, y, epilogue)        runs a layer that has no engine

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_ENTRIES_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_ENTRIES_H

#include "../entry.h"
#include "experts.h"
#include "gemm_mlp.h"

/// The function of a row.
#define HONE_DEFINE_LAYER(name, function, Signature, Format, Elements)                                                 \
  HONE_DEFINE_KERNEL(name, function, Signature, Format, Layer<Elements, kernels::Format>)

namespace {

using hone::kernels::Call;

template <typename Layer> void run(const Call<hone::kernels::Linear, typename Layer::Format> &call) {
  const auto &o = call.operands;
  hone_tensor x = withRowAxis(o.x), y = withRowAxis(o.y);
  hone_tensor factor = withRowAxis(o.factor), residual = withRowAxis(o.residual);
  if (!isAbsent(y))
    runLayer<Layer>(x, Layer::weightOf(o.weight, call.formatInts), y,
                    {vectorOf(o.bias), factor, residual, call.ints.activation});
}

template <typename Layer> void run(const Call<hone::kernels::Mlp, typename Layer::Format> &given) {
  MlpCall call(given);
  auto weightOf = [&](const hone_tensor *planes) -> decltype(auto) {
    return Layer::weightOf(planes, given.formatInts);
  };
  auto withEngines = [&](const auto &body) {
    Layer::withEngine(weightOf(call.up), countRows(call.y), [&](auto make) {
      using Engine = decltype(make(weightOf(call.up)));
      // Where an N-tile of outputs is not as many inputs as a step, the layers are multiplied one after the other.
      if constexpr (Engine::kTakesNTiles)
        body([&](const hone_tensor *planes) { return make(weightOf(planes)); });
    });
  };
  runMlpCall(call, withEngines,
             [&](const hone_tensor &from, const hone_tensor *planes, const hone_tensor &to, const Epilogue &epilogue) {
               runLayer<Layer>(from, weightOf(planes), to, epilogue);
             });
}

template <typename Layer> void run(const Call<hone::kernels::ExpertHidden, typename Layer::Format> &call) {
  if (!isAbsent(call.operands.hidden))
    ExpertHidden<Layer>(call).run();
}

template <typename Layer> void run(const Call<hone::kernels::ExpertSum, typename Layer::Format> &call) {
  if (!isAbsent(call.operands.y))
    ExpertSum<Layer>(call).run();
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_ENTRIES_H
