//===- program.h - what a compiled program and the runtime say to each other ---------------------------------*- C -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `program.so` of an artefact exports `hone_program`, and `hone_signature` (signature.h). Everything that generated code needs from outside
// (runtime services and kernels) is an import: a name and a slot that the loader fills, so that the choice of a kernel
// for the machine's ISA is made once, at load, and generated code resolves no symbol of the host process.
//
//===--------------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_RUNTIME_PROGRAM_H
#define HONE_RUNTIME_PROGRAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HONE_PROGRAM_ABI_VERSION 2u
#define HONE_MAX_RANK 8
/// Elements of an input at most, sizes of 0 counted as 1, so that generated code can multiply sizes of inputs.
#define HONE_MAX_ELEMENTS (INT64_C(1) << 40)

/// Element types as stored in memory. The numbers are part of the ABI and are also written to manifests as the words in
/// the comments. Sub-byte types are stored one element a byte at this interface (sign-extended for i4 and i2).
typedef enum hone_dtype {
  HONE_F32 = 1,   // "f32"
  HONE_F16 = 2,   // "f16"
  HONE_BF16 = 3,  // "bf16"
  HONE_F64 = 4,   // "f64"
  HONE_I8 = 5,    // "i8"
  HONE_I16 = 6,   // "i16"
  HONE_I32 = 7,   // "i32"
  HONE_I64 = 8,   // "i64"
  HONE_U8 = 9,    // "u8"
  HONE_U16 = 10,  // "u16"
  HONE_U32 = 11,  // "u32"
  HONE_U64 = 12,  // "u64"
  HONE_BOOL = 13, // "bool", one byte, 0 or 1
  HONE_F8E4M3FN = 14,
  HONE_F8E4M3FNUZ = 15,
  HONE_F8E5M2 = 16,
  HONE_F8E5M2FNUZ = 17,
  HONE_F8E8M0 = 18,
  HONE_I4 = 19,
  HONE_U4 = 20,
  HONE_C64 = 21,  // "c64", two f32
  HONE_C128 = 22, // "c128", two f64
  HONE_F4E2M1 = 23,
  HONE_I2 = 24,
  HONE_U2 = 25
} hone_dtype;

/// A strided view of memory. Sizes and strides count elements; `data` points at element (0, …, 0).
typedef struct hone_tensor {
  void *data;
  int32_t dtype; // hone_dtype
  int32_t rank;  // 0 … HONE_MAX_RANK
  int64_t sizes[HONE_MAX_RANK];
  int64_t strides[HONE_MAX_RANK];
} hone_tensor;

/// One call of an entry. Generated code reads `inputs` and `weights` directly, by offset: append fields, never reorder.
typedef struct hone_call {
  /// Dense row-major inputs in the order of the manifest; the runtime has checked dtype, rank, fixed sizes and
  /// HONE_MAX_ELEMENTS.
  const hone_tensor *inputs;
  /// First byte of the tensor data of weights.safetensors, aligned to 64 bytes.
  const uint8_t *weights;
  /// Owned by the runtime: session, state, outputs, allocations of this call.
  void *runtime;
} hone_call;

/// An entry point. It does not return when a run-time check fails: it leaves through hone_rt_fail.
typedef void (*hone_entry_fn)(hone_call *call);

typedef struct hone_entry {
  const char *name; // "main": the ONNX signature; "forward": tokens and state
  hone_entry_fn function;
} hone_entry;

/// A kernel: `operands` are inputs then outputs, `ints` and `floats` its attributes, all in the order that
/// include/hone/kernels documents. An absent operand is a tensor without elements.
typedef void (*hone_kernel_fn)(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// The body of a loop over positions begin ≤ i < end, which are independent of all others.
typedef void (*hone_body_fn)(void *captures, int64_t begin, int64_t end);

/// A name and the slot the loader fills with the function of that name.
///
/// Runtime services (C signatures):
///   void *hone_rt_alloc(uint64_t bytes)            64-byte aligned, uninitialised, never null; released at the end of the
///                                                  call at the latest. Inside a parallel region: freed in that region
///   void hone_rt_free(void *)                      null is nothing
///   void hone_rt_arena(hone_call *, int64_t count, const uint64_t *bytes, void **slots)
///                                                  writes `count` pointers to `slots`: memory of that many bytes each,
///                                                  64-byte aligned, uninitialised, disjoint, until the call
///                                                  ends. At most once in a call
///   void hone_rt_parallel(hone_body_fn body, void *captures, int64_t count, int64_t cost)
///                                                  calls `body` for ranges that together are 0 … count, on several
///                                                  threads where `count · cost` operations pay for that; returns when
///                                                  all are done. The body calls no service but hone_rt_alloc,
///                                                  hone_rt_free and hone_rt_fail, and no kernel
///   void *hone_rt_output(hone_call *, int64_t index, int64_t rank, const int64_t *sizes)
///                                                  memory for output `index`, dense row-major, 64-byte aligned, owned by
///                                                  the caller of the entry; called once for every output
///   void hone_rt_fail(const char *message)         ends the current call with an error; does not return. The message is
///                                                  copied. Inside a parallel region it ends this thread's part of it,
///                                                  and the call after the region
///   void hone_rt_fail_with(const char *message, int64_t count, const int64_t *values)
///                                                  the same with `values` in place of the last `count` "{}" of the message
///   void hone_rt_state_append(hone_call *, int64_t slot, const hone_tensor *fresh, hone_tensor *all)
///                                                  appends `fresh` to what the slot holds along its axis; `all` views
///                                                  everything, with any strides, until the call ends. A slot without an
///                                                  axis is replaced by `fresh`
///   void hone_rt_state_view(hone_call *, int64_t slot, hone_tensor *all)
///                                                  what the slot holds, this call's appends so far included
///   void hone_rt_state_update(hone_call *, int64_t slot, hone_tensor *all)
///                                                  the same, dense, of a slot without an axis, in memory that the program may
///                                                  write: what it writes counts, and hone_rt_state_append of it copies nothing.
///                                                  Where the call fails then, later calls that read the slot do
///   int64_t hone_rt_state_length(hone_call *)      positions held before this call, by the longest sequence
///   int64_t hone_rt_state_lag(hone_call *, int64_t sequence)
///                                                  how many fewer `sequence` holds. What is appended to it follows those
///                                                  that it holds, so that as many positions at the end of what a slot
///                                                  holds are none of its own; what is there is finite. 0 for all
///                                                  sequences where the program does not ask
///   int64_t hone_rt_state_padding(hone_call *, int64_t sequence)
///                                                  how many positions, from the left, are padding in `sequence`; they
///                                                  may reach into this call's tokens
///   int64_t hone_rt_logits_to_keep(hone_call *, int64_t fresh)
///                                                  of `fresh` new positions, for how many of the last logits are computed;
///                                                  for all without a session
///   void hone_rt_observe(hone_call *, int64_t site, const hone_tensor *values)
///                                                  shows rows, the last dimension of `values`, to the observer of the
///                                                  call's session; nothing where there is none
/// What a call appends counts once it has succeeded; all slots with an axis grow by the same number of positions. Services
/// that fail end the call as hone_rt_fail does. Every other name is a kernel with the signature hone_kernel_fn.
typedef struct hone_import {
  const char *name;
  void **slot;
} hone_import;

typedef struct hone_program {
  uint32_t abi_version;
  uint32_t import_count;
  const hone_import *imports;
  uint32_t entry_count;
  uint32_t reserved;
  const hone_entry *entries;
} hone_program;

#ifdef __cplusplus
} // extern "C"
#endif

#endif // HONE_RUNTIME_PROGRAM_H
