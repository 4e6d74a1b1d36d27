// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-round-products: products of f32 that may be computed in bf16.

#include "RoundProducts.h"

#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"

#include "llvm/ADT/TypeSwitch.h"

namespace hone {
#define GEN_PASS_DEF_ROUNDPRODUCTS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

bool roundAttention(AttentionOp op) {
  auto isComputed = [](TypedValue<RankedTensorType> value) {
    return value.getType().getElementType().isF32() && !value.getType().getEncoding() &&
           !value.getDefiningOp<KvAppendOp>() && !value.getDefiningOp<KvViewOp>();
  };
  if (!isComputed(op.getQuery()) || !isComputed(op.getKey()) || !isComputed(op.getValue()))
    return false;
  op.setBf16Products(true);
  return true;
}

/// Whether a weight is f32, transposed or not.
static bool isStoredAsF32(RankedTensorType type) {
  auto stored = dyn_cast_or_null<StoredAttr>(type.getEncoding());
  return type.getElementType().isF32() && (!type.getEncoding() || (stored && stored.getType().isF32()));
}

namespace {
struct RoundProducts : impl::RoundProductsBase<RoundProducts> {
  using RoundProductsBase::RoundProductsBase;
  void runOnOperation() override;
};
} // namespace

void RoundProducts::runOnOperation() {
  int64_t count = 0;
  getOperation().walk([&](Operation *op) {
    bool isRounded = TypeSwitch<Operation *, bool>(op)
                         .Case([](AttentionOp attention) { return roundAttention(attention); })
                         .Case([](AttentionGradientOp gradient) {
                           gradient.setBf16Products(true);
                           return true;
                         })
                         .Case([](LinearOp linear) {
                           linear.setBf16Products(isStoredAsF32(linear.getWeight().getType()));
                           return linear.getBf16Products();
                         })
                         .Case([](MatmulOp product) {
                           product.setBf16Products(product.getType().getElementType().isF32());
                           return product.getBf16Products();
                         })
                         .Default(false);
    count += isRounded;
  });
  numRounded += count;
  if (count > 0)
    remark::passed(getOperation().getLoc(), remark::RemarkOpts::name("Rounded").category("hone-round-products"))
        << (Twine(count) + " products may multiply in bf16").str();
}

} // namespace hone
