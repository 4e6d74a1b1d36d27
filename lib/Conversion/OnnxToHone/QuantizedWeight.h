// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights that a file keeps as integers, with scales and zero points beside them, as parameters with an encoding. The bytes
// stay where and as they are.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_QUANTIZEDWEIGHT_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_QUANTIZEDWEIGHT_H

#include "OnnxMatch.h"

#include "mlir/IR/SymbolTable.h"

namespace hone::raising {

/// A matrix `[N, K]` with the encoding `#hone.affine`, and the bytes of each of its planes by name.
struct QuantizedWeight {
  RankedTensorType type;
  mlir::DictionaryAttr storage;
  std::string name; // of the tensor of codes in the file
};

/// A product with such a weight: `result` is `x · weightᵀ + bias`.
struct QuantizedProduct {
  Value x, bias; // bias may be null
  QuantizedWeight weight;
  Value result;
};

/// What makes floats of integers: a DequantizeLinear, perhaps under casts, or a Mul of a scale and a Cast of a matrix of bytes; else null.
Operation *findDequantization(Value value);

/// Finds quantized weights of one module.
class QuantizedMatcher {
public:
  explicit QuantizedMatcher(mlir::SymbolTable &symbols) : symbols(symbols) {}

  /// A product of com.microsoft (MatMulNBits), or one of integers whose sums are scaled (MatMulInteger of a
  /// DynamicQuantizeLinear), or nothing with a reason in `reason` where `op` is such a product.
  std::optional<QuantizedProduct> matchProduct(Operation *op, std::string &reason);

  /// The weight that `dequantize`, of findDequantization, gives, perhaps cast to `elements` then: `[N, K]`, or `[K, N]` if
  /// `isTransposed`.
  std::optional<QuantizedWeight> matchDequantized(Operation *dequantize, bool isTransposed, Type elements);

  /// Rows of codes counted from 0 of `bits` bits, filled up to whole bytes, under scales of `group` inputs each, 0: of all, with
  /// zero points or null: `[outputs, inputs]` of `elements`. Nothing where there is no such encoding, or a plane has other bytes.
  std::optional<QuantizedWeight> makeRows(Value codes, Value scales, Value zeros, int64_t bits, int64_t group,
                                          int64_t outputs, int64_t inputs, Type elements);

private:
  struct Planes;

  std::optional<QuantizedProduct> matchBlocks(Operation *op, std::string &reason);
  std::optional<QuantizedProduct> matchIntegers(Operation *op, std::string &reason);
  std::optional<QuantizedWeight> matchScaled(Operation *product, bool isTransposed, Type elements);
  std::optional<QuantizedWeight> make(const Planes &planes, AffineAttr encoding, int64_t outputs, int64_t inputs,
                                      Type elements);
  std::optional<QuantizedWeight> makeBytes(Planes planes, bool isTransposed, int64_t group, int64_t activations,
                                           Type elements);
  mlir::Attribute getStorage(Value value);
  mlir::Attribute getPlane(Value value, RankedTensorType type);
  bool isMiddle(Value zeros, bool isSigned);

  mlir::SymbolTable &symbols;
};

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_QUANTIZEDWEIGHT_H
