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
      The planes as they are stored. Names are words, unique within the encoding.
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
    Which keys a query sees, as a predicate over positions. The predicate is said twice, for IR and for C++, and tests hold
    the two against each other. Everything else here is a bound that lets a kernel skip work; the bounds of a pattern may be
    loose but never hide a visible key.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds an `i1` that is true iff the key of `point` is visible to its query, or returns null where every key is.
      `point.prefix` is null unless `needsPrefix()`.
      }], "::mlir::Value", "buildIsVisible",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "const ::hone::AttentionPoint<::mlir::Value> &":$point)>,
    InterfaceMethod<[{
      Whether the key of `point` is visible to its query.
      }], "bool", "isVisible", (ins "const ::hone::AttentionPoint<int64_t> &":$point)>,
    InterfaceMethod<[{
      A range that holds every key that some query of `queries` sees, in a sequence of `keyCount` keys with a prefix of `prefix`.
      }], "::hone::PositionRange", "getKeyRange",
      (ins "::hone::PositionRange":$queries, "int64_t":$keyCount, "int64_t":$prefix),
      [{}], [{ return {0, keyCount}; }]>,
    InterfaceMethod<[{
      Whether no query sees a key after its own position, whatever the prefix.
      }], "bool", "isCausal", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<[{
      Whether the predicate reads the length of the sequence's prefix, which the operation must then have.
      }], "bool", "needsPrefix", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<[{
      The name of this pattern in that of a kernel.
      }], "std::string", "getKernelSuffix", (ins)>,
  ];
}

#endif // HONE_INTERFACES_TD
