// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef HONE_LIB_IMPORT_ZIPMAPS_H
#define HONE_LIB_IMPORT_ZIPMAPS_H

#include "mlir/IR/Location.h"
#include "onnx/onnx_pb.h"

namespace hone {

/// Replaces every ai.onnx.ml.ZipMap whose result is an output of `graph` and nothing else by its input, the tensor of probabilities
/// [rows, classes], as skl2onnx writes it with its option zipmap=False. Columns are in the order of the node's labels; a warning
/// names them.
void replaceZipMaps(::onnx::GraphProto &graph, mlir::Location loc);

} // namespace hone

#endif // HONE_LIB_IMPORT_ZIPMAPS_H
