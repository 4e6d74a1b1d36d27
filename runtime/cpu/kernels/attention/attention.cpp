// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attention kernels over floats, in rows and in blocks.

#include "../entry.h"

#include "kv_blocked_keys.h"
#include "paired_keys.h"
#include "run.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cpu/attention.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
