// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers: operands to arguments.

#include "../copy_rows.h"
#include "../kernel_device.h"
#include "../kernels.h"
#include "linear_format.h"

#include <bit>

namespace hone::cuda {
namespace {

LinearArguments argumentsOf(const hone_tensor &x, const hone_tensor &weight, const hone_tensor *rest,
                            int32_t activation) {
  LinearArguments args = {};
  args.x = rowsOf(x);
  args.rows = countRows(x);
  args.inputs = x.sizes[x.rank - 1];
  args.weight = static_cast<const char *>(weight.data);
  const hone_tensor &y = rest[3];
  args.outputs = y.sizes[y.rank - 1];
  args.bias = rowsOf(rest[0]);
  args.factor = rowsOf(rest[1]);
  args.residual = rowsOf(rest[2]);
  args.y = rowsOf(y);
  args.activation = activation;
  return args;
}

void run(hone_call *call, Format format, const LinearArguments &args) {
  if (args.rows == 0 || args.outputs == 0)
    return;
  (args.rows <= kFewRows ? runFewRows : runManyRows)(kernelDevice(call), format, args);
}

void runPlain(hone_call *call, Format format, const hone_tensor *operands, const int64_t *ints) {
  const hone_tensor &weight = operands[1];
  LinearArguments args = argumentsOf(operands[0], weight, operands + 2, static_cast<int32_t>(ints[0]));
  RowView rows = rowsOf(weight);
  int64_t bytes = bytesOf(rows.dtype);
  bool isCopied = rows.data && args.rows > 0 && (!rows.isVector || rows.count * bytes % 16 != 0);
  if (isCopied) {
    rows = copyRows(kernelDevice(call), rows, args.outputs, rows.dtype);
    args.weight = rows.data;
  }
  args.weightStride = rows.strides[2] * bytes;
  run(call, format, args);
  if (isCopied)
    kernelDevice(call).release(rows.data);
}

/// `weight`: levels, scales, zeros or absent, and then the rest; `ints`: activation, group and whether levels are signed.
void runLevels(hone_call *call, Format format, const hone_tensor &x, const hone_tensor *weight,
               const Outliers &outliers, const int64_t *ints) {
  LinearArguments args = argumentsOf(x, weight[0], weight + 3, static_cast<int32_t>(ints[0]));
  setLevels(args, weight, ints + 1);
  args.outliers = outliers;
  run(call, format, args);
}

Outliers outliersOf(const hone_tensor *planes) {
  return {static_cast<const int32_t *>(planes[0].data), static_cast<const uint16_t *>(planes[1].data),
          static_cast<const uint16_t *>(planes[2].data)};
}

} // namespace

void setLevels(LinearArguments &args, const hone_tensor *planes, const int64_t *ints) {
  const hone_tensor &weight = planes[0], &scales = planes[1], &zeros = planes[2];
  args.weight = static_cast<const char *>(weight.data);
  args.weightStride = weight.strides[0];
  args.scales = static_cast<const char *>(scales.data);
  args.scaleType = scales.dtype;
  args.zeros = isAbsent(zeros) ? nullptr : static_cast<const uint8_t *>(zeros.data);
  args.zeroStride = args.zeros ? zeros.strides[0] : 0;
  args.groups = static_cast<int32_t>(scales.sizes[1]);
  args.groupShift = ints[0] == 0 ? 31 : std::countr_zero(static_cast<uint64_t>(ints[0]));
  args.isSigned = static_cast<int32_t>(ints[1]);
}

void linearF32(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runPlain(call, Format::F32, operands, ints);
}
void linearF16(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runPlain(call, Format::F16, operands, ints);
}
void linearBf16(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runPlain(call, Format::Bf16, operands, ints);
}
void linearAffine8(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runLevels(call, Format::Affine8, operands[0], operands + 1, {}, ints);
}
void linearAffine4(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runLevels(call, Format::Affine4, operands[0], operands + 1, {}, ints);
}
void linearAffine3(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runLevels(call, Format::Affine3, operands[0], operands + 1, {}, ints);
}
void linearAffine2(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runLevels(call, Format::Affine2, operands[0], operands + 1, {}, ints);
}
void linearOutliersAffine8(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runLevels(call, Format::Affine8, operands[0], operands + 4, outliersOf(operands + 1), ints);
}
void linearOutliersAffine4(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runLevels(call, Format::Affine4, operands[0], operands + 4, outliersOf(operands + 1), ints);
}
void linearOutliersAffine3(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runLevels(call, Format::Affine3, operands[0], operands + 4, outliersOf(operands + 1), ints);
}
void linearOutliersAffine2(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runLevels(call, Format::Affine2, operands[0], operands + 4, outliersOf(operands + 1), ints);
}

} // namespace hone::cuda
