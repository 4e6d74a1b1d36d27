// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How onnx operations move groups. An operator without a rule is a blocker.

#include "Rules.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "llvm/ADT/StringSet.h"

#include <numeric>

using namespace mlir;

namespace hone::prunable {

void visitElementwise(Operation *op, GroupAnalysis &analysis) {
  auto spread = [&](const GroupAxis &groups, int64_t rank) {
    int64_t fromEnd = rank - groups.axis;
    Groups groupOf(groups.groupOf);
    auto getAxis = [&](Value value) -> std::optional<int64_t> {
      RankedTensorType type = getType(value);
      bool isRepeated = !type || type.getRank() < fromEnd || type.getDimSize(type.getRank() - fromEnd) == 1;
      return isRepeated ? std::nullopt : std::optional(type.getRank() - fromEnd);
    };
    for (OpOperand &use : op->getOpOperands())
      if (std::optional<int64_t> axis = getAxis(use.get()))
        analysis.mark(use, *axis, groupOf);
    for (Value result : op->getResults())
      if (std::optional<int64_t> axis = getAxis(result))
        analysis.mark(result, *axis, groupOf);
  };
  for (OpOperand &use : op->getOpOperands())
    if (const GroupAxis *groups = analysis.find(use))
      spread(GroupAxis(*groups), getType(use.get()).getRank());
  for (Value result : op->getResults())
    if (const GroupAxis *groups = analysis.find(result))
      spread(GroupAxis(*groups), getType(result).getRank());
}

/// The groups along one dimension of `to`, where `from` has them along `groups.axis` and both have the same elements in the same
/// order; nothing if they lie along none.
static std::optional<GroupAxis> reshapeGroups(const GroupAxis &groups, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  size_t front = 0, back = 0, most = std::min(from.size(), to.size());
  while (front < most && from[front] == to[front])
    ++front;
  while (back < most - front && from[from.size() - 1 - back] == to[to.size() - 1 - back])
    ++back;
  auto axis = static_cast<size_t>(groups.axis);
  if (axis < front)
    return groups;
  if (axis >= from.size() - back)
    return GroupAxis{static_cast<int64_t>(axis + to.size() - from.size()), groups.groupOf};
  ArrayRef<int64_t> fromMiddle = from.slice(front, from.size() - front - back),
                    toMiddle = to.slice(front, to.size() - front - back);
  if (llvm::any_of(fromMiddle, ShapedType::isDynamic) || llvm::any_of(toMiddle, ShapedType::isDynamic))
    return std::nullopt;
  auto product = [](ArrayRef<int64_t> sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
  };
  // Elements of the middle in order: which group each is of, and whether that is a matter of one dimension of `to`.
  int64_t inner = product(fromMiddle.drop_front(axis - front + 1)), total = product(fromMiddle);
  if (total != product(toMiddle))
    return std::nullopt;
  auto groupOfElement = [&](int64_t i) { return groups.groupOf[i / inner % fromMiddle[axis - front]]; };
  for (size_t wanted = 0; wanted < toMiddle.size(); ++wanted) {
    int64_t innerOfWanted = product(toMiddle.drop_front(wanted + 1)), size = toMiddle[wanted];
    GroupAxis found{static_cast<int64_t>(front + wanted), Groups(size)};
    for (int64_t j = 0; j < size; ++j)
      found.groupOf[j] = groupOfElement(j * innerOfWanted);
    bool agrees = true;
    for (int64_t i = 0; agrees && i < total; ++i)
      agrees = groupOfElement(i) == found.groupOf[i / innerOfWanted % size];
    if (agrees)
      return found;
  }
  return std::nullopt;
}

static void visitReshape(Operation *op, GroupAnalysis &analysis) {
  Value input = op->getOperand(0), result = op->getResult(0);
  for (auto [from, to] : {std::pair(input, result), std::pair(result, input)}) {
    const GroupAxis *groups = analysis.find(from);
    if (!groups)
      continue;
    std::optional<GroupAxis> moved = reshapeGroups(*groups, getType(from).getShape(), getType(to).getShape());
    if (!moved)
      return analysis.refuse("Reshape mixes its groups with other dimensions");
    analysis.mark(to, moved->axis, moved->groupOf);
  }
  const GroupAxis *before = analysis.find(input), *after = analysis.find(result);
  if (!before || !after)
    return;
  std::optional<int64_t> index = getShapeIndex(op, after->axis);
  if (!index || (getShapeElement(op->getOperand(1), *index) == 0 && before->axis != after->axis))
    analysis.refuse("the shape of a Reshape is not known");
}

/// Shapes may be computed: what they say of groups is set when these go.
static void visitExpand(Operation *op, GroupAnalysis &analysis) {
  OpOperand &input = op->getOpOperand(0);
  RankedTensorType from = getType(input.get()), to = getType(op->getResult(0));
  if (!from || !to)
    return analysis.refuse("Expand has its groups in a form that is not known");
  int64_t more = to.getRank() - from.getRank();
  if (const GroupAxis *groups = analysis.find(input))
    analysis.mark(op->getResult(0), groups->axis + more, Groups(groups->groupOf));
  const GroupAxis *groups = analysis.find(op->getResult(0));
  if (groups && groups->axis >= more && from.getDimSize(groups->axis - more) != 1)
    analysis.mark(input, groups->axis - more, Groups(groups->groupOf));
  if (groups && !getType(op->getOperand(1)).hasStaticShape())
    analysis.refuse("the shape of an Expand is not known");
}

//===- Movement ---------------------------------------------------------------------------------------------------===//

static void visitTranspose(Operation *op, GroupAnalysis &analysis) {
  Value input = op->getOperand(0), result = op->getResult(0);
  int64_t rank = getType(input).getRank();
  SmallVector<int64_t> permutation(llvm::reverse(llvm::seq<int64_t>(0, rank)));
  if (auto attr = op->getAttrOfType<DenseI64ArrayAttr>("perm"))
    permutation.assign(attr.asArrayRef().begin(), attr.asArrayRef().end());
  if (const GroupAxis *groups = analysis.find(input))
    analysis.mark(result, llvm::find(permutation, groups->axis) - permutation.begin(), Groups(groups->groupOf));
  if (const GroupAxis *groups = analysis.find(result))
    analysis.mark(op->getOpOperand(0), permutation[groups->axis], Groups(groups->groupOf));
}

/// The dimensions that a Squeeze or Unsqueeze names, of the tensor that has them.
static std::optional<SmallVector<int64_t>> getNamedAxes(Operation *op, RankedTensorType whole) {
  std::optional<SmallVector<int64_t>> axes;
  if (auto attr = op->getAttrOfType<DenseI64ArrayAttr>("axes")) // before opset 13
    axes.emplace(attr.asArrayRef().begin(), attr.asArrayRef().end());
  else if (op->getNumOperands() > 1 && !onnxir::isAbsent(op->getOperand(1)))
    axes = getIntegers(op->getOperand(1));
  for (int64_t i = 0; axes && i < static_cast<int64_t>(axes->size()); ++i)
    (*axes)[i] = countFromFront((*axes)[i], whole.getRank());
  return axes;
}

/// Dimensions of one element come or go in front of that of the groups.
static void visitSqueeze(Operation *op, GroupAnalysis &analysis) {
  Value whole = op->getOperand(0), rest = op->getResult(0);
  if (onnxir::getOpType(op) == "Unsqueeze")
    std::swap(whole, rest);
  auto axes = getType(whole) && getType(rest) ? getNamedAxes(op, getType(whole)) : std::nullopt;
  if (!axes)
    return analysis.refuse(onnxir::getOpType(op) + " has its groups in a form that is not known");
  SmallVector<int64_t> places; // of the dimensions of the rest
  for (int64_t axis = 0; axis < getType(whole).getRank(); ++axis)
    if (!llvm::is_contained(*axes, axis))
      places.push_back(axis);
  if (const GroupAxis *groups = analysis.find(rest))
    analysis.mark(whole, places[groups->axis], Groups(groups->groupOf));
  const GroupAxis *groups = analysis.find(whole);
  if (!groups)
    return;
  if (llvm::is_contained(*axes, groups->axis))
    return analysis.refuse(onnxir::getOpType(op) + " takes the dimension of its groups away");
  analysis.mark(rest, llvm::find(places, groups->axis) - places.begin(), Groups(groups->groupOf));
}

/// What reads rows from dimension `axis` on, and leaves those before it alone.
static void visitRows(Operation *op, int64_t axis, GroupAnalysis &analysis) {
  Value rows = op->getOperand(0), result = op->getResult(0);
  for (auto [from, to] : {std::pair(rows, result), std::pair(result, rows)})
    if (const GroupAxis *groups = analysis.find(from)) {
      if (groups->axis >= countFromFront(axis, getType(from).getRank()))
        return analysis.refuse(onnxir::getOpType(op) + " has its groups in one row");
      analysis.mark(to, groups->axis, Groups(groups->groupOf));
    }
  for (OpOperand &use : op->getOpOperands().drop_front())
    if (analysis.find(use))
      return analysis.refuse(onnxir::getOpType(op) + " has its groups in one row");
}

static void visitNormalization(Operation *op, GroupAnalysis &analysis) {
  visitRows(op, getInteger(op, "axis", -1), analysis);
}

/// Over the last dimension alone, which stays with one element.
static void visitReduce(Operation *op, GroupAnalysis &analysis) {
  std::optional<SmallVector<int64_t>> axes;
  if (getType(op->getOperand(0)))
    axes = getNamedAxes(op, getType(op->getOperand(0)));
  if (!axes || axes->size() != 1 || axes->front() != getType(op->getOperand(0)).getRank() - 1 ||
      getInteger(op, "keepdims", 1) == 0)
    return analysis.refuse(onnxir::getOpType(op) + " reads or makes what its groups are in");
  visitRows(op, -1, analysis);
}

static void visitConcat(Operation *op, GroupAnalysis &analysis) {
  int64_t axis = countFromFront(getInteger(op, "axis", 0), getType(op->getResult(0)).getRank());
  auto alongAxis = [&](const GroupAxis *groups) { return groups && groups->axis == axis; };
  if (alongAxis(analysis.find(op->getResult(0))) ||
      llvm::any_of(op->getOpOperands(), [&](OpOperand &use) { return alongAxis(analysis.find(use)); }))
    return analysis.refuse("Concat puts its groups beside others");
  visitElementwise(op, analysis);
}

/// `part` holds indices [begin, …) of `whole` along `axis`, or all of them along others.
static void linkPart(Value whole, Value part, int64_t axis, int64_t begin, GroupAnalysis &analysis) {
  int64_t size = getType(whole).getDimSize(axis), length = getType(part).getDimSize(axis);
  if (const GroupAxis *groups = analysis.find(whole)) {
    ArrayRef<int32_t> groupOf = groups->groupOf;
    analysis.mark(part, groups->axis, Groups(groups->axis == axis ? groupOf.slice(begin, length) : groupOf));
  }
  const GroupAxis *groups = analysis.find(part);
  if (!groups)
    return;
  Groups groupOf(groups->groupOf);
  if (groups->axis == axis) {
    groupOf.assign(size, -1);
    llvm::copy(groups->groupOf, groupOf.begin() + begin);
  }
  analysis.mark(whole, groups->axis, groupOf);
}

static void visitSplit(Operation *op, GroupAnalysis &analysis) {
  Value whole = op->getOperand(0);
  int64_t axis = countFromFront(getInteger(op, "axis", 0), getType(whole).getRank()), begin = 0;
  for (Value part : op->getResults()) {
    if (!getType(part) || getType(part).isDynamicDim(axis) || getType(whole).isDynamicDim(axis))
      return analysis.refuse("Split gives its groups in numbers that are not known");
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

static void visitSlice(Operation *op, GroupAnalysis &analysis) {
  Value whole = op->getOperand(0), part = op->getResult(0);
  const GroupAxis *groups = analysis.find(whole) ? analysis.find(whole) : analysis.find(part);
  auto axes = getSlicedAxes(op);
  if (!groups || !axes || !getType(part))
    return analysis.refuse("a Slice has its groups in a form that is not known");
  if (!llvm::is_contained(*axes, groups->axis))
    return visitElementwise(op, analysis);
  auto starts = getIntegers(op->getOperand(1)), ends = getIntegers(op->getOperand(2));
  bool hasSteps = op->getNumOperands() > 4 && getIntegers(op->getOperand(4)) != SmallVector<int64_t>{1};
  int64_t size = getType(whole).getDimSize(groups->axis), length = getType(part).getDimSize(groups->axis);
  if (!starts || !ends || hasSteps || axes->size() != 1 || starts->front() < 0 || starts->front() + length > size)
    return analysis.refuse("a Slice takes some of its groups in a way that is not known");
  linkPart(whole, part, groups->axis, starts->front(), analysis);
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
static void linkFactors(ArrayRef<Factor> factors, GroupAnalysis &analysis) {
  for (const Factor &from : factors) {
    const GroupAxis *found = from.operand ? analysis.find(*from.operand) : analysis.find(from.value);
    if (!found)
      continue;
    GroupAxis groups(*found);
    for (const Factor &to : factors)
      for (auto role : {&Factor::rows, &Factor::columns, &Factor::summed}) {
        if (&to == &from || from.*role != groups.axis || !(to.*role))
          continue;
        if (to.operand)
          analysis.mark(*to.operand, *(to.*role), groups.groupOf);
        else
          analysis.mark(to.value, *(to.*role), groups.groupOf);
      }
  }
}

/// Dimensions in front of the last two are those of a batch. FusedMatMul has the last two of either factor in the other order if it
/// says so.
static void visitMatMul(Operation *op, GroupAnalysis &analysis) {
  OpOperand &a = op->getOpOperand(0), &b = op->getOpOperand(1);
  RankedTensorType aType = getType(a.get()), bType = getType(b.get()), type = getType(op->getResult(0));
  bool hasOtherBatch = getInteger(op, "transBatchA", 0) != 0 || getInteger(op, "transBatchB", 0) != 0;
  if (!aType || !bType || !type || aType.getRank() < 2 || bType.getRank() < 2 || hasOtherBatch)
    return analysis.refuse(onnxir::getOpType(op) + " has its groups in a form that is not known");
  int64_t rank = type.getRank(), swapsA = getInteger(op, "transA", 0), swapsB = getInteger(op, "transB", 0);
  linkFactors({{&a, a.get(), aType.getRank() - 2 + swapsA, {}, aType.getRank() - 1 - swapsA},
               {&b, b.get(), {}, bType.getRank() - 1 - swapsB, bType.getRank() - 2 + swapsB},
               {nullptr, op->getResult(0), rank - 2, rank - 1, {}}},
              analysis);
  for (Value value : {a.get(), b.get(), Value(op->getResult(0))})
    if (const GroupAxis *groups = analysis.find(value); groups && groups->axis < getType(value).getRank() - 2)
      return visitElementwise(op, analysis);
}

static void visitGemm(Operation *op, GroupAnalysis &analysis) {
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

void visitOnnx(Operation *op, GroupAnalysis &analysis) {
  static const llvm::StringSet<> elementwise = {
      "Add",  "Sub",   "Mul",  "Div",      "Pow",   "Min",        "Max",      "Where",    "Cast",     "Neg",
      "Abs",  "Exp",   "Not",  "And",      "Sqrt",  "Erf",        "Tanh",     "Relu",     "IsNaN",    "Sigmoid",
      "Gelu", "Swish", "Clip", "Identity", "Equal", "Reciprocal", "BiasGelu", "FastGelu", "QuickGelu"};
  StringRef name = onnxir::getOpType(op);
  if (elementwise.contains(name))
    return visitElementwise(op, analysis);
  using Rule = void (*)(Operation *, GroupAnalysis &);
  static const llvm::StringMap<Rule> rules = {{"Reshape", visitReshape},
                                              {"Expand", visitExpand},
                                              {"Transpose", visitTranspose},
                                              {"Squeeze", visitSqueeze},
                                              {"Unsqueeze", visitSqueeze},
                                              {"Concat", visitConcat},
                                              {"Split", visitSplit},
                                              {"Slice", visitSlice},
                                              {"Shape", visitShape},
                                              {"MatMul", visitMatMul},
                                              {"FusedMatMul", visitMatMul},
                                              {"Gemm", visitGemm},
                                              {"Softmax", visitNormalization},
                                              {"RMSNormalization", visitNormalization},
                                              {"SimplifiedLayerNormalization", visitNormalization},
                                              {"LayerNormalization", visitNormalization},
                                              {"ReduceMean", visitReduce},
                                              {"ReduceSum", visitReduce},
                                              {"Attention", visitAttention},
                                              {"MultiHeadAttention", visitMultiHeadAttention},
                                              {"GroupQueryAttention", visitGroupQueryAttention},
                                              {"RotaryEmbedding", visitRotaryEmbedding}};
  if (Rule rule = rules.lookup(name))
    return rule(op, analysis);
  if (name != "Constant")
    analysis.refuse(name + " reads or makes what its groups are in");
}

} // namespace hone::prunable
