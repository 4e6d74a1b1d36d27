// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The block of layers that every expert of hone.moe has.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_EXPERTBLOCK_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_EXPERTBLOCK_H

#include "Activation.h"

namespace hone::raising {

/// Creates hone.moe for rows of `x` `[rows, K]`, with experts that `ids` and `weights` `[rows, T]` choose.
Value createMoe(OnnxBuilder &onnx, Value x, Value ids, Value weights, const ExpertLayers &layers);

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_EXPERTBLOCK_H
