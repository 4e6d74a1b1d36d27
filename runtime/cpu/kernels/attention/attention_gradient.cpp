// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel of gradients of attention.

#include "../entry.h"

#include "gradient.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cpu/attention_gradient.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
