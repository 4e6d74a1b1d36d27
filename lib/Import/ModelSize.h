// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much a model would be in memory, before it is.

#ifndef HONE_LIB_IMPORT_MODELSIZE_H
#define HONE_LIB_IMPORT_MODELSIZE_H

#include "hone/Import/Limits.h"

#include "mlir/IR/Location.h"
#include "onnx/onnx_pb.h"

namespace hone {

/// Fails, after an error, where the bytes of a ModelProto hold more nodes or messages than `limits` allow. Bytes that are no
/// protobuf are left to its parser.
llvm::LogicalResult checkMessages(llvm::StringRef bytes, const Limits &limits, mlir::Location loc);

/// Fails, after an error, where `model` has more nodes than `limits` allow once its functions are inlined, or more bytes than a
/// protobuf. Functions that call themselves are left to libonnx.
llvm::LogicalResult checkInlinedSize(const ::onnx::ModelProto &model, const Limits &limits, mlir::Location loc);

/// Fails, after an error, where a tensor or value of `model` has more than `kMaxRank` dimensions.
llvm::LogicalResult checkRanks(const ::onnx::ModelProto &model, mlir::Location loc);

} // namespace hone

#endif // HONE_LIB_IMPORT_MODELSIZE_H
