// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers: operands to arguments.

#include "../copy_rows.h"
#include "../entry.h"
#include "../kernel_device.h"
#include "linear_format.h"

#include <bit>

namespace hone::cuda {
void setQuantizedWeight(LinearArguments &args, const hone_tensor &codes, const hone_tensor &scales,
                        const hone_tensor &zeros, int64_t group, bool isSigned) {
  args.weight = static_cast<const char *>(codes.data);
  args.weightStride = codes.strides[0];
  args.scales = static_cast<const char *>(scales.data);
  args.scaleType = scales.dtype;
  args.zeros = isAbsent(zeros) ? nullptr : static_cast<const uint8_t *>(zeros.data);
  args.zeroStride = args.zeros ? zeros.strides[0] : 0;
  args.groups = static_cast<int32_t>(scales.sizes[1]);
  args.groupShift = group == 0 ? 31 : std::countr_zero(static_cast<uint64_t>(group));
  args.isSigned = isSigned;
}

namespace {

template <typename Layout> using Linear = kernels::Call<kernels::Linear, Layout>;

/// What does not depend on how the weight is stored.
template <typename Layout> LinearArguments argumentsOf(const Linear<Layout> &linear) {
  const auto &o = linear.operands;
  LinearArguments args = {};
  args.x = rowsOf(o.x);
  args.rows = countRows(o.x);
  args.inputs = o.x.sizes[o.x.rank - 1];
  args.outputs = o.y.sizes[o.y.rank - 1];
  args.bias = rowsOf(o.bias);
  args.factor = rowsOf(o.factor);
  args.residual = rowsOf(o.residual);
  args.y = rowsOf(o.y);
  args.activation = static_cast<int32_t>(linear.ints.activation);
  return args;
}

/// The indices of a 2:4 weight: the plane of #hone.nm.
void setIndices(LinearArguments &args, const hone_tensor &indices) {
  args.indices = static_cast<const uint8_t *>(indices.data);
  args.indexStride = indices.strides[0];
}

void enqueue(hone_call *call, Format format, const LinearArguments &args) {
  if (args.rows == 0 || args.outputs == 0)
    return;
  (args.rows <= kMaxGemvRows ? runGemv : runGemm)(kernelDevice(call), format, args);
}

void run(hone_call *call, const Linear<kernels::Dense> &linear, Format format) {
  LinearArguments args = argumentsOf(linear);
  RowView rows = rowsOf(*linear.operands.weight);
  args.weight = static_cast<const char *>(linear.operands.weight->data);
  int64_t bytes = bytesOf(rows.dtype);
  bool isCopied = rows.data && args.rows > 0 && (!rows.isVector || rows.count * bytes % 16 != 0);
  if (isCopied) {
    rows = copyRows(kernelDevice(call), rows, args.outputs, rows.dtype);
    args.weight = rows.data;
  }
  args.weightStride = rows.strides[2] * bytes;
  enqueue(call, format, args);
  if (isCopied)
    kernelDevice(call).release(rows.data);
}

void run(hone_call *call, const Linear<kernels::Sparse> &linear, Format format) {
  const auto &planes = kernels::planesOf<kernels::Sparse>(linear.operands.weight);
  LinearArguments args = argumentsOf(linear);
  args.weight = static_cast<const char *>(planes.values.data);
  args.weightStride = planes.values.strides[0] * bytesOf(planes.values.dtype);
  setIndices(args, planes.indices);
  enqueue(call, format, args);
}

/// Of quantized values, with outliers, of 2:4 weights or neither.
template <typename Layout> void run(hone_call *call, const Linear<Layout> &linear, Format format) {
  const auto &planes = kernels::planesOf<Layout>(linear.operands.weight);
  LinearArguments args = argumentsOf(linear);
  setQuantizedWeight(args, planes.codes, planes.scales, planes.zeros, linear.formatInts.group,
                     linear.formatInts.isSigned != 0);
  if constexpr (kernels::kHasOutliers<Layout>)
    args.outliers = {static_cast<const int32_t *>(planes.starts.data),
                     static_cast<const uint16_t *>(planes.columns.data),
                     static_cast<const uint16_t *>(planes.outliers.data)};
  if constexpr (requires { planes.indices; })
    setIndices(args, planes.indices);
  enqueue(call, format, args);
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cuda/linear.def"
#undef HONE_KERNEL

} // namespace hone::cuda
