// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Evaluation of the few operators that are between a recurrent layer and its constants, and of the integers that they dequantize.

#include "ConstantWeights.h"

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace hone::lowering {

using onnxir::isNode;

ConstantMatrices::ConstantMatrices(Node &node, unsigned input)
    : ConstantEvaluator(node), operand(node.op->getOperand(input)), type(node.type(input)) {
  if (!type.hasStaticShape() || type.getRank() != 3 || !type.getElementType().isF32())
    type = {};
  else
    integers = findIntegers();
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Elements of `type` as floats, which integers of 8 bits are exactly.
static std::optional<std::vector<float>> readFloats(Type element, bool isUnsigned, ArrayRef<char> bytes) {
  std::vector<float> floats;
  if (element.isF32()) {
    floats.resize(bytes.size() / sizeof(float));
    llvm::copy(bytes, reinterpret_cast<char *>(floats.data()));
    return floats;
  }
  if (!element.isInteger(8))
    return std::nullopt;
  for (char byte : bytes)
    floats.push_back(isUnsigned ? static_cast<uint8_t>(byte) : static_cast<int8_t>(byte));
  return floats;
}

ParamOp ConstantEvaluator::findParam(Value value) {
  auto read = value.getDefiningOp<GetParamOp>();
  return read ? SymbolTable::lookupNearestSymbolFrom<ParamOp>(node.op, read.getNameAttr()) : ParamOp();
}

/// A parameter without encoding, or a constant of the file.
std::optional<ConstantEvaluator::Array> ConstantEvaluator::read(Operation *op) {
  auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!result || result.getEncoding())
    return std::nullopt;
  Array array{SmallVector<int64_t>(result.getShape()), {}};
  std::optional<std::vector<float>> floats;
  Type element = result.getElementType();
  if (ParamOp param = findParam(op->getResult(0))) {
    // Parameters have no sign any more.
    bool isPlain = param.getStorageType() == param.getTensorType() && !param.getTensorType().getEncoding() &&
                   param.getTensorType().getElementTypeBitWidth() == element.getIntOrFloatBitWidth();
    auto planes = isPlain ? openPlanes(param) : FailureOr<SmallVector<StoredBytes>>();
    if (succeeded(planes))
      floats = readFloats(element, element.isUnsignedInteger(), planes->front().get());
  } else if (auto dense = op->getAttrOfType<DenseElementsAttr>("value")) {
    floats = readFloats(element, element.isUnsignedInteger(), getElements(dense));
  }
  if (!floats || static_cast<int64_t>(floats->size()) != result.getNumElements())
    return std::nullopt;
  array.elements = std::move(*floats);
  return array;
}

/// The number of elements below each index of a dimension.
static SmallVector<int64_t> getStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  return strides;
}

/// Elements of `shape`, each at `begin` plus its index times `strides` in `from`.
static std::vector<float> gather(ArrayRef<float> from, ArrayRef<int64_t> shape, ArrayRef<int64_t> strides,
                                 int64_t begin) {
  std::vector<float> taken;
  SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t left = ShapedType::getNumElements(shape), at = begin; left > 0; --left) {
    taken.push_back(from[at]);
    for (size_t dim = shape.size(); dim-- > 0;) {
      at += strides[dim];
      if (++index[dim] < shape[dim])
        break;
      at -= strides[dim] * shape[dim];
      index[dim] = 0;
    }
  }
  return taken;
}

std::optional<ConstantEvaluator::Array> ConstantEvaluator::slice(Operation *op, ArrayRef<int64_t> shape) {
  auto from = evaluate(op->getOperand(0));
  Node slice(op, node.lowerer);
  auto starts = slice.inputs() > 2 ? slice.constants(1) : slice.integers("starts");
  auto axes = slice.inputs() > 3 ? slice.constants(3) : slice.integers("axes");
  auto steps = slice.inputs() > 4 ? slice.constants(4) : std::nullopt;
  if (!from || !starts || from->shape.size() != shape.size() || (slice.inputs() > 4 && !steps) ||
      (steps && llvm::any_of(*steps, [](int64_t step) { return step != 1; })))
    return std::nullopt;
  SmallVector<int64_t> strides = getStrides(from->shape);
  int64_t begin = 0, rank = shape.size();
  for (auto [i, start] : llvm::enumerate(*starts)) {
    int64_t dim = axes ? (*axes)[i] : static_cast<int64_t>(i);
    dim = dim < 0 ? dim + rank : dim;
    int64_t size = from->shape[dim], first = std::clamp<int64_t>(start < 0 ? start + size : start, 0, size);
    if (first + shape[dim] > size)
      return std::nullopt;
    begin += first * strides[dim];
  }
  return Array{SmallVector<int64_t>(shape), gather(from->elements, shape, strides, begin)};
}

std::optional<ConstantEvaluator::Array> ConstantEvaluator::join(Operation *op, ArrayRef<int64_t> shape) {
  Node concat(op, node.lowerer);
  auto axis = concat.axis(concat.integer("axis"), shape.size());
  if (failed(axis))
    return std::nullopt;
  SmallVector<Array> parts;
  for (Value value : op->getOperands()) {
    auto part = evaluate(value);
    if (!part || part->shape.size() != shape.size())
      return std::nullopt;
    parts.push_back(std::move(*part));
  }
  Array all{SmallVector<int64_t>(shape), {}};
  for (int64_t outer = 0, count = ShapedType::getNumElements(shape.take_front(*axis)); outer < count; ++outer)
    for (const Array &part : parts) {
      int64_t run = part.elements.size() / count;
      llvm::append_range(all.elements, ArrayRef(part.elements).slice(outer * run, run));
    }
  return all;
}

std::optional<ConstantEvaluator::Array> ConstantEvaluator::transpose(Operation *op, ArrayRef<int64_t> shape) {
  auto from = evaluate(op->getOperand(0));
  auto order = Node(op, node.lowerer).integers("perm");
  if (!from || !order || order->size() != shape.size())
    return std::nullopt;
  SmallVector<int64_t> all = getStrides(from->shape), strides;
  for (int64_t dim : *order)
    strides.push_back(all[dim]);
  return Array{SmallVector<int64_t>(shape), gather(from->elements, shape, strides, 0)};
}

/// Mul and Sub, with broadcasting.
std::optional<ConstantEvaluator::Array> ConstantEvaluator::combine(Operation *op, ArrayRef<int64_t> shape) {
  SmallVector<std::vector<float>> sides;
  for (Value value : op->getOperands()) {
    auto side = evaluate(value);
    if (!side || side->shape.size() > shape.size())
      return std::nullopt;
    side->shape.insert(side->shape.begin(), shape.size() - side->shape.size(), 1);
    SmallVector<int64_t> strides = getStrides(side->shape);
    for (auto [stride, size, wanted] : llvm::zip(strides, side->shape, shape))
      stride = size == wanted ? stride : 0;
    sides.push_back(gather(side->elements, shape, strides, 0));
  }
  bool multiplies = isNode(op, "Mul");
  for (auto [lhs, rhs] : llvm::zip_equal(sides[0], sides[1]))
    lhs = multiplies ? lhs * rhs : lhs - rhs;
  return Array{SmallVector<int64_t>(shape), std::move(sides[0])};
}

std::optional<ConstantEvaluator::Array> ConstantEvaluator::evaluateOperation(Operation *op, ArrayRef<int64_t> shape) {
  if (isa<GetParamOp>(op) || isNode(op, "Constant"))
    return read(op);
  if (isNode(op, "Slice"))
    return slice(op, shape);
  if (isNode(op, "Concat"))
    return join(op, shape);
  if (isNode(op, "Transpose"))
    return transpose(op, shape);
  if (isNode(op, "Mul") || isNode(op, "Sub"))
    return combine(op, shape);
  bool isCast = isNode(op, "Cast") && isa<RankedTensorType>(op->getResult(0).getType()) &&
                cast<RankedTensorType>(op->getResult(0).getType()).getElementType().isF32();
  bool isSame = isNode(op, "Identity") || isNode(op, "Reshape") || isNode(op, "Squeeze") || isNode(op, "Unsqueeze");
  auto from = isCast || isSame ? evaluate(op->getOperand(0)) : std::nullopt;
  if (from)
    from->shape.assign(shape.begin(), shape.end());
  return from;
}

/// The elements of a value of fixed sizes, where constants alone make it.
std::optional<ConstantEvaluator::Array> ConstantEvaluator::evaluate(Value value) {
  Operation *op = value.getDefiningOp();
  Value lowered = node.lowerer.lookUp(value);
  auto shape = lowered ? dyn_cast<RankedTensorType>(lowered.getType()) : RankedTensorType();
  if (!op || !shape || !shape.hasStaticShape())
    return std::nullopt;
  auto array = evaluateOperation(op, shape.getShape());
  bool isWhole = array && static_cast<int64_t>(array->elements.size()) == shape.getNumElements();
  return isWhole ? std::move(array) : std::nullopt;
}

Value ConstantEvaluator::addParam(Value value, RankedTensorType type, Attribute storage, int64_t index) {
  auto module = node.op->getParentOfType<ModuleOp>();
  SymbolTable symbols(module);
  ParamOp source = findParam(value);
  std::string name = source ? source.getSymName().str() : "weight";
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto param = ParamOp::create(builder, node.op->getLoc(), name + "." + std::to_string(index), type, storage);
  symbols.insert(param);
  return GetParamOp::create(node.b, type, param.getSymName());
}

Value ConstantEvaluator::addParam(Value value, ArrayRef<int64_t> shape, ArrayRef<float> elements, int64_t index) {
  auto type = RankedTensorType::get(shape, node.b.getF32Type());
  ArrayRef<char> bytes(reinterpret_cast<const char *>(elements.data()), elements.size() * sizeof(float));
  return addParam(value, type, makeResource(type, bytes), index);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

bool ConstantMatrices::hasNoZeroPoint(Value zeros, bool isSigned) {
  auto array = evaluate(zeros);
  return array && llvm::all_of(array->elements, [&](float zero) { return zero == (isSigned ? 0 : 128); });
}

/// Transpose<perm = [0, 2, 1]>(Mul(Sub(Cast(codes), zeros), scales)), which DynamicQuantizeLSTM is expanded to.
std::optional<ConstantMatrices::Integers> ConstantMatrices::findIntegers() {
  Operation *rows = operand.getDefiningOp();
  if (!isNode(rows, "Transpose") || Node(rows, node.lowerer).integers("perm") != SmallVector<int64_t>{0, 2, 1})
    return std::nullopt;
  Operation *product = rows->getOperand(0).getDefiningOp();
  Operation *moved = isNode(product, "Mul") ? product->getOperand(0).getDefiningOp() : nullptr;
  Operation *floats = isNode(moved, "Sub") ? moved->getOperand(0).getDefiningOp() : nullptr;
  ParamOp codes = isNode(floats, "Cast") ? findParam(floats->getOperand(0)) : ParamOp();
  if (!codes || codes.getStorageType() != codes.getTensorType() || codes.getTensorType().getRank() != 3 ||
      !codes.getTensorType().getElementType().isInteger(8))
    return std::nullopt;
  bool isSigned = !codes.getTensorType().getElementType().isUnsignedInteger();
  auto scales = evaluate(product->getOperand(1));
  int64_t matrices = type.getDimSize(0), all = matrices * type.getDimSize(1);
  if (!scales || !hasNoZeroPoint(moved->getOperand(1), isSigned))
    return std::nullopt;
  if (static_cast<int64_t>(scales->elements.size()) == matrices)
    scales->elements = gather(scales->elements, {matrices, type.getDimSize(1)}, {1, 0}, 0);
  if (static_cast<int64_t>(scales->elements.size()) != all)
    return std::nullopt;
  return Integers{floats->getOperand(0), codes, std::move(scales->elements), isSigned};
}

/// Matrix `index` as the integers that the file has. The operator rounds what they are multiplied with to 8 bits.
Value ConstantMatrices::getIntegers(int64_t index) {
  MLIRContext *context = node.op->getContext();
  auto bytes = openPlanes(integers->codes);
  if (failed(bytes))
    return {};
  int64_t rows = type.getDimSize(1), columns = type.getDimSize(2);
  auto encoding = AffineAttr::get(context, /*bits=*/8, /*group=*/0, Float32Type::get(context), /*hasZeros=*/false,
                                  integers->isSigned, /*transposed=*/true, /*activations=*/8, /*atLeast=*/true);
  auto encoded = RankedTensorType::get({rows, columns}, type.getElementType(), encoding);
  auto scales = ArrayRef(integers->scales).slice(index * rows, rows);
  ArrayRef<char> parts[] = {bytes->front().get().slice(index * rows * columns, rows * columns),
                            {reinterpret_cast<const char *>(scales.data()), scales.size() * sizeof(float)}};
  SmallVector<NamedAttribute> storage;
  for (auto [plane, part] : llvm::zip_equal(getPlanes(encoded), parts))
    storage.emplace_back(StringAttr::get(context, plane.name), makeResource(plane.type, part));
  return addParam(integers->read, encoded, DictionaryAttr::get(context, storage), index);
}

Value ConstantMatrices::get(int64_t index, int64_t first, int64_t count) {
  if (!type)
    return {};
  if (integers && count == type.getDimSize(1))
    return getIntegers(index);
  if (!isEvaluated)
    elements = evaluate(operand);
  isEvaluated = true;
  if (!elements)
    return {};
  int64_t columns = type.getDimSize(2);
  auto rows = ArrayRef(elements->elements).slice((index * type.getDimSize(1) + first) * columns, count * columns);
  return addParam(operand, {count, columns}, rows, index);
}

} // namespace hone::lowering
