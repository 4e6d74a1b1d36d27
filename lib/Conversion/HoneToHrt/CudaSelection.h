// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the selections of kernels of CUDA share.

#ifndef HONE_LIB_CONVERSION_HONETOHRT_CUDASELECTION_H
#define HONE_LIB_CONVERSION_HONETOHRT_CUDASELECTION_H

#include "KernelSelection.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace hone {

/// Whether all of them are f32, f16 or bf16 as they are, or null.
bool arePlainFloats(mlir::ValueRange values);

/// The last word of the kernel that reads a weight: "bf16", "affine4"; empty where none does.
std::string getFormat(mlir::Value weight);

/// The encoding of a weight whose levels kernels read where they lie, or null.
AffineAttr getLevels(mlir::Value weight);

/// Whether kernels that multiply by several weights read these: numbers of one type, or levels of one encoding. Those of outliers and 2:4
/// weights stay single: their tiles have planes of their own.
bool areReadTogether(llvm::ArrayRef<mlir::Value> weights);

/// Whether a product with such a weight rounds activations by what it means. Kernels leave them as they are.
bool roundsActivations(mlir::Value weight);

/// The integers that kernels of quantized weights have beside their own; none without an encoding.
void addFormatIntegers(KernelCall &kernel, AffineAttr affine);

/// Gives the call of a kernel for layers its x, rounded as their weight means, or what x is the RMSNorm of with that norm where `readers`,
/// which the call replaces, are all that reads x. No operation reads its sizes any more then.
void addInput(mlir::ImplicitLocOpBuilder &b, KernelCall &kernel, mlir::Value x, mlir::Value weight,
              llvm::ArrayRef<mlir::Operation *> readers);

/// A block of experts as calls of kernels, or null where they do not take it.
mlir::Value createExperts(mlir::OpBuilder &b, MoeOp op, mlir::Value call);

} // namespace hone

#endif // HONE_LIB_CONVERSION_HONETOHRT_CUDASELECTION_H
