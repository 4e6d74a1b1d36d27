//===- HoneOpInterfaces.td - what an operation says of itself to passes --------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes ask these interfaces and know no list of operations. One that has none of them is a legal operation: passes leave what it
// reads and makes as it is, with a remark. The structs that the methods return are in hone/Dialect/Hone/HoneOpInterfaces.h.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_OP_INTERFACES_TD
#define HONE_OP_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Hone_ComputeOpInterface : OpInterface<"ComputeOpInterface"> {
  let cppNamespace = "::hone";
  let description = [{
    An operation each dimension of whose results is a dimension of an operand. Type inference, the check of a written type, the
    shape in IR and symbolic shapes follow from that.
  }];
  let methods = [
    StaticInterfaceMethod<[{
      For each dimension of the first result, the operand and the dimension of it that it equals; fails where the operands' ranks
      allow no result.
      }], "::mlir::FailureOr<::hone::ResultDims>", "getResultDims", (ins "::mlir::TypeRange":$operands)>,
    StaticInterfaceMethod<[{
      As getResultDims, of result number `result`, which is not the first.
      }], "::mlir::FailureOr<::hone::ResultDims>", "getOtherDims", (ins "::mlir::TypeRange":$operands, "unsigned":$result),
      [{}], [{ return ::mlir::failure(); }]>,
  ];
}

def Hone_WeightedOpInterface : OpInterface<"WeightedOpInterface"> {
  let cppNamespace = "::hone";
  let description = [{
    An operation that multiplies rows with matrices, or looks rows of a matrix up. These matrices may have any weight encoding; of
    everything else that such an operation reads, none may.
  }];
  let methods = [
    InterfaceMethod<[{
      Its weights, in the order in which they are multiplied; those that read the same rows beside one another.
      }], "::llvm::SmallVector<::hone::WeightUse>", "listWeights", (ins)>,
  ];
}

def Hone_NormOpInterface : OpInterface<"NormOpInterface"> {
  let cppNamespace = "::hone";
  let description = [{
    An operation that divides each row by a number that it computes from all of the row, and multiplies it by a gain a channel.
  }];
  let methods = [
    InterfaceMethod<"What it does to a row.", "::hone::NormParts", "getNormParts", (ins)>,
    InterfaceMethod<[{
      Makes `gain` the whole factor of a channel where it was what is added to 1; whoever calls this adds the 1 to its elements.
      }], "void", "dropUnitOffset", (ins), [{}], [{ return; }]>,
  ];
}

def Hone_GroupedOpInterface : OpInterface<"GroupedOpInterface"> {
  let cppNamespace = "::hone";
  let description = [{
    An operation that keeps some indices of what it reads and makes separate: if heads, channels or outputs are cut away there, or
    split over ranks, it does the same to those that are left.
  }];
  let methods = [
    InterfaceMethod<"Which dimensions are cut together.", "::hone::GroupRules", "getGroupRules", (ins)>,
    InterfaceMethod<[{
      The groups that begin and end in this operation, a block of a layer; nothing where it only passes groups of others on.
      }], "::std::optional<::hone::InnerGroups>", "getInnerGroups", (ins), [{}], [{ return std::nullopt; }]>,
  ];
}

def Hone_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::hone";
  let description = [{
    An operation whose adjoint is known: from the gradients of its results it builds those of its operands, and of the values that
    its regions read. It reads its operands and results as they are, which are thereby kept; what else it needs it computes anew. The
    models are attached in lib/Transforms/Differentiate, to operations of upstream dialects as well.
  }];
  let methods = [
    InterfaceMethod<[{
      Whether buildAdjoint makes the gradients of all values that `adjoints` wants of this operation. One of which it does not is
      decomposed first.
      }], "bool", "hasAdjoint", (ins "const ::hone::Adjoints &":$adjoints), [{}], [{ return true; }]>,
    InterfaceMethod<[{
      Replaces the operation by one with further results where the adjoint reads these: what is saved besides operands and
      results.
      }], "void", "saveForAdjoint", (ins "::mlir::RewriterBase &":$rewriter), [{}], [{ return; }]>,
    InterfaceMethod<[{
      Adds to the gradients of what is wanted, at the insertion point of `builder`. Fails after an error where the operation as it is
      has no adjoint.
      }], "::llvm::LogicalResult", "buildAdjoint",
      (ins "::mlir::ImplicitLocOpBuilder &":$builder, "::hone::Adjoints &":$adjoints)>,
  ];
}

#endif // HONE_OP_INTERFACES_TD
