// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `hrt` dialect: buffers, kernels and state of one call, as the runtime offers them.

#ifndef HONE_DIALECT_HRT_HRTDIALECT_H
#define HONE_DIALECT_HRT_HRTDIALECT_H

#include "hone/Dialect/Hone/HoneInterfaces.h"

#include "hone/Dialect/Hone/HoneTypes.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "hone/Dialect/Hrt/HrtDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "hone/Dialect/Hrt/HrtAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "hone/Dialect/Hrt/HrtTypes.h.inc"

#define GET_OP_CLASSES
#include "hone/Dialect/Hrt/HrtOps.h.inc"

namespace hone::hrt {

/// Attribute of a parameter: where the bytes of each of its planes begin in the tensor data of weights.safetensors.
inline constexpr llvm::StringLiteral kOffsetsAttr = "hrt.offsets";
/// Unit attribute of a function that takes one !hrt.call and is an entry point of the program.
inline constexpr llvm::StringLiteral kEntryAttr = "hrt.entry";

/// The memory space of memrefs on the device; those on the host have none.
mlir::Attribute getDeviceSpace(mlir::MLIRContext *context);

/// Whether `type` is that of a memref on the device.
bool isOnDevice(mlir::Type type);
inline bool isOnDevice(mlir::Value value) { return isOnDevice(value.getType()); }

/// Names of the kernels in the module of the device, in the order of their numbers; none without such a module.
std::vector<std::string> listGeneratedKernels(mlir::Operation *module);

/// How the operations of hrt become operations on memrefs.
void registerBufferizableOpInterfaceExternalModels(mlir::DialectRegistry &registry);

} // namespace hone::hrt

#endif // HONE_DIALECT_HRT_HRTDIALECT_H
