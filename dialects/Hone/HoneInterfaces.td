//===- HoneInterfaces.td - what an encoding and an attention pattern promise ---------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two joints of the dialect: a way to store a weight, and a way to say which keys a query sees. Raising, decomposition
// and most passes use these interfaces only; docs/extending.md names the files that know single encodings and patterns.
//
//===--------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_INTERFACES_TD
#define HONE_INTERFACES_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/TensorEncoding.td"

def Hone_EncodingInterface : AttrInterface<"EncodingInterface", [VerifiableTensorEncoding]> {
  let cppNamespace = "::hone";
  let description = [{
    How the elements of a tensor are stored. An encoded tensor `tensor<4096x4096xf32, #enc>` means an ordinary tensor of the
    same shape and element type; its bytes are one or more *planes*, each a dense row-major array, whose shapes and element
    types the encoding derives from the tensor's. The same four facts serve every user: the planes (import, artefact,
    kernels), pack and unpack over bytes (compression, tests), an element in IR (decomposition), and the kernel's suffix.

    Methods take the shape and element type of the tensor that carries the encoding, which has passed `verifyEncoding` and
    is static wherever bytes are involved.
  }];
  let methods = [
    InterfaceMethod<[{
      The planes as they are stored. Names are words, unique within the encoding. A plane whose elements say where others are read or
      written has the rule that they are checked by.
      }], "::llvm::SmallVector<::hone::EncodingPlane>", "getPlanes",
      (ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType)>,
    InterfaceMethod<[{
      What operations read of the planes, in the order in which kernels take it: each plane as it is, unless the encoding lays
      parts of several arrays beside each other.
      }], "::llvm::SmallVector<::hone::PlaneView>", "getViews",
      (ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType), [{}],
      [{ return ::hone::viewWhole($_attr.getPlanes(shape, elementType)); }]>,
    InterfaceMethod<[{
      Packs the dense row-major elements at `dense` (host byte order) into `planes`, one buffer a plane of exactly its size.
      Fails where the elements are not in the encoding's range, with a reason through `emitError`.
      }], "::llvm::LogicalResult", "pack",
      (ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType, "::llvm::ArrayRef<char>":$dense,
           "::llvm::ArrayRef<::llvm::MutableArrayRef<char>>":$planes,
           "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError)>,
    InterfaceMethod<[{
      The inverse of `pack`: writes the elements that `planes` mean, in full, to `dense`.
      }], "void", "unpack",
      (ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType,
           "::llvm::ArrayRef<::llvm::ArrayRef<char>>":$planes, "::llvm::MutableArrayRef<char>":$dense)>,
    InterfaceMethod<[{
      Packs what the planes `from` of the encoding `source` mean without a detour through dense elements, which would round
      twice. Returns false, having written nothing, where the two encodings do not store the same numbers.
      }], "bool", "repack",
      (ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Attribute":$source, "::llvm::ArrayRef<::llvm::ArrayRef<char>>":$from,
           "::llvm::ArrayRef<::llvm::MutableArrayRef<char>>":$planes), [{}], [{ return false; }]>,
    InterfaceMethod<[{
      How a product with the tensor rounds its other operand.
      }], "::hone::ActivationRounding", "getActivationRounding", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<[{
      Builds IR that reads the element of the tensor at `indices` from values of its views, as `elementType`; bit-equal to
      what `unpack` writes there.
      }], "::mlir::Value", "buildElement",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Type":$elementType,
           "::mlir::ValueRange":$views, "::mlir::ValueRange":$indices)>,
    InterfaceMethod<[{
      The name of this storage in that of a kernel (`linear_f32_<suffix>_avx512`). Kernels that differ in a parameter of the
      encoding take it as an attribute; kernels that differ in code have another suffix.
      }], "std::string", "getKernelSuffix", (ins)>,
  ];
}

def Hone_StateLayoutInterface : AttrInterface<"StateLayoutInterface", [VerifiableTensorEncoding]> {
  let cppNamespace = "::hone";
  let description = [{
    How a slot of the session's state keeps its elements. A tensor with such an encoding is what state operations give; it means
    an ordinary tensor of the same shape and element type, and only kernels that know the layout read it.
  }];
  let methods = [
    InterfaceMethod<"The name of this layout in manifests.", "::llvm::StringRef", "getLayoutName", (ins)>,
    InterfaceMethod<"How many bits a code of quantized KV has, as `#hone.quantized_kv` says, or 0.", "int64_t", "getIntegerBits",
      (ins)>,
  ];
}

def Hone_AttentionPatternInterface : AttrInterface<"AttentionPatternInterface"> {
  let cppNamespace = "::hone";
  let description = [{
    Which keys a query sees: a predicate in IR, which is the definition, and the same as kernels take it where they can. A
    pattern may have operands, tensors of integers that the operation has after its own. Tests hold predicate and kernels'
    description against each other.
  }];
  let methods = [
    InterfaceMethod<"How many operands the pattern has.", "unsigned", "getOperandCount", (ins), [{}], [{ return 0; }]>,
    InterfaceMethod<[{
      Whether tensors of these types, which are of integers and as many as the pattern has operands, can be its operands in an
      attention of such sizes.
      }], "::llvm::LogicalResult", "verifyOperands",
      (ins "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError, "const ::hone::AttentionSizes<int64_t> &":$sizes,
           "::mlir::TypeRange":$types), [{}], [{ return ::llvm::success(); }]>,
    InterfaceMethod<[{
      Builds what the predicate reads, once for all queries and keys: a value for each operand, which may be the operand.
      }], "::llvm::SmallVector<::mlir::Value>", "buildTables",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::ValueRange":$operands,
           "const ::hone::AttentionSizes<::mlir::Value> &":$sizes),
      [{}], [{ return ::llvm::to_vector_of<::mlir::Value>(operands); }]>,
    InterfaceMethod<[{
      Builds an `i1` that is true iff the key of `point` is visible to its query, or returns null where every key is.
      }], "::mlir::Value", "buildIsVisible",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "const ::hone::AttentionPoint &":$point,
           "::mlir::ValueRange":$tables)>,
    InterfaceMethod<[{
      The same for kernels, which numbers the pattern's operands; none where kernels do not know such a pattern.
      }], "std::optional<::hone::kernels::PatternVisibility>", "getVisibility", (ins), [{}], [{ return std::nullopt; }]>,
  ];
}

#endif // HONE_INTERFACES_TD
