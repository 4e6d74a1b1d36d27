// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Indices of 2:4 weights: as #hone.nm stores them, and as metadata of mma.sp (PTX ISA, sparse matrix storage;
// fragments of mma.sp.m16n8k32).
//
// Of every four inputs two are kept, i < j, and 4 bits are their indices: i | j << 2. A word has those of 32 inputs
// of an output, the first in its lowest bits, and rows of indices are whole words. For a product of 16 outputs by 32
// inputs two lanes of each four hold a metadata word each; a constant of the instruction selects which two. The first
// has inputs 0 to 15 of output g in its lower half and of output g + 8 in its upper half, the second inputs 16 to 31,
// with g = lane / 4. Each lane therefore combines halves of both outputs' words, and indices are stored in the
// artefact in their natural order.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_SPARSE_METADATA_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_SPARSE_METADATA_H

#include "../host_device.h"

namespace hone::cuda {

/// The metadata of lane `lane`, from the words of outputs g and g + 8.
HONE_HOST_DEVICE constexpr uint32_t metadataOf(uint32_t above, uint32_t below, int32_t lane) {
  return lane % 2 == 0 ? (above & 0xffff) | below << 16 : above >> 16 | (below & 0xffff0000);
}

/// Selectors of __byte_perm, whose second operand is 0, that expand two kept 16-bit elements to four inputs, two
/// selectors a byte pair. `indices` are the 4 bits; bits above are ignored.
HONE_HOST_DEVICE constexpr uint32_t selectHalves(uint32_t indices) {
  // Bytes 1 and 0, or 3 and 2, instead of 4 and 4.
  return 0x44444444u ^ 0x54u << (indices << 3 & 24) ^ 0x76u << (indices << 1 & 24);
}

/// Likewise for kept bytes `first` and `first` + 1; selector 4 is the value of the pruned ones.
HONE_HOST_DEVICE constexpr uint32_t selectBytes(uint32_t indices, uint32_t first) {
  return 0x4444u ^ (4 ^ first) << (indices << 2 & 12) ^ (5 ^ first) << (indices & 12);
}

/// Eight 4-bit values of which `kept` has the four kept ones, by the indices of both groups of four; the others are
/// `zero`.
HONE_HOST_DEVICE constexpr uint32_t placeNibbles(uint32_t kept, uint32_t indices, uint32_t zero) {
  uint32_t change = (kept & 0xffff) ^ zero * 0x1111u;
  return zero * 0x11111111u ^ (change & 15) << (indices << 2 & 12) ^ (change >> 4 & 15) << (indices & 12) ^
         (change >> 8 & 15) << (16 + (indices >> 2 & 12)) ^ (change >> 12) << (16 + (indices >> 4 & 12));
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_SPARSE_METADATA_H
