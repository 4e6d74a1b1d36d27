//===- HoneOpBase.td - what the definitions of the operations share ------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Type constraints, enums and the base classes.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_OP_BASE_TD
#define HONE_OP_BASE_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "Hone/HoneDialect.td"
include "Hone/HoneEncodings.td"
include "Hone/HoneInterfaces.td"
include "Hone/HoneOpInterfaces.td"
include "Hone/HonePatterns.td"
include "Hone/HoneTypes.td"

//===- Types ------------------------------------------------------------------------------------------------------===//

def Hone_Float : AnyTypeOf<[F32, F16, BF16]>;

defvar honeNoEncoding = CPred<"!::llvm::cast<::mlir::RankedTensorType>($_self).getEncoding()">;
defvar honeWeightEncoding = CPred<
    "::hone::isWeightEncoding(::llvm::cast<::mlir::RankedTensorType>($_self).getEncoding())">;

defvar honeStateLayout = CPred<
    "::llvm::isa<::hone::StateLayoutInterface, ::hone::QuantizedKvAttr>(::llvm::cast<::mlir::RankedTensorType>($_self).getEncoding())">;

/// A tensor of elements `element` whose rank is in `ranks`, or any if that is empty, and whose encoding satisfies `encoding`.
class Hone_TensorOf<Type element, list<int> ranks, Pred encoding, string what> : Type<
    And<[RankedTensorOf<[element]>.predicate,
         !if(!empty(ranks), CPred<"true">, HasAnyRankOfPred<ranks>), encoding]>,
    what, "::mlir::RankedTensorType">;

def Hone_Tensor : Hone_TensorOf<Hone_Float, [], honeNoEncoding, "plain tensor of f32, f16 or bf16">;
class Hone_TensorOfRank<int rank> : Hone_TensorOf<Hone_Float, [rank], honeNoEncoding,
    rank # "D plain tensor of f32, f16 or bf16">;
def Hone_F32Tensor : Hone_TensorOf<F32, [], honeNoEncoding, "plain tensor of f32">;
class Hone_F32TensorOfRank<int rank> : Hone_TensorOf<F32, [rank], honeNoEncoding, rank # "D plain tensor of f32">;
class Hone_WeightOfRank<int rank> : Hone_TensorOf<Hone_Float, [rank], honeWeightEncoding,
    rank # "D tensor of f32, f16 or bf16, plain or with a weight encoding">;

class Hone_CacheOfRank<int rank> : Hone_TensorOf<Hone_Float, [rank], Or<[honeNoEncoding, honeStateLayout]>,
    rank # "D tensor of f32, f16 or bf16, plain, of quantized KV or in a layout of the state">;

def Hone_Index : AnyTypeOf<[I32, I64]>;
def Hone_IndexTensor : Hone_TensorOf<Hone_Index, [], honeNoEncoding, "plain tensor of i32 or i64">;
class Hone_IndexTensorOfRank<int rank> : Hone_TensorOf<Hone_Index, [rank], honeNoEncoding,
    rank # "D plain tensor of i32 or i64">;
def Hone_PerSequence : Hone_TensorOf<Hone_Index, [1], honeNoEncoding, "1D plain tensor of i32 or i64">;

//===- Attributes -------------------------------------------------------------------------------------------------===//

def Hone_PatternAttr : Attr<CPred<"::llvm::isa<::hone::AttentionPatternInterface>($_self)">, "attention pattern"> {
  let storageType = "::hone::AttentionPatternInterface";
  let returnType = "::hone::AttentionPatternInterface";
  let convertFromStorage = "$_self";
}

def Hone_Activation : I32Enum<"Activation", "activation of an MLP", [
    I32EnumCase<"Silu", 0, "silu">,         // x / (1 + exp(-x))
    I32EnumCase<"Gelu", 1, "gelu">,         // x/2 (1 + erf(x / sqrt 2))
    I32EnumCase<"GeluTanh", 2, "gelu_tanh">, // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
    I32EnumCase<"Relu", 3, "relu">]> {      // max(x, 0)
  let cppNamespace = "::hone";
}
def Hone_ActivationAttr : EnumAttr<Hone_Dialect, Hone_Activation, "activation">;

def Hone_FusedRows : I32Enum<"FusedRows", "where gate and up lie in one matrix of an expert", [
    I32EnumCase<"Halves", 0, "halves">,       // all rows of the gate first
    I32EnumCase<"Alternate", 1, "alternate">]> { // a row of the gate, then one of up
  let cppNamespace = "::hone";
}
def Hone_FusedRowsAttr : EnumAttr<Hone_Dialect, Hone_FusedRows, "fused_rows">;

def Hone_PoolKind : I32Enum<"PoolKind", "what a pooling makes of a window", [
    I32EnumCase<"Max", 0, "max">,
    I32EnumCase<"Sum", 1, "sum">]> {
  let cppNamespace = "::hone";
}
def Hone_PoolKindAttr : EnumAttr<Hone_Dialect, Hone_PoolKind, "pool_kind">;

//===- Base classes -----------------------------------------------------------------------------------------------===//

/// Operations with weights, norms, and those that keep groups of indices separate; a block of a layer has groups of its own.
defvar honeWeighted = DeclareOpInterfaceMethods<Hone_WeightedOpInterface>;
defvar honeGrouped = DeclareOpInterfaceMethods<Hone_GroupedOpInterface>;
defvar honeBlock = DeclareOpInterfaceMethods<Hone_GroupedOpInterface, ["getInnerGroups"]>;

class Hone_Op<string mnemonic, list<Trait> traits = []> : Op<Hone_Dialect, mnemonic, traits>;

/// An operation with one tensor result each of whose dimensions is a dimension of an operand: `getResultDims` says which,
/// and the result's type and its shape in IR follow. Elements are those of operand `elementOperand`. A result type may
/// know more or fewer sizes than is inferred.
class Hone_ComputeOp<string mnemonic, list<Trait> traits = [], int elementOperand = 0> : Hone_Op<mnemonic, traits # [
    Pure, InferTypeOpAdaptorWithIsCompatible, DeclareOpInterfaceMethods<Hone_ComputeOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let hasVerifier = 1;
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location> location,
        Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      ::mlir::TypeRange operands = adaptor.getOperands().getTypes();
      return ::hone::detail::inferType(getOperationName(), location, operands, getResultDims(operands), }]
      # elementOperand # [{, types);
    }
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return ::hone::detail::areCompatible(inferred, actual);
    }
    ::llvm::LogicalResult $cppClass::reifyResultShapes(::mlir::OpBuilder &builder,
        ::mlir::ReifiedRankedShapedTypeDims &shapes) {
      return ::hone::detail::reifyShape(builder, getOperation(), getResultDims((*this)->getOperandTypes()), shapes);
    }
  }];
}

#endif // HONE_OP_BASE_TD
