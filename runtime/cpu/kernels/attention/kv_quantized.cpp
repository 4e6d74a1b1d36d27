// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attention kernels over integers in blocks.

#include "../entry.h"

#include "kv_blocked_keys.h"
#include "kv_quantized_tiles.h"
#include "run.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cpu/kv_quantized.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
