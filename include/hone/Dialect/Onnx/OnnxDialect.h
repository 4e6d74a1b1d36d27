// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `onnx` dialect: what an ONNX file says, losslessly. It is dynamic: its operations come from the schema registry of
// libonnx at start-up, and a schema is each operation's verifier.

#ifndef HONE_DIALECT_ONNX_ONNXDIALECT_H
#define HONE_DIALECT_ONNX_ONNXDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/ExtensibleDialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "hone/Dialect/Onnx/OnnxDialect.h.inc"

#define GET_OP_CLASSES
#include "hone/Dialect/Onnx/OnnxOps.h.inc"

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace onnx {
class OpSchema;
} // namespace onnx

namespace hone::onnxir {

/// Namespace of the dialect. `onnx.Add` is Add of the default domain, `onnx.com.microsoft.MoE` is MoE of com.microsoft.
inline constexpr llvm::StringLiteral kDialectName = "onnx";
/// Module attribute: dictionary from domain to opset version.
inline constexpr llvm::StringLiteral kOpsetsAttr = "onnx.opsets";
/// Module attribute: version of the ONNX IR that the file was written in (i64).
inline constexpr llvm::StringLiteral kIrVersionAttr = "onnx.ir_version";
/// The default domain's name in that dictionary; everywhere else it is "".
inline constexpr llvm::StringLiteral kDefaultDomain = "ai.onnx";
/// Function argument and result attributes: the name in the ONNX graph, and the names of symbolic dimensions as an array
/// of strings ("" where a dimension is fixed or unnamed).
inline constexpr llvm::StringLiteral kNameAttr = "onnx.name";
inline constexpr llvm::StringLiteral kDimsAttr = "onnx.dims";
/// Function argument and result attribute: the type in the ONNX graph, with the sign of its integers (TypeAttr).
inline constexpr llvm::StringLiteral kSourceTypeAttr = "onnx.type";
/// Operation attribute: names of the subgraph attributes that became the operation's regions, in order.
inline constexpr llvm::StringLiteral kRegionsAttr = "onnx.regions";

/// Adds the schemas of the com.microsoft operators that exporters emit to libonnx's registry; once a process.
void registerMicrosoftSchemas();

/// Registers the `onnx` dialect: every operator of the schema registry.
void registerDialect(mlir::DialectRegistry &registry);

bool isOnnxOp(mlir::Operation *op);

/// Whether `op`, which may be null, is an operator of that name, in any domain.
bool isNode(mlir::Operation *op, llvm::StringRef opType);

/// The operator's name without the domain ("GroupQueryAttention") and its domain ("com.microsoft", "" for the default).
llvm::StringRef getOpType(mlir::Operation *op);
llvm::StringRef getDomain(mlir::Operation *op);

/// Name of the MLIR operation for an operator of a domain.
std::string getOperationName(llvm::StringRef domain, llvm::StringRef opType);

/// Opset version that the enclosing module imports for `domain`; 0 if it imports none.
int64_t getOpsetVersion(mlir::Operation *op, llvm::StringRef domain);

/// Schema of `op` at the opset of its module, or null.
const ::onnx::OpSchema *getSchema(mlir::Operation *op);

/// The subgraph that is the attribute `name` of an operator, or null.
mlir::Region *getSubgraph(mlir::Operation *op, llvm::StringRef name);

/// True if `value` stands for an optional input that is not given.
bool isAbsent(mlir::Value value);

/// Element type for a number of TensorProto::DataType; unsigned types keep their sign. Null if there is none.
mlir::Type getElementType(int64_t dataType, mlir::MLIRContext *context);

/// Element type of a string tensor, of a value whose type the file leaves open, and sequence/optional/map types.
mlir::Type getStringType(mlir::MLIRContext *context);
mlir::Type getUnknownType(mlir::MLIRContext *context);
mlir::Type getContainerType(mlir::MLIRContext *context, llvm::StringRef kind, mlir::Type element);

} // namespace hone::onnxir

#endif // HONE_DIALECT_ONNX_ONNXDIALECT_H
