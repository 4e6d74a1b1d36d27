// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constants, shapes, and operators that give the same elements another shape.

#include "Indices.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace hone::lowering {

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// The tensor that a Constant node spells by one of its value_* attributes; null for one that lowering has no type for.
static ElementsAttr getConstantValue(Node &node) {
  Builder &b = node.b;
  if (auto value = node.op->getAttrOfType<ElementsAttr>("value"))
    return value;
  if (node.hasAttribute("value_int"))
    return DenseElementsAttr::get(RankedTensorType::get({}, b.getI64Type()), node.integer("value_int"));
  if (node.hasAttribute("value_float"))
    return DenseElementsAttr::get(RankedTensorType::get({}, b.getF32Type()),
                                  static_cast<float>(node.real("value_float")));
  if (auto values = node.integers("value_ints"))
    return DenseElementsAttr::get(RankedTensorType::get(values->size(), b.getI64Type()), ArrayRef<int64_t>(*values));
  if (auto values = node.reals("value_floats"))
    return DenseElementsAttr::get(RankedTensorType::get(values->size(), b.getF32Type()), ArrayRef<float>(*values));
  return {};
}

static LogicalResult lowerConstant(Node &node) {
  ElementsAttr value = getConstantValue(node);
  if (!value || !isa<DenseIntOrFPElementsAttr, DenseResourceElementsAttr>(value))
    return node.fail() << "unsupported constant; supported: tensors of numbers";
  node.set(0, arith::ConstantOp::create(node.b, cast<TypedAttr>(withoutSign(value))));
  return success();
}

/// A tensor of `sizes` full of one scalar; small ones are constants.
static Value fill(Node &node, ArrayRef<Size> sizes, Value scalar) {
  auto shape = getConstantIntValues(sizes);
  if (!shape || !isScalarShape(RankedTensorType::get(*shape, scalar.getType())))
    return node.filled(sizes, scalar);
  return node.fromScalars(RankedTensorType::get(*shape, scalar.getType()),
                          SmallVector<Value>(ShapedType::getNumElements(*shape), scalar));
}

static LogicalResult lowerConstantOfShape(Node &node) {
  auto sizes = getSizes(node, 0);
  if (failed(sizes))
    return failure();
  auto value = node.op->getAttrOfType<DenseElementsAttr>("value");
  if (value && (value.getNumElements() != 1 || !isa<DenseIntOrFPElementsAttr>(value)))
    return node.fail() << "expected attribute 'value' to hold one number, but got " << value;
  Type element = value ? withoutSign(value.getElementType()) : node.b.getF32Type();
  TypedAttr scalar = value ? cast<DenseElementsAttr>(withoutSign(value)).getSplatValue<TypedAttr>()
                           : TypedAttr(node.b.getZeroAttr(element));
  node.set(0, fill(node, *sizes, arith::ConstantOp::create(node.b, scalar)));
  return success();
}

static LogicalResult lowerIdentity(Node &node) {
  node.set(0, node.in(0));
  return success();
}

static LogicalResult lowerEyeLike(Node &node) {
  if (node.rank(0) != 2)
    return node.fail() << "expected input 0 to be a matrix, but got " << node.type(0);
  Type element = node.resultElement(0) ? node.resultElement(0) : node.element(0);
  int64_t offset = node.integer("k");
  node.set(0, node.generate(node.sizes(node.in(0)), element, [&](Builder &b, ValueRange at) -> Value {
    Value diagonal = arith::AddIOp::create(b, at[0], arith::ConstantIndexOp::create(b, offset));
    Value onDiagonal = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, at[1], diagonal);
    return arith::SelectOp::create(b, onDiagonal, node.constant(1, element), node.constant(0, element));
  }));
  return success();
}

//===----------------------------------------------------------------------===//
// Shapes as values
//===----------------------------------------------------------------------===//

static LogicalResult lowerShape(Node &node) {
  SmallVector<Size> sizes = node.sizes(node.in(0));
  int64_t rank = sizes.size();
  auto clamp = [&](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
  int64_t start = clamp(node.integer("start")), end = clamp(node.integer("end", rank));
  SmallVector<Value> values;
  for (int64_t i = start; i < end; ++i)
    values.push_back(node.math.scalar(sizes[i], node.b.getI64Type()));
  node.set(0, node.fromScalars(RankedTensorType::get(values.size(), node.b.getI64Type()), values));
  return success();
}

static LogicalResult lowerSize(Node &node) {
  Type type = node.b.getI64Type();
  Value count = node.math.scalar(getProduct(node, node.sizes(node.in(0))), type);
  node.set(0, node.fromScalars(RankedTensorType::get({}, type), count));
  return success();
}

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

namespace {

/// The sizes that a Reshape asks for, while some of them may be 0 or -1.
struct Request {
  SmallVector<Size> sizes;
  SmallVector<int64_t> inferred;
};

} // namespace

/// One size of a shape as computed at run time, when it may also be 0 (keep) or -1 (infer).
static Size resolveAtRunTime(Node &node, Size wanted, std::optional<Size> kept, Size inferred) {
  Builder &b = node.b;
  Value value = node.math.value(wanted);
  auto is = [&](int64_t constant) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, value, arith::ConstantIndexOp::create(b, constant));
  };
  Size size = node.math.select(is(-1), inferred, wanted);
  return kept ? node.math.select(is(0), *kept, size) : size;
}

/// What the sizes other than inferred ones multiply to, so that the inferred one can be told.
static Size getKnownProduct(Node &node, ArrayRef<Size> wanted, ArrayRef<std::optional<Size>> kept) {
  Size product = node.math.constant(1);
  for (auto [size, keep] : llvm::zip(wanted, kept)) {
    if (IndexMath::getConstant(size) == -1)
      continue;
    bool open = !IndexMath::getConstant(size) && !node.math.isAtLeast(size, 0);
    Size factor = open ? resolveAtRunTime(node, size, keep, node.math.constant(1)) : keep ? *keep : size;
    product = node.math.mul(product, factor);
  }
  return product;
}

/// The sizes of the result of Reshape. A size computed from other sizes is taken as it is, so that 0 there means 0.
static FailureOr<SmallVector<Size>> resolveShape(Node &node, ArrayRef<Size> from, ArrayRef<Size> wanted,
                                                 bool allowZero) {
  SmallVector<std::optional<Size>> kept(wanted.size());
  int64_t inferred = 0;
  for (auto [i, size] : llvm::enumerate(wanted)) {
    auto constant = IndexMath::getConstant(size);
    if (constant && *constant < -1)
      return node.fail() << "expected sizes of at least -1, but got " << *constant;
    inferred += constant == -1;
    bool mayKeep = constant ? *constant == 0 : !node.math.isAtLeast(size, 0);
    if (allowZero || !mayKeep)
      continue;
    if (i < from.size())
      kept[i] = from[i];
    else if (constant)
      return node.fail() << "expected a size for dimension " << i << ", but got 0, and the input has rank "
                         << from.size();
  }
  if (inferred > 1)
    return node.fail() << "expected at most one size to be -1, but got " << inferred;
  Size rest = node.math.constant(1);
  bool open = llvm::any_of(wanted, [&](Size size) { return !node.math.isAtLeast(size, 0); });
  if (open)
    rest = node.math.floorDiv(getProduct(node, from), getKnownProduct(node, wanted, kept));
  SmallVector<Size> sizes;
  for (auto [size, keep] : llvm::zip(wanted, kept)) {
    auto constant = IndexMath::getConstant(size);
    bool fixed = constant || node.math.isAtLeast(size, 0);
    sizes.push_back(constant == -1 ? rest : !fixed ? resolveAtRunTime(node, size, keep, rest) : keep ? *keep : size);
  }
  return sizes;
}

/// `tensor` reshaped, with a check that its elements fill the new shape.
static FailureOr<Value> reshapeChecked(Node &node, Value tensor, ArrayRef<Size> to) {
  Size have = getProduct(node, node.sizes(tensor)), want = getProduct(node, to);
  if (!node.math.equal(have, want)) {
    auto left = IndexMath::getConstant(have), right = IndexMath::getConstant(want);
    if (left && right)
      return node.fail() << "expected the new shape to have " << *left << " elements as the input has, but got "
                         << *right;
    Value same = arith::CmpIOp::create(node.b, arith::CmpIPredicate::eq, node.math.value(have), node.math.value(want));
    node.check(same, "expected the new shape to have {} elements as the input has, but got {}", {have, want});
  }
  return node.reshape(tensor, to);
}

static LogicalResult setReshaped(Node &node, ArrayRef<Size> to) {
  auto result = reshapeChecked(node, node.in(0), to);
  if (failed(result))
    return failure();
  node.set(0, *result);
  return success();
}

static LogicalResult lowerReshape(Node &node) {
  auto wanted = node.indices(1);
  if (failed(wanted))
    return failure();
  auto sizes = resolveShape(node, node.sizes(node.in(0)), *wanted, node.integer("allowzero") != 0);
  if (failed(sizes))
    return failure();
  return setReshaped(node, *sizes);
}

static LogicalResult lowerFlatten(Node &node) {
  int64_t rank = node.rank(0), axis = node.integer("axis", 1);
  if (axis < -rank || axis > rank)
    return node.fail() << "expected axis to be in [" << -rank << ", " << rank << "], but got " << axis;
  SmallVector<Size> sizes = node.sizes(node.in(0));
  ArrayRef<Size> all(sizes);
  size_t split = axis < 0 ? axis + rank : axis;
  return setReshaped(node, {getProduct(node, all.take_front(split)), getProduct(node, all.drop_front(split))});
}

//===----------------------------------------------------------------------===//
// Squeeze and Unsqueeze
//===----------------------------------------------------------------------===//

/// Axes as sizes: constants counted from the front, run-time ones made so.
static FailureOr<SmallVector<Size>> getAxes(Node &node, int64_t rank) {
  SmallVector<Size> axes;
  if (auto given = node.integers("axes")) {
    for (int64_t axis : *given)
      axes.push_back(node.math.constant(axis));
  } else {
    auto values = node.indices(1);
    if (failed(values))
      return failure();
    axes = *values;
  }
  for (Size &axis : axes) {
    auto normalized = normalizeAxis(node, axis, rank);
    if (failed(normalized))
      return failure();
    axis = *normalized;
  }
  return axes;
}

/// Per dimension of `rank`, whether it is one of `axes`.
static SmallVector<Value> getMembership(Node &node, ArrayRef<Size> axes, int64_t rank) {
  Builder &b = node.b;
  SmallVector<Value> members;
  for (int64_t dim = 0; dim < rank; ++dim) {
    Value member = arith::ConstantOp::create(b, b.getBoolAttr(false));
    for (Size axis : axes) {
      Value same = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, node.math.value(axis),
                                         arith::ConstantIndexOp::create(b, dim));
      member = b.createOrFold<arith::OrIOp>(member, node.math.simplify(same));
    }
    members.push_back(member);
  }
  return members;
}

/// Sizes of the dimensions that are not members, in order; `count` of them.
static SmallVector<Size> removeMembers(Node &node, ArrayRef<Size> sizes, ArrayRef<Value> members, int64_t count) {
  IndexMath &math = node.math;
  SmallVector<Size> kept(count, math.constant(1));
  Size position = math.constant(0);
  for (auto [size, member] : llvm::zip(sizes, members)) {
    for (int64_t i = 0; i < count; ++i) {
      Value here =
          arith::CmpIOp::create(node.b, arith::CmpIPredicate::eq, math.value(position), math.value(math.constant(i)));
      kept[i] = math.select(member, kept[i], math.select(here, size, kept[i]));
    }
    position = math.select(member, position, math.add(position, math.constant(1)));
  }
  return kept;
}

/// `sizes` in order in the dimensions that are not members, and 1 in those that are.
static SmallVector<Size> insertMembers(Node &node, ArrayRef<Size> sizes, ArrayRef<Value> members) {
  IndexMath &math = node.math;
  SmallVector<Size> result;
  Size position = math.constant(0);
  for (Value member : members) {
    Size taken = math.constant(1);
    for (auto [i, size] : llvm::enumerate(sizes)) {
      Value here =
          arith::CmpIOp::create(node.b, arith::CmpIPredicate::eq, math.value(position), math.value(math.constant(i)));
      taken = math.select(here, size, taken);
    }
    result.push_back(math.select(member, math.constant(1), taken));
    position = math.select(member, position, math.add(position, math.constant(1)));
  }
  return result;
}

/// The rank of a value, or of what element by element is made of it, as the file declares it; nothing where it says none.
static std::optional<int64_t> findDeclaredRank(Value value, unsigned depth = 0) {
  constexpr unsigned kMostSteps = 8;
  static const llvm::StringSet<> kKeepRank = {"onnx.Abs",      "onnx.Cast", "onnx.Clip", "onnx.Exp",
                                              "onnx.Identity", "onnx.Log",  "onnx.Neg",  "onnx.Relu",
                                              "onnx.Sigmoid",  "onnx.Sqrt", "onnx.Tanh"};
  // The other operand may have more dimensions, unless the result has none.
  static const llvm::StringSet<> kBroadcast = {"onnx.Add", "onnx.Div", "onnx.Mul", "onnx.Sub"};
  if (auto type = dyn_cast<RankedTensorType>(value.getType()))
    return type.getRank();
  if (depth == kMostSteps)
    return std::nullopt;
  for (Operation *user : value.getUsers()) {
    StringRef name = user->getName().getStringRef();
    if (!kKeepRank.contains(name) && !kBroadcast.contains(name))
      continue;
    auto rank = findDeclaredRank(user->getResult(0), depth + 1);
    if (rank && (kKeepRank.contains(name) || *rank == 0))
      return rank;
  }
  return std::nullopt;
}

/// Axes of size 1. Where only calls know some sizes, the declared rank decides: all of these stay, or all are 1, which is checked.
static FailureOr<SmallVector<Size>> findSqueezedAxes(Node &node, ArrayRef<Size> sizes) {
  SmallVector<Size> ones, open;
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (auto constant = IndexMath::getConstant(size); !constant || *constant == 1)
      (constant ? ones : open).push_back(node.math.constant(dim));
  int64_t kept = sizes.size() - ones.size(), least = kept - open.size();
  auto declared = open.empty() ? kept : findDeclaredRank(node.op->getResult(0));
  if (declared == kept)
    return ones;
  if (declared != least)
    return node.fail() << "expected axes to be given, since which sizes of " << node.type(0)
                       << " are 1 is known only at run time";
  for (Size axis : open) {
    Size size = sizes[*IndexMath::getConstant(axis)];
    node.check(node.math.compare(arith::CmpIPredicate::eq, size, node.math.constant(1)),
               "expected what is squeezed to have size 1, as the declared result says, but got {}", {size});
  }
  llvm::append_range(ones, open);
  return ones;
}

static LogicalResult lowerSqueeze(Node &node) {
  SmallVector<Size> sizes = node.sizes(node.in(0)), axes;
  int64_t rank = sizes.size();
  if (node.has(1) || node.hasAttribute("axes")) {
    auto given = getAxes(node, rank);
    if (failed(given))
      return failure();
    axes = *given;
  } else {
    auto found = findSqueezedAxes(node, sizes);
    if (failed(found))
      return failure();
    axes = *found;
  }
  if (static_cast<int64_t>(axes.size()) > rank)
    return node.fail() << "expected at most " << rank << " axes, but got " << axes.size();
  return setReshaped(node, removeMembers(node, sizes, getMembership(node, axes, rank), rank - axes.size()));
}

static LogicalResult lowerUnsqueeze(Node &node) {
  SmallVector<Size> sizes = node.sizes(node.in(0));
  auto given = node.integers("axes");
  if (!given && !node.type(1).hasStaticShape())
    return node.fail() << "expected input 1 to be a vector of fixed length, but got " << node.type(1);
  int64_t rank = sizes.size() + (given ? given->size() : node.type(1).getNumElements());
  auto axes = getAxes(node, rank);
  if (failed(axes))
    return failure();
  auto constants = getConstantIntValues(*axes);
  if (constants && llvm::SmallDenseSet<int64_t>(constants->begin(), constants->end()).size() != constants->size())
    return node.fail() << "expected axes to differ from one another, but one is given twice";
  return setReshaped(node, insertMembers(node, sizes, getMembership(node, *axes, rank)));
}

//===----------------------------------------------------------------------===//
// Repetition and order
//===----------------------------------------------------------------------===//

/// Checks that the sizes are equal, or one of them is 1.
static LogicalResult requireBroadcast(Node &node, Size from, Size to) {
  auto left = IndexMath::getConstant(from), right = IndexMath::getConstant(to);
  if (node.math.equal(from, to) || left == 1 || right == 1)
    return success();
  if (left && right)
    return node.fail() << "expected a size of " << *left << " to expand to 1 or " << *left << ", but got " << *right;
  Size one = node.math.constant(1);
  Value fits = compare(node, arith::CmpIPredicate::eq, from, to);
  for (Size size : {from, to})
    fits = node.b.createOrFold<arith::OrIOp>(fits, compare(node, arith::CmpIPredicate::eq, size, one));
  node.check(node.math.simplify(fits), "expected a size of {} to expand to 1 or {}, but got {}", {from, from, to});
  return success();
}

static LogicalResult lowerExpand(Node &node) {
  auto wanted = getSizes(node, 1);
  if (failed(wanted))
    return failure();
  SmallVector<Size> own = node.sizes(node.in(0)), sizes = *wanted;
  if (own.size() > sizes.size())
    sizes.insert(sizes.begin(), own.size() - sizes.size(), node.math.constant(1));
  own.insert(own.begin(), sizes.size() - own.size(), node.math.constant(1));
  for (auto [size, mine] : llvm::zip(sizes, own)) {
    if (failed(requireBroadcast(node, mine, size)))
      return failure();
    size = node.broadcastSize(mine, size);
  }
  node.set(0, broadcast(node, node.in(0), sizes));
  return success();
}

static LogicalResult lowerTile(Node &node) {
  auto repeats = getSizes(node, 1);
  if (failed(repeats))
    return failure();
  SmallVector<Size> own = node.sizes(node.in(0)), split, repeated, merged;
  if (repeats->size() != own.size())
    return node.fail() << "expected " << own.size() << " repeats, but got " << repeats->size();
  for (auto [size, count] : llvm::zip(own, *repeats)) {
    merged.push_back(node.math.mul(size, count));
    if (IndexMath::getConstant(count) != 1) {
      split.push_back(node.math.constant(1));
      repeated.push_back(count);
    }
    split.push_back(size);
    repeated.push_back(size);
  }
  node.set(0, node.reshape(broadcast(node, node.reshape(node.in(0), split), repeated), merged));
  return success();
}

static LogicalResult lowerTranspose(Node &node) {
  int64_t rank = node.rank(0);
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rank)));
  if (auto given = node.integers("perm")) {
    if (static_cast<int64_t>(given->size()) != rank || !isPermutationVector(*given))
      return node.fail() << "expected attribute 'perm' to be a permutation of " << rank << " dimensions";
    permutation = *given;
  }
  node.set(0, node.transpose(node.in(0), permutation));
  return success();
}

void addShapeLowerings(LoweringTable &table) {
  table["onnx.Constant"] = lowerConstant;
  table["onnx.ConstantOfShape"] = lowerConstantOfShape;
  table["onnx.Expand"] = lowerExpand;
  table["onnx.EyeLike"] = lowerEyeLike;
  table["onnx.Flatten"] = lowerFlatten;
  table["onnx.Identity"] = lowerIdentity;
  table["onnx.Reshape"] = lowerReshape;
  table["onnx.Shape"] = lowerShape;
  table["onnx.Size"] = lowerSize;
  table["onnx.Squeeze"] = lowerSqueeze;
  table["onnx.Tile"] = lowerTile;
  table["onnx.Transpose"] = lowerTranspose;
  table["onnx.Unsqueeze"] = lowerUnsqueeze;
}

} // namespace hone::lowering
