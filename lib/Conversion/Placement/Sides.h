// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On which side a tensor is, and the same tensor on the other.

#ifndef HONE_LIB_CONVERSION_PLACEMENT_SIDES_H
#define HONE_LIB_CONVERSION_PLACEMENT_SIDES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace hone {

/// Where a tensor's elements are. Both: it can be read on either side at no cost (inputs, parameters, constants, tensors
/// without elements yet).
enum class Side { Host, Device, Both };

/// The memref type of the same elements on the device.
mlir::MemRefType onDevice(mlir::MemRefType type);

/// Whether all of `types` are tensors of few integers or booleans: shapes, axes, answers to checks.
bool isSmallInteger(mlir::TypeRange types);

/// Whether elements are inserted into `tensor` one by one, there or further down the loops that carry it.
bool isInsertedInto(mlir::Value tensor);

/// The tensors of an entry and their sides.
class SidedTensors {
public:
  explicit SidedTensors(mlir::Value call) : call(call) {}

  /// Whether what `op` makes can be read on both sides.
  static bool isSource(mlir::Operation *op);

  Side sideOf(mlir::Value tensor) const;
  void set(mlir::Value value, Side side) { sides[value] = side; }
  void setResults(mlir::Operation *op, Side side);

  /// `tensor` on the host or on the device: itself, what it is made of read or computed there, or a copy.
  mlir::Value get(mlir::Value tensor, Side side);

  /// Whether the host has `tensor` without waiting for the device: it is there, or holds about as many integers as there are tokens, which
  /// follow from those that are: their positions, for instance. Such tensors are computed on both sides.
  bool isHosts(mlir::Value tensor);

  /// The same for what becomes one buffer with others, at the end of a region for instance. Such buffers are of one type, and only
  /// when buffers are placed are all of them in the device's memory space.
  mlir::Value getJoined(mlir::Value tensor, Side side);

  int64_t numFetched = 0, numUploaded = 0;

private:
  mlir::Value read(mlir::Operation *source, Side side);
  mlir::Value readJoined(mlir::Operation *source);
  mlir::Value copy(mlir::Value tensor, Side side);
  bool isRepeatable(mlir::Operation *op);
  mlir::Value repeat(mlir::Value tensor);

  mlir::Value call;
  llvm::DenseMap<mlir::Value, Side> sides;
  llvm::DenseMap<std::pair<mlir::Value, int>, mlir::Value> known;
  llvm::DenseMap<mlir::Value, mlir::Value> joined;
  llvm::DenseMap<mlir::Value, mlir::Value> origins; // of what `get` brought to the device
  llvm::DenseMap<mlir::Value, bool> hosts;          // what isHosts() said of the device's
};

/// Why `op`, whose region also reads `captured`, is to run on the host; empty if it is not.
llvm::StringRef getReasonForHost(mlir::linalg::LinalgOp op, llvm::ArrayRef<mlir::OpOperand *> captured,
                                 SidedTensors &tensors);

} // namespace hone

#endif // HONE_LIB_CONVERSION_PLACEMENT_SIDES_H
