// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations of linalg on the device's memory as kernels and launches. All sizes are computed on the host and given to kernels,
// so that layers of one shape, and often of any, share a kernel.

#include "ThreadNest.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"

namespace hone {
#define GEN_PASS_DEF_CONVERTLINALGTOGPU
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

constexpr llvm::StringLiteral kDeviceModule = "device";

/// The kernels of a program: equal ones are one.
class Kernels {
public:
  explicit Kernels(ModuleOp module) : module(module) {}

  /// The kernel that `kernel`, which nothing refers to yet, is equal to: itself, or an earlier one.
  gpu::GPUFuncOp add(gpu::GPUFuncOp kernel) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    kernel->print(stream, OpPrintingFlags().useLocalScope());
    auto [place, isNew] = known.try_emplace(text, kernel);
    if (!isNew) {
      kernel.erase();
      return place->second;
    }
    kernel.setName("kernel_" + std::to_string(count++));
    return kernel;
  }

  gpu::GPUModuleOp getModule() {
    if (gpuModule)
      return gpuModule;
    OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), b.getUnitAttr());
    return gpuModule = gpu::GPUModuleOp::create(b, module.getLoc(), kDeviceModule);
  }

  int64_t size() const { return count; }

private:
  ModuleOp module;
  gpu::GPUModuleOp gpuModule;
  llvm::StringMap<gpu::GPUFuncOp> known;
  int64_t count = 0;
};

/// One operation as a kernel of what it uses from outside.
class Outliner {
public:
  Outliner(linalg::LinalgOp op, Value call, Kernels &kernels)
      : op(op), call(call), kernels(kernels), plan(ThreadPlan::get(op)), loc(op.getLoc()) {}

  const ThreadPlan &getPlan() const { return plan; }

  void run() {
    OpBuilder b(op);
    for (const Range &range : op.createLoopRanges(b, loc))
      sizeValues.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
    outside = LoopCaptures::get(op, sizeValues);
    Value count = countPositions(b);
    gpu::GPUFuncOp kernel = kernels.add(createKernel());
    Value blockPositions = constant(b, kBlockThreads / (plan.byWarp ? kWarpLanes : 1));
    Value blocks = b.createOrFold<arith::CeilDivUIOp>(loc, count, blockPositions);
    SmallVector<Value> arguments = outside.captures;
    arguments.push_back(count);
    auto symbol = SymbolRefAttr::get(kernels.getModule().getSymNameAttr(), {SymbolRefAttr::get(kernel)});
    hrt::LaunchOp::create(b, loc, symbol, call, blocks, kBlockThreads, arguments);
  }

private:
  Value constant(OpBuilder &b, int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }

  Value countPositions(OpBuilder &b) {
    Value count = constant(b, 1);
    for (unsigned dim : plan.parallel) {
      bool isVector = plan.width > 1 && dim == plan.parallel.back();
      Value size = sizeValues[dim];
      if (isVector)
        size = b.createOrFold<arith::DivUIOp>(loc, size, constant(b, plan.width));
      count = b.createOrFold<arith::MulIOp>(loc, count, size);
    }
    return count;
  }

  gpu::GPUFuncOp createKernel() {
    OpBuilder b = OpBuilder::atBlockEnd(kernels.getModule().getBody());
    SmallVector<Type> types = llvm::to_vector(ValueRange(outside.captures).getTypes());
    types.push_back(b.getIndexType());
    auto kernel = gpu::GPUFuncOp::create(b, loc, "kernel", b.getFunctionType(types, {}));
    kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
    kernel.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({kBlockThreads, 1, 1}));
    Block &block = kernel.getBody().front();
    b.setInsertionPointToStart(&block);
    IRMapping values = outside.map(b, block.getArguments().drop_back());
    buildGuarded(b, values, block.getArguments().back());
    gpu::ReturnOp::create(b, loc);
    return kernel;
  }

  void buildGuarded(OpBuilder &b, IRMapping &values, Value count) {
    Value block = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
    Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    Value lane, position = thread;
    int64_t positions = kBlockThreads;
    if (plan.byWarp) {
      Value lanes = constant(b, kWarpLanes);
      lane = arith::RemUIOp::create(b, loc, thread, lanes);
      position = arith::DivUIOp::create(b, loc, thread, lanes);
      positions /= kWarpLanes;
    }
    Value first = arith::MulIOp::create(b, loc, block, constant(b, positions));
    position = arith::AddIOp::create(b, loc, first, position);
    auto sizes = llvm::map_to_vector(sizeValues, [&](Value size) { return values.lookup(size); });
    Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, position, count);
    auto guard = scf::IfOp::create(b, loc, isInside);
    OpBuilder::InsertionGuard keep(b);
    b.setInsertionPointToStart(guard.thenBlock());
    ThreadNest(op, plan, sizes, values).build(b, loc, position, lane);
  }

  linalg::LinalgOp op;
  Value call;
  Kernels &kernels;
  ThreadPlan plan;
  Location loc;
  SmallVector<Value> sizeValues;
  LoopCaptures outside;
};

/// Memory of the device is allocated, freed and copied by the runtime.
void lowerMemory(Operation *op, Value call) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
    if (!hrt::isOnDevice(alloc))
      return;
    alloc.replaceAllUsesWith(hrt::AllocOp::create(b, loc, alloc.getType(), call, alloc.getDynamicSizes()).getResult());
  } else if (auto dealloc = dyn_cast<memref::DeallocOp>(op)) {
    if (!hrt::isOnDevice(dealloc.getMemref()))
      return;
    hrt::FreeOp::create(b, loc, call, dealloc.getMemref());
  } else if (auto copy = dyn_cast<memref::CopyOp>(op)) {
    if (!hrt::isOnDevice(copy.getSource()))
      return;
    hrt::CopyOp::create(b, loc, TypeRange(), call, copy.getSource(), copy.getTarget());
  } else {
    return;
  }
  op->erase();
}

struct ConvertLinalgToGpu : impl::ConvertLinalgToGpuBase<ConvertLinalgToGpu> {
  void runOnOperation() override {
    Kernels kernels(getOperation());
    for (auto entry : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!entry->hasAttr(hrt::kEntryAttr))
        continue;
      SmallVector<linalg::LinalgOp> ops;
      Value call = entry.getArgument(0);
      entry.walk([&](Operation *op) { lowerMemory(op, call); });
      entry.walk([&](linalg::LinalgOp op) {
        if (op.hasPureBufferSemantics() && hrt::isOnDevice(op.getDpsInits().front()))
          ops.push_back(op);
      });
      for (linalg::LinalgOp op : ops)
        lower(op, call, kernels);
    }
    numKernels += kernels.size();
  }

private:
  void lower(linalg::LinalgOp op, Value call, Kernels &kernels) {
    Outliner outliner(op, call, kernels);
    const ThreadPlan &plan = outliner.getPlan();
    outliner.run();
    ++numLaunches;
    numVectorized += plan.width > 1;
    numWarps += plan.byWarp;
    std::string how = plan.byWarp ? "a warp a position" : std::to_string(plan.width) + " elements a thread";
    remark::passed(op->getLoc(), remark::RemarkOpts::name("Kernel").category("hone-convert-linalg-to-gpu"))
        << (op->getName().getStringRef() + " runs on the device, " + how).str();
    op->erase();
  }
};

} // namespace
} // namespace hone
