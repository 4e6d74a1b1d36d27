// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attention kernels over integers in blocks.

#include "../kernels.h"

#include "kv_blocked_keys.h"
#include "kv_quantized_tiles.h"
#include "run.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {

void attentionBlocksI8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats) {
  runAttention<BlockedKeys<I8Cache>>(operands, ints, floats);
}

void attentionBlocksU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats) {
  runAttention<BlockedKeys<U4Cache>>(operands, ints, floats);
}

} // namespace hone::cpu::HONE_ISA_NAMESPACE
