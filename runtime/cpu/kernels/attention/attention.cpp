// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attention kernels over floats, in rows and in blocks.

#include "../kernels.h"

#include "kv_blocked_keys.h"
#include "paired_keys.h"
#include "run.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {

void attentionF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats) {
  runAttention<RowKeys<F32Cache>>(operands, ints, floats);
}

void attentionPairsF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats) {
  runAttention<PairedKeys>(operands, ints, floats);
}

void attentionF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats) {
  runAttention<RowKeys<F16Cache>>(operands, ints, floats);
}

void attentionBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats) {
  runAttention<RowKeys<Bf16Cache>>(operands, ints, floats);
}

void attentionBlocksF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats) {
  runAttention<BlockedKeys<F32Cache>>(operands, ints, floats);
}

void attentionBlocksF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats) {
  runAttention<BlockedKeys<F16Cache>>(operands, ints, floats);
}

void attentionBlocksBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats) {
  runAttention<BlockedKeys<Bf16Cache>>(operands, ints, floats);
}

} // namespace hone::cpu::HONE_ISA_NAMESPACE
