// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shapes of results that are computed: broadcasts, products, reductions, attention, and which rule an operator has.

#include "ShapeRules.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Onnx/EinsumEquation.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace hone::analysis {

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

/// Each label of the result has the size that it has in an operand; of one that is 1 in some, that of the others.
OptionalShape ShapeRules::einsum() {
  SmallVector<Shape> inputs;
  SmallVector<int64_t> ranks;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    OptionalShape input = in(i);
    if (!input)
      return std::nullopt;
    ranks.push_back(input->size());
    inputs.push_back(*input);
  }
  auto text = op->getAttrOfType<StringAttr>("equation");
  std::string reason;
  auto equation = text ? onnxir::EinsumEquation::parse(text, ranks, reason) : std::nullopt;
  if (!equation)
    return std::nullopt;
  Shape shape;
  for (onnxir::EinsumEquation::Label label : equation->output) {
    SmallVector<Shape> sizes;
    for (auto [term, input] : llvm::zip_equal(equation->terms, inputs))
      for (auto [other, size] : llvm::zip_equal(term, input))
        if (other == label)
          sizes.push_back({size});
    shape.push_back(broadcast(sizes)->front());
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
    bool reduced = !axes || llvm::any_of(*axes, [&](int64_t axis) {
      return normalizeAxis(axis, input->size()) == static_cast<int64_t>(dim);
    });
    if (!reduced || keep)
      shape.push_back(reduced ? Polynomial(1) : size);
  }
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

/// The output, and the state [B, heads, key size, value size].
OptionalShape ShapeRules::linearAttention() {
  OptionalShape query = in(0), value = in(2);
  int64_t queryHeads = getInteger(op, "q_num_heads", 0), heads = getInteger(op, "kv_num_heads", 0);
  if (!query || !value || query->size() != 3 || value->size() != 3 || queryHeads <= 0 || heads <= 0)
    return std::nullopt;
  auto keySize = query->back().divideExactly(queryHeads), valueSize = value->back().divideExactly(heads);
  if (!keySize || !valueSize)
    return std::nullopt;
  if (result == 0)
    return Shape{(*query)[0], (*query)[1], *valueSize * queryHeads};
  return Shape{(*query)[0], heads, *keySize, *valueSize};
}

OptionalShape ShapeRules::microsoft(StringRef name) {
  if (name == "LinearAttention" && getInteger(op, "state_window", 0) == 0)
    return linearAttention();
  if (name == "FusedMatMul")
    return matmul(getInteger(op, "transA", 0) != 0, getInteger(op, "transB", 0) != 0);
  if (name == "MatMulNBits") {
    OptionalShape shape = in(0);
    if (shape && !shape->empty())
      shape->back() = getInteger(op, "N", 0);
    return shape;
  }
  if (name == "GatherBlockQuantized")
    return gatherBlocks();
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
  static const llvm::StringSet<> sameAsInput = {"BiasGelu",        "FastGelu", "Gelu", "QuickGelu",
                                                "RotaryEmbedding", "MoE",      "QMoE", "BiasSoftmax"};
  return sameAsInput.contains(name) ? in(0) : std::nullopt;
}

/// A slot is as long as the positions held; after an append, longer by what is fresh.
OptionalShape ShapeRules::state() {
  auto type = dyn_cast<RankedTensorType>(op->getResult(result).getType());
  auto append = dyn_cast<KvAppendOp>(op);
  StateOp state = StateOp::lookup(op, cast<KvType>(op->getOperand(0).getType()));
  uint64_t slot = append ? append.getSlot() : cast<KvViewOp>(op).getSlot();
  if (!type || !state || slot >= state.getSlots().size())
    return std::nullopt;
  Polynomial length = Polynomial::of(analysis.expressions.namedSize(kHeldLengthName));
  std::optional<int64_t> axis = state.getSlotAttr(slot).getAxis();
  if (append) {
    OptionalShape fresh = analysis.getShape(append.getFresh());
    if (fresh && axis && *axis < static_cast<int64_t>(fresh->size()))
      (*fresh)[*axis] = (*fresh)[*axis] + length;
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
      shape.push_back(name && !name.empty() ? parseSizeName(name, analysis.expressions)
                                            : Polynomial::of(analysis.expressions.freshSize()));
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

/// What ranks do together changes one size at most, which is known.
OptionalShape ShapeRules::collective() {
  OptionalShape shape = analysis.getShape(op->getOperand(0));
  auto type = dyn_cast<RankedTensorType>(op->getResult(result).getType());
  if (!shape || !type)
    return std::nullopt;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (!type.isDynamicDim(dim))
      (*shape)[dim] = type.getDimSize(dim);
  return shape;
}

OptionalShape ShapeRules::other() {
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return analysis.getShape(cast.getSource());
  if (isa<KvAppendOp, KvViewOp>(op))
    return state();
  if (isa<shard::AllReduceOp, shard::AllGatherOp, shard::AllSliceOp>(op))
    return collective();
  if (auto generate = dyn_cast<tensor::GenerateOp>(op))
    return this->generate(generate);
  FailureOr<ResultDims> dims = failure();
  if (auto computing = dyn_cast<ComputeOpInterface>(op))
    dims = result == 0 ? computing.getResultDims(op->getOperandTypes())
                       : computing.getOtherDims(op->getOperandTypes(), result);
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

bool isBroadcast(Operation *op) {
  static const llvm::StringSet<> broadcast = {"Add",
                                              "Sub",
                                              "Mul",
                                              "Div",
                                              "Pow",
                                              "Mod",
                                              "And",
                                              "Or",
                                              "Xor",
                                              "Max",
                                              "Min",
                                              "Mean",
                                              "Sum",
                                              "Equal",
                                              "Greater",
                                              "Less",
                                              "GreaterOrEqual",
                                              "LessOrEqual",
                                              "Where",
                                              "PRelu",
                                              "BitShift",
                                              "Expand"};
  return onnxir::isOnnxOp(op) && onnxir::getDomain(op).empty() && broadcast.contains(onnxir::getOpType(op));
}

OptionalShape ShapeRules::compute() {
  if (!onnxir::isOnnxOp(op))
    return other();
  StringRef name = onnxir::getOpType(op);
  if (onnxir::getDomain(op) == "com.microsoft")
    return microsoft(name);
  static const llvm::StringSet<> sameAsInput = {"Identity",
                                                "Cast",
                                                "CastLike",
                                                "Not",
                                                "Neg",
                                                "Abs",
                                                "Sqrt",
                                                "Reciprocal",
                                                "Exp",
                                                "Log",
                                                "Sin",
                                                "Cos",
                                                "Tanh",
                                                "Sigmoid",
                                                "Erf",
                                                "Relu",
                                                "Gelu",
                                                "IsNaN",
                                                "IsInf",
                                                "Softmax",
                                                "LogSoftmax",
                                                "LayerNormalization",
                                                "RMSNormalization",
                                                "SimplifiedLayerNormalization",
                                                "RotaryEmbedding",
                                                "CumSum",
                                                "Trilu",
                                                "Clip",
                                                "Dropout",
                                                "QuantizeLinear",
                                                "DequantizeLinear",
                                                "DynamicQuantizeLinear",
                                                "Floor",
                                                "Ceil",
                                                "Round",
                                                "Sign",
                                                "Softplus",
                                                "Swish",
                                                "HardSwish",
                                                "ScatterND",
                                                "ScatterElements",
                                                "Elu",
                                                "LeakyRelu",
                                                "Mish"};
  if (isBroadcast(op))
    return name == "Expand" ? expand() : broadcastAll();
  if (sameAsInput.contains(name))
    return result == 0 ? in(0) : std::nullopt;
  if (name.starts_with("Reduce"))
    return reduce();
  using Rule = OptionalShape (ShapeRules::*)();
  static const llvm::StringMap<Rule> rules = {
      {"Reshape", &ShapeRules::reshape},     {"Gather", &ShapeRules::gather},
      {"Concat", &ShapeRules::concat},       {"Slice", &ShapeRules::slice},
      {"Range", &ShapeRules::range},         {"Unsqueeze", &ShapeRules::unsqueeze},
      {"Squeeze", &ShapeRules::squeeze},     {"Split", &ShapeRules::split},
      {"Transpose", &ShapeRules::transpose}, {"GatherND", &ShapeRules::gatherNd},
      {"Flatten", &ShapeRules::flatten},     {"Attention", &ShapeRules::attention},
      {"Tile", &ShapeRules::tile},           {"LinearAttention", &ShapeRules::linearAttention},
      {"TopK", &ShapeRules::topK},           {"OneHot", &ShapeRules::oneHot},
      {"Einsum", &ShapeRules::einsum}};
  if (auto it = rules.find(name); it != rules.end())
    return (this->*it->second)();
  if (name == "MatMul" || name == "MatMulInteger")
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

} // namespace hone::analysis
