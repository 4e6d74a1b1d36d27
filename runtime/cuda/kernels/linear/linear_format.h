// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Formats of weights.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_FORMAT_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_FORMAT_H

#include "gemv.h"

namespace hone::cuda {

/// Floats, or quantized values of so many bits as #hone.affine packs them.
enum class Format { F32, F16, Bf16, Affine8, Affine4, Affine6, Affine5, Affine3, Affine2 };

constexpr bool isQuantized(Format format) { return format >= Format::Affine8; }

class KernelDevice;

/// Layers of up to this many rows run as GEMV, which reads weights once for every 16 rows; larger ones as GEMM.
constexpr int64_t kMaxGemvRows = 32;

/// Sets the weight of a layer; zeros may be absent.
void setQuantizedWeight(LinearArguments &layer, const hone_tensor &codes, const hone_tensor &scales,
                        const hone_tensor &zeros, int64_t group, bool isSigned);

/// The type in which GEMV reads x: f32 where it is split or multiplied by FMA, else the type that tensor cores take.
int32_t inputTypeOf(Format format, int32_t dtype);

/// Whether GEMV multiplies by FMA in f32 instead of on tensor cores, with inputs of inputTypeOf.
constexpr bool usesFma(Format format, int32_t inputType) {
  return format == Format::F32 || (format == Format::F16 && inputType == HONE_F32);
}

/// Inputs of an output that a warp of the tensor-core GEMV reads at once, and those of a wide chunk, which has one
/// scale (device/weights.h).
constexpr int32_t chunkInputs(Format format) {
  return !isQuantized(format) ? 32 : format == Format::Affine4 || format == Format::Affine2 ? 128 : 64;
}
constexpr int32_t wideChunkInputs(Format format) { return format == Format::Affine8 ? 64 : 128; }

/// What planGemv asks for.
constexpr int32_t warpsOfGemv(Format format, const LinearArguments &args) {
  return isQuantized(format) || args.indices != nullptr ? kQuantizedWarps : kDenseWarps;
}

/// Whether quantized weights can be read by wide chunks.
constexpr bool isWide(Format format, const LinearArguments &args) {
  int32_t chunk = wideChunkInputs(format);
  return isQuantized(format) && args.indices == nullptr && (args.groupShift >= 31 || (1 << args.groupShift) >= chunk) &&
         args.inputs % (chunk / 4) == 0 &&
         args.weightStride % (format == Format::Affine5 || format == Format::Affine3   ? 4
                              : format == Format::Affine6 || format == Format::Affine2 ? 8
                                                                                       : 16) ==
             0;
}

/// Enqueues a layer; rows and outputs are at least one.
void runGemv(KernelDevice &device, Format format, LinearArguments layer);
void runGemm(KernelDevice &device, Format format, LinearArguments layer);

/// Enqueues sibling layers, or a gate and an up layer, of up to kMaxGemvRows rows as one launch, for which it completes
/// the arguments. Layers after `count` are zero. False, and nothing enqueued, where they have to be computed one by one:
/// their weights have different strides, the blocks would divide the inputs (planGemvSplitK), or the kernel does not
/// compute the norm of x.
bool runGemvOfLayers(KernelDevice &device, Format format, LinearLayers &layers, int32_t count, bool isGated,
                     const InputNorm &norm);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_FORMAT_H
