// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention whose products may be rounded.

#ifndef HONE_LIB_TRANSFORMS_WEIGHTS_ROUNDPRODUCTS_H
#define HONE_LIB_TRANSFORMS_WEIGHTS_ROUNDPRODUCTS_H

#include "hone/Dialect/Hone/HoneOps.h"

namespace hone {

/// Lets an attention multiply in bf16, or returns false where a query, key or value is none that is computed in f32: kernels round those of a
/// state by its type.
bool roundAttention(AttentionOp op);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_WEIGHTS_ROUNDPRODUCTS_H
