// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of kernels that work on one row at a time.

#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "../kernels.h"
#include "row_kernels.h"

namespace hone::cuda {
namespace {

void launchRows(hone_call *call, const char *function, const RowKernelArguments &given) {
  RowKernelArguments args = given;
  if (args.rows == 0 || args.x.count == 0)
    return;
  void *pointers[] = {&args};
  kernelDevice(call).launch(
      {kNormsFatbin, function},
      {{static_cast<uint32_t>(args.rows), 1, 1}, {static_cast<uint32_t>(threadsOfRow(args.x.count)), 1, 1}, 0},
      pointers);
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

} // namespace

void addRmsNormF32(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *floats) {
  RowKernelArguments args = argumentsOf(operands[0], operands[1], operands[3], operands[4]);
  args.weight = rowsOf(operands[2]);
  args.epsilon = static_cast<float>(floats[0]);
  args.unitOffset = static_cast<int32_t>(ints[0]);
  launchRows(call, "rms_norm", args);
}

void addLayerNormF32(hone_call *call, const hone_tensor *operands, const int64_t *, const double *floats) {
  RowKernelArguments args = argumentsOf(operands[0], operands[1], operands[4], operands[5]);
  args.weight = rowsOf(operands[2]);
  args.bias = rowsOf(operands[3]);
  args.epsilon = static_cast<float>(floats[0]);
  launchRows(call, "layer_norm", args);
}

void rmsNormF32(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *floats) {
  RowKernelArguments args = argumentsOf(operands[0], operands[2]);
  args.weight = rowsOf(operands[1]);
  args.epsilon = static_cast<float>(floats[0]);
  args.unitOffset = static_cast<int32_t>(ints[0]);
  launchRows(call, "rms_norm", args);
}

void layerNormF32(hone_call *call, const hone_tensor *operands, const int64_t *, const double *floats) {
  RowKernelArguments args = argumentsOf(operands[0], operands[3]);
  args.weight = rowsOf(operands[1]);
  args.bias = rowsOf(operands[2]);
  args.epsilon = static_cast<float>(floats[0]);
  launchRows(call, "layer_norm", args);
}

void softmaxF32(hone_call *call, const hone_tensor *operands, const int64_t *, const double *) {
  launchRows(call, "softmax", argumentsOf(operands[0], operands[1]));
}

} // namespace hone::cuda
