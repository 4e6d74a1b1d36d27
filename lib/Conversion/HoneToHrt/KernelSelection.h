// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which operation of the hone dialect runs on which kernel of a target's runtime.

#ifndef HONE_LIB_CONVERSION_HONETOHRT_KERNELSELECTION_H
#define HONE_LIB_CONVERSION_HONETOHRT_KERNELSELECTION_H

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hone {

/// Turns every operation of `entry` that has a kernel of the CPU into hrt.kernel; returns how many.
int64_t selectKernels(mlir::func::FuncOp entry);

/// The same with the kernels of CUDA (runtime/cuda/kernels/kernels.h).
int64_t selectCudaKernels(mlir::func::FuncOp entry);

/// Turns the appends to the state of each attention's keys and values, and rotations before them, into one hrt.kernel of CUDA;
/// returns how many attentions there were. What is left is for selectCudaKernels.
int64_t selectCudaAppends(mlir::func::FuncOp entry);

/// Whether `op` has a kernel of the CPU.
bool hasKernel(AttentionOp op);

//===----------------------------------------------------------------------===//
// What selections share
//===----------------------------------------------------------------------===//

/// A kernel and what it is called with; an empty name says that there is none. A null input is an absent operand, an encoded
/// one is its planes.
struct Choice {
  std::string name;
  llvm::SmallVector<mlir::Value> inputs;
  llvm::SmallVector<int64_t> ints;
  llvm::SmallVector<double> floats;
};

/// Makes of an operation the calls of kernels that compute it: a builder in front of it, and the call of the entry. Null: it has
/// none.
using CallBuilder = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Operation *, mlir::Value)>;

/// Replaces every operation of `entry` with one result by what `build` makes of it; returns how many were.
int64_t replaceByKernels(mlir::func::FuncOp entry, CallBuilder build);

/// A call of the kernel, which writes `destination`.
mlir::Value createKernel(mlir::OpBuilder &b, mlir::Location loc, mlir::Value call, const Choice &choice,
                         mlir::Value destination);

/// A call of a kernel that multiplies rows with a weight: its first two inputs.
mlir::Value createProduct(mlir::OpBuilder &b, mlir::Location loc, mlir::Value call, const Choice &choice);

/// A call of the kernel for the result of `op`; null where no kernel is chosen, or the size of the result is not known.
mlir::Value createCall(mlir::OpBuilder &b, mlir::Operation *op, mlir::Value call, const Choice &choice);

/// {causal, window} of the patterns that kernels of attention know; the prefix is an operand.
std::optional<llvm::SmallVector<int64_t>> getPatternIntegers(mlir::Attribute pattern);

/// Kernels of attention read what is given for each sequence as i64.
bool readsSequences(AttentionOp op);

/// An activation as kernels number them.
int64_t getNumber(Activation activation);

/// "f32", "f16" or "bf16" as names of kernels have it; empty for other types.
llvm::StringRef getFloatName(mlir::Type type);

} // namespace hone

#endif // HONE_LIB_CONVERSION_HONETOHRT_KERNELSELECTION_H
