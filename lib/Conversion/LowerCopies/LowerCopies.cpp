// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies between strided buffers as loops.

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace hone {
#define GEN_PASS_DEF_LOWERCOPIES
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

struct LowerCopies : impl::LowerCopiesBase<LowerCopies> {
  void runOnOperation() override {
    getOperation()->walk([&](memref::CopyOp copy) {
      if (isContiguous(copy.getSource()) && isContiguous(copy.getTarget()))
        return;
      OpBuilder builder(copy);
      linalg::makeMemRefCopyOp(builder, copy.getLoc(), copy.getSource(), copy.getTarget());
      copy.erase();
      ++numLowered;
    });
  }

  static bool isContiguous(Value buffer) {
    auto type = dyn_cast<MemRefType>(buffer.getType());
    return !type || type.getLayout().isIdentity();
  }
};

} // namespace
} // namespace hone
