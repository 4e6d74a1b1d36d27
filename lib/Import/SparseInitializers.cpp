// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes sparse initializers out as dense ones, which is what they mean, before libonnx infers shapes: it knows none for
// them.

#include "ImportTensor.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Dialect/Onnx/PackedElements.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace mlir;
using ::onnx::GraphProto;
using ::onnx::SparseTensorProto;
using ::onnx::TensorProto;

namespace hone {

/// Position of each value among the elements of the dense tensor; libonnx has checked that they are sorted and inside.
static std::optional<SmallVector<int64_t>> getPositions(const SparseTensorProto &sparse) {
  std::string bytes = gatherBytes(sparse.indices(), sizeof(int64_t));
  ArrayRef<int64_t> dims(sparse.dims().data(), sparse.dims_size());
  bool linear = sparse.indices().dims_size() == 1;
  size_t step = linear ? 1 : dims.size();
  SmallVector<int64_t> indices(bytes.size() / sizeof(int64_t)), positions;
  std::memcpy(indices.data(), bytes.data(), indices.size() * sizeof(int64_t));
  if (step == 0 || indices.size() % step != 0)
    return std::nullopt;
  for (size_t i = 0; i < indices.size(); i += step) {
    int64_t position = linear ? indices[i] : 0;
    for (size_t axis = 0; !linear && axis < step; ++axis)
      position = position * dims[axis] + indices[i + axis];
    positions.push_back(position);
  }
  return positions;
}

/// `left` bytes are allowed, and become fewer.
static LogicalResult expand(const SparseTensorProto &sparse, TensorProto &dense, int64_t &left, Location loc) {
  const TensorProto &values = sparse.values();
  dense.set_name(values.name());
  dense.set_data_type(values.data_type());
  *dense.mutable_dims() = sparse.dims();
  RankedTensorType type = importTensorType(dense, loc);
  if (!type)
    return failure();
  Type element = type.getElementType();
  int64_t width = element.isIntOrFloat() ? llvm::divideCeil(element.getIntOrFloatBitWidth(), 8) : 0;
  if (!width || onnxir::getPackedBits(element))
    return emitError(loc) << "unsupported sparse initializer '" << dense.name() << "' of type " << type
                          << "; supported: numbers of at least 8 bits";
  if (type.getNumElements() > left / width)
    return emitError(loc) << "unsupported size of sparse initializer '" << dense.name() << "' of type " << type
                          << "; supported: " << left << " more bytes when dense, which --max-expanded-bytes raises";
  left -= type.getNumElements() * width;
  std::string bytes = gatherBytes(values, width);
  std::optional<SmallVector<int64_t>> positions = getPositions(sparse);
  if (!positions || bytes.size() != positions->size() * width)
    return emitError(loc) << "expected sparse initializer '" << dense.name()
                          << "' to have as many values as indices, but "
                          << "got " << bytes.size() / width << " and " << (positions ? positions->size() : 0);
  std::string &data = *dense.mutable_raw_data();
  data.resize(type.getNumElements() * width);
  for (auto [i, position] : llvm::enumerate(*positions)) {
    if (position < 0 || position >= type.getNumElements())
      return emitError(loc) << "expected the indices of sparse initializer '" << dense.name() << "' to be below "
                            << type.getNumElements() << ", but got " << position;
    std::memcpy(data.data() + position * width, bytes.data() + i * width, width);
  }
  return success();
}

static LogicalResult expandAll(GraphProto &graph, int64_t &left, Location loc) {
  for (const SparseTensorProto &sparse : graph.sparse_initializer())
    if (failed(expand(sparse, *graph.add_initializer(), left, loc)))
      return failure();
  graph.clear_sparse_initializer();
  for (auto &node : *graph.mutable_node())
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.has_g() && failed(expandAll(*attribute.mutable_g(), left, loc)))
        return failure();
  return success();
}

LogicalResult expandSparseInitializers(GraphProto &graph, const Limits &limits, Location loc) {
  // A protobuf holds no more.
  int64_t left = std::min(limits.expandedBytes, (int64_t(1) << 31) - 1);
  return expandAll(graph, left, loc);
}

} // namespace hone
