// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constants and rows, as biases and weights of norms, that a quantizer made codes as all else. They are few bytes, and what
// recognises patterns asks for their values.

#include "OnnxMatch.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/ParamBytes.h"

#include <cstring>

namespace hone {
#define GEN_PASS_DEF_FOLDDEQUANTIZED
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

namespace {
class RowFolder {
public:
  explicit RowFolder(ModuleOp module) : module(module), symbols(module) {}
  bool fold(Operation *dequantize);

private:
  FailureOr<SmallVector<double>> multiply(Operation *product);
  FailureOr<SmallVector<double>> readValues(Value value);
  Value makeRow(OpBuilder &b, Operation *dequantize, ArrayRef<float> floats);

  ModuleOp module;
  SymbolTable symbols;
};
} // namespace

/// A constant, a parameter, or the product of two scales: of a QGemm, whose bias is counted in it.
static bool isKnown(Value value) {
  RankedTensorType type = getRankedType(value);
  if (!type || !type.hasStaticShape() || type.getEncoding())
    return false;
  if (Operation *product = getDefiningOp(value, "Mul"))
    return isKnown(product->getOperand(0)) && isKnown(product->getOperand(1)) && isFloat(value) && type.getRank() <= 1;
  return isWeight(value);
}

/// Whether all elements lie along one dimension, and one scale is for all of them or one for each.
static bool isRow(Operation *dequantize) {
  if (!llvm::all_of(dequantize->getOperands(),
                    [&](Value operand) { return onnxir::isAbsent(operand) || isKnown(operand); }) ||
      getInteger(dequantize, "block_size", 0) != 0)
    return false;
  RankedTensorType codes = getRankedType(dequantize->getOperand(0)), floats = getRankedType(dequantize->getResult(0));
  int64_t count = codes.getNumElements();
  auto fits = [&](Value value) {
    return !value || llvm::is_contained({int64_t(1), count}, getRankedType(value).getNumElements());
  };
  return floats && floats.getElementType().isF32() && floats.getShape() == codes.getShape() && count > 0 &&
         (codes.getRank() == 0 || llvm::is_contained(codes.getShape(), count)) && fits(dequantize->getOperand(1)) &&
         fits(getOperand(dequantize, 2));
}

template <typename T> static void append(SmallVector<double> &values, ArrayRef<char> bytes) {
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + i, sizeof(T));
    values.push_back(value);
  }
}

FailureOr<SmallVector<double>> RowFolder::multiply(Operation *product) {
  auto lhs = readValues(product->getOperand(0)), rhs = readValues(product->getOperand(1));
  if (failed(lhs) || failed(rhs) || lhs->empty() || rhs->empty())
    return failure();
  SmallVector<double> values;
  for (size_t i = 0; i < std::max(lhs->size(), rhs->size()); ++i)
    values.push_back(static_cast<float>((*lhs)[lhs->size() == 1 ? 0 : i]) *
                     static_cast<float>((*rhs)[rhs->size() == 1 ? 0 : i]));
  return values;
}

/// Elements of a constant or parameter of f32, or of integers of 8 to 32 bits.
FailureOr<SmallVector<double>> RowFolder::readValues(Value value) {
  if (Operation *product = getDefiningOp(value, "Mul"))
    return multiply(product);
  auto read = value.getDefiningOp<GetParamOp>();
  auto param = read ? symbols.lookup<ParamOp>(read.getName()) : ParamOp();
  Attribute storage = param ? param.getStorage() : value.getDefiningOp()->getAttr("value");
  RankedTensorType type = getRankedType(value);
  if (!storage || isa<DictionaryAttr>(storage))
    return failure();
  FailureOr<StoredBytes> stored = StoredBytes::open(storage, value.getLoc());
  if (failed(stored))
    return failure();
  SmallVector<double> values;
  Type element = type.getElementType();
  bool isUnsigned = element.isUnsignedInteger();
  ArrayRef<char> bytes = stored->get();
  if (element.isF32())
    append<float>(values, bytes);
  else if (element.isInteger(8))
    isUnsigned ? append<uint8_t>(values, bytes) : append<int8_t>(values, bytes);
  else if (element.isInteger(16))
    isUnsigned ? append<uint16_t>(values, bytes) : append<int16_t>(values, bytes);
  else if (element.isInteger(32))
    isUnsigned ? append<uint32_t>(values, bytes) : append<int32_t>(values, bytes);
  if (values.size() != static_cast<size_t>(type.getNumElements()))
    return failure();
  return values;
}

/// A constant, or beside a parameter a parameter.
Value RowFolder::makeRow(OpBuilder &b, Operation *dequantize, ArrayRef<float> floats) {
  auto type = cast<RankedTensorType>(dequantize->getResult(0).getType());
  auto read = dequantize->getOperand(0).getDefiningOp<GetParamOp>();
  if (!read)
    return OnnxBuilder(b, dequantize->getLoc()).constant(DenseElementsAttr::get(type, floats));
  ArrayRef<char> bytes(reinterpret_cast<const char *>(floats.data()), floats.size() * sizeof(float));
  OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
  auto param =
      ParamOp::create(top, dequantize->getLoc(), read.getName().str() + ".floats", type, makeResource(type, bytes));
  symbols.insert(param);
  return GetParamOp::create(b, dequantize->getLoc(), type, param.getSymName());
}

bool RowFolder::fold(Operation *dequantize) {
  if (!isRow(dequantize))
    return false;
  Value zero = getOperand(dequantize, 2);
  auto codes = readValues(dequantize->getOperand(0)), scales = readValues(dequantize->getOperand(1));
  FailureOr<SmallVector<double>> zeros = zero ? readValues(zero) : SmallVector<double>{0};
  if (failed(codes) || failed(scales) || failed(zeros))
    return false;
  SmallVector<float> floats;
  for (auto [i, code] : llvm::enumerate(*codes)) {
    double shifted = code - (*zeros)[zeros->size() == 1 ? 0 : i];
    floats.push_back(static_cast<float>(shifted) * static_cast<float>((*scales)[scales->size() == 1 ? 0 : i]));
  }
  OpBuilder b(dequantize);
  replace(dequantize->getResult(0), makeRow(b, dequantize, floats));
  dequantize->erase();
  return true;
}

namespace {
struct FoldDequantized : impl::FoldDequantizedBase<FoldDequantized> {
  void runOnOperation() override {
    RowFolder folder(getOperation());
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isOp(op, "DequantizeLinear"))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      numFolded += folder.fold(op);
  }
};
} // namespace

} // namespace hone::raising
