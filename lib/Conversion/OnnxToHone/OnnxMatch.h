// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the raising passes share: questions to onnx operations, building them, and telling what was done.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_ONNXMATCH_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_ONNXMATCH_H

#include "hone/Analysis/SymbolicAnalysis.h"
#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

namespace hone::raising {

using analysis::Polynomial;
using analysis::Shape;
using analysis::SymbolicAnalysis;
using mlir::ArrayRef;
using mlir::failure;
using mlir::FailureOr;
using mlir::Location;
using mlir::LogicalResult;
using mlir::OpBuilder;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::StringRef;
using mlir::success;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;

//===- Questions -------------------------------------------------------------------------------------------------===//

inline constexpr llvm::StringLiteral kMicrosoft = "com.microsoft";

bool isOp(Operation *op, StringRef opType, StringRef domain = "");
/// The operation that defines `value` if it is of that operator, else null.
Operation *getDefiningOp(Value value, StringRef opType, StringRef domain = "");
/// Operand `index` if it is given, else null.
Value getOperand(Operation *op, unsigned index);
/// Result `index` if the operation has it and somebody may use it, else null.
Value getResult(Operation *op, unsigned index);
int64_t getInteger(Operation *op, StringRef name, int64_t otherwise);
double getReal(Operation *op, StringRef name, double otherwise);
std::optional<SmallVector<int64_t>> getIntegers(Operation *op, StringRef name);

RankedTensorType getRankedType(Value value);
int64_t getRank(Value value); // -1 where it is not known
/// The last size of the type, or a dynamic one.
int64_t getLastSize(Value value);
bool isFloat(Value value);

/// `value` without identities, casts between floating-point types and dropout: the same numbers, perhaps rounded.
Value skipCasts(Value value);
/// A constant or parameter: known before the program runs.
bool isWeight(Value value);
/// `type`, `[K, N]` of plain floats in a file, as `[N, K]`.
RankedTensorType getTransposedType(RankedTensorType type);

/// The operand beside the one that is a constant with one value everywhere, for `opType` of two operands. Where the
/// operator is not commutative the constant is the second.
struct WithConstant {
  Value operand;
  double constant;
};
std::optional<WithConstant> matchWithConstant(Value value, StringRef opType, SymbolicAnalysis &analysis);

//===- Building ----------------------------------------------------------------------------------------------------===//

/// Creates onnx operations with one result at the insertion point.
class OnnxBuilder {
public:
  OnnxBuilder(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  Value create(StringRef opType, ValueRange operands, Type result, ArrayRef<mlir::NamedAttribute> attrs = {});
  Value constant(mlir::DenseElementsAttr value);
  Value integers(ArrayRef<int64_t> values); // one dimension
  Value integer(int64_t value);             // no dimension
  Value real(float value);                  // no dimension
  Value transpose(Value value, ArrayRef<int64_t> permutation);
  Value reshape(Value value, ArrayRef<int64_t> shape, ArrayRef<int64_t> resultShape);
  Value unsqueeze(Value value, ArrayRef<int64_t> axes);
  Value slice(Value value, int64_t axis, int64_t start, int64_t end);
  Value add(Value a, Value b);
  Value cast(Value value, Type element);

  mlir::NamedAttribute integerAttr(StringRef name, int64_t value) {
    return b.getNamedAttr(name, b.getI64IntegerAttr(value));
  }

  OpBuilder &b;
  Location loc;
};

/// Parameters in another form, by those they are copies of.
using ParamCopies = llvm::MapVector<ParamOp, ParamOp>;

/// Arrays that one storage holds one after the other.
class StorageParts {
public:
  /// The bytes of number `part` of the arrays of `type` that `storage` holds, the same each time; null where it cannot be cut.
  mlir::Attribute take(mlir::Attribute storage, RankedTensorType type, int64_t part);

private:
  static mlir::Attribute cut(mlir::Attribute storage, RankedTensorType type, int64_t part);

  llvm::DenseMap<std::pair<mlir::Attribute, int64_t>, mlir::Attribute> parts;
};

/// Erases the parameters that nothing reads any more, and gives their names to their copies.
void passNamesOn(mlir::ModuleOp module, mlir::SymbolTable &symbols, const ParamCopies &copies);

/// Erases onnx and pure operations of `function` whose results nobody uses.
void eraseDead(mlir::func::FuncOp function);

/// Puts `with` in place of `value`; where the types differ, a cast at the uses that are not onnx operations.
void replace(Value value, Value with);

//===- Remarks -----------------------------------------------------------------------------------------------------===//

/// What a pass did or did not do at an operation; `pass` is the category, `name` the thing raised.
inline auto remarkRaised(Location loc, StringRef pass, StringRef name) {
  return mlir::remark::passed(loc, mlir::remark::RemarkOpts::name(name).category(pass));
}
inline auto remarkMissed(Location loc, StringRef pass, StringRef name) {
  return mlir::remark::missed(loc, mlir::remark::RemarkOpts::name(name).category(pass));
}

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_ONNXMATCH_H
