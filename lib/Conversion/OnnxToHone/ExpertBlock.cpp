// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone.moe from the layers of its experts.

#include "ExpertBlock.h"

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-raise-mlp";

Value createMoe(OnnxBuilder &onnx, Value x, Value ids, Value weights, const ExpertLayers &layers) {
  auto moe = MoeOp::create(onnx.b, onnx.loc, x, {ids, weights}, layers);
  remarkRaised(onnx.loc, kPass, "Moe") << std::to_string(getLastSize(ids)) << " of "
                                       << std::to_string(moe.getExpertCount()) << " experts a row, "
                                       << stringifyActivation(layers.activation);
  return moe;
}

} // namespace hone::raising
