// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of less than eight bits: an ONNX file stores them without gaps, low bits first (onnx.proto, TensorProto.raw_data);
// in memory each takes a byte.

#ifndef HONE_DIALECT_ONNX_PACKEDELEMENTS_H
#define HONE_DIALECT_ONNX_PACKEDELEMENTS_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace hone::onnxir {

/// Bits of an element type that files store packed; nothing for all others, bool among them.
std::optional<unsigned> getPackedBits(mlir::Type element);

/// Bytes of `count` packed elements; `count` is not negative.
int64_t getPackedBytes(int64_t count, unsigned bits);

/// One byte an element to `bits` bits an element.
std::string packElements(llvm::StringRef bytes, unsigned bits);

/// The inverse for `count` elements, of which `packed` has all; signed ones are sign-extended to their byte.
std::string unpackElements(llvm::StringRef packed, int64_t count, unsigned bits, bool isSigned);

} // namespace hone::onnxir

#endif // HONE_DIALECT_ONNX_PACKEDELEMENTS_H
