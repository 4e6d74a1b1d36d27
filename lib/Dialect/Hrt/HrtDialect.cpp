// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registration, verifiers and effects of the hrt dialect.

#include "hone/Dialect/Hrt/HrtDialect.h"

#include "hone/kernels/descriptions.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hone::hrt;

#include "hone/Dialect/Hrt/HrtDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "hone/Dialect/Hrt/HrtAttributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "hone/Dialect/Hrt/HrtTypes.cpp.inc"

#define GET_OP_CLASSES
#include "hone/Dialect/Hrt/HrtOps.cpp.inc"

void HrtDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "hone/Dialect/Hrt/HrtAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "hone/Dialect/Hrt/HrtTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "hone/Dialect/Hrt/HrtOps.cpp.inc"
      >();
}

/// One size a dynamic dimension of the memory that `op` asks for.
template <typename Op> static LogicalResult verifySizes(Op op) {
  int64_t dynamic = cast<MemRefType>(op.getType()).getNumDynamicDims();
  if (static_cast<int64_t>(op.getSizes().size()) != dynamic)
    return op.emitOpError() << "expected " << dynamic << " sizes, one a dynamic dimension, but got "
                            << op.getSizes().size();
  return success();
}

LogicalResult OutputOp::verify() { return verifySizes(*this); }

LogicalResult StateExtendOp::verify() { return verifySizes(*this); }

LogicalResult ArenaOp::verify() {
  if (getSlots().size() != getBytes().size()) // arena C1
    return emitOpError() << "expected as many slots as sizes, but got " << getSlots().size() << " and "
                         << getBytes().size();
  for (Value slot : getSlots())
    if (isOnDevice(slot) != isOnDevice(getSlots().front())) // arena C2
      return emitOpError() << "expected all slots to be in one memory, but got " << getSlots().getTypes();
  return success();
}

LogicalResult CheckOp::verify() {
  if (getMessage().count("{}") < getValues().size()) // check C1
    return emitOpError() << "expected the message to have " << getValues().size() << " places for values, but got "
                         << getMessage().count("{}");
  return success();
}

LogicalResult CheckOp::canonicalize(CheckOp op, PatternRewriter &rewriter) {
  if (!matchPattern(op.getCondition(), m_One()))
    return rewriter.notifyMatchFailure(op, "the condition is not known to hold");
  rewriter.eraseOp(op);
  return success();
}

LogicalResult ParallelOp::verifySymbolUses(SymbolTableCollection &symbols) {
  SmallVector<Type> operands(2, IndexType::get(getContext()));
  llvm::append_range(operands, getCaptures().getTypes());
  auto wanted = FunctionType::get(getContext(), operands, {});
  auto body = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getBodyAttr());
  if (!body || body.getFunctionType() != wanted) // parallel C1
    return emitOpError() << "expected '" << getBody() << "' to be a function " << wanted;
  return success();
}

bool KernelOp::accumulates() {
  const kernels::KernelInfo *info = kernels::findKernelInfo(getName().str());
  return info && kernels::accumulates(*info, std::span(getInts().data(), getInts().size()));
}

void KernelOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand &operand : getInputsMutable())
    if (isa<MemRefType>(operand.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &operand, SideEffects::DefaultResource::get());
  for (OpOperand &operand : getOutputsMutable())
    if (isa<MemRefType>(operand.get().getType())) {
      if (accumulates())
        effects.emplace_back(MemoryEffects::Read::get(), &operand, SideEffects::DefaultResource::get());
      effects.emplace_back(MemoryEffects::Write::get(), &operand, SideEffects::DefaultResource::get());
    }
}

template <typename Op>
static void getTransferEffects(Op op, SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  OpOperand &source = op.getSourceMutable(), &target = op.getTargetMutable();
  if (isa<MemRefType>(source.get().getType()))
    effects.emplace_back(MemoryEffects::Read::get(), &source, SideEffects::DefaultResource::get());
  if (isa<MemRefType>(target.get().getType()))
    effects.emplace_back(MemoryEffects::Write::get(), &target, SideEffects::DefaultResource::get());
}

void FetchOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  getTransferEffects(*this, effects);
}

void UploadOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  getTransferEffects(*this, effects);
}

void CopyOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  getTransferEffects(*this, effects);
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getKernelAttr());
  bool isGenerated =
      kernel && isa<gpu::GPUFuncOp>(kernel.getOperation()); // later it is a function of LLVM, which takes other types
  if (!kernel || (isGenerated && !llvm::equal(kernel.getArgumentTypes(), getArguments().getTypes()))) // launch C1
    return emitOpError() << "expected " << getKernel() << " to be a kernel that takes " << getArguments().getTypes();
  return success();
}

Attribute hone::hrt::getDeviceSpace(MLIRContext *context) {
  return gpu::AddressSpaceAttr::get(context, gpu::AddressSpace::Global);
}

bool hone::hrt::isOnDevice(Type type) {
  auto memref = dyn_cast<BaseMemRefType>(type);
  auto space = memref ? dyn_cast_or_null<gpu::AddressSpaceAttr>(memref.getMemorySpace()) : gpu::AddressSpaceAttr();
  return space && space.getValue() == gpu::AddressSpace::Global;
}

std::vector<std::string> hone::hrt::listGeneratedKernels(Operation *module) {
  std::vector<std::string> names;
  for (auto device : module->getRegion(0).getOps<gpu::GPUModuleOp>())
    for (auto function : device.getOps<FunctionOpInterface>())
      if (!function.isExternal() && function.isPublic())
        names.push_back(function.getName().str());
  return names;
}
