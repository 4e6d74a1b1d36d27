// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registration, verifiers and effects of the hrt dialect.

#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
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

LogicalResult OutputOp::verify() {
  int64_t dynamic = cast<MemRefType>(getType()).getNumDynamicDims();
  if (static_cast<int64_t>(getSizes().size()) != dynamic)
    return emitOpError() << "expected " << dynamic << " sizes, one a dynamic dimension, but got " << getSizes().size();
  return success();
}

LogicalResult ArenaOp::verify() {
  if (getSlots().size() != getBytes().size()) // arena C1
    return emitOpError() << "expected as many slots as sizes, but got " << getSlots().size() << " and "
                         << getBytes().size();
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

void KernelOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand &operand : getInputsMutable())
    if (isa<MemRefType>(operand.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &operand, SideEffects::DefaultResource::get());
  for (OpOperand &operand : getOutputsMutable())
    if (isa<MemRefType>(operand.get().getType()))
      effects.emplace_back(MemoryEffects::Write::get(), &operand, SideEffects::DefaultResource::get());
}
