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
  (args.rows <= kMaxGemvRows ? runGemv : runGemm)(kernelDevice(call), format, args);
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

/// The indices of a 2:4 weight: the plane of #hone.nm.
void setIndices(LinearArguments &args, const hone_tensor &indices) {
  args.indices = static_cast<const uint8_t *>(indices.data);
  args.indexStride = indices.strides[0];
}

void runSparse(hone_call *call, Format format, const hone_tensor *operands, const int64_t *ints) {
  LinearArguments args = argumentsOf(operands[0], operands[1], operands + 3, static_cast<int32_t>(ints[0]));
  args.weightStride = operands[1].strides[0] * bytesOf(operands[1].dtype);
  setIndices(args, operands[2]);
  run(call, format, args);
}

/// `rest`: scales, zeros or absent, and what all layers have; `ints`: activation, group size, whether quantized
/// values are signed.
LinearArguments quantizedArgumentsOf(const hone_tensor &x, const hone_tensor &weight, const hone_tensor *rest,
                                     const int64_t *ints) {
  LinearArguments args = argumentsOf(x, weight, rest + 2, static_cast<int32_t>(ints[0]));
  setQuantizedWeight(args, weight, rest, ints + 1);
  return args;
}

void runQuantized(hone_call *call, Format format, const hone_tensor *operands, const int64_t *ints) {
  run(call, format, quantizedArgumentsOf(operands[0], operands[1], operands + 2, ints));
}

void runSparseQuantized(hone_call *call, Format format, const hone_tensor *operands, const int64_t *ints) {
  LinearArguments args = quantizedArgumentsOf(operands[0], operands[1], operands + 3, ints);
  setIndices(args, operands[2]);
  run(call, format, args);
}

void runOutliers(hone_call *call, Format format, const hone_tensor *operands, const int64_t *ints) {
  LinearArguments args = quantizedArgumentsOf(operands[0], operands[4], operands + 5, ints);
  args.outliers = {static_cast<const int32_t *>(operands[1].data), static_cast<const uint16_t *>(operands[2].data),
                   static_cast<const uint16_t *>(operands[3].data)};
  run(call, format, args);
}

} // namespace

void setQuantizedWeight(LinearArguments &args, const hone_tensor &weight, const hone_tensor *rest,
                        const int64_t *ints) {
  const hone_tensor &scales = rest[0], &zeros = rest[1];
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
  runQuantized(call, Format::Affine8, operands, ints);
}
void linearAffine4(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantized(call, Format::Affine4, operands, ints);
}
void linearAffine3(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantized(call, Format::Affine3, operands, ints);
}
void linearAffine2(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantized(call, Format::Affine2, operands, ints);
}
void linearOutliersAffine8(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runOutliers(call, Format::Affine8, operands, ints);
}
void linearOutliersAffine4(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runOutliers(call, Format::Affine4, operands, ints);
}
void linearOutliersAffine3(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runOutliers(call, Format::Affine3, operands, ints);
}
void linearOutliersAffine2(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runOutliers(call, Format::Affine2, operands, ints);
}
void sparseLinearF32(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runSparse(call, Format::F32, operands, ints);
}
void sparseLinearF16(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runSparse(call, Format::F16, operands, ints);
}
void sparseLinearBf16(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runSparse(call, Format::Bf16, operands, ints);
}
void sparseLinearAffine8(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runSparseQuantized(call, Format::Affine8, operands, ints);
}
void sparseLinearAffine4(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runSparseQuantized(call, Format::Affine4, operands, ints);
}

} // namespace hone::cuda
