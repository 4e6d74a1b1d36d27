// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the inputs and outputs of a decoder are to a program with state.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_STATESIGNATURE_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_STATESIGNATURE_H

#include "OnnxMatch.h"

namespace hone::raising {

/// An input that becomes a slot, the axis it grows along and the output that it grows to.
struct Slot {
  mlir::BlockArgument past;
  unsigned output;
  int64_t axis;
  /// The input's type, with the sizes that the program says where the input leaves them open.
  RankedTensorType type;
};

/// The inputs and outputs of a decoder by their part in it.
struct Signature {
  mlir::BlockArgument tokens, mask;
  mlir::BlockArgument positions;      // [batch, sequence], padding not counted
  mlir::BlockArgument cachePositions; // [sequence], padding counted
  SmallVector<Slot> slots;
  SmallVector<mlir::BlockArgument> context; // the same in all calls of a session: what an encoder gave
  SmallVector<mlir::BlockArgument> unused;  // only handed through to outputs
  unsigned logits = 0;
};

/// The name of the input in the ONNX graph, "" without one.
StringRef getInputName(mlir::BlockArgument argument);

/// Lets each cache of `function` be extended in the type of its input, where the file does it in another.
void moveCacheCasts(mlir::func::FuncOp function);

/// Whether an input is extended to an output: what a decoder with a past does.
bool hasPast(mlir::func::FuncOp function);

/// The parts of a function that has a past; nothing, with a remark, if an input or output has no meaning.
std::optional<Signature> readSignature(mlir::func::FuncOp function);

/// A decoder that has its forms with and without a past as branches of one `If`, merged by a boolean input: a copy of
/// `main` with the branch that extends a past in place of the `If`. Null for any other function.
mlir::func::FuncOp specializeToPast(mlir::func::FuncOp main);

/// Likewise, with the other branch.
mlir::func::FuncOp specializeToNoPast(mlir::func::FuncOp main);

/// Refines the types of the function's values by their symbolic shapes; the number that changed.
unsigned inferShapes(mlir::func::FuncOp function);

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_STATESIGNATURE_H
