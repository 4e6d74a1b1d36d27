// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognition of weights kept as integers: MatMulNBits, MatMulInteger of a DynamicQuantizeLinear, DequantizeLinear.

#include "QuantizedWeight.h"

#include "hone/Dialect/Hone/HoneStorage.h"

#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace hone::raising {

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

/// The values of the planes in the file; `zeros` may be null.
struct QuantizedMatcher::Planes {
  Value values, scales, zeros;
};

/// What `value`, a parameter or constant, is stored as, or null.
Attribute QuantizedMatcher::getStorage(Value value) {
  if (auto read = value.getDefiningOp<GetParamOp>()) {
    auto param = symbols.lookup<ParamOp>(read.getName());
    return param && !param.getTensorType().getEncoding() ? param.getStorage() : Attribute();
  }
  Operation *constant = getDefiningOp(value, "Constant");
  return constant ? constant->getAttr("value") : Attribute();
}

/// The bytes of `value` as those of a plane of another shape with elements as wide; one element is repeated to fill it.
Attribute QuantizedMatcher::getPlane(Value value, RankedTensorType type) {
  RankedTensorType stored = getRankedType(value);
  if (!stored || !stored.hasStaticShape() ||
      getElementBytes(stored.getElementType()) != getElementBytes(type.getElementType()))
    return {};
  Attribute storage = getStorage(value);
  bool isSame = stored.getNumElements() == type.getNumElements();
  if (auto elements = dyn_cast_or_null<DenseElementsAttr>(storage))
    return isSame || stored.getNumElements() == 1 ? DenseElementsAttr::getFromRawBuffer(type, elements.getRawData())
                                                  : Attribute();
  if (!isSame)
    return {};
  if (auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(storage))
    return DenseResourceElementsAttr::get(type, resource.getRawHandle());
  return dyn_cast_or_null<ExternalAttr>(storage);
}

/// Whether every zero point is known to be the one that stands for none.
bool QuantizedMatcher::isMiddle(Value zeros, bool isSigned) {
  auto elements = dyn_cast_or_null<DenseElementsAttr>(getStorage(zeros));
  return elements && llvm::all_of(elements.getRawData(),
                                  [&](char zero) { return static_cast<uint8_t>(zero) == (isSigned ? 0 : 128); });
}

/// The encoding, or null where there is none of these parameters.
template <typename... Args> static AffineAttr getValid(MLIRContext *context, Args... args) {
  ScopedDiagnosticHandler silent(context, [](Diagnostic &) { return success(); });
  auto emit = [&] { return emitError(UnknownLoc::get(context)); };
  return AffineAttr::getChecked(llvm::function_ref<InFlightDiagnostic()>(emit), context, args...);
}

static bool isByte(Type element) { return element.isInteger(8); }

std::optional<QuantizedWeight> QuantizedMatcher::make(const Planes &planes, AffineAttr encoding, int64_t outputs,
                                                      int64_t inputs, Type elements) {
  QuantizedWeight weight;
  weight.type = RankedTensorType::get({outputs, inputs}, elements, encoding);
  SmallVector<NamedAttribute> storage;
  Value values[] = {planes.values, planes.scales, planes.zeros};
  for (auto [i, plane] : llvm::enumerate(getPlanes(weight.type))) {
    Attribute bytes = getPlane(values[i], plane.type);
    if (!bytes)
      return std::nullopt;
    storage.emplace_back(StringAttr::get(elements.getContext(), plane.name), bytes);
  }
  weight.storage = DictionaryAttr::get(elements.getContext(), storage);
  auto read = planes.values.getDefiningOp<GetParamOp>();
  weight.name = read ? read.getName().str() : "constant";
  return weight;
}

std::optional<QuantizedWeight> QuantizedMatcher::makeRows(Value codes, Value scales, Value zeros, int64_t bits,
                                                          int64_t group, int64_t outputs, int64_t inputs,
                                                          Type elements) {
  auto isBytes = [](Value value) { return getRankedType(value) && isByte(getRankedType(value).getElementType()); };
  if (!isBytes(codes) || !getRankedType(scales) || !isFloat(scales) || (zeros && !isBytes(zeros)))
    return std::nullopt;
  auto encoding = getValid(codes.getContext(), bits, group, cast<FloatType>(getRankedType(scales).getElementType()),
                           zeros != nullptr, /*isSigned=*/false, /*transposed=*/false, /*activations=*/int64_t(0),
                           /*atLeast=*/false);
  return encoding ? make({codes, scales, zeros}, encoding, outputs, inputs, elements) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// MatMulNBits
//===----------------------------------------------------------------------===//

/// The least number of bits that x may be rounded to, or 0 where it is to stay as it is: accuracy_level is the minimum accuracy of
/// x inside the product, from 1, f32, to 4, 8 bits in blocks as those of the weight (onnxruntime, docs/ContribOperators.md).
static int64_t getLeastActivations(Operation *op) {
  constexpr int64_t int8Activations = 4;
  return getInteger(op, "accuracy_level", 0) == int8Activations ? 8 : 0;
}

/// Why no encoding says what a MatMulNBits has beside its codes, or an empty string.
static StringRef getBlockwiseBlocker(Operation *op) {
  Value scales = op->getOperand(2), zeros = getOperand(op, 3);
  if (getOperand(op, 4))
    return "its columns choose their scales by g_idx";
  if (!isFloat(scales) || getRankedType(scales).getElementType().isBF16())
    return "its scales are no f32 or f16";
  if (zeros && !(getRankedType(zeros) && isByte(getRankedType(zeros).getElementType())))
    return "its zero points are no codes of as many bits as those of the weight";
  return "";
}

std::optional<QuantizedProduct> QuantizedMatcher::matchBlocks(Operation *op, std::string &reason) {
  int64_t bits = getInteger(op, "bits", 4), block = getInteger(op, "block_size", 32);
  int64_t outputs = getInteger(op, "N", 0), inputs = getInteger(op, "K", 0);
  Value x = op->getOperand(0), scales = op->getOperand(2), zeros = getOperand(op, 3);
  reason = getBlockwiseBlocker(op);
  if (!reason.empty())
    return std::nullopt;
  reason = "its weight is no parameter of 2, 4 or 8 bits with a scale and a zero point for each block";
  if (!isFloat(x) || block < 1 || outputs < 1 || inputs < 1)
    return std::nullopt;
  auto encode = [&](int64_t activations) {
    return getValid(op->getContext(), bits, block, cast<FloatType>(getRankedType(scales).getElementType()),
                    zeros != nullptr, /*isSigned=*/false, /*transposed=*/false, activations,
                    /*atLeast=*/activations != 0);
  };
  AffineAttr encoding = encode(getLeastActivations(op));
  if (!encoding) // of groups in which nothing may be rounded
    encoding = encode(0);
  if (!encoding || (getLastSize(x) != inputs && !ShapedType::isDynamic(getLastSize(x))) || getRank(x) < 1)
    return std::nullopt;
  auto weight = make({op->getOperand(1), scales, zeros}, encoding, outputs, inputs, getRankedType(x).getElementType());
  if (!weight)
    return std::nullopt;
  return QuantizedProduct{x, getOperand(op, 5), *weight, op->getResult(0)};
}

//===----------------------------------------------------------------------===//
// Integers with a scale for each output
//===----------------------------------------------------------------------===//

/// The weight of bytes `[K, N]`, or unless `isTransposed` `[N, K]`, with scales and zero points of floats and bytes.
std::optional<QuantizedWeight> QuantizedMatcher::makeBytes(Planes planes, bool isTransposed, int64_t group,
                                                           int64_t activations, Type elements) {
  RankedTensorType type = getRankedType(planes.values);
  bool isSigned = !type.getElementType().isUnsignedInteger();
  if (!planes.zeros && !isSigned) // counted from 0, which is not the middle
    return std::nullopt;
  if (planes.zeros && isMiddle(planes.zeros, isSigned))
    planes.zeros = nullptr;
  auto encoding =
      getValid(type.getContext(), int64_t(8), group, cast<FloatType>(getRankedType(planes.scales).getElementType()),
               planes.zeros != nullptr, isSigned, isTransposed, activations, /*atLeast=*/activations != 0);
  if (!encoding)
    return std::nullopt;
  int64_t outputAxis = isTransposed ? 1 : 0;
  return make(planes, encoding, type.getDimSize(outputAxis), type.getDimSize(1 - outputAxis), elements);
}

static bool isByteMatrix(Value value) {
  RankedTensorType type = getRankedType(value);
  return type && type.getRank() == 2 && type.hasStaticShape() && isByte(type.getElementType()) && isWeight(value);
}

/// Whether there is one of `values` for all, or one for each of `count` outputs.
static bool isPerOutput(Value values, int64_t count) {
  RankedTensorType type = getRankedType(values);
  return type && type.hasStaticShape() && isWeight(values) &&
         (type.getNumElements() == 1 || (type.getRank() == 1 && type.getNumElements() == count));
}

/// The integers that a product of floats scales, and where its scales are beside them.
static std::optional<std::pair<Value, Value>> splitScaled(Operation *product) {
  for (unsigned side : {0u, 1u}) {
    Operation *cast = getDefiningOp(product->getOperand(side), "Cast");
    if (cast && isByteMatrix(cast->getOperand(0)) && isFloat(product->getOperand(1 - side)))
      return std::pair(cast->getOperand(0), product->getOperand(1 - side));
  }
  return std::nullopt;
}

Operation *findDequantization(Value value) {
  Value floats = skipCasts(value);
  if (Operation *dequantize = getDefiningOp(floats, "DequantizeLinear"))
    return dequantize;
  Operation *product = getDefiningOp(floats, "Mul");
  return product && splitScaled(product) ? product : nullptr;
}

/// Mul of a Cast of integers, with a scale for all or, by broadcasting, for each output.
std::optional<QuantizedWeight> QuantizedMatcher::matchScaled(Operation *product, bool isTransposed, Type elements) {
  auto [values, scales] = *splitScaled(product);
  RankedTensorType type = getRankedType(values), scaleType = getRankedType(scales);
  if (!scaleType || !scaleType.hasStaticShape() || !isWeight(scales) || scaleType.getRank() > 2)
    return std::nullopt;
  int64_t outputAxis = isTransposed ? 1 : 0;
  SmallVector<int64_t> wanted = {1, 1};
  wanted[outputAxis] = type.getDimSize(outputAxis);
  bool isRow = scaleType.getRank() == 1 && outputAxis == 1 && scaleType.getDimSize(0) == wanted[1];
  if (scaleType.getNumElements() != 1 && !isRow && scaleType.getShape() != ArrayRef(wanted))
    return std::nullopt;
  return makeBytes({values, scales, Value()}, isTransposed, /*group=*/0, /*activations=*/0, elements);
}

std::optional<QuantizedWeight> QuantizedMatcher::matchDequantized(Operation *dequantize, bool isTransposed,
                                                                  Type elements) {
  if (isOp(dequantize, "Mul"))
    return matchScaled(dequantize, isTransposed, elements);
  Value values = dequantize->getOperand(0), scales = dequantize->getOperand(1), zeros = getOperand(dequantize, 2);
  if (!isByteMatrix(values) || !isFloat(scales))
    return std::nullopt;
  int64_t outputAxis = isTransposed ? 1 : 0, block = getInteger(dequantize, "block_size", 0);
  int64_t axis = getInteger(dequantize, "axis", 1), outputs = getRankedType(values).getDimSize(outputAxis);
  int64_t inputs = getRankedType(values).getDimSize(1 - outputAxis);
  axis += axis < 0 ? 2 : 0;
  if (block == 0 && getRankedType(scales) && getRankedType(scales).getRank() > 0 && axis != outputAxis)
    return std::nullopt;
  // Rows in blocks are filled up in the encoding, and are not in the file.
  if (block != 0 && (axis == outputAxis || (!isTransposed && inputs % block != 0)))
    return std::nullopt;
  if (block == 0 && !(isPerOutput(scales, outputs) && (!zeros || isPerOutput(zeros, outputs))))
    return std::nullopt;
  return makeBytes({values, scales, zeros}, isTransposed, block, /*activations=*/0, elements);
}

/// The only user of `value` if it is of the operator, else null.
static Operation *getOnlyUser(Value value, StringRef opType) {
  Operation *user = value.hasOneUse() ? *value.getUsers().begin() : nullptr;
  return isOp(user, opType) ? user : nullptr;
}

static Value getOther(Operation *op, Value operand) { return op->getOperand(op->getOperand(0) == operand ? 1 : 0); }

/// A MatMulInteger of a DynamicQuantizeLinear with a weight, its sums cast and multiplied with both scales, as one product
/// or one after the other.
std::optional<QuantizedProduct> QuantizedMatcher::matchIntegers(Operation *op, std::string &reason) {
  Value codes = op->getOperand(0), values = op->getOperand(1), zeros = getOperand(op, 3);
  Operation *quantize = getDefiningOp(codes, "DynamicQuantizeLinear");
  reason = "it is no product of dynamically quantized rows with a parameter that is scaled by both scales";
  if (!quantize || !isByteMatrix(values) || getOperand(op, 2) != quantize->getResult(2))
    return std::nullopt;
  Operation *cast = getOnlyUser(op->getResult(0), "Cast");
  Operation *scale = cast && isFloat(cast->getResult(0)) ? getOnlyUser(cast->getResult(0), "Mul") : nullptr;
  if (!scale)
    return std::nullopt;
  Value xScale = quantize->getResult(1), scales = getOther(scale, cast->getResult(0)), result = scale->getResult(0);
  if (Operation *both = getDefiningOp(scales, "Mul"); both && llvm::is_contained(both->getOperands(), xScale)) {
    scales = getOther(both, xScale);
  } else {
    bool isFirst = scales == xScale;
    Operation *second = getOnlyUser(result, "Mul");
    Value other = second ? getOther(second, result) : Value();
    if (!other || (!isFirst && other != xScale))
      return std::nullopt;
    scales = isFirst ? other : scales;
    result = second->getResult(0);
  }
  int64_t outputs = getRankedType(values).getDimSize(1);
  Value x = quantize->getOperand(0);
  if (!isFloat(scales) || !isPerOutput(scales, outputs) || (zeros && !isPerOutput(zeros, outputs)) || !isFloat(x) ||
      getRank(x) < 1)
    return std::nullopt;
  auto weight = makeBytes({values, scales, zeros}, /*isTransposed=*/true, /*group=*/0, /*activations=*/8,
                          getRankedType(x).getElementType());
  if (!weight)
    return std::nullopt;
  return QuantizedProduct{x, Value(), *weight, result};
}

std::optional<QuantizedProduct> QuantizedMatcher::matchProduct(Operation *op, std::string &reason) {
  if (isOp(op, "MatMulNBits", kMicrosoft))
    return matchBlocks(op, reason);
  if (isOp(op, "MatMulInteger"))
    return matchIntegers(op, reason);
  return std::nullopt;
}

} // namespace hone::raising
