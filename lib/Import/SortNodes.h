// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files whose nodes are in any order, as converters to 16 bits write them and onnxruntime reads them.

#ifndef HONE_LIB_IMPORT_SORTNODES_H
#define HONE_LIB_IMPORT_SORTNODES_H

#include "onnx/onnx_pb.h"
#include "llvm/ADT/StringSet.h"

namespace hone {

/// Adds the names that the node reads, by itself or in its graphs; some of those are of values in there.
void addNamesRead(const ::onnx::NodeProto &node, llvm::StringSet<> &names);

/// Puts each node of `graph`, and of the graphs inside it, after those whose results it reads, and otherwise leaves the order as it
/// is. A graph with a cycle stays as it is.
void sortNodes(::onnx::GraphProto &graph);

} // namespace hone

#endif // HONE_LIB_IMPORT_SORTNODES_H
