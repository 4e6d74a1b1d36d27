// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights of integers as nodes that onnxruntime and others run.

#ifndef HONE_LIB_EXPORT_INTEGERNODES_H
#define HONE_LIB_EXPORT_INTEGERNODES_H

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/IR/SymbolTable.h"

namespace hone {

/// Puts the numbers of `quantized`, a `[N, K]` stored as #hone.affine, in place of `param`, which the nodes of an onnx module read as
/// `[N, K]`, or as `[K, N]` if `isTransposed`:
///
/// - codes of 8 bits without groups become a DequantizeLinear, which all nodes read;
/// - codes in groups become the weights of MatMulNBits in place of MatMul and Gemm, and of GatherBlockQuantized in place of
///   Gather, both of com.microsoft.
///
/// Returns why that cannot be, having changed nothing, or an empty string. Fails, after an error, where no node has such
/// codes, or the bytes cannot be read.
llvm::FailureOr<std::string> replaceByIntegers(mlir::SymbolTable &symbols, ParamOp param, ParamOp quantized,
                                               bool isTransposed);

} // namespace hone

#endif // HONE_LIB_EXPORT_INTEGERNODES_H
