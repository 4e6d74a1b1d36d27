// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shapes of values as polynomials: one rule an operator family. A size that no rule gives is an atom of its own.

#include "OnnxAttributes.h"
#include "hone/Analysis/SymbolicAnalysis.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace hone::analysis {

using OptionalShape = std::optional<Shape>;

Polynomial parseSizeName(StringRef name, Expressions &expressions) {
  SmallVector<StringRef> summands;
  name.split(summands, '+');
  Polynomial sum;
  for (StringRef summand : summands) {
    SmallVector<StringRef> factors;
    summand.split(factors, '*');
    Polynomial product(1);
    for (StringRef factor : factors) {
      factor = factor.trim();
      int64_t constant = 0;
      bool isName = !factor.empty() && llvm::all_of(factor, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
      if (!factor.getAsInteger(10, constant))
        product = product * constant;
      else if (isName)
        product = product * Polynomial::of(expressions.namedSize(factor));
      else // some other formula: one name
        return Polynomial::of(expressions.namedSize(name));
    }
    sum = sum + product;
  }
  return sum;
}

SymbolicAnalysis::SymbolicAnalysis(func::FuncOp function) : function(function) {}

void SymbolicAnalysis::invalidate() { shapes.clear(); }

Polynomial SymbolicAnalysis::sizeOf(Value value, unsigned dim) {
  auto [it, isNew] = unknownSizes.try_emplace({value, dim}, 0);
  if (isNew)
    it->second = expressions.freshSize();
  return Polynomial::of(it->second);
}

Shape SymbolicAnalysis::getArgumentShape(BlockArgument argument, RankedTensorType type) {
  ArrayAttr names;
  if (argument.getOwner() == &function.getBody().front())
    names = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), onnxir::kDimsAttr);
  Shape shape;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    auto name = names && dim < static_cast<int64_t>(names.size()) ? dyn_cast<StringAttr>(names[dim]) : StringAttr();
    if (!type.isDynamicDim(dim))
      shape.push_back(type.getDimSize(dim));
    else
      shape.push_back(name && !name.empty() ? parseSizeName(name, expressions) : sizeOf(argument, dim));
  }
  return shape;
}

OptionalShape SymbolicAnalysis::getShape(Value value) {
  if (auto it = shapes.find(value); it != shapes.end())
    return it->second;
  constexpr unsigned kMaxDepth = 400; // shapes are asked for in order, so that real chains are short
  auto type = dyn_cast<RankedTensorType>(value.getType());
  OptionalShape shape;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (type)
      shape = getArgumentShape(argument, type);
  } else if (isa<TensorType>(value.getType()) && depth < kMaxDepth) {
    ++depth;
    shape = computeShape(cast<OpResult>(value));
    --depth;
  }
  if (type && (!shape || shape->size() != static_cast<size_t>(type.getRank()))) {
    shape.emplace();
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      shape->push_back(sizeOf(value, dim));
  }
  if (type)
    for (auto [dim, size] : llvm::enumerate(type.getShape()))
      if (!ShapedType::isDynamic(size))
        (*shape)[dim] = size;
  shapes[value] = shape;
  return shape;
}

SmallVector<Polynomial> SymbolicAnalysis::getIndices(ArrayRef<Polynomial> shape) {
  SmallVector<Polynomial> indices;
  for (auto [axis, extent] : llvm::enumerate(shape))
    indices.push_back(expressions.index(axis, extent));
  return indices;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

namespace {

/// The rules of one operation. Each returns nothing where it does not apply.
class ShapeRules {
public:
  ShapeRules(SymbolicAnalysis &analysis, Operation *op, unsigned result) : analysis(analysis), op(op), result(result) {}
  OptionalShape compute();

private:
  OptionalShape in(unsigned index) {
    Value operand = getOperand(op, index);
    return operand ? analysis.getShape(operand) : std::nullopt;
  }
  std::optional<SmallVector<Polynomial>> contents(unsigned index) {
    Value operand = getOperand(op, index);
    return operand ? analysis.getContents(operand) : std::nullopt;
  }
  std::optional<SmallVector<int64_t>> constants(StringRef attribute, unsigned index) {
    if (auto values = getIntegers(op, attribute))
      return values;
    Value operand = getOperand(op, index);
    return operand ? analysis.getConstants(operand) : std::nullopt;
  }
  OptionalShape broadcast(ArrayRef<Shape> inputs);
  OptionalShape broadcastAll();
  OptionalShape matmul(bool transposeA, bool transposeB);
  OptionalShape reshape();
  OptionalShape expand();
  OptionalShape tile();
  OptionalShape gather();
  OptionalShape concat();
  OptionalShape slice();
  OptionalShape range();
  OptionalShape unsqueeze();
  OptionalShape squeeze();
  OptionalShape reduce();
  OptionalShape split();
  OptionalShape transpose();
  OptionalShape gatherNd();
  OptionalShape flatten();
  OptionalShape attention();
  OptionalShape microsoft(StringRef name);
  OptionalShape state();
  OptionalShape generate(tensor::GenerateOp generate);
  OptionalShape other();

  SymbolicAnalysis &analysis;
  Operation *op;
  unsigned result;
};

} // namespace

OptionalShape ShapeRules::broadcast(ArrayRef<Shape> inputs) {
  size_t rank = 0;
  for (const Shape &input : inputs)
    rank = std::max(rank, input.size());
  Shape shape(rank, Polynomial(1));
  for (const Shape &input : inputs)
    for (auto [i, size] : llvm::enumerate(input)) {
      Polynomial &merged = shape[rank - input.size() + i];
      if (merged.isConstant(1) || merged == size)
        merged = size;
      else if (size.isConstant(1) || (merged.getConstant() && !size.getConstant()))
        continue;
      else if (size.getConstant())
        merged = size;
      else if (analysis.expressions.isNonNegative(size - merged)) // the larger of the two
        merged = size;
      else if (!analysis.expressions.isNonNegative(merged - size)) // different names: equal, or one of them is 1
        merged = Polynomial::of(analysis.expressions.freshSize());
    }
  return shape;
}

OptionalShape ShapeRules::broadcastAll() {
  SmallVector<Shape> inputs;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    if (!getOperand(op, i))
      continue;
    OptionalShape shape = in(i);
    if (!shape)
      return std::nullopt;
    inputs.push_back(*shape);
  }
  return broadcast(inputs);
}

OptionalShape ShapeRules::matmul(bool transposeA, bool transposeB) {
  OptionalShape a = in(0), b = in(1);
  if (!a || !b || a->size() < 2 || b->size() < 2)
    return std::nullopt;
  OptionalShape shape = broadcast({Shape(ArrayRef(*a).drop_back(2)), Shape(ArrayRef(*b).drop_back(2))});
  shape->push_back((*a)[a->size() - (transposeA ? 1 : 2)]);
  shape->push_back((*b)[b->size() - (transposeB ? 2 : 1)]);
  return shape;
}

OptionalShape ShapeRules::reshape() {
  OptionalShape input = in(0);
  auto wanted = contents(1);
  if (!input || !wanted)
    return std::nullopt;
  bool zeroIsZero = getInteger(op, "allowzero", 0) != 0;
  Shape shape;
  Polynomial total(1), rest(1);
  std::optional<size_t> inferred;
  for (const Polynomial &size : *input)
    total = total * size;
  for (auto [i, size] : llvm::enumerate(*wanted)) {
    if (size.isConstant(-1)) {
      inferred = i;
      shape.push_back(1);
      continue;
    }
    bool copies = size.isConstant(0) && !zeroIsZero;
    if (copies && i >= input->size())
      return std::nullopt;
    shape.push_back(copies ? (*input)[i] : size);
    rest = rest * shape.back();
  }
  if (!inferred)
    return shape;
  auto quotient = total.divideExactly(rest);
  shape[*inferred] = quotient ? *quotient : Polynomial::of(analysis.expressions.freshSize());
  return shape;
}

OptionalShape ShapeRules::expand() {
  OptionalShape input = in(0);
  auto wanted = contents(1);
  if (!input || !wanted)
    return std::nullopt;
  return broadcast({*input, Shape(*wanted)});
}

OptionalShape ShapeRules::tile() {
  OptionalShape shape = in(0);
  auto repeats = contents(1);
  if (!shape || !repeats || repeats->size() != shape->size())
    return std::nullopt;
  for (auto [size, repeat] : llvm::zip(*shape, *repeats))
    size = size * repeat;
  return shape;
}

OptionalShape ShapeRules::gather() {
  OptionalShape data = in(0), indices = in(1);
  if (!data || !indices)
    return std::nullopt;
  auto axis = normalizeAxis(getInteger(op, "axis", 0), data->size());
  if (!axis)
    return std::nullopt;
  Shape shape(ArrayRef(*data).take_front(*axis));
  shape.append(indices->begin(), indices->end());
  shape.append(data->begin() + *axis + 1, data->end());
  return shape;
}

OptionalShape ShapeRules::gatherNd() {
  OptionalShape data = in(0), indices = in(1);
  int64_t batch = getInteger(op, "batch_dims", 0);
  if (!data || !indices || indices->empty() || batch < 0)
    return std::nullopt;
  auto length = indices->back().getConstant();
  if (!length || *length < 0 || batch + *length > static_cast<int64_t>(data->size()))
    return std::nullopt;
  Shape shape(ArrayRef(*indices).drop_back());
  shape.append(data->begin() + batch + *length, data->end());
  return shape;
}

OptionalShape ShapeRules::concat() {
  OptionalShape shape = in(0);
  if (!shape)
    return std::nullopt;
  auto axis = normalizeAxis(getInteger(op, "axis", 0), shape->size());
  if (!axis)
    return std::nullopt;
  for (unsigned i = 1; i < op->getNumOperands(); ++i) {
    OptionalShape next = in(i);
    if (!next || next->size() != shape->size())
      return std::nullopt;
    for (auto [dim, size] : llvm::enumerate(*next)) {
      if (static_cast<int64_t>(dim) == *axis)
        (*shape)[dim] = (*shape)[dim] + size;
      else if (size.getConstant())
        (*shape)[dim] = size;
    }
  }
  return shape;
}

/// The bound of a slice counted from the front: clamped to the size where it is beyond all sizes, else as it is.
static std::optional<Polynomial> resolveBound(const Polynomial &bound, const Polynomial &size, const Expressions &expressions) {
  constexpr int64_t kBeyondSizes = int64_t(1) << 31;
  if (auto constant = bound.getConstant()) {
    if (*constant >= kBeyondSizes - 1)
      return size;
    if (*constant <= -kBeyondSizes)
      return Polynomial(0);
    if (*constant < 0)
      return size + bound;
    if (auto extent = size.getConstant(); extent && *constant > *extent)
      return size;
    return bound;
  }
  return expressions.isNonNegative(bound) ? std::optional<Polynomial>(bound) : std::nullopt;
}

OptionalShape ShapeRules::slice() {
  OptionalShape shape = in(0);
  auto starts = contents(1), ends = contents(2), axes = contents(3), steps = contents(4);
  if (!shape || !starts || !ends || (getOperand(op, 3) && !axes) || (getOperand(op, 4) && !steps))
    return std::nullopt;
  for (auto [i, start] : llvm::enumerate(*starts)) {
    auto axisValue = axes ? (*axes)[i].getConstant() : std::optional<int64_t>(i);
    auto axis = axisValue ? normalizeAxis(*axisValue, shape->size()) : std::nullopt;
    if (!axis || i >= ends->size())
      return std::nullopt;
    Polynomial &size = (*shape)[*axis];
    auto first = resolveBound(start, size, analysis.expressions), last = resolveBound((*ends)[i], size, analysis.expressions);
    bool unit = !steps || (*steps)[i].isConstant(1);
    // A slice may not reach beyond the end: without proof, the size is unknown.
    bool within = first && last && analysis.expressions.isNonNegative(*last - *first) &&
                  analysis.expressions.isNonNegative(size - *last);
    bool bounded = unit && first && last;
    if (unit && within)
      size = *last - *first;
    else
      size = Polynomial::of(bounded ? analysis.expressions.boundedSize(*last - *first) : analysis.expressions.freshSize());
  }
  return shape;
}

OptionalShape ShapeRules::range() {
  auto start = contents(0), limit = contents(1), delta = contents(2);
  if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 || delta->size() != 1 || !delta->front().isConstant(1))
    return std::nullopt;
  Polynomial length = limit->front() - start->front();
  if (!analysis.expressions.isNonNegative(length))
    return std::nullopt;
  return Shape{length};
}

OptionalShape ShapeRules::unsqueeze() {
  OptionalShape input = in(0);
  auto axes = constants("axes", 1);
  if (!input || !axes)
    return std::nullopt;
  size_t rank = input->size() + axes->size();
  SmallVector<bool> isNew(rank, false);
  for (int64_t given : *axes) {
    auto axis = normalizeAxis(given, rank);
    if (!axis)
      return std::nullopt;
    isNew[*axis] = true;
  }
  Shape shape;
  for (size_t dim = 0, from = 0; dim < rank; ++dim) {
    if (!isNew[dim] && from >= input->size())
      return std::nullopt;
    shape.push_back(isNew[dim] ? Polynomial(1) : (*input)[from++]);
  }
  return shape;
}

OptionalShape ShapeRules::squeeze() {
  OptionalShape input = in(0);
  auto axes = constants("axes", 1);
  if (!input || (!axes && getOperand(op, 1)))
    return std::nullopt;
  Shape shape;
  for (auto [dim, size] : llvm::enumerate(*input)) {
    bool drop = axes ? llvm::any_of(*axes, [&](int64_t axis) { return normalizeAxis(axis, input->size()) == static_cast<int64_t>(dim); })
                     : size.isConstant(1);
    if (!drop)
      shape.push_back(size);
    if (!axes && !size.getConstant())
      return std::nullopt;
  }
  return shape;
}

OptionalShape ShapeRules::reduce() {
  OptionalShape input = in(0);
  auto axes = constants("axes", 1);
  if (!input || (!axes && getOperand(op, 1)))
    return std::nullopt;
  bool keep = getInteger(op, "keepdims", 1) != 0;
  if (!axes && getInteger(op, "noop_with_empty_axes", 0) != 0)
    return input;
  Shape shape;
  for (auto [dim, size] : llvm::enumerate(*input)) {
    bool reduced = !axes || llvm::any_of(*axes, [&](int64_t axis) { return normalizeAxis(axis, input->size()) == static_cast<int64_t>(dim); });
    if (!reduced || keep)
      shape.push_back(reduced ? Polynomial(1) : size);
  }
  return shape;
}

OptionalShape ShapeRules::split() {
  OptionalShape shape = in(0);
  auto axis = shape ? normalizeAxis(getInteger(op, "axis", 0), shape->size()) : std::nullopt;
  if (!axis)
    return std::nullopt;
  auto sizes = constants("split", 1);
  if (sizes && result < sizes->size())
    (*shape)[*axis] = (*sizes)[result];
  else if (auto size = (*shape)[*axis].getConstant(); size && !getOperand(op, 1) && *size % op->getNumResults() == 0)
    (*shape)[*axis] = *size / op->getNumResults();
  else
    (*shape)[*axis] = Polynomial::of(analysis.expressions.freshSize());
  return shape;
}

OptionalShape ShapeRules::transpose() {
  OptionalShape input = in(0);
  if (!input)
    return std::nullopt;
  auto permutation = getIntegers(op, "perm");
  Shape shape;
  for (size_t dim = 0; dim < input->size(); ++dim) {
    int64_t from = permutation ? (dim < permutation->size() ? (*permutation)[dim] : -1) : static_cast<int64_t>(input->size() - 1 - dim);
    if (from < 0 || from >= static_cast<int64_t>(input->size()))
      return std::nullopt;
    shape.push_back((*input)[from]);
  }
  return shape;
}

OptionalShape ShapeRules::flatten() {
  OptionalShape input = in(0);
  if (!input)
    return std::nullopt;
  int64_t axis = getInteger(op, "axis", 1), rank = input->size();
  if (axis < 0)
    axis += rank;
  if (axis < 0 || axis > rank)
    return std::nullopt;
  Shape shape{Polynomial(1), Polynomial(1)};
  for (int64_t dim = 0; dim < rank; ++dim)
    shape[dim >= axis] = shape[dim >= axis] * (*input)[dim];
  return shape;
}

/// Attention of opset 23 over 4-D operands without a past; anything else keeps the sizes that its type knows.
OptionalShape ShapeRules::attention() {
  OptionalShape query = in(0), value = in(2);
  if (result != 0 || !query || !value || query->size() != 4 || value->size() != 4)
    return std::nullopt;
  query->back() = value->back();
  return query;
}

OptionalShape ShapeRules::microsoft(StringRef name) {
  if (name == "FusedMatMul")
    return matmul(getInteger(op, "transA", 0) != 0, getInteger(op, "transB", 0) != 0);
  if (name == "MatMulNBits") {
    OptionalShape shape = in(0);
    if (shape && !shape->empty())
      shape->back() = getInteger(op, "N", 0);
    return shape;
  }
  if (name == "GroupQueryAttention" && result == 0) {
    OptionalShape query = in(0);
    if (!query || query->size() != 3)
      return std::nullopt;
    int64_t heads = getInteger(op, "num_heads", 0), shared = getInteger(op, "kv_num_heads", 0);
    if (!getOperand(op, 1)) { // packed: what is left of each row is the heads of the queries
      auto width = query->back().getConstant();
      if (!width || heads + 2 * shared == 0 || *width % (heads + 2 * shared) != 0)
        return std::nullopt;
      query->back() = *width / (heads + 2 * shared) * heads;
    }
    return query;
  }
  bool isNorm = name.contains("LayerNormalization");
  if (isNorm && (result == 0 || result == 3))
    return in(0);
  static const llvm::StringSet<> sameAsInput = {"BiasGelu", "FastGelu", "Gelu", "QuickGelu", "RotaryEmbedding", "MoE", "QMoE", "BiasSoftmax"};
  return sameAsInput.contains(name) ? in(0) : std::nullopt;
}

/// A slot is as long as the positions held; after an append, longer by what is fresh.
OptionalShape ShapeRules::state() {
  auto type = dyn_cast<RankedTensorType>(op->getResult(result).getType());
  auto slots = op->getParentOfType<ModuleOp>()->getAttrOfType<ArrayAttr>(HoneDialect::getSlotsAttrName());
  auto append = dyn_cast<KvAppendOp>(op);
  uint64_t slot = append ? append.getSlot() : cast<KvViewOp>(op).getSlot();
  if (!type || !slots || slot >= slots.size())
    return std::nullopt;
  Polynomial length = Polynomial::of(analysis.expressions.namedSize(kHeldLengthName));
  int64_t axis = cast<SlotAttr>(slots[slot]).getAxis();
  if (append) {
    OptionalShape fresh = analysis.getShape(append.getFresh());
    if (fresh && axis < static_cast<int64_t>(fresh->size()))
      (*fresh)[axis] = (*fresh)[axis] + length;
    return fresh;
  }
  auto names = op->getAttrOfType<ArrayAttr>(onnxir::kDimsAttr);
  Shape shape;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    auto name = names && dim < static_cast<int64_t>(names.size()) ? dyn_cast<StringAttr>(names[dim]) : StringAttr();
    if (dim == axis)
      shape.push_back(length);
    else if (!type.isDynamicDim(dim))
      shape.push_back(type.getDimSize(dim));
    else
      shape.push_back(name && !name.empty() ? parseSizeName(name, analysis.expressions) : Polynomial::of(analysis.expressions.freshSize()));
  }
  return shape;
}

OptionalShape ShapeRules::generate(tensor::GenerateOp generate) {
  Shape shape;
  auto extents = generate.getDynamicExtents();
  for (int64_t size : generate.getType().getShape()) {
    if (!ShapedType::isDynamic(size)) {
      shape.push_back(size);
      continue;
    }
    auto dim = extents.front().getDefiningOp<tensor::DimOp>();
    extents = extents.drop_front();
    auto source = dim ? analysis.getShape(dim.getSource()) : std::nullopt;
    auto axis = dim ? dim.getConstantIndex() : std::nullopt;
    bool known = source && axis && *axis >= 0 && *axis < static_cast<int64_t>(source->size());
    shape.push_back(known ? (*source)[*axis] : Polynomial::of(analysis.expressions.freshSize()));
  }
  return shape;
}

OptionalShape ShapeRules::other() {
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return analysis.getShape(cast.getSource());
  // Operations of the hone dialect say themselves which dimension of an operand each of theirs is.
  FailureOr<ResultDims> dims = failure();
  llvm::TypeSwitch<Operation *>(op)
      .Case<AttentionOp, RopeOp, RmsNormOp, LayerNormOp, LinearOp, MatmulOp, EmbeddingOp, GatedMlpOp, MlpOp, MoeOp>(
          [&](auto hone) { dims = hone.getResultDims(op->getOperandTypes()); });
  if (isa<KvAppendOp, KvViewOp>(op))
    return state();
  if (auto generate = dyn_cast<tensor::GenerateOp>(op))
    return this->generate(generate);
  if (failed(dims))
    return std::nullopt;
  Shape shape;
  for (const ResultDim &dim : *dims) {
    OptionalShape operand = analysis.getShape(op->getOperand(dim.operand));
    if (!operand || dim.dim >= static_cast<int64_t>(operand->size()))
      return std::nullopt;
    shape.push_back((*operand)[dim.dim]);
  }
  return shape;
}

OptionalShape ShapeRules::compute() {
  if (!onnxir::isOnnxOp(op))
    return other();
  StringRef name = onnxir::getOpType(op);
  if (onnxir::getDomain(op) == "com.microsoft")
    return microsoft(name);
  static const llvm::StringSet<> elementwise = {
      "Add", "Sub", "Mul", "Div", "Pow", "Mod", "And", "Or", "Xor", "Max", "Min", "Mean", "Sum", "Equal", "Greater", "Less", "GreaterOrEqual",
      "LessOrEqual", "Where", "PRelu", "BitShift"};
  static const llvm::StringSet<> sameAsInput = {
      "Identity", "Cast", "CastLike", "Not", "Neg", "Abs", "Sqrt", "Reciprocal", "Exp", "Log", "Sin", "Cos", "Tanh", "Sigmoid", "Erf",
      "Relu", "Gelu", "IsNaN", "IsInf", "Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization",
      "RotaryEmbedding", "CumSum", "Trilu", "Clip", "Dropout", "Floor", "Ceil", "Round", "Sign", "Softplus", "Swish", "HardSwish",
      "ScatterND", "ScatterElements", "Elu", "LeakyRelu", "Mish"};
  if (elementwise.contains(name))
    return broadcastAll();
  if (sameAsInput.contains(name))
    return result == 0 ? in(0) : std::nullopt;
  if (name.starts_with("Reduce"))
    return reduce();
  using Rule = OptionalShape (ShapeRules::*)();
  static const llvm::StringMap<Rule> rules = {
      {"Reshape", &ShapeRules::reshape},     {"Expand", &ShapeRules::expand},   {"Gather", &ShapeRules::gather},
      {"Concat", &ShapeRules::concat},       {"Slice", &ShapeRules::slice},     {"Range", &ShapeRules::range},
      {"Unsqueeze", &ShapeRules::unsqueeze}, {"Squeeze", &ShapeRules::squeeze}, {"Split", &ShapeRules::split},
      {"Transpose", &ShapeRules::transpose}, {"GatherND", &ShapeRules::gatherNd}, {"Flatten", &ShapeRules::flatten},
      {"Attention", &ShapeRules::attention}, {"Tile", &ShapeRules::tile}};
  if (auto it = rules.find(name); it != rules.end())
    return (this->*it->second)();
  if (name == "MatMul")
    return matmul(false, false);
  if (name == "Gemm")
    return matmul(getInteger(op, "transA", 0) != 0, getInteger(op, "transB", 0) != 0);
  if (name == "ConstantOfShape") {
    auto wanted = contents(0);
    return wanted ? OptionalShape(Shape(*wanted)) : std::nullopt;
  }
  if (name == "GatherElements")
    return in(1);
  return std::nullopt;
}

OptionalShape SymbolicAnalysis::computeShape(OpResult value) {
  return ShapeRules(*this, value.getOwner(), value.getResultNumber()).compute();
}

} // namespace hone::analysis
