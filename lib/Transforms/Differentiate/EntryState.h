//===- EntryState.h - a state that an entry replaces in each call -------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What passes share that make another entry of @gradients, with a state of slots as large as parameters.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_LIB_TRANSFORMS_DIFFERENTIATE_ENTRYSTATE_H
#define HONE_LIB_TRANSFORMS_DIFFERENTIATE_ENTRYSTATE_H

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/Loops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hone {

/// What `hone-differentiate` calls its entry, the loss, the part of that which does without a teacher, and the gradient of P: P.gradient.
constexpr llvm::StringLiteral kGradientsEntry = "gradients", kLossName = "loss", kHardLossName = "cross_entropy",
                              kGradientEnding = ".gradient";

/// A result and its name.
struct NamedResult {
  mlir::Value value;
  llvm::StringRef name;
};

/// @gradients of a module. Fails, after an error that begins with `cannot`, where there is none.
llvm::FailureOr<mlir::func::FuncOp> findGradients(mlir::ModuleOp module, llvm::StringRef cannot);

/// What `step` makes of the elements of `held` and `inputs`, tensors of one shape and type: one for each of `held`, the inits, so that
/// bufferization can write them in place.
llvm::SmallVector<mlir::Value>
updateElements(LocBuilder &b, mlir::ValueRange held, mlir::ValueRange inputs,
               llvm::function_ref<llvm::SmallVector<mlir::Value>(LocBuilder &, mlir::ValueRange held,
                                                                 mlir::ValueRange inputs)> step);

/// Gives @gradients a state of its own, and makes another entry of it in place.
class EntryState {
public:
  /// `state` is the name of the state, and `entry` that of what is made.
  EntryState(mlir::func::FuncOp function, llvm::StringRef state, llvm::StringRef entry)
      : function(function), name(state), entry(entry) {}

  /// Adds the state to the arguments, as the first one. Fails, after an error that begins with `cannot`, where the module has a symbol of
  /// one of the names, or the function has no loss and gradients.
  llvm::LogicalResult begin(llvm::StringRef cannot);
  /// Adds an argument: a number of f32.
  mlir::Value addNumber(llvm::StringRef input);

  /// A slot that begins with a parameter, or as zeros; gives its number.
  uint64_t addSlot(const llvm::Twine &slot, mlir::RankedTensorType type, mlir::FlatSymbolRefAttr beginning = {});
  mlir::RankedTensorType getType(uint64_t slot) { return slots[slot].getType(); }
  /// What a slot is before the call.
  mlir::Value view(uint64_t slot) { return viewIn(function, slot); }
  /// The same in `other`, whose first argument is the state.
  mlir::Value viewIn(mlir::func::FuncOp other, uint64_t slot);
  /// In place, where an operation computes `value` whose init is what the slot was.
  void replace(LocBuilder &b, uint64_t slot, mlir::Value value);

  /// Code before the return.
  LocBuilder atEnd() { return LocBuilder(function.getLoc(), getReturn()); }
  mlir::func::ReturnOp getReturn();
  /// What result `number` is called.
  llvm::StringRef getResultName(unsigned number);

  /// Returns the state and `results` alone, declares the state, and makes other functions private, which read parameters as they were.
  void finish(llvm::ArrayRef<NamedResult> results);

private:
  mlir::func::FuncOp function;
  llvm::StringRef name, entry;
  llvm::SmallVector<SlotAttr> slots;
  mlir::Value state; // as it is so far
};

/// Gives a parameter that is stored transposed the shape that it has in the file; what reads it transposes then.
void makePlain(ParamOp param);

/// Replaces what `function` reads of `param` by `value`, but for `kept`.
void replaceReads(mlir::func::FuncOp function, ParamOp param, mlir::Value value, mlir::Operation *kept = nullptr);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_DIFFERENTIATE_ENTRYSTATE_H
