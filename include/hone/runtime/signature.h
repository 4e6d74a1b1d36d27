//===- signature.h - what a compiled program relies on -------------------------------------------------------*- C -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The second symbol that `program.so` exports, `hone_signature`. Generated code and kernels check neither what they are called with
// nor the bytes of weights: the loader does, by the manifest, which has to say what the program was compiled for.
//
//===--------------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_RUNTIME_SIGNATURE_H
#define HONE_RUNTIME_SIGNATURE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What elements of a weight have to be that kernels and generated code compute addresses from.
typedef enum hone_address_rule {
  HONE_ADDRESS_STARTS = 1, // i32: the first is 0, none is less than the one before it, and the last is `bound`
  HONE_ADDRESS_BELOW = 2,  // u16: each is less than `bound`
  HONE_ADDRESS_KNOWN =
      3 // any: the compiler knew them, and what they are the program does not ask; `bound` is their CRC-32
} hone_address_rule;

/// Such a weight. The loader checks its elements once.
typedef struct hone_addresses {
  uint64_t offset; // of its first byte in the tensor data of weights.safetensors
  uint64_t bytes;
  int64_t bound;
  uint64_t rule; // hone_address_rule
} hone_addresses;

typedef struct hone_signature {
  /// What the program relies on of the manifest and of the places of weights, a line for each thing (hone/io/signature.h).
  const char *text;
  uint64_t address_count;
  const hone_addresses *addresses;
} hone_signature;

#ifdef __cplusplus
} // extern "C"
#endif

#endif // HONE_RUNTIME_SIGNATURE_H
