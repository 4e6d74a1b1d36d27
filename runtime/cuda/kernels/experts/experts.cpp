// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels of mixtures of experts: operands to products.

#include "experts.h"
#include "../entry.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "expert_products.h"

#include <algorithm>

namespace hone::cuda {
namespace {

/// The weight of all experts, and its bias.
template <typename Layout>
ExpertWeight readWeight(const hone_tensor *planes, const hone_tensor &bias, int64_t experts, int64_t inputs,
                        const typename Layout::Ints &ints) {
  ExpertWeight weight = {};
  weight.rows = planes[0].sizes[0] / experts;
  weight.layer.inputs = inputs;
  weight.bias = rowsOf(bias);
  if constexpr (__is_same(Layout, kernels::Affine)) {
    const auto &[codes, scales, zeros] = kernels::planesOf<Layout>(planes);
    setQuantizedWeight(weight.layer, codes, scales, zeros, ints.group, ints.isSigned != 0);
  } else {
    weight.layer.weight = static_cast<const char *>(planes->data);
    weight.layer.weightStride = planes->strides[0] * bytesOf(planes->dtype);
  }
  return weight;
}

/// Dense rows of f32, an element for each pair and output.
RowView denseRows(void *memory, int64_t pairs, int64_t outputs) {
  RowView rows = {};
  rows.data = static_cast<char *>(memory);
  rows.dtype = HONE_F32;
  rows.isVector = outputs % 4 == 0;
  rows.count = rows.strides[2] = outputs;
  rows.inner = rows.sizes[0] = 1;
  rows.sizes[1] = pairs;
  return rows;
}

RowView acquireRows(KernelDevice &device, int64_t pairs, int64_t outputs) {
  return denseRows(device.acquire(static_cast<uint64_t>(4 * pairs * outputs)), pairs, outputs);
}

template <typename Layout>
void run(hone_call *call, const kernels::Call<kernels::GroupedHidden, Layout> &given, Format format) {
  int32_t activation = static_cast<int32_t>(given.ints.activation);
  int64_t fused = given.ints.fused, experts = given.ints.experts;
  const auto &o = given.operands;
  const hone_tensor &x = o.x, &hidden = o.hidden;
  int64_t inputs = x.sizes[x.rank - 1], width = hidden.sizes[hidden.rank - 1];
  ExpertChoices choices = {static_cast<const int32_t *>(o.groups.data), countRows(x), experts,
                           static_cast<int32_t>(hidden.sizes[hidden.rank - 2])};
  if (choices.pairs() == 0)
    return;
  KernelDevice &device = kernelDevice(call);
  ExpertWeight upWeight = readWeight<Layout>(o.up, o.upBias, experts, inputs, given.formatInts);
  RowView y = rowsOf(hidden), gates = {};
  ExpertInputs rows(device, format, x, choices);
  bool isGated = fused != 0 || !isAbsent(o.gate[0]);
  if (isGated)
    gates = acquireRows(device, choices.pairs(), width);
  int64_t step = fused == 2 ? 2 : 1;
  ExpertProduct gateProduct = {0, step, width, activation, {}, gates};
  ExpertProduct upProduct = {fused == 1 ? width : fused == 2 ? 1 : 0, step, width, isGated ? 0 : activation, gates, y};
  if (fused != 0) {
    ExpertProduct both[] = {gateProduct, upProduct};
    rows.multiply(upWeight, both);
  } else {
    if (isGated)
      rows.multiply(readWeight<Layout>(o.gate, o.gateBias, experts, inputs, given.formatInts), {&gateProduct, 1});
    rows.multiply(upWeight, {&upProduct, 1});
  }
  if (isGated)
    device.release(gates.data);
  rows.release();
}

template <typename Layout>
void run(hone_call *call, const kernels::Call<kernels::GroupedSum, Layout> &given, Format format) {
  const auto &o = given.operands;
  const hone_tensor &hidden = o.hidden, &y = o.y;
  int64_t experts = given.ints.experts, outputs = y.sizes[y.rank - 1];
  ExpertChoices choices = {static_cast<const int32_t *>(o.groups.data), countRows(y), experts,
                           static_cast<int32_t>(hidden.sizes[hidden.rank - 2])};
  if (choices.rows == 0 || outputs == 0)
    return;
  KernelDevice &device = kernelDevice(call);
  ExpertSumArguments sum = {};
  sum.ids = rowsOf(o.ids);
  sum.weights = rowsOf(o.expertWeights);
  sum.y = rowsOf(y);
  sum.rows = choices.rows;
  sum.experts = static_cast<int32_t>(experts);
  sum.choices = choices.choices;
  RowView parts = {};
  if (choices.choices > 0) {
    parts = acquireRows(device, choices.pairs(), outputs);
    ExpertInputs rows(device, format, hidden, choices);
    ExpertProduct product = {0, 1, outputs, 0, {}, parts};
    int64_t inputs = hidden.sizes[hidden.rank - 1];
    rows.multiply(readWeight<Layout>(o.down, o.downBias, experts, inputs, given.formatInts), {&product, 1});
    rows.release();
  }
  sum.parts = reinterpret_cast<const float *>(parts.data);
  void *pointers[] = {&sum};
  device.launch({kExpertGroupsFatbin, "expert_sum"},
                {{static_cast<uint32_t>(divideUp(outputs, kExpertSumThreads)),
                  static_cast<uint32_t>(std::min(choices.rows, kMaxGridY)), 1},
                 {kExpertSumThreads, 1, 1},
                 0},
                pointers);
  if (parts.data)
    device.release(parts.data);
}

void run(hone_call *call, const kernels::Call<kernels::ExpertGroups, kernels::NoWeight> &given) {
  const hone_tensor &ids = given.operands.ids;
  GroupsArguments args = {};
  args.ids = rowsOf(ids);
  args.pairs = countRows(ids) * ids.sizes[ids.rank - 1];
  args.experts = static_cast<int32_t>(given.ints.experts);
  args.groups = static_cast<int32_t *>(given.operands.groups.data);
  void *pointers[] = {&args};
  kernelDevice(call).launch(
      {kExpertGroupsFatbin, "expert_groups"},
      {{static_cast<uint32_t>(divideUp(args.experts, kGroupsThreads / 32)), 1, 1}, {kGroupsThreads, 1, 1}, 0},
      pointers);
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cuda/experts.def"
#undef HONE_KERNEL

} // namespace hone::cuda
