// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models of opsets that are older than operators are supported of.

#ifndef HONE_LIB_IMPORT_CONVERTOPSET_H
#define HONE_LIB_IMPORT_CONVERTOPSET_H

#include "mlir/IR/Location.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace hone {

/// Operators are supported as they are from this opset of the default domain on.
inline constexpr int64_t kOldestOpset = 11;

/// Brings a checked model of an older opset to `target`, at least the oldest supported one. Where no operator changed in between that is the
/// number alone; else libonnx converts the model, after `inferShapes` has shown that its shapes can be inferred. Failure after a diagnostic
/// that names an operator that changed.
llvm::LogicalResult convertOpset(::onnx::ModelProto &model, int64_t target,
                                 llvm::function_ref<void(::onnx::ModelProto &)> inferShapes, mlir::Location loc);

} // namespace hone

#endif // HONE_LIB_IMPORT_CONVERTOPSET_H
