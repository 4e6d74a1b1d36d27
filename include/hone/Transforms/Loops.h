//===- Loops.h - computations over loops, as linalg.generic -------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A decomposition is a few calls of these: each names the loops that its operands' dimensions run over, and gives the
// scalar code of one step. Loops 0, 1, … are the dimensions of the result, in order; those after them are summed over.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_TRANSFORMS_LOOPS_H
#define HONE_TRANSFORMS_LOOPS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace hone {

using LocBuilder = mlir::ImplicitLocOpBuilder;
using Sizes = llvm::SmallVector<mlir::OpFoldResult>;

/// In place of a loop: the dimension has one position, which every step reads.
constexpr int64_t Repeated = -1;

/// A tensor and the loop of each of its dimensions.
struct Operand {
  mlir::Value tensor;
  llvm::SmallVector<int64_t> loops;
};

/// One step: the operands' elements, all floats extended to f32, to the f32 element of the result.
using Step = llvm::function_ref<mlir::Value(LocBuilder &, mlir::ValueRange)>;

/// Loops first, first + 1, …, first + count - 1.
llvm::SmallVector<int64_t> loopRange(int64_t first, int64_t count);

/// `loops` with `last` appended.
llvm::SmallVector<int64_t> with(llvm::ArrayRef<int64_t> loops, std::initializer_list<int64_t> last);

/// The tensor of shape `sizes` whose elements are what `step` gives, rounded to `elements`.
mlir::Value buildMap(LocBuilder &builder, llvm::ArrayRef<mlir::OpFoldResult> sizes, mlir::Type elements,
                     llvm::ArrayRef<Operand> operands, Step step);

/// How the steps of a reduction are combined, in f32.
enum class Reduction { Sum, Max };

/// The f32 tensor of shape `sizes` that combines what `step` gives over all further loops.
mlir::Value buildReduce(LocBuilder &builder, Reduction reduction, llvm::ArrayRef<mlir::OpFoldResult> sizes,
                        llvm::ArrayRef<Operand> operands, Step step);

/// The sum over all further loops of the products of two operands' elements: a contraction, in f32.
mlir::Value buildContraction(LocBuilder &builder, llvm::ArrayRef<mlir::OpFoldResult> sizes, const Operand &a,
                             const Operand &b);

/// The sum of two tensors of one shape and type, where `sum` lies: it is the destination.
mlir::Value addInPlace(LocBuilder &builder, mlir::Value sum, mlir::Value part);

/// The f32 tensor `tensor` rounded to `elements`.
mlir::Value roundTo(LocBuilder &builder, mlir::Value tensor, mlir::Type elements);

/// The sizes of the result of an operation that can say them.
Sizes getResultSizes(LocBuilder &builder, mlir::Operation *op);

/// The size of a dimension, as a constant if it is known.
mlir::OpFoldResult getSize(LocBuilder &builder, mlir::Value tensor, int64_t dim);

/// A size as a value of type index.
mlir::Value asIndex(LocBuilder &builder, mlir::OpFoldResult size);

/// A size as an f32 value.
mlir::Value asF32(LocBuilder &builder, mlir::OpFoldResult size);

/// The constant `value` of type f32.
mlir::Value constantF32(LocBuilder &builder, float value);

/// `value` rounded to f16 or bf16 if that is `type`; the inverse if `value` is of such a type and `type` is f32.
mlir::Value convertFloat(LocBuilder &builder, mlir::Value value, mlir::Type type);

/// The element of `tensor` at `indices`, extended to f32.
mlir::Value extractF32(LocBuilder &builder, mlir::Value tensor, mlir::ValueRange indices);

} // namespace hone

#endif // HONE_TRANSFORMS_LOOPS_H
