// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rotary position embedding: the operators RotaryEmbedding, x * cos + rotate_half(x) * sin, and both parts of a complex product.

#include "OnnxMatch.h"

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace hone {
#define GEN_PASS_DEF_RAISEROPE
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-raise-rope";

namespace {

class RopeRaiser {
public:
  explicit RopeRaiser(func::FuncOp function) : function(function), analysis(function) {}
  unsigned run();

private:
  bool raiseOperator(Operation *op);
  bool raiseMicrosoft(Operation *op);
  bool raiseSpelledOut(Operation *op);
  bool isRotatedHalf(Value value, Value x);
  bool hasEqualHalves(Value value);
  bool isLastSlice(Value value, Value x, int64_t begin, int64_t end);
  bool raiseParts(Operation *op);
  Value getTable(Value table, const Shape &shape);
  Value getHalfTable(Value table, const Shape &shape);
  bool fitsRows(Value table, const Shape &shape);
  Value getColumns(Value table, int64_t columns);
  Value rotate(OpBuilder &b, Location loc, Value x, Value cos, Value sin, bool interleaved);
  Value gatherTable(OnnxBuilder &onnx, Value table, Value positions);

  func::FuncOp function;
  SymbolicAnalysis analysis;
  /// What tables became once, by the table and by how many columns of it are kept.
  llvm::DenseMap<std::pair<Value, int64_t>, Value> tables;
};

} // namespace

Value RopeRaiser::rotate(OpBuilder &b, Location loc, Value x, Value cos, Value sin, bool interleaved) {
  remarkRaised(loc, kPass, "Rope") << (interleaved ? "pairs of neighbours" : "pairs of halves");
  return RopeOp::create(b, loc, x.getType(), x, cos, sin, interleaved ? b.getUnitAttr() : UnitAttr());
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

Value RopeRaiser::gatherTable(OnnxBuilder &onnx, Value table, Value positions) {
  auto type = cast<RankedTensorType>(table.getType());
  auto rows = cast<RankedTensorType>(positions.getType());
  SmallVector<int64_t> shape(rows.getShape());
  shape.push_back(type.getDimSize(1));
  return onnx.create("Gather", {table, positions}, RankedTensorType::get(shape, type.getElementType()),
                     onnx.integerAttr("axis", 0));
}

/// RotaryEmbedding of opset 23: (x, cos, sin, positions), x [B, H, S, D]; tables per row, or by position.
bool RopeRaiser::raiseOperator(Operation *op) {
  if (!isOp(op, "RotaryEmbedding"))
    return false;
  Value x = op->getOperand(0), cos = op->getOperand(1), sin = op->getOperand(2), positions = getOperand(op, 3);
  int64_t tableRank = positions ? 2 : 3;
  if (getRank(x) != 4 || getRank(cos) != tableRank || getRank(sin) != tableRank ||
      (positions && getRank(positions) != 2)) {
    remarkMissed(op->getLoc(), kPass, "RotaryEmbedding") << "its heads are not split";
    return false;
  }
  OpBuilder b(op);
  OnnxBuilder onnx(b, op->getLoc());
  if (positions) {
    cos = gatherTable(onnx, cos, positions);
    sin = gatherTable(onnx, sin, positions);
  }
  replace(op->getResult(0), rotate(b, op->getLoc(), x, cos, sin, getInteger(op, "interleaved", 0) != 0));
  return true;
}

/// RotaryEmbedding of com.microsoft: (x, positions, cos, sin), x [B, S, H * D] or [B, H, S, D], tables by position.
bool RopeRaiser::raiseMicrosoft(Operation *op) {
  if (!isOp(op, "RotaryEmbedding", kMicrosoft))
    return false;
  Value x = op->getOperand(0), positions = op->getOperand(1), cos = op->getOperand(2), sin = op->getOperand(3);
  int64_t rank = getRank(x), width = getLastSize(x), tableWidth = getLastSize(cos);
  int64_t heads = getInteger(op, "num_heads", 0), rotated = getInteger(op, "rotary_embedding_dim", 0);
  if (rank == 3 && heads == 0 && rotated == 0 && !ShapedType::isDynamic(width) && tableWidth > 0 &&
      width % (2 * tableWidth) == 0)
    heads = width / (2 * tableWidth);
  bool fits = getRank(positions) == 2 && getRank(cos) == 2 && getRank(sin) == 2 &&
              getInteger(op, "is_packed_batching", 0) == 0 &&
              (rank == 4 || (rank == 3 && heads > 0 && !ShapedType::isDynamic(width) && width % heads == 0));
  if (!fits) {
    remarkMissed(op->getLoc(), kPass, "RotaryEmbedding") << "its positions are an offset, or its heads are not known";
    return false;
  }
  OpBuilder b(op);
  OnnxBuilder onnx(b, op->getLoc());
  cos = gatherTable(onnx, cos, positions);
  sin = gatherTable(onnx, sin, positions);
  bool interleaved = getInteger(op, "interleaved", 0) != 0;
  if (rank == 4) {
    replace(op->getResult(0), rotate(b, op->getLoc(), x, cos, sin, interleaved));
    return true;
  }
  auto shape = cast<RankedTensorType>(x.getType()).getShape();
  Value split = onnx.transpose(
      onnx.reshape(x, {0, 0, heads, width / heads}, {shape[0], shape[1], heads, width / heads}), {0, 2, 1, 3});
  Value rows = onnx.transpose(rotate(b, op->getLoc(), split, cos, sin, interleaved), {0, 2, 1, 3});
  replace(op->getResult(0), onnx.reshape(rows, {0, 0, width}, {shape[0], shape[1], width}));
  return true;
}

//===----------------------------------------------------------------------===//
// x * cos + rotate_half(x) * sin
//===----------------------------------------------------------------------===//

bool RopeRaiser::isLastSlice(Value value, Value x, int64_t begin, int64_t end) {
  if (Operation *split = getDefiningOp(value, "Split")) {
    int64_t rank = getRank(x), axis = getInteger(split, "axis", 0);
    return split->getOperand(0) == x && (axis == -1 || axis == rank - 1) && getLastSize(value) == end - begin &&
           split->getNumResults() == 2 && (value == split->getResult(0) ? begin == 0 : end == getLastSize(x));
  }
  Operation *slice = getDefiningOp(value, "Slice");
  if (!slice || slice->getOperand(0) != x || slice->getNumOperands() < 4)
    return false;
  auto starts = analysis.getConstants(slice->getOperand(1)), ends = analysis.getConstants(slice->getOperand(2)),
       axes = analysis.getConstants(slice->getOperand(3));
  auto steps =
      getOperand(slice, 4) ? analysis.getConstants(slice->getOperand(4)) : std::optional(SmallVector<int64_t>{1});
  if (!starts || !ends || !axes || !steps || starts->size() != 1 || axes->size() != 1 || steps->front() != 1)
    return false;
  int64_t rank = getRank(x), size = getLastSize(x);
  int64_t first = starts->front() < 0 ? starts->front() + size : starts->front();
  int64_t last = ends->front() < 0 ? ends->front() + size : std::min(ends->front(), size);
  return (axes->front() == -1 || axes->front() == rank - 1) && first == begin && last == end;
}

/// Concat(-x[half:], x[:half]) on the last dimension.
bool RopeRaiser::isRotatedHalf(Value value, Value x) {
  Operation *concat = getDefiningOp(value, "Concat");
  int64_t size = getLastSize(x), rank = getRank(x);
  if (!concat || concat->getNumOperands() != 2 || ShapedType::isDynamic(size) || size % 2 != 0)
    return false;
  int64_t axis = getInteger(concat, "axis", 0);
  Operation *negated = getDefiningOp(concat->getOperand(0), "Neg");
  return negated && (axis == -1 || axis == rank - 1) && isLastSlice(negated->getOperand(0), x, size / 2, size) &&
         isLastSlice(concat->getOperand(1), x, 0, size / 2);
}

/// Whether the second half of the last dimension repeats the first, by how the tensor is made.
bool RopeRaiser::hasEqualHalves(Value value) {
  value = skipCasts(value);
  Operation *op = value.getDefiningOp();
  if (!op || !onnxir::isOnnxOp(op))
    return false;
  StringRef name = onnxir::getOpType(op);
  int64_t rank = getRank(value);
  if (name == "Concat") {
    int64_t axis = getInteger(op, "axis", 0);
    if (op->getNumOperands() == 2 && op->getOperand(0) == op->getOperand(1))
      return axis == -1 || axis == rank - 1;
    return false;
  }
  if (name == "Cos" || name == "Sin" || name == "Neg")
    return hasEqualHalves(op->getOperand(0));
  if (name == "Mul" || name == "Div")
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      return getLastSize(operand) == 1 || getRank(operand) == 0 || hasEqualHalves(operand);
    });
  if (name == "Unsqueeze" || name == "Reshape" || name == "Expand")
    return getLastSize(op->getOperand(0)) == getLastSize(value) && !ShapedType::isDynamic(getLastSize(value)) &&
           hasEqualHalves(op->getOperand(0));
  if (name == "Gather")
    return getInteger(op, "axis", 0) != rank - 1 && getRank(op->getOperand(0)) > 1 && hasEqualHalves(op->getOperand(0));
  if (name == "Transpose") {
    auto permutation = getIntegers(op, "perm");
    return permutation && !permutation->empty() && permutation->back() == rank - 1 && hasEqualHalves(op->getOperand(0));
  }
  return false;
}

/// Whether a table is `[B or 1, 1, S, D]` for rows `[B, H, S, D]`.
bool RopeRaiser::fitsRows(Value table, const Shape &shape) {
  auto own = analysis.getShape(table);
  return own && own->size() == 4 && (*own)[1].isConstant(1) && (*own)[2] == shape[2] && (*own)[3] == shape[3] &&
         ((*own)[0].isConstant(1) || (*own)[0] == shape[0]);
}

/// The first columns of a table `[B, 1, S, all]` as `[B, S, columns]`.
Value RopeRaiser::getColumns(Value table, int64_t columns) {
  Value &known = tables[{table, columns}];
  if (known)
    return known;
  OpBuilder b(table.getContext());
  b.setInsertionPointAfterValue(table);
  OnnxBuilder onnx(b, table.getLoc());
  Value cut = getLastSize(table) == columns ? table : onnx.slice(table, 3, 0, columns);
  auto type = cast<RankedTensorType>(cut.getType());
  auto rows =
      RankedTensorType::get({type.getDimSize(0), type.getDimSize(2), type.getDimSize(3)}, type.getElementType());
  int64_t opset = onnxir::getOpsetVersion(function, "");
  known = opset != 0 && opset < 13
              ? onnx.create("Squeeze", cut, rows, b.getNamedAttr("axes", b.getDenseI64ArrayAttr({1})))
              : onnx.create("Squeeze", {cut, onnx.integers(1)}, rows);
  return known;
}

/// The first half of a table that broadcasts to `[B, H, S, D]`, as `[B or 1, S, D / 2]`; null where it has other sizes.
Value RopeRaiser::getTable(Value table, const Shape &shape) {
  auto width = shape.back().getConstant();
  return fitsRows(table, shape) && width && hasEqualHalves(table) ? getColumns(table, *width / 2) : Value();
}

bool RopeRaiser::raiseSpelledOut(Operation *op) {
  if (!isOp(op, "Add"))
    return false;
  for (unsigned side : {0u, 1u}) {
    Operation *plain = getDefiningOp(op->getOperand(side), "Mul"),
              *rotated = getDefiningOp(op->getOperand(1 - side), "Mul");
    if (!plain || !rotated)
      continue;
    for (unsigned which = 0; which < 4; ++which) {
      Value x = plain->getOperand(which & 1), cos = plain->getOperand(1 - (which & 1));
      Value half = rotated->getOperand(which >> 1), sin = rotated->getOperand(1 - (which >> 1));
      if (getRank(x) != 4 || !isFloat(x) || !isRotatedHalf(half, x))
        continue;
      auto shape = analysis.getShape(x);
      Value cosTable = getTable(cos, *shape), sinTable = getTable(sin, *shape);
      if (!cosTable || !sinTable) {
        remarkMissed(op->getLoc(), kPass, "Rope")
            << "the halves of its tables may differ, or their sizes are not those of the rows";
        return false;
      }
      OpBuilder b(op);
      replace(op->getResult(0), rotate(b, op->getLoc(), x, cosTable, sinTable, false));
      return true;
    }
  }
  return false;
}

//===----------------------------------------------------------------------===//
// (a + ib) (cos + i sin)
//===----------------------------------------------------------------------===//

/// A table that broadcasts to parts `[B, H, S, D / 2]` of rows, as `[B or 1, S, D / 2]`; null where it has other sizes.
Value RopeRaiser::getHalfTable(Value table, const Shape &shape) {
  auto width = shape.back().getConstant();
  return fitsRows(table, shape) && width ? getColumns(table, *width) : Value();
}

/// The other factor of `product`, a Mul of `factor`; null if it is none.
static Value getOtherFactor(Operation *product, Value factor) {
  for (unsigned side : {0u, 1u})
    if (product->getOperand(side) == factor)
      return product->getOperand(1 - side);
  return {};
}

/// Concat(a * cos - b * sin, b * cos + a * sin) on the last dimension: the pairs are those of the halves of Concat(a, b),
/// wherever a and b are from.
bool RopeRaiser::raiseParts(Operation *op) {
  if (!isOp(op, "Concat") || op->getNumOperands() != 2 || getRank(op->getResult(0)) != 4)
    return false;
  int64_t axis = getInteger(op, "axis", 0);
  Operation *real = getDefiningOp(op->getOperand(0), "Sub"), *imaginary = getDefiningOp(op->getOperand(1), "Add");
  if ((axis != -1 && axis != 3) || !real || !imaginary)
    return false;
  Operation *products[] = {getDefiningOp(real->getOperand(0), "Mul"), getDefiningOp(real->getOperand(1), "Mul"),
                           getDefiningOp(imaginary->getOperand(0), "Mul"),
                           getDefiningOp(imaginary->getOperand(1), "Mul")};
  if (llvm::is_contained(products, nullptr))
    return false;
  for (unsigned which = 0; which < 8; ++which) {
    Value a = products[0]->getOperand(which & 1), cos = products[0]->getOperand(1 - (which & 1));
    Value b = products[1]->getOperand((which >> 1) & 1), sin = products[1]->getOperand(1 - ((which >> 1) & 1));
    Operation *ofCos = products[2 + (which >> 2)], *ofSin = products[3 - (which >> 2)];
    if (getOtherFactor(ofCos, cos) != b || getOtherFactor(ofSin, sin) != a)
      continue;
    auto shape = analysis.getShape(a), other = analysis.getShape(b);
    if (getRank(a) != 4 || !isFloat(a) || !shape || !other || *shape != *other)
      continue;
    Value cosTable = getHalfTable(cos, *shape), sinTable = getHalfTable(sin, *shape);
    if (!cosTable || !sinTable)
      continue;
    OpBuilder builder(op);
    OnnxBuilder onnx(builder, op->getLoc());
    Value rows = onnx.create("Concat", {a, b}, op->getResult(0).getType(), onnx.integerAttr("axis", 3));
    replace(op->getResult(0), rotate(builder, op->getLoc(), rows, cosTable, sinTable, false));
    return true;
  }
  return false;
}

unsigned RopeRaiser::run() {
  SmallVector<Operation *> ops;
  unsigned raised = 0;
  function.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    if (onnxir::isOnnxOp(op))
      raised += raiseOperator(op) || raiseMicrosoft(op) || raiseSpelledOut(op) || raiseParts(op);
  eraseDead(function);
  return raised;
}

namespace {
struct RaiseRope : impl::RaiseRopeBase<RaiseRope> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      numRopes += RopeRaiser(function).run();
  }
};
} // namespace

} // namespace hone::raising
