// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Indices of 2:4 weights: as #hone.nm lays them out, and as the units for sparse matrices take them (PTX ISA, sections on sparse matrix
// storage and on fragments of mma.sp.m16n8k32).
//
// Of every four inputs two are kept, at places i < j, and 4 bits say which: i | j << 2. A word has those of 32 inputs of an output, the
// first in its lowest bits, and rows of indices are whole words. For a product of 16 outputs by 32 inputs two lanes of each four have
// a word each, which two of them a constant of the instruction says: the first has inputs 0 to 15 of output g in its lower half and of
// output g + 8 in its upper half, the second inputs 16 to 31, with g = lane / 4. So each lane takes a half of both outputs' words, and
// nothing has to be put into another order when weights are written.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_SPARSE_METADATA_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_SPARSE_METADATA_H

#include "../host_device.h"

namespace hone::cuda {

/// The metadata of lane `lane`, by the words of outputs g and g + 8.
HONE_HOST_DEVICE constexpr uint32_t metadataOf(uint32_t above, uint32_t below, int32_t lane) {
  return lane % 2 == 0 ? (above & 0xffff) | below << 16 : above >> 16 | (below & 0xffff0000);
}

/// Which bytes of two kept numbers of 16 bits are the four inputs, two selector bits of a byte each: selectors of __byte_perm, whose
/// second operand is 0. `places` are the 4 bits; those above are not looked at.
HONE_HOST_DEVICE constexpr uint32_t selectHalves(uint32_t places) {
  // Bytes 1 and 0, or 3 and 2, instead of 4 and 4.
  return 0x44444444u ^ 0x54u << (places << 3 & 24) ^ 0x76u << (places << 1 & 24);
}

/// Likewise of kept bytes number `first` and `first` + 1, where the fifth is what the others are.
HONE_HOST_DEVICE constexpr uint32_t selectBytes(uint32_t places, uint32_t first) {
  return 0x4444u ^ (4 ^ first) << (places << 2 & 12) ^ (5 ^ first) << (places & 12);
}

/// Eight levels of 4 bits of which `kept` has the four that are kept, by the places of both groups of four; the others are `zero`.
HONE_HOST_DEVICE constexpr uint32_t placeNibbles(uint32_t kept, uint32_t places, uint32_t zero) {
  uint32_t change = (kept & 0xffff) ^ zero * 0x1111u;
  return zero * 0x11111111u ^ (change & 15) << (places << 2 & 12) ^ (change >> 4 & 15) << (places & 12) ^
         (change >> 8 & 15) << (16 + (places >> 2 & 12)) ^ (change >> 12) << (16 + (places >> 4 & 12));
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_SPARSE_METADATA_H
