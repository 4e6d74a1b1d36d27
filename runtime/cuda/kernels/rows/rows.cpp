// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of kernels that work on one row at a time.

#include "../entry.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "row_kernels.h"

namespace hone::cuda {
namespace {

/// Whether the threads of a row hold all of it, as vectors.
bool isHeld(const RowKernelArguments &args) {
  auto isVector = [](const RowView &view) { return !view.data || view.isVector; };
  return args.x.count % 4 == 0 && args.x.count <= kMostHeldElements && isVector(args.x) && isVector(args.y) &&
         isVector(args.weight) && isVector(args.bias) && isVector(args.first) && isVector(args.second);
}

void launchRows(KernelDevice &device, const char *function, const char *vectorized, const RowKernelArguments &given) {
  RowKernelArguments args = given;
  if (args.rows == 0 || args.x.count == 0)
    return;
  auto isConstant = [&](const RowView &view) { return !view.data || device.isConstant(view.data); };
  args.isConstant = isConstant(args.weight) && isConstant(args.bias);
  bool held = isHeld(args);
  int32_t threads = held ? threadsOfHeldRow(args.x.count) : threadsOfRow(args.x.count);
  void *pointers[] = {&args};
  device.launch({kNormsFatbin, held ? vectorized : function},
                {{static_cast<uint32_t>(args.rows), 1, 1}, {static_cast<uint32_t>(threads), 1, 1}, 0}, pointers);
}

RowKernelArguments argumentsOf(const hone_tensor &x, const hone_tensor &y) {
  RowKernelArguments args = {};
  args.x = rowsOf(x);
  args.y = rowsOf(y);
  args.rows = countRows(x);
  return args;
}

/// The sum of two tensors, and its norm.
RowKernelArguments argumentsOf(const hone_tensor &first, const hone_tensor &second, const hone_tensor &sum,
                               const hone_tensor &y) {
  RowKernelArguments args = argumentsOf(sum, y);
  args.first = rowsOf(first);
  args.second = rowsOf(second);
  return args;
}

template <typename Signature> using Call = kernels::Call<Signature, kernels::NoWeight>;

void enqueueRmsNorm(hone_call *call, RowKernelArguments args, const hone_tensor &weight, double epsilon,
                    int64_t unitOffset) {
  args.weight = rowsOf(weight);
  args.epsilon = static_cast<float>(epsilon);
  args.unitOffset = static_cast<int32_t>(unitOffset);
  runRmsNorm(kernelDevice(call), args);
}

void enqueueLayerNorm(hone_call *call, RowKernelArguments args, const hone_tensor &weight, const hone_tensor &bias,
                      double epsilon) {
  args.weight = rowsOf(weight);
  args.bias = rowsOf(bias);
  args.epsilon = static_cast<float>(epsilon);
  launchRows(kernelDevice(call), "layer_norm", "layer_norm_4", args);
}

void run(hone_call *call, const Call<kernels::RmsNorm> &norm) {
  const auto &o = norm.operands;
  enqueueRmsNorm(call, argumentsOf(o.x, o.y), o.weight, norm.floats.epsilon, norm.ints.unitOffset);
}

void run(hone_call *call, const Call<kernels::LayerNorm> &norm) {
  const auto &o = norm.operands;
  enqueueLayerNorm(call, argumentsOf(o.x, o.y), o.weight, o.bias, norm.floats.epsilon);
}

void run(hone_call *call, const Call<kernels::AddRmsNorm> &norm) {
  const auto &o = norm.operands;
  enqueueRmsNorm(call, argumentsOf(o.x, o.r, o.sum, o.y), o.weight, norm.floats.epsilon, norm.ints.unitOffset);
}

void run(hone_call *call, const Call<kernels::AddLayerNorm> &norm) {
  const auto &o = norm.operands;
  enqueueLayerNorm(call, argumentsOf(o.x, o.r, o.sum, o.y), o.weight, o.bias, norm.floats.epsilon);
}

} // namespace

void runRmsNorm(KernelDevice &device, const RowKernelArguments &args) {
  launchRows(device, "rms_norm", "rms_norm_4", args);
}

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cuda/rows.def"
#undef HONE_KERNEL

} // namespace hone::cuda
