// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Formats of weights.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_FORMAT_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_FORMAT_H

#include "linear_arguments.h"

namespace hone::cuda {

/// Numbers, or levels of so many bits as #hone.affine lays them out.
enum class Format { F32, F16, Bf16, Affine8, Affine4, Affine3, Affine2 };

constexpr bool hasLevels(Format format) { return format >= Format::Affine8; }

class KernelDevice;

/// Layers of up to this many rows read weights once for every 16 rows; those of more multiply tiles, and memory waits for them.
constexpr int64_t kFewRows = 32;

/// What the layer multiplies with: `rest` are scales and zeros or absent, `ints` the group and whether levels are
/// signed.
void setLevels(LinearArguments &layer, const hone_tensor &weight, const hone_tensor *rest, const int64_t *ints);

/// What x is multiplied as in layers of few rows: f32 where it is split or products are exact, else the type that matrix units
/// take.
int32_t inputTypeOf(Format format, int32_t dtype);

/// Whether layers of few rows multiply in f32 and not in matrix units, with inputs of inputTypeOf.
constexpr bool isExact(Format format, int32_t inputType) {
  return format == Format::F32 || (format == Format::F16 && inputType == HONE_F32);
}

/// Inputs that a warp reads at once of an output in matrix units.
constexpr int32_t chunkInputs(Format format) {
  return !hasLevels(format) ? 32 : format == Format::Affine8 || format == Format::Affine3 ? 64 : 128;
}

/// Enqueues a layer; rows and outputs are at least one.
void runFewRows(KernelDevice &device, Format format, LinearArguments layer);
void runManyRows(KernelDevice &device, Format format, LinearArguments layer);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_FORMAT_H
