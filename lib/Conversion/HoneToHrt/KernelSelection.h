// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which operation of the hone dialect runs on which kernel of a target's runtime.

#ifndef HONE_LIB_CONVERSION_HONETOHRT_KERNELSELECTION_H
#define HONE_LIB_CONVERSION_HONETOHRT_KERNELSELECTION_H

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hone {

/// Turns every operation of `entry` that has a kernel of the CPU into hrt.kernel; returns how many.
int64_t selectKernels(mlir::func::FuncOp entry);

/// The same with the kernels of CUDA.
int64_t selectCudaKernels(mlir::func::FuncOp entry);

/// Turns the appends to the state of each attention's keys and values, and rotations before them, into one hrt.kernel of CUDA;
/// returns how many attentions there were. What is left is for selectCudaKernels.
int64_t selectCudaAppends(mlir::func::FuncOp entry);

/// Turns linear layers that read the same values into one hrt.kernel of CUDA for two or three of them; returns how many layers there
/// were. What is left is for selectCudaKernels.
int64_t selectCudaSiblings(mlir::func::FuncOp entry);

/// Whether `op` has a kernel of the CPU.
bool hasKernel(AttentionOp op);
bool hasKernel(AttentionGradientOp op);

/// Whether kernels read the integers of `op`: one of the CPU for keys in blocks, and that of CUDA for rows.
bool hasKernel(PoolKeysOp op);

/// Whether the CPU has a kernel for `op`, with its keys in blocks.
bool hasKernel(SelectAntidiagonalsOp op);
bool hasKernel(SelectMeansOp op);

//===----------------------------------------------------------------------===//
// What selections share
//===----------------------------------------------------------------------===//

/// A kernel of include/hone/kernels and what it is called with, by the names that its row has; an empty name says that there is none.
/// Optional operands that are not given, or null, are absent. An encoded one is its planes.
struct KernelCall {
  std::string name;
  llvm::SmallVector<std::pair<llvm::StringRef, mlir::Value>> operands;
  llvm::SmallVector<std::pair<llvm::StringRef, int64_t>> ints;
  llvm::SmallVector<std::pair<llvm::StringRef, double>> floats;
};

/// Makes of an operation the calls of kernels that compute it: a builder in front of it, and the call of the entry. Null: it has
/// none. A value for each result, or no values.
using CallBuilder =
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::Operation *, mlir::Value)>;

/// The results of an operation with one result, or none where it is null.
llvm::SmallVector<mlir::Value> asResults(mlir::Value result);

/// Replaces every operation of `entry` by what `build` makes of it; returns how many were.
int64_t replaceByKernels(mlir::func::FuncOp entry, CallBuilder build);

/// A call of the kernel, whose operands are all given, outputs too; those that are tensors have results.
hrt::KernelOp createKernel(mlir::OpBuilder &b, mlir::Location loc, mlir::Value call, const KernelCall &kernel);

/// A call of a kernel with one output, `destination`.
mlir::Value createKernel(mlir::OpBuilder &b, mlir::Location loc, mlir::Value call, const KernelCall &kernel,
                         mlir::Value destination);

/// Memory for a product of the rows of x with a weight.
mlir::Value createRows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, mlir::Value weight);

/// A call of a kernel that multiplies rows, `x`, with a `weight`.
mlir::Value createProduct(mlir::OpBuilder &b, mlir::Location loc, mlir::Value call, const KernelCall &kernel);

/// Memory for each result of `op`; fails where it does not say their sizes.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> createDestinations(mlir::OpBuilder &b, mlir::Operation *op);

/// Replaces `op` by values for its results, which may have other sizes in their types.
void replaceByResults(mlir::Operation *op, mlir::ValueRange results);

/// A call of a kernel of attention for the results of `op`; none where there is no kernel.
llvm::SmallVector<mlir::Value> createAttention(mlir::OpBuilder &b, AttentionOp op, mlir::Value call,
                                               const KernelCall &kernel);

/// A call of the kernel for the results of `op`, which are its last operands in their order; none where there is no kernel, or the sizes
/// of the results are not known.
llvm::SmallVector<mlir::Value> createCall(mlir::OpBuilder &b, mlir::Operation *op, mlir::Value call,
                                          const KernelCall &kernel);

/// The kernel that is called as the operation is, after `target`: it takes the same operands in the same order, and attributes of the
/// same names. No call where there is none.
KernelCall selectNamesake(mlir::Operation *op, llvm::StringRef target);

/// The kernel `name` of products of matrices; createCall() lets it write where the addend lies.
KernelCall selectMatmul(MatmulOp op, llvm::StringRef name);

/// How `op` calls a kernel of attention, without its outputs and with `bias` in place of its own; no name where kernels do not know
/// the pattern.
KernelCall callAttention(AttentionOp op, llvm::StringRef kernel, mlir::Value bias);

/// What one call of a kernel for the first layer of experts is given; with `activation` 0 it gives the sums of up with its bias.
struct ExpertSums {
  mlir::Value up, upBias, gate, gateBias; // all but up may be null
  int64_t activation, fused;              // as kernels number them
};

/// Makes that call, which writes `destination`.
using CallOfExperts = llvm::function_ref<mlir::Value(const ExpertSums &, mlir::Value destination)>;

/// What the experts of `op` have between their layers, `[…, T, I]` of f32.
mlir::Value createExpertHidden(mlir::OpBuilder &b, MoeOp op, CallOfExperts create);

/// An activation as kernels number them.
int64_t getNumber(Activation activation);

/// "f32", "f16" or "bf16" as names of kernels have it; empty for other types.
llvm::StringRef getFloatName(mlir::Type type);

} // namespace hone

#endif // HONE_LIB_CONVERSION_HONETOHRT_KERNELSELECTION_H
