//===- HoneInterfaces.h - what an encoding and an attention pattern promise ---------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interfaces of dialects/Hone/HoneInterfaces.td and the plain structs that their methods speak in.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_HONE_HONEINTERFACES_H
#define HONE_DIALECT_HONE_HONEINTERFACES_H

#include "hone/kernels/visibility.h"
#include "hone/runtime/signature.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TensorEncoding.h"

#include <optional>
#include <string>

namespace hone {

/// What elements have to be that are addresses; see hone_addresses.
struct AddressRule {
  hone_address_rule rule;
  int64_t bound;
};

/// One array of an encoded tensor's bytes: its name, and its shape and elements as a tensor type without encoding.
struct EncodingPlane {
  llvm::StringRef name;
  mlir::RankedTensorType type;
  /// Where kernels, generated code or unpacking read and write where the elements say: what these have to be. They are checked before, in
  /// the compiler where planes are opened (ParamBytes.h), and in the runtime when an artefact is loaded.
  std::optional<AddressRule> addresses = std::nullopt;
};

/// An array that operations read of an encoded tensor's bytes: a plane, or of a plane whose rows have several arrays' parts one of
/// these.
struct PlaneView {
  mlir::RankedTensorType type;
  size_t plane;       // which plane it is in
  int64_t offset = 0; // of its first byte there
  int64_t stride = 0; // bytes from an index of the first axis to the next; 0 where the array is dense
};

/// Each of `planes` as it is.
llvm::SmallVector<PlaneView> viewWhole(llvm::ArrayRef<EncodingPlane> planes);

/// Activations as integers of `bits` bits under one scale a row and `group` inputs, the largest magnitude divided by
/// 2^(bits-1) - 1; as they are where `bits` is 0.
struct ActivationRounding {
  int64_t bits = 0, group = 0;
};

/// The sizes of an attention, as integers, dynamic ones too, or as index values.
template <typename T>
struct AttentionSizes {
  T batch{};
  T heads{};
  T keyHeads{};
  T queries{};
  T keys{};
};

/// A query and a key of one sequence and query head, as index values.
struct AttentionPoint {
  AttentionSizes<mlir::Value> sizes;
  mlir::Value batch, head;
  /// Which query and which key they are.
  mlir::Value query, key;
  /// The key that is the query's own; negative where there are more queries than keys before it.
  mlir::Value ownKey;
  mlir::Value queryPosition, keyPosition;
};

} // namespace hone

#include "hone/Dialect/Hone/HoneInterfaces.h.inc"

#endif // HONE_DIALECT_HONE_HONEINTERFACES_H
