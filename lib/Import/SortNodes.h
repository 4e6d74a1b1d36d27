// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files whose nodes are in any order, as converters to 16 bits write them and onnxruntime reads them.

#ifndef HONE_LIB_IMPORT_SORTNODES_H
#define HONE_LIB_IMPORT_SORTNODES_H

#include "onnx/onnx_pb.h"

namespace hone {

/// Puts each node of `graph`, and of the graphs inside it, after those whose results it reads, and otherwise leaves the order as it
/// is. A graph with a cycle stays as it is.
void sortNodes(::onnx::GraphProto &graph);

} // namespace hone

#endif // HONE_LIB_IMPORT_SORTNODES_H
