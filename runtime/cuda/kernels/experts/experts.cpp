// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels of mixtures of experts: operands to products.

#include "experts.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "../kernels.h"
#include "expert_products.h"

#include <algorithm>

namespace hone::cuda {
namespace {

/// Operands of a weight of experts: one of floats, three of quantized values; the bias follows.
int32_t planesOf(Format format) { return isQuantized(format) ? 3 : 1; }

/// `ints`: group size, and whether quantized values are signed.
ExpertWeight readWeight(Format format, const hone_tensor *planes, int64_t experts, int64_t inputs,
                        const int64_t *ints) {
  ExpertWeight weight = {};
  weight.rows = planes[0].sizes[0] / experts;
  weight.layer.inputs = inputs;
  weight.bias = rowsOf(planes[planesOf(format)]);
  if (isQuantized(format)) {
    setQuantizedWeight(weight.layer, planes[0], planes + 1, ints);
    return weight;
  }
  weight.layer.weight = static_cast<const char *>(planes[0].data);
  weight.layer.weightStride = planes[0].strides[0] * bytesOf(planes[0].dtype);
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

/// x, groups, up, up_bias, gate, gate_bias, hidden.
void runHidden(hone_call *call, Format format, const hone_tensor *operands, const int64_t *ints) {
  int32_t activation = static_cast<int32_t>(ints[0]), planes = planesOf(format);
  int64_t fused = ints[1], experts = ints[2];
  const hone_tensor &x = operands[0], *up = operands + 2, *gate = up + planes + 1, &hidden = gate[planes + 1];
  int64_t inputs = x.sizes[x.rank - 1], width = hidden.sizes[hidden.rank - 1];
  ExpertChoices choices = {static_cast<const int32_t *>(operands[1].data), countRows(x), experts,
                           static_cast<int32_t>(hidden.sizes[hidden.rank - 2])};
  if (choices.pairs() == 0)
    return;
  KernelDevice &device = kernelDevice(call);
  ExpertWeight upWeight = readWeight(format, up, experts, inputs, ints + 3);
  RowView y = rowsOf(hidden), gates = {};
  ExpertInputs rows(device, format, x, choices);
  bool isGated = fused != 0 || !isAbsent(gate[0]);
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
      rows.multiply(readWeight(format, gate, experts, inputs, ints + 3), {&gateProduct, 1});
    rows.multiply(upWeight, {&upProduct, 1});
  }
  if (isGated)
    device.release(gates.data);
  rows.release();
}

/// hidden, ids, weights, groups, down, down_bias, y.
void runSum(hone_call *call, Format format, const hone_tensor *operands, const int64_t *ints) {
  const hone_tensor &hidden = operands[0], *down = operands + 4, &y = down[planesOf(format) + 1];
  int64_t experts = ints[0], outputs = y.sizes[y.rank - 1];
  ExpertChoices choices = {static_cast<const int32_t *>(operands[3].data), countRows(y), experts,
                           static_cast<int32_t>(hidden.sizes[hidden.rank - 2])};
  if (choices.rows == 0 || outputs == 0)
    return;
  KernelDevice &device = kernelDevice(call);
  ExpertSumArguments sum = {};
  sum.ids = rowsOf(operands[1]);
  sum.weights = rowsOf(operands[2]);
  sum.y = rowsOf(y);
  sum.rows = choices.rows;
  sum.experts = static_cast<int32_t>(experts);
  sum.choices = choices.choices;
  RowView parts = {};
  if (choices.choices > 0) {
    parts = acquireRows(device, choices.pairs(), outputs);
    ExpertInputs rows(device, format, hidden, choices);
    ExpertProduct product = {0, 1, outputs, 0, {}, parts};
    rows.multiply(readWeight(format, down, experts, hidden.sizes[hidden.rank - 1], ints + 1), {&product, 1});
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

} // namespace

void expertGroups(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  const hone_tensor &ids = operands[0];
  GroupsArguments args = {};
  args.ids = rowsOf(ids);
  args.pairs = countRows(ids) * ids.sizes[ids.rank - 1];
  args.experts = static_cast<int32_t>(ints[0]);
  args.groups = static_cast<int32_t *>(operands[1].data);
  void *pointers[] = {&args};
  kernelDevice(call).launch(
      {kExpertGroupsFatbin, "expert_groups"},
      {{static_cast<uint32_t>(divideUp(args.experts, kGroupsThreads / 32)), 1, 1}, {kGroupsThreads, 1, 1}, 0},
      pointers);
}

#define HONE_EXPERT_KERNELS(format)                                                                                    \
  void expertHidden##format(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {       \
    runHidden(call, Format::format, operands, ints);                                                                   \
  }                                                                                                                    \
  void expertSum##format(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {          \
    runSum(call, Format::format, operands, ints);                                                                      \
  }
HONE_EXPERT_KERNELS(F32)
HONE_EXPERT_KERNELS(F16)
HONE_EXPERT_KERNELS(Bf16)
HONE_EXPERT_KERNELS(Affine8)
HONE_EXPERT_KERNELS(Affine4)
HONE_EXPERT_KERNELS(Affine3)
HONE_EXPERT_KERNELS(Affine2)
#undef HONE_EXPERT_KERNELS

} // namespace hone::cuda
