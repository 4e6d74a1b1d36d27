// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations of linalg on buffers as loops, in functions of their own where several threads may run them.

#include "LoopNest.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"

namespace hone {
#define GEN_PASS_DEF_LOWERLINALG
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Work, in operations on scalars, that is known to be too little for a function of its own.
constexpr int64_t kSmallWork = 4096;

bool isSmall(linalg::LinalgOp op) {
  int64_t work = estimateCost(op);
  for (int64_t size : op.getStaticLoopRanges()) {
    if (ShapedType::isDynamic(size) || llvm::MulOverflow(work, size, work))
      return false;
  }
  return work <= kSmallWork;
}

/// The loops of one operation in a function `(begin, end, captures...)` over its parallel positions.
class Outliner {
public:
  Outliner(linalg::LinalgOp op, SymbolTable &symbols)
      : op(op), symbols(symbols), order(LoopOrder::get(op)), loc(op.getLoc()) {}

  void run(ArrayRef<OpFoldResult> sizes) {
    OpBuilder b(op);
    sizeValues =
        llvm::map_to_vector(sizes, [&](OpFoldResult size) { return getValueOrCreateConstantIndexOp(b, loc, size); });
    outside = LoopCaptures::get(op, sizeValues);
    func::FuncOp body = createBody();
    SmallVector<unsigned> parallel = order.outer;
    if (order.inner)
      parallel.push_back(*order.inner);
    Value iteration = arith::ConstantIndexOp::create(b, loc, estimateCost(op));
    hrt::ParallelOp::create(b, loc, body.getSymName(), multiply(b, Value(), parallel),
                            multiply(b, iteration, order.reductions), outside.captures);
  }

private:
  Value multiply(OpBuilder &b, Value product, ArrayRef<unsigned> dims) {
    for (unsigned dim : dims)
      product = product ? b.createOrFold<arith::MulIOp>(loc, product, sizeValues[dim]) : sizeValues[dim];
    return product ? product : arith::ConstantIndexOp::create(b, loc, 1);
  }

  func::FuncOp createBody() {
    OpBuilder b(op.getContext());
    SmallVector<Type> types(2, b.getIndexType());
    llvm::append_range(types, ValueRange(outside.captures).getTypes());
    std::string name = (op->getParentOfType<func::FuncOp>().getSymName() + ".loop").str();
    auto body = func::FuncOp::create(loc, name, b.getFunctionType(types, {}));
    body.setPrivate();
    body->setAttr("llvm.linkage", LLVM::LinkageAttr::get(b.getContext(), LLVM::Linkage::Internal));
    symbols.insert(body);
    Block *block = body.addEntryBlock();
    b.setInsertionPointToStart(block);
    IRMapping values = outside.map(b, block->getArguments().drop_front(2));
    auto sizes = llvm::map_to_vector(sizeValues, [&](Value size) { return values.lookup(size); });
    LoopNest(op, order, sizes, values).buildRange(b, loc, block->getArgument(0), block->getArgument(1));
    func::ReturnOp::create(b, loc);
    return body;
  }

  linalg::LinalgOp op;
  SymbolTable &symbols;
  LoopOrder order;
  Location loc;
  SmallVector<Value> sizeValues;
  LoopCaptures outside;
};

struct LowerLinalg : impl::LowerLinalgBase<LowerLinalg> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (op.hasPureBufferSemantics())
        ops.push_back(op);
    });
    for (linalg::LinalgOp op : ops) {
      op = collapseLoops(op);
      lower(op, symbols);
      op.erase();
      ++numLowered;
    }
  }

private:
  void lower(linalg::LinalgOp op, SymbolTable &symbols) {
    OpBuilder b(op);
    auto sizes =
        llvm::map_to_vector(op.createLoopRanges(b, op.getLoc()), [](const Range &range) { return range.size; });
    StringRef blocker = !isParallel(op) ? "its iterations depend on each other or may fail"
                        : isSmall(op)   ? "it is small"
                                        : "";
    auto options = remark::RemarkOpts::name("Parallel").category("hone-lower-linalg");
    if (blocker.empty()) {
      Outliner(op, symbols).run(sizes);
      ++numParallel;
      remark::passed(op.getLoc(), options) << (op->getName().getStringRef() + " may run on several threads").str();
      return;
    }
    remark::missed(op.getLoc(), options) << (op->getName().getStringRef() + " runs on one thread: " + blocker).str();
    auto values = llvm::map_to_vector(
        sizes, [&](OpFoldResult size) { return getValueOrCreateConstantIndexOp(b, op.getLoc(), size); });
    LoopNest(op, LoopOrder::get(op), values, IRMapping()).buildAll(b, op.getLoc());
  }
};

} // namespace
} // namespace hone
