// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How onnx operations move units. An operator without a rule is an obstacle.

#include "hone/Transforms/UnitAnalysis.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"

#include <numeric>

using namespace mlir;

namespace hone::units {

using Units = SmallVector<int32_t, 0>;

static int64_t getInteger(Operation *op, StringRef name, int64_t otherwise) {
  auto attr = op->getAttrOfType<IntegerAttr>(name);
  return attr ? attr.getInt() : otherwise;
}

static RankedTensorType getType(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

static int64_t countFromFront(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

static bool isNode(Operation *op, StringRef type) {
  return op && onnxir::isOnnxOp(op) && onnxir::getOpType(op) == type;
}

/// The one element of a Shape that a Gather or Slice takes, of a size that is known.
static std::optional<int64_t> getTakenSize(Operation *op) {
  Operation *shape = op->getOperand(0).getDefiningOp();
  if (!isNode(shape, "Shape") || shape->hasAttr("start") || shape->hasAttr("end"))
    return std::nullopt;
  auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  auto taken = getIntegers(op->getOperand(1));
  RankedTensorType of = getType(shape->getOperand(0));
  if (!result || !result.hasStaticShape() || result.getNumElements() != 1 || !taken || taken->size() != 1 || !of)
    return std::nullopt;
  int64_t axis = countFromFront(taken->front(), of.getRank());
  return axis >= 0 && axis < of.getRank() && !of.isDynamicDim(axis) ? std::optional(of.getDimSize(axis)) : std::nullopt;
}

std::optional<SmallVector<int64_t>> getIntegers(Value value) {
  Operation *op = value.getDefiningOp();
  if (isNode(op, "Squeeze") || isNode(op, "Unsqueeze"))
    return getIntegers(op->getOperand(0));
  if (isNode(op, "Gather") || (isNode(op, "Slice") && op->getNumOperands() <= 4))
    if (std::optional<int64_t> size = getTakenSize(op))
      return SmallVector<int64_t>{*size};
  if (!isNode(op, "Constant"))
    return std::nullopt;
  auto elements = dyn_cast_or_null<DenseIntElementsAttr>(op->getAttr("value"));
  if (!elements)
    return std::nullopt;
  SmallVector<int64_t> integers;
  for (const APInt &element : elements.getValues<APInt>())
    integers.push_back(element.getSExtValue());
  return integers;
}

void visitElementwise(Operation *op, UnitAnalysis &analysis) {
  auto spread = [&](const UnitAxis &units, int64_t rank) {
    int64_t fromBehind = rank - units.axis;
    Units unitOf(units.unitOf);
    auto getAxis = [&](Value value) -> std::optional<int64_t> {
      RankedTensorType type = getType(value);
      bool isRepeated = !type || type.getRank() < fromBehind || type.getDimSize(type.getRank() - fromBehind) == 1;
      return isRepeated ? std::nullopt : std::optional(type.getRank() - fromBehind);
    };
    for (OpOperand &use : op->getOpOperands())
      if (std::optional<int64_t> axis = getAxis(use.get()))
        analysis.mark(use, *axis, unitOf);
    for (Value result : op->getResults())
      if (std::optional<int64_t> axis = getAxis(result))
        analysis.mark(result, *axis, unitOf);
  };
  for (OpOperand &use : op->getOpOperands())
    if (const UnitAxis *units = analysis.find(use))
      spread(UnitAxis(*units), getType(use.get()).getRank());
  for (Value result : op->getResults())
    if (const UnitAxis *units = analysis.find(result))
      spread(UnitAxis(*units), getType(result).getRank());
}

//===- Shapes -----------------------------------------------------------------------------------------------------===//

void visitTensorDim(Operation *op, UnitAnalysis &analysis) {
  auto dim = cast<tensor::DimOp>(op);
  const UnitAxis *units = analysis.find(dim.getSource());
  if (units && dim.getConstantIndex() != units->axis)
    return;
  analysis.refuse("the number of its units is computed with");
}

/// Whether the elements of a Shape that `user` takes of it are others than `index`.
static bool avoidsElement(Operation *user, Value shape, int64_t index, int64_t rank) {
  if (!onnxir::isOnnxOp(user) || user->getOperand(0) != shape)
    return false;
  if (onnxir::getOpType(user) == "Gather") {
    auto taken = getIntegers(user->getOperand(1));
    return taken && llvm::none_of(*taken, [&](int64_t element) { return countFromFront(element, rank) == index; });
  }
  if (onnxir::getOpType(user) != "Slice" || user->getNumOperands() > 4)
    return false;
  auto first = getIntegers(user->getOperand(1)), end = getIntegers(user->getOperand(2));
  return first && end && first->size() == 1 &&
         (index < countFromFront(first->front(), rank) || index >= countFromFront(end->front(), rank));
}

/// Whether all that reads `number`, a size of units, is a Reshape of units, which is cut and says the number that is left.
static bool isShapeOfUnits(Value number, const UnitAnalysis &analysis) {
  return llvm::all_of(number.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isNode(user, "Squeeze") || isNode(user, "Unsqueeze") || isNode(user, "Concat"))
      return isShapeOfUnits(user->getResult(0), analysis);
    return isNode(user, "Reshape") && use.getOperandNumber() == 1 && analysis.find(user->getResult(0));
  });
}

static void visitShape(Operation *op, UnitAnalysis &analysis) {
  const UnitAxis *units = analysis.find(op->getOperand(0));
  int64_t size = getType(op->getResult(0)).getDimSize(0),
          first = countFromFront(getInteger(op, "start", 0), getType(op->getOperand(0)).getRank());
  auto avoids = [&](Operation *user) {
    bool isNumber = onnxir::isOnnxOp(user) && user->getNumResults() == 1 && getIntegers(user->getResult(0));
    return avoidsElement(user, op->getResult(0), units->axis - first, size) ||
           (isNumber && isShapeOfUnits(user->getResult(0), analysis));
  };
  if (units && !llvm::all_of(op->getResult(0).getUsers(), avoids))
    analysis.refuseLater("the number of its units is computed with");
}

/// The units along one dimension of `to`, where `from` has them along `units.axis` and both have the same elements in the same
/// order; nothing if they lie along none.
static std::optional<UnitAxis> reshapeUnits(const UnitAxis &units, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  size_t front = 0, back = 0, most = std::min(from.size(), to.size());
  while (front < most && from[front] == to[front])
    ++front;
  while (back < most - front && from[from.size() - 1 - back] == to[to.size() - 1 - back])
    ++back;
  auto axis = static_cast<size_t>(units.axis);
  if (axis < front)
    return units;
  if (axis >= from.size() - back)
    return UnitAxis{static_cast<int64_t>(axis + to.size() - from.size()), units.unitOf};
  ArrayRef<int64_t> fromMiddle = from.slice(front, from.size() - front - back),
                    toMiddle = to.slice(front, to.size() - front - back);
  if (llvm::any_of(fromMiddle, ShapedType::isDynamic) || llvm::any_of(toMiddle, ShapedType::isDynamic))
    return std::nullopt;
  auto product = [](ArrayRef<int64_t> sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
  };
  // Elements of the middle in order: which unit each is of, and whether that is a matter of one dimension of `to`.
  int64_t inner = product(fromMiddle.drop_front(axis - front + 1)), total = product(fromMiddle);
  if (total != product(toMiddle))
    return std::nullopt;
  auto unitOfElement = [&](int64_t i) { return units.unitOf[i / inner % fromMiddle[axis - front]]; };
  for (size_t wanted = 0; wanted < toMiddle.size(); ++wanted) {
    int64_t innerOfWanted = product(toMiddle.drop_front(wanted + 1)), size = toMiddle[wanted];
    UnitAxis found{static_cast<int64_t>(front + wanted), Units(size)};
    for (int64_t j = 0; j < size; ++j)
      found.unitOf[j] = unitOfElement(j * innerOfWanted);
    bool agrees = true;
    for (int64_t i = 0; agrees && i < total; ++i)
      agrees = unitOfElement(i) == found.unitOf[i / innerOfWanted % size];
    if (agrees)
      return found;
  }
  return std::nullopt;
}

ShapeElement getShapeElement(Operation *reshape, int64_t index) {
  Value shape = reshape->getOperand(1);
  if (auto integers = getIntegers(shape))
    return {(*integers)[index]};
  Operation *concat = shape.getDefiningOp();
  bool hasPieces = concat && onnxir::isOnnxOp(concat) && onnxir::getOpType(concat) == "Concat" &&
                   llvm::all_of(concat->getOperands(), [](Value piece) {
                     return getType(piece) && getType(piece).hasStaticShape() && getType(piece).getNumElements() == 1;
                   });
  auto piece = hasPieces ? getIntegers(concat->getOperand(index)) : std::nullopt;
  return {piece ? std::optional(piece->front()) : std::nullopt};
}

static void visitReshape(Operation *op, UnitAnalysis &analysis) {
  Value input = op->getOperand(0), result = op->getResult(0);
  for (auto [from, to] : {std::pair(input, result), std::pair(result, input)}) {
    const UnitAxis *units = analysis.find(from);
    if (!units)
      continue;
    std::optional<UnitAxis> moved = reshapeUnits(*units, getType(from).getShape(), getType(to).getShape());
    if (!moved)
      return analysis.refuse("Reshape mixes its units with other dimensions");
    analysis.mark(to, moved->axis, moved->unitOf);
  }
  const UnitAxis *before = analysis.find(input), *after = analysis.find(result);
  if (!before || !after)
    return;
  ShapeElement element = getShapeElement(op, after->axis);
  if (!element.value || (*element.value == 0 && before->axis != after->axis))
    analysis.refuse("the shape of a Reshape is computed");
}

//===- Movement ---------------------------------------------------------------------------------------------------===//

static void visitTranspose(Operation *op, UnitAnalysis &analysis) {
  Value input = op->getOperand(0), result = op->getResult(0);
  int64_t rank = getType(input).getRank();
  SmallVector<int64_t> permutation(llvm::reverse(llvm::seq<int64_t>(0, rank)));
  if (auto attr = op->getAttrOfType<DenseI64ArrayAttr>("perm"))
    permutation.assign(attr.asArrayRef().begin(), attr.asArrayRef().end());
  if (const UnitAxis *units = analysis.find(input))
    analysis.mark(result, llvm::find(permutation, units->axis) - permutation.begin(), Units(units->unitOf));
  if (const UnitAxis *units = analysis.find(result))
    analysis.mark(op->getOpOperand(0), permutation[units->axis], Units(units->unitOf));
}

static void visitConcat(Operation *op, UnitAnalysis &analysis) {
  int64_t axis = countFromFront(getInteger(op, "axis", 0), getType(op->getResult(0)).getRank());
  auto alongAxis = [&](const UnitAxis *units) { return units && units->axis == axis; };
  if (alongAxis(analysis.find(op->getResult(0))) ||
      llvm::any_of(op->getOpOperands(), [&](OpOperand &use) { return alongAxis(analysis.find(use)); }))
    return analysis.refuse("Concat puts its units beside others");
  visitElementwise(op, analysis);
}

/// `part` holds indices [begin, …) of `whole` along `axis`, or all of them along others.
static void linkPart(Value whole, Value part, int64_t axis, int64_t begin, UnitAnalysis &analysis) {
  int64_t size = getType(whole).getDimSize(axis), length = getType(part).getDimSize(axis);
  if (const UnitAxis *units = analysis.find(whole)) {
    ArrayRef<int32_t> unitOf = units->unitOf;
    analysis.mark(part, units->axis, Units(units->axis == axis ? unitOf.slice(begin, length) : unitOf));
  }
  const UnitAxis *units = analysis.find(part);
  if (!units)
    return;
  Units unitOf(units->unitOf);
  if (units->axis == axis) {
    unitOf.assign(size, -1);
    llvm::copy(units->unitOf, unitOf.begin() + begin);
  }
  analysis.mark(whole, units->axis, unitOf);
}

static void visitSplit(Operation *op, UnitAnalysis &analysis) {
  Value whole = op->getOperand(0);
  int64_t axis = countFromFront(getInteger(op, "axis", 0), getType(whole).getRank()), begin = 0;
  for (Value part : op->getResults()) {
    if (!getType(part) || getType(part).isDynamicDim(axis) || getType(whole).isDynamicDim(axis))
      return analysis.refuse("Split gives its units in numbers that are not known");
    linkPart(whole, part, axis, begin, analysis);
    begin += getType(part).getDimSize(axis);
  }
}

/// The dimensions that a Slice may cut, counted from the front.
static std::optional<SmallVector<int64_t>> getSlicedAxes(Operation *op) {
  if (op->getNumOperands() < 4 || onnxir::isAbsent(op->getOperand(3)))
    return std::nullopt;
  auto axes = getIntegers(op->getOperand(3));
  for (int64_t i = 0; axes && i < static_cast<int64_t>(axes->size()); ++i)
    (*axes)[i] = countFromFront((*axes)[i], getType(op->getOperand(0)).getRank());
  return axes;
}

static void visitSlice(Operation *op, UnitAnalysis &analysis) {
  Value whole = op->getOperand(0), part = op->getResult(0);
  const UnitAxis *units = analysis.find(whole) ? analysis.find(whole) : analysis.find(part);
  auto axes = getSlicedAxes(op);
  if (!units || !axes || !getType(part))
    return analysis.refuse("a Slice has its units in a form that is not known");
  if (!llvm::is_contained(*axes, units->axis))
    return visitElementwise(op, analysis);
  auto starts = getIntegers(op->getOperand(1)), ends = getIntegers(op->getOperand(2));
  bool hasSteps = op->getNumOperands() > 4 && getIntegers(op->getOperand(4)) != SmallVector<int64_t>{1};
  int64_t size = getType(whole).getDimSize(units->axis), length = getType(part).getDimSize(units->axis);
  if (!starts || !ends || hasSteps || axes->size() != 1 || starts->front() < 0 || starts->front() + length > size)
    return analysis.refuse("a Slice takes some of its units in a way that is not known");
  linkPart(whole, part, units->axis, starts->front(), analysis);
}

//===- Products ---------------------------------------------------------------------------------------------------===//

namespace {
/// A tensor of a product, and what its dimensions are to the others.
struct Factor {
  OpOperand *operand; // null: the result
  Value value;
  std::optional<int64_t> rows, columns, summed; // dimensions, each of which another tensor has as well
};
} // namespace

/// What a dimension of one tensor is, another's dimension is that is the same to it.
static void linkFactors(ArrayRef<Factor> factors, UnitAnalysis &analysis) {
  for (const Factor &from : factors) {
    const UnitAxis *found = from.operand ? analysis.find(*from.operand) : analysis.find(from.value);
    if (!found)
      continue;
    UnitAxis units(*found);
    for (const Factor &to : factors)
      for (auto role : {&Factor::rows, &Factor::columns, &Factor::summed}) {
        if (&to == &from || from.*role != units.axis || !(to.*role))
          continue;
        if (to.operand)
          analysis.mark(*to.operand, *(to.*role), units.unitOf);
        else
          analysis.mark(to.value, *(to.*role), units.unitOf);
      }
  }
}

/// Dimensions in front of the last two are those of a batch.
static void visitMatMul(Operation *op, UnitAnalysis &analysis) {
  OpOperand &a = op->getOpOperand(0), &b = op->getOpOperand(1);
  RankedTensorType aType = getType(a.get()), bType = getType(b.get()), type = getType(op->getResult(0));
  if (!aType || !bType || !type || aType.getRank() < 2 || bType.getRank() < 2)
    return analysis.refuse("MatMul has its units in a vector");
  int64_t rank = type.getRank();
  linkFactors({{&a, a.get(), aType.getRank() - 2, {}, aType.getRank() - 1},
               {&b, b.get(), {}, bType.getRank() - 1, bType.getRank() - 2},
               {nullptr, op->getResult(0), rank - 2, rank - 1, {}}},
              analysis);
  for (Value value : {a.get(), b.get(), Value(op->getResult(0))})
    if (const UnitAxis *units = analysis.find(value); units && units->axis < getType(value).getRank() - 2)
      return visitElementwise(op, analysis);
}

static void visitGemm(Operation *op, UnitAnalysis &analysis) {
  bool isATransposed = getInteger(op, "transA", 0) != 0, isBTransposed = getInteger(op, "transB", 0) != 0;
  OpOperand &a = op->getOpOperand(0), &b = op->getOpOperand(1);
  SmallVector<Factor> factors = {{&a, a.get(), isATransposed ? 1 : 0, {}, isATransposed ? 0 : 1},
                                 {&b, b.get(), {}, isBTransposed ? 0 : 1, isBTransposed ? 1 : 0},
                                 {nullptr, op->getResult(0), 0, 1, {}}};
  if (op->getNumOperands() > 2 && !onnxir::isAbsent(op->getOperand(2))) {
    RankedTensorType bias = getType(op->getOperand(2));
    if (!bias)
      return analysis.refuse("Gemm has a bias of which nothing is known");
    Factor factor{&op->getOpOperand(2), op->getOperand(2), {}, {}, {}};
    if (int64_t rank = bias.getRank(); rank > 0 && bias.getDimSize(rank - 1) != 1)
      factor.columns = rank - 1;
    if (bias.getRank() == 2 && bias.getDimSize(0) != 1)
      factor.rows = 0;
    factors.push_back(factor);
  }
  linkFactors(factors, analysis);
}

//===- com.microsoft.GroupQueryAttention --------------------------------------------------------------------------===//

/// Operands 0 to 4 are queries (or all three), keys, values, past keys and past values; results what is attended, present keys and
/// present values.
static void visitGroupQueryAttention(Operation *op, UnitAnalysis &analysis) {
  int64_t heads = getInteger(op, "num_heads", 0), shared = getInteger(op, "kv_num_heads", 0);
  bool isPacked = onnxir::isAbsent(op->getOperand(1));
  int64_t parts = isPacked ? heads + 2 * shared : heads, width = getType(op->getOperand(0)).getShape().back();
  if (shared < 1 || heads % shared != 0 || ShapedType::isDynamic(width) || width % parts != 0)
    return analysis.refuse("GroupQueryAttention has heads that are not known");
  int64_t size = width / parts, perHead = heads / shared;
  Units unitOf;
  auto read = [&](const UnitAxis *units, int64_t axis, int64_t stride, int64_t begin = 0) {
    if (units && units->axis == axis && unitOf.empty())
      unitOf = sampleWhole(ArrayRef(units->unitOf).slice(begin, shared * stride), stride);
  };
  auto getUnits = [&](unsigned i) { return i < op->getNumOperands() ? analysis.find(op->getOpOperand(i)) : nullptr; };
  read(getUnits(0), 2, perHead * size);
  for (int64_t part : {heads, heads + shared})
    if (isPacked)
      read(getUnits(0), 2, size, part * size);
  for (unsigned i : {1, 2})
    read(getUnits(i), 2, size);
  for (unsigned i : {3, 4})
    read(getUnits(i), 1, 1);
  read(analysis.find(op->getResult(0)), 2, perHead * size);
  for (Value present : op->getResults().drop_front())
    read(analysis.find(present), 1, 1);
  for (unsigned i = 5; i < op->getNumOperands(); ++i)
    if (getUnits(i) || (i >= 10 && !onnxir::isAbsent(op->getOperand(i))))
      return analysis.refuse("GroupQueryAttention has its units in an operand that is not cut");
  if (unitOf.empty())
    return analysis.refuseLater("GroupQueryAttention mixes its units");
  Units ofQueries = repeat(unitOf, perHead * size), ofKeys = repeat(unitOf, size), packed = ofQueries;
  packed.append(ofKeys);
  packed.append(ofKeys);
  analysis.mark(op->getOpOperand(0), 2, isPacked ? packed : ofQueries);
  for (unsigned i : {1, 2})
    if (!isPacked)
      analysis.mark(op->getOpOperand(i), 2, ofKeys);
  for (unsigned i : {3, 4})
    if (!onnxir::isAbsent(op->getOperand(i)))
      analysis.mark(op->getOpOperand(i), 1, unitOf);
  analysis.mark(op->getResult(0), 2, ofQueries);
  for (Value present : op->getResults().drop_front())
    analysis.mark(present, 1, unitOf);
}

void visitOnnx(Operation *op, UnitAnalysis &analysis) {
  static const llvm::StringSet<> elementwise = {"Add",   "Sub",   "Mul",      "Div",      "Pow",      "Min",
                                                "Max",   "Where", "Cast",     "Neg",      "Abs",      "Exp",
                                                "Sqrt",  "Erf",   "Tanh",     "Sigmoid",  "Relu",     "Gelu",
                                                "Swish", "Clip",  "Identity", "BiasGelu", "FastGelu", "QuickGelu"};
  StringRef name = onnxir::getOpType(op);
  if (elementwise.contains(name))
    return visitElementwise(op, analysis);
  using Rule = void (*)(Operation *, UnitAnalysis &);
  static const llvm::StringMap<Rule> rules = {
      {"Reshape", visitReshape}, {"Transpose", visitTranspose}, {"Concat", visitConcat},
      {"Split", visitSplit},     {"Slice", visitSlice},         {"Shape", visitShape},
      {"MatMul", visitMatMul},   {"Gemm", visitGemm},           {"GroupQueryAttention", visitGroupQueryAttention}};
  if (Rule rule = rules.lookup(name))
    return rule(op, analysis);
  if (name != "Constant")
    analysis.refuse(name + " reads or makes what its units are in");
}

} // namespace hone::units
