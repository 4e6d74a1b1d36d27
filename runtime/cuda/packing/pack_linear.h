// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights of linear layers as device kernels read them: rows of outputs, inputs in the order in which lanes multiply them.
// Host code without CUDA: the compiler calls it when it writes an artefact.
//
//   f32, f16, bf16   [output][input]           inputs filled up with zeros to multiples of 16 bytes
//   levels           [output][chunk][64 bytes] a chunk is 64 inputs of u8 or 128 of u4; the last one is filled up
//   scales, zeros    [output][group]           as many groups as whole chunks have; filled up with 0
//
// Four lanes read the 64 bytes of a chunk, 16 each. For every 32 inputs lane t holds inputs 8t … 8t + 7, in two words of u8 or in
// one of u4, so that a product of matrix units has inputs of one group alone. In a word of u4, input 2i is in the bits from
// 4i on and input 2i + 1 sixteen bits above it: a shift and a mask give a pair.

#ifndef HONE_RUNTIME_CUDA_PACKING_PACK_LINEAR_H
#define HONE_RUNTIME_CUDA_PACKING_PACK_LINEAR_H

#include <cstdint>
#include <span>

namespace hone::cuda {

/// Inputs of a plain weight whose elements have `elementBytes` bytes, those included that are zero to fill up 16 bytes.
constexpr int64_t paddedInputs(int64_t inputs, int64_t elementBytes) {
  int64_t unit = 16 / elementBytes;
  return (inputs + unit - 1) / unit * unit;
}

/// Levels of `bits` bits, 8 or 4, of a layer [outputs, inputs]; `group` inputs share a scale: 32, 64 or 128, or 0 for one scale an
/// output.
struct LevelShape {
  int32_t bits;
  int64_t outputs, inputs, group = 0;

  constexpr int64_t chunkInputs() const { return bits == 4 ? 128 : 64; }
  constexpr int64_t chunks() const { return (inputs + chunkInputs() - 1) / chunkInputs(); }
  /// Scales of an output as they are packed.
  constexpr int64_t groups() const { return group == 0 ? 1 : (chunks() * chunkInputs() + group - 1) / group; }
  /// Scales of an output before packing.
  constexpr int64_t givenGroups() const { return group == 0 ? 1 : (inputs + group - 1) / group; }
  constexpr int64_t bytes() const { return outputs * chunks() * 64; }
};

/// Where level (output, input) lies: its byte, and in it the bits from `shift` on.
struct LevelPlace {
  int64_t byte;
  int32_t shift;
};
LevelPlace placeOf(const LevelShape &shape, int64_t output, int64_t input);

/// Packs levels of one byte each, level (n, k) at n · outputStride + k · inputStride. `packed` holds shape.bytes().
void packLevels(const LevelShape &shape, const uint8_t *levels, int64_t outputStride, int64_t inputStride,
                std::span<uint8_t> packed);

/// Packs one value of `elementBytes` for each output and group, [outputs, givenGroups()], into [outputs, groups()].
void packGroups(const LevelShape &shape, int64_t elementBytes, const void *values, std::span<uint8_t> packed);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_PACKING_PACK_LINEAR_H
