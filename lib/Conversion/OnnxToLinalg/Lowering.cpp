// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The walk over a function, and what each operator's lowering may ask of its operands and attributes.

#include "Lowering.h"

#include "AttentionCore.h"
#include "Indices.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "onnx/defs/schema.h"

using namespace mlir;

namespace hone::lowering {

/// Integer tensors up to this many elements are computed element by element, so that they fold: a shape is far smaller.
static constexpr int64_t kMaxScalars = 64;
/// Floats take part in shape arithmetic as single numbers (scales, bounds of ranges), not as weights.
static constexpr int64_t kMaxFloatScalars = 4;

/// 4- and 2-bit integers and floats of 8 bits and less: memory holds one in a byte.
static bool isHeldInByte(Type type) {
  return type.isIntOrFloat() && !type.isInteger(1) &&
         (type.getIntOrFloatBitWidth() < 8 || (isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 8));
}

Type withoutSign(Type type) {
  if (isHeldInByte(type))
    return IntegerType::get(type.getContext(), 8);
  if (auto integer = dyn_cast<IntegerType>(type))
    return IntegerType::get(type.getContext(), integer.getWidth());
  if (auto ranked = dyn_cast<RankedTensorType>(type))
    return RankedTensorType::get(ranked.getShape(), withoutSign(ranked.getElementType()), ranked.getEncoding());
  return type;
}

ElementsAttr withoutSign(ElementsAttr value) {
  auto type = cast<RankedTensorType>(withoutSign(value.getShapedType()));
  Type element = value.getElementType();
  if (type == value.getShapedType())
    return value;
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
    return DenseResourceElementsAttr::get(type, resource.getRawHandle());
  bool isUnsigned = !element.isSignlessInteger();
  auto hold = [&](const APInt &bits) { return isUnsigned ? bits.zextOrTrunc(8) : bits.sextOrTrunc(8); };
  auto dense = cast<DenseElementsAttr>(value);
  if (!isHeldInByte(element))
    return dense.bitcast(type.getElementType());
  if (isa<FloatType>(element))
    return dense.mapValues(type.getElementType(), [&](const APFloat &v) { return hold(v.bitcastToAPInt()); });
  return dense.mapValues(type.getElementType(), hold);
}

//===----------------------------------------------------------------------===//
// Lowerer
//===----------------------------------------------------------------------===//

void Lowerer::map(Value original, Value lowered) { mapping.map(original, lowered); }

void Lowerer::setSizes(Value tensor, ArrayRef<Size> sizes) { knownSizes[tensor] = llvm::to_vector(sizes); }

SmallVector<Size> Lowerer::sizes(Value tensor) {
  if (auto it = knownSizes.find(tensor); it != knownSizes.end())
    return it->second;
  SmallVector<Size> sizes;
  auto type = cast<RankedTensorType>(tensor.getType());
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(size)) {
      sizes.push_back(b.getIndexAttr(size));
      continue;
    }
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(tensor);
    Value value = tensor::DimOp::create(b, tensor, dim);
    math.markNonNegative(value);
    sizes.push_back(value);
  }
  setSizes(tensor, sizes);
  return sizes;
}

bool Lowerer::isNewCheck(Value condition) {
  Region *here = b.getInsertionBlock()->getParent();
  SmallVector<Region *> &regions = checked[condition];
  if (llvm::any_of(regions, [&](Region *region) { return region->isAncestor(here); }))
    return false;
  regions.push_back(here);
  return true;
}

/// The types that follow from the operands of `op`; its own where it cannot say them.
static SmallVector<Type> inferResults(Operation *op) {
  SmallVector<Type> types;
  auto infer = dyn_cast<InferTypeOpInterface>(op);
  if (!infer ||
      failed(infer.inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(), op->getAttrDictionary(),
                                    op->getPropertiesStorage(), op->getRegions(), types)))
    return llvm::map_to_vector<1>(op->getResultTypes(), [](Type type) { return withoutSign(type); });
  types.truncate(op->getNumResults()); // optional ones, which come last, may be left out
  return types;
}

/// `declared` with the sizes that `type` fixes besides; `declared` where the two contradict each other.
static Type keepFixed(Type type, Type declared) {
  auto from = dyn_cast<RankedTensorType>(type), to = dyn_cast<RankedTensorType>(declared);
  if (!from || !to || failed(verifyCompatibleShape(from.getShape(), to.getShape())))
    return declared;
  SmallVector<int64_t> shape(to.getShape());
  for (auto [size, fixed] : llvm::zip_equal(shape, from.getShape()))
    size = ShapedType::isDynamic(size) ? fixed : size;
  return RankedTensorType::get(shape, to.getElementType(), to.getEncoding());
}

/// The sizes of what operations of the hone dialect make are sizes of their operands.
LogicalResult Lowerer::setReifiedSizes(Operation *op) {
  ReifiedRankedShapedTypeDims shapes;
  auto interface = dyn_cast<ReifyRankedShapedTypeOpInterface>(op);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op); // what checks sizes comes before what has them
  if (!interface || failed(interface.reifyResultShapes(b, shapes)))
    return success();
  for (auto [result, reified] : llvm::zip_equal(op->getResults(), shapes)) {
    for (Size &size : reified) {
      auto value = dyn_cast<Value>(size);
      auto dim = value ? value.getDefiningOp<tensor::DimOp>() : tensor::DimOp();
      std::optional<int64_t> index = dim ? dim.getConstantIndex() : std::nullopt;
      if (index)
        size = sizes(dim.getSource())[*index];
    }
    setSizes(result, reified);
    if (failed(requireSizes(op, reified, getElementTypeOrSelf(result))))
      return failure();
  }
  return success();
}

/// Operations of the hone dialect stay; only their operands have other types now.
LogicalResult Lowerer::lowerHone(Operation *op) {
  std::string what = ("a value of '" + op->getName().getStringRef() + "'").str();
  for (Value operand : op->getOperands()) {
    Value lowered = lookUp(operand);
    Type wanted = keepFixed(lowered.getType(), withoutSign(operand.getType()));
    if (lowered.getType() == wanted || !isa<TensorType>(wanted))
      continue;
    Value cast = castTo(lowered, wanted, what);
    if (cast.getType() != wanted)
      return op->emitError() << "expected a value of type " << wanted << ", but got " << lowered.getType();
    mapping.map(operand, cast);
  }
  Node node(op, *this);
  if (auto rope = dyn_cast<RopeOp>(op))
    if (failed(checkRotation(node, lookUp(rope.getX()), lookUp(rope.getCos()), lookUp(rope.getSin()))))
      return failure();
  if (auto attention = dyn_cast<AttentionOp>(op))
    if (failed(checkAttention(node, attention)))
      return failure();
  if (auto moe = dyn_cast<MoeOp>(op)) {
    SmallVector<Size> ids = sizes(lookUp(moe.getExpertIds()));
    Size chosen = getProduct(node, ArrayRef<Size>(ids).drop_back());
    if (failed(checkExpertRows(node, sizes(lookUp(moe.getX())), chosen, sizes(lookUp(moe.getUp()))[1])))
      return failure();
  }
  Operation *clone = b.clone(*op, mapping);
  for (auto [result, type] : llvm::zip_equal(clone->getResults(), inferResults(clone)))
    result.setType(type);
  if (failed(setReifiedSizes(clone)))
    return failure();
  for (Value result : clone->getResults())
    if (result.getType().isIndex())
      math.markNonNegative(result); // they count positions
  // What the file declares is believed no further than it is checked.
  for (auto [original, result] : llvm::zip_equal(op->getResults(), clone->getResults()))
    map(original, castTo(result, keepFixed(result.getType(), withoutSign(original.getType())), what));
  return success();
}

/// The first input that the schema asks for and that the node leaves out.
static std::optional<unsigned> getMissingInput(Operation *op) {
  const ::onnx::OpSchema *schema = onnxir::getSchema(op);
  for (unsigned i = 0; schema && i < op->getNumOperands() && i < schema->inputs().size(); ++i)
    if (schema->inputs()[i].GetOption() == ::onnx::OpSchema::Single && onnxir::isAbsent(op->getOperand(i)))
      return i;
  return std::nullopt;
}

LogicalResult Lowerer::lowerOperation(Operation *op) {
  b.setLoc(op->getLoc());
  if (isa<onnxir::NoValueOp>(op))
    return success();
  if (!onnxir::isOnnxOp(op))
    return lowerHone(op);
  auto lowering = table.find(op->getName().getStringRef());
  if (lowering == table.end())
    return op->emitError() << "unsupported operator " << op->getName();
  for (Value operand : op->getOperands()) {
    Value lowered = lookUp(operand);
    if (lowered && !isa<RankedTensorType>(lowered.getType()))
      return op->emitError() << "unsupported operand of type " << operand.getType()
                             << "; supported: tensors of known rank";
  }
  if (auto missing = getMissingInput(op))
    return op->emitOpError() << "expected input " << *missing << " to be given";
  Node node(op, *this);
  return failure(failed(lowering->second(node)) || node.isBroken);
}

LogicalResult Lowerer::lowerBlock(Block &from) {
  for (Operation &op : from)
    if (!op.hasTrait<OpTrait::IsTerminator>())
      if (failed(lowerOperation(&op)))
        return failure();
  return success();
}

FailureOr<SmallVector<Value>> Lowerer::inlineRegion(Region &region, ValueRange arguments) {
  Block &block = region.front();
  for (auto [argument, value] : llvm::zip(block.getArguments(), arguments))
    map(argument, value);
  IndexMath::RegionScope scope(math);
  // What is checked in the region is not checked after it, and another region may lie where this one was.
  auto checkedBefore = checked;
  size_t productsBefore = products.size();
  LogicalResult lowered = lowerBlock(block);
  checked = std::move(checkedBefore);
  products.truncate(productsBefore);
  SmallVector<Value> values;
  for (Value value : block.back().getOperands())
    values.push_back(lookUp(value));
  if (failed(lowered))
    return failure();
  return values;
}

//===----------------------------------------------------------------------===//
// Node: operands, results, attributes
//===----------------------------------------------------------------------===//

bool Node::has(unsigned index) const {
  return index < op->getNumOperands() && !onnxir::isAbsent(op->getOperand(index));
}

Value Node::in(unsigned index) const { return has(index) ? lowerer.lookUp(op->getOperand(index)) : Value(); }

static bool isUnsignedTensor(Type type) {
  auto tensor = dyn_cast<TensorType>(type);
  return tensor && (tensor.getElementType().isUnsignedInteger() || tensor.getElementType().isInteger(1));
}

bool Node::isUnsigned(unsigned index) const { return isUnsignedTensor(op->getOperand(index).getType()); }
bool Node::isResultUnsigned(unsigned index) const { return isUnsignedTensor(op->getResult(index).getType()); }

static Type getDeclaredElement(Type type) {
  auto tensor = dyn_cast<TensorType>(type);
  return tensor ? tensor.getElementType() : Type();
}

Type Node::declared(unsigned index) const {
  Type type = getDeclaredElement(op->getOperand(index).getType());
  bool isOpen = !type || type == onnxir::getUnknownType(op->getContext());
  return isOpen && isa<RankedTensorType>(in(index).getType()) ? element(index) : type;
}
Type Node::declaredResult(unsigned index) const { return getDeclaredElement(op->getResult(index).getType()); }

bool Node::wants(unsigned index) const {
  return index < op->getNumResults() && !isa<NoneType>(op->getResult(index).getType());
}

Type Node::resultElement(unsigned index) const {
  auto tensor = dyn_cast<TensorType>(op->getResult(index).getType());
  if (!tensor || tensor.getElementType() == onnxir::getUnknownType(op->getContext()))
    return {};
  return withoutSign(tensor.getElementType());
}

RankedTensorType Node::resultType(unsigned index) const {
  auto type = dyn_cast<RankedTensorType>(op->getResult(index).getType());
  return type ? cast<RankedTensorType>(withoutSign(type)) : RankedTensorType();
}

void Node::set(unsigned index, Value value) {
  if (wants(index))
    lowerer.map(op->getResult(index), value);
}

/// The node's own attribute, or the default of its schema.
template <typename Get>
static auto getDefault(Operation *op, StringRef name, Get get)
    -> std::optional<decltype(get(::onnx::AttributeProto()))> {
  const ::onnx::OpSchema *schema = onnxir::getSchema(op);
  if (!schema)
    return std::nullopt;
  auto it = schema->attributes().find(name.str());
  if (it == schema->attributes().end() || it->second.default_value.type() == ::onnx::AttributeProto::UNDEFINED)
    return std::nullopt;
  return get(it->second.default_value);
}

int64_t Node::integer(StringRef name, int64_t otherwise) const {
  if (auto attr = op->getAttrOfType<IntegerAttr>(name))
    return attr.getInt();
  return getDefault(op, name, [](const auto &a) { return static_cast<int64_t>(a.i()); }).value_or(otherwise);
}

double Node::real(StringRef name, double otherwise) const {
  if (auto attr = op->getAttrOfType<FloatAttr>(name))
    return attr.getValueAsDouble();
  return getDefault(op, name, [](const auto &a) { return static_cast<double>(a.f()); }).value_or(otherwise);
}

StringRef Node::string(StringRef name, StringRef otherwise) const {
  if (auto attr = op->getAttrOfType<StringAttr>(name))
    return attr.getValue();
  auto text = getDefault(op, name, [](const auto &a) { return a.s(); });
  return text ? StringAttr::get(op->getContext(), *text).getValue() : otherwise;
}

std::optional<SmallVector<int64_t>> Node::integers(StringRef name) const {
  auto attr = op->getAttrOfType<DenseI64ArrayAttr>(name);
  return attr ? std::optional(llvm::to_vector(attr.asArrayRef())) : std::nullopt;
}

std::optional<SmallVector<float>> Node::reals(StringRef name) const {
  auto attr = op->getAttrOfType<DenseF32ArrayAttr>(name);
  return attr ? std::optional(llvm::to_vector(attr.asArrayRef())) : std::nullopt;
}

int64_t Node::opset() const { return onnxir::getOpsetVersion(op, onnxir::getDomain(op)); }

FailureOr<int64_t> Node::axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return fail() << "expected axis to be in [" << -rank << ", " << rank << "), but got " << axis;
  return axis < 0 ? axis + rank : axis;
}

InFlightDiagnostic Node::fail() const { return op->emitOpError(); }

//===----------------------------------------------------------------------===//
// Node: constants and shape arithmetic
//===----------------------------------------------------------------------===//

bool isScalarShape(RankedTensorType type) {
  Type element = type.getElementType();
  int64_t most = element.isSignlessInteger() ? kMaxScalars : isa<FloatType>(element) ? kMaxFloatScalars : -1;
  int64_t count = 1; // a file may say sizes whose product wraps
  for (int64_t size : type.getShape())
    if (ShapedType::isDynamic(size) || llvm::MulOverflow(count, std::max<int64_t>(size, 1), count))
      return false;
  return count <= most || (type.hasStaticShape() && llvm::is_contained(type.getShape(), 0) && most >= 0);
}

std::optional<SmallVector<Value>> Node::scalars(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!isScalarShape(type))
    return std::nullopt;
  if (auto elements = tensor.getDefiningOp<tensor::FromElementsOp>())
    return llvm::to_vector(elements.getElements());
  DenseElementsAttr dense;
  if (!matchPattern(tensor, m_Constant(&dense)))
    return std::nullopt;
  SmallVector<Value> values;
  for (Attribute value : dense.getValues<Attribute>())
    values.push_back(arith::ConstantOp::create(b, cast<TypedAttr>(value)));
  return values;
}

std::optional<SmallVector<int64_t>> Node::constants(unsigned index) {
  auto values = element(index).isSignlessInteger() ? scalars(in(index)) : std::nullopt;
  if (!values) {
    DenseElementsAttr dense;
    if (!matchPattern(in(index), m_Constant(&dense)) || !dense.getElementType().isSignlessInteger())
      return std::nullopt;
    return llvm::to_vector(llvm::map_range(dense.getValues<APInt>(), [](const APInt &v) { return v.getSExtValue(); }));
  }
  SmallVector<int64_t> constants;
  for (Value value : *values) {
    auto constant = IndexMath::getConstant(math.fromScalar(value));
    if (!constant)
      return std::nullopt;
    constants.push_back(*constant);
  }
  return constants;
}

FailureOr<SmallVector<Size>> Node::indices(unsigned index) {
  Value tensor = in(index);
  RankedTensorType type = this->type(index);
  if (type.getRank() > 1 || !type.hasStaticShape())
    return fail() << "expected input " << index << " to be a vector of fixed length, but got " << type;
  SmallVector<Size> sizes;
  if (auto values = scalars(tensor)) {
    for (Value value : *values)
      sizes.push_back(math.fromScalar(value));
    return sizes;
  }
  for (int64_t i = 0, e = type.getNumElements(); i < e; ++i) {
    SmallVector<Value> at;
    if (type.getRank() == 1)
      at.push_back(arith::ConstantIndexOp::create(b, i));
    sizes.push_back(math.fromScalar(tensor::ExtractOp::create(b, tensor, at)));
  }
  return sizes;
}

FailureOr<SmallVector<int64_t>> Node::constantIntegers(StringRef attribute, unsigned input, bool &given) {
  given = true;
  if (auto values = integers(attribute))
    return *values;
  if (!has(input)) {
    given = false;
    return SmallVector<int64_t>();
  }
  if (auto values = constants(input))
    return *values;
  return fail() << "expected input " << input << " ('" << attribute
                << "') to be known at compile time, but it is computed";
}

Value Node::fromScalars(RankedTensorType type, ValueRange values) {
  SmallVector<Value> elements;
  SmallVector<Attribute> constants;
  for (Value value : values) {
    elements.push_back(math.simplify(value));
    Attribute constant;
    if (matchPattern(elements.back(), m_Constant(&constant)))
      constants.push_back(constant);
  }
  if (constants.size() == values.size())
    return arith::ConstantOp::create(b, DenseElementsAttr::get(type, constants));
  return tensor::FromElementsOp::create(b, type, elements);
}

} // namespace hone::lowering
