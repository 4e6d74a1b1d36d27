// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products with a weight. A weight that the file keeps as [K, N] stays so, with an encoding that says it; no byte moves.

#include "QuantizedWeight.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneStorage.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

namespace hone {
#define GEN_PASS_DEF_RAISELINEAR
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-raise-linear";

namespace {

/// A weight of a product and whether its file keeps it as [K, N].
struct Weight {
  Value value;
  bool isTransposed = false;                               // [K, N]
  std::optional<QuantizedWeight> quantized = std::nullopt; // what `value` is, where it is dequantized
  std::optional<int64_t> part = std::nullopt;              // of the matrices `[parts, …]` that `value` is
};

/// Parameters as products want them. A new one stands beside its source until nobody reads that.
class ParamTable {
public:
  explicit ParamTable(ModuleOp module) : quantized(symbols), module(module), symbols(module) {}

  /// `[N, K]`, reading `weight` in function `b` inserts into; null where the weight is no parameter or small constant.
  Value get(OpBuilder &b, Location loc, const Weight &weight);
  Value get(OpBuilder &b, Location loc, const QuantizedWeight &weight);
  Value getPart(OpBuilder &b, Location loc, const Weight &weight);
  void finish();

  QuantizedMatcher quantized;

private:
  ParamOp make(const Twine &name, RankedTensorType type, Attribute storage, Location loc);

  ModuleOp module;
  SymbolTable symbols;
  /// By what is transposed: a parameter's operation, or the value of a constant, whose operation may be erased.
  llvm::DenseMap<const void *, ParamOp> transposed;
  /// By their planes.
  llvm::DenseMap<std::pair<Type, Attribute>, ParamOp> encoded;
  ParamCopies copies;
  StorageParts parts;
  llvm::SetVector<ParamOp> cut; // into parts
};

class LinearRaiser {
public:
  LinearRaiser(func::FuncOp function, ParamTable &params) : function(function), analysis(function), params(params) {}
  unsigned run();

private:
  bool raiseProduct(Operation *op);
  bool raiseQuantized(Operation *op);
  Value createLinear(Operation *op, Operation *last, Value x, const Weight &weight, Value bias, int64_t width);
  std::optional<Weight> matchWeight(Value value, bool transposeB);
  Operation *findBias(Value product, int64_t width, Value &bias);
  bool isRow(Value value, int64_t width);
  Value skipFlattening(Value x, Operation *&last);

  func::FuncOp function;
  SymbolicAnalysis analysis;
  ParamTable &params;
};

} // namespace

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

ParamOp ParamTable::make(const Twine &name, RankedTensorType type, Attribute storage, Location loc) {
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  auto param = ParamOp::create(b, loc, name.str(), type, storage);
  symbols.insert(param);
  return param;
}

Value ParamTable::get(OpBuilder &b, Location loc, const QuantizedWeight &weight) {
  ParamOp &param = encoded[{weight.type, weight.storage}];
  if (!param) {
    param = make(weight.name + ".linear", weight.type, weight.storage, loc);
    if (auto original = symbols.lookup<ParamOp>(weight.name))
      copies.try_emplace(original, param);
  }
  return GetParamOp::create(b, loc, param.getTensorType(), param.getSymName());
}

Value ParamTable::getPart(OpBuilder &b, Location loc, const Weight &weight) {
  auto read = weight.value.getDefiningOp<GetParamOp>();
  auto original = read ? symbols.lookup<ParamOp>(read.getName()) : ParamOp();
  Operation *constant = getDefiningOp(weight.value, "Constant");
  RankedTensorType all = getRankedType(weight.value);
  if ((!original && !constant) || all.getEncoding())
    return {};
  auto matrix = RankedTensorType::get(all.getShape().drop_front(), all.getElementType());
  Attribute whole = original ? original.getStorage() : constant->getAttr("value");
  Attribute storage = whole ? parts.take(whole, matrix, *weight.part) : Attribute();
  if (!storage)
    return {};
  if (weight.isTransposed)
    matrix = getTransposedType(matrix);
  ParamOp &param = encoded[{matrix, storage}];
  if (!param)
    param = make((original ? original.getSymName() : "constant") + "." + Twine(*weight.part), matrix, storage,
                 original ? original.getLoc() : loc);
  if (original)
    cut.insert(original);
  return GetParamOp::create(b, loc, matrix, param.getSymName());
}

void ParamTable::finish() {
  passNamesOn(module, symbols, copies);
  for (ParamOp param : cut)
    if (SymbolTable::symbolKnownUseEmpty(param, module))
      symbols.erase(param);
}

Value ParamTable::get(OpBuilder &b, Location loc, const Weight &weight) {
  if (weight.quantized)
    return get(b, loc, *weight.quantized);
  if (weight.part)
    return getPart(b, loc, weight);
  auto read = weight.value.getDefiningOp<GetParamOp>();
  if (!weight.isTransposed)
    return read ? weight.value : Value();
  auto type = cast<RankedTensorType>(weight.value.getType());
  Operation *source = read ? symbols.lookup(read.getName()) : weight.value.getDefiningOp();
  if (!source || type.getEncoding())
    return {};
  auto original = dyn_cast<ParamOp>(source);
  auto elements = source->getAttrOfType<DenseElementsAttr>("value");
  if (!original && !elements)
    return {};
  ParamOp &param = transposed[original ? static_cast<const void *>(source) : elements.getAsOpaquePointer()];
  if (!param && original) {
    param = make(original.getSymName() + ".linear", getTransposedType(type), original.getStorage(), original.getLoc());
    copies.try_emplace(original, param);
  } else if (!param) {
    param = make("constant.linear", getTransposedType(type), elements, loc);
  }
  return GetParamOp::create(b, loc, param.getTensorType(), param.getSymName());
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The parameter `[parts, …]` that is split into as many matrices, of which `value` is one, and its number: where experts are
/// multiplied one by one, their weights are such parts.
static std::optional<std::pair<Value, int64_t>> matchPart(Value value) {
  Operation *squeeze = getDefiningOp(value, "Squeeze");
  auto part = squeeze ? dyn_cast<OpResult>(squeeze->getOperand(0)) : OpResult();
  if (!part || !isOp(part.getOwner(), "Split") || getInteger(part.getOwner(), "axis", 0) != 0)
    return std::nullopt;
  Value source = part.getOwner()->getOperand(0);
  RankedTensorType all = getRankedType(source), one = getRankedType(value);
  bool isMatrix = all && one && all.hasStaticShape() && all.getRank() == 3 && isFloat(source) && isWeight(source) &&
                  one.getShape() == all.getShape().drop_front() &&
                  all.getDimSize(0) == part.getOwner()->getNumResults();
  if (!isMatrix)
    return std::nullopt;
  return std::pair(source, int64_t(part.getResultNumber()));
}

std::optional<Weight> LinearRaiser::matchWeight(Value value, bool transposeB) {
  bool isTransposed = !transposeB;
  while (Operation *transpose = getDefiningOp(value, "Transpose")) {
    value = transpose->getOperand(0);
    isTransposed = !isTransposed;
    auto permutation = getIntegers(transpose, "perm");
    if (permutation && *permutation != SmallVector<int64_t>{1, 0})
      return std::nullopt;
  }
  auto type = getRankedType(value);
  // Scales of 16 bits are younger than the operator: files have a cast after it.
  if (Operation *dequantize = findDequantization(value); dequantize && type) {
    auto quantized = params.quantized.matchDequantized(dequantize, isTransposed, type.getElementType());
    return quantized ? std::optional(Weight{value, isTransposed, quantized}) : std::nullopt;
  }
  if (auto part = matchPart(value))
    return Weight{part->first, isTransposed, std::nullopt, part->second};
  if (!isWeight(value) || !type || type.getRank() != 2 || !type.hasStaticShape() || !isFloat(value))
    return std::nullopt;
  return Weight{value, isTransposed};
}

bool LinearRaiser::isRow(Value value, int64_t width) {
  return value && isFloat(value) && isWeight(value) && getRank(value) == 1 && getLastSize(value) == width;
}

/// The addition of a constant row that is the only use of the product.
Operation *LinearRaiser::findBias(Value product, int64_t width, Value &bias) {
  if (!product.hasOneUse())
    return nullptr;
  Operation *user = *product.getUsers().begin();
  if (!isOp(user, "Add"))
    return nullptr;
  Value other = user->getOperand(user->getOperand(0) == product ? 1 : 0);
  if (!isRow(other, width) || other == product)
    return nullptr;
  bias = other;
  return user;
}

/// What a product of two dimensions flattens before and unflattens after: the rows as they were, if the reshape after
/// `last` restores their leading sizes, which then is the last operation that is replaced.
Value LinearRaiser::skipFlattening(Value x, Operation *&last) {
  Operation *flatten = getDefiningOp(x, "Reshape");
  Value result = last->getResult(0);
  if (!flatten || getRank(x) != 2 || !result.hasOneUse())
    return x;
  Operation *restore = *result.getUsers().begin();
  Value rows = flatten->getOperand(0);
  if (!isOp(restore, "Reshape") || restore->getOperand(0) != result)
    return x;
  auto before = analysis.getShape(rows), flat = analysis.getShape(x), after = analysis.getShape(restore->getResult(0)),
       product = analysis.getShape(result);
  bool same = before && flat && after && product && before->size() == after->size() && before->size() >= 2 &&
              before->back() == flat->back() && after->back() == product->back() &&
              llvm::equal(ArrayRef(*before).drop_back(), ArrayRef(*after).drop_back());
  if (!same)
    return x;
  last = restore;
  return rows;
}

bool LinearRaiser::raiseProduct(Operation *op) {
  if (isOp(op, "MatMulInteger") || isOp(op, "MatMulNBits", kMicrosoft))
    return raiseQuantized(op);
  bool isGemm = isOp(op, "Gemm"), isFused = isOp(op, "FusedMatMul", kMicrosoft);
  if (!isGemm && !isFused && !isOp(op, "MatMul"))
    return false;
  bool transposeB = getInteger(op, "transB", 0) != 0;
  auto weight = matchWeight(op->getOperand(1), transposeB);
  Value x = op->getOperand(0), bias = isGemm ? getOperand(op, 2) : Value();
  if (!weight)
    return false;
  auto refuse = [&](StringRef reason) {
    remarkMissed(op->getLoc(), kPass, "Linear") << reason;
    return false;
  };
  auto type = cast<RankedTensorType>(weight->value.getType());
  ArrayRef<int64_t> sizes = type.getShape().take_back(2);
  int64_t width = sizes[weight->isTransposed ? 1 : 0], depth = sizes[weight->isTransposed ? 0 : 1];
  if (getInteger(op, "transA", 0) != 0 || getReal(op, "alpha", 1) != 1 || (bias && getReal(op, "beta", 1) != 1) ||
      getInteger(op, "transBatchA", 0) != 0)
    return refuse("its operands are transposed or scaled");
  if (!isFloat(x) || getRank(x) < 1 || (getLastSize(x) != depth && !ShapedType::isDynamic(getLastSize(x))) ||
      getRankedType(x).getElementType() != type.getElementType())
    return refuse("the weight does not fit the rows");
  if (bias && !isRow(bias, width))
    return refuse("its bias is no row");
  Operation *last = op;
  if (!bias)
    if (Operation *add = findBias(op->getResult(0), width, bias))
      last = add;
  return createLinear(op, last, x, *weight, bias, width) || refuse("its weight is no parameter");
}

/// Puts a product in place of `last`, the result of `op` with its bias if that is given. Null, and nothing done, where the
/// weight is no parameter.
Value LinearRaiser::createLinear(Operation *op, Operation *last, Value x, const Weight &weight, Value bias,
                                 int64_t width) {
  Operation *product = last;
  x = skipFlattening(x, last);
  if (last != product && !bias)
    if (Operation *add = findBias(last->getResult(0), width, bias))
      last = add;
  OpBuilder b(last);
  Value rows = params.get(b, op->getLoc(), weight);
  if (!rows)
    return {};
  SmallVector<int64_t> shape(cast<RankedTensorType>(x.getType()).getShape());
  shape.back() = width;
  auto type = RankedTensorType::get(shape, cast<RankedTensorType>(x.getType()).getElementType());
  auto linear = LinearOp::create(b, op->getLoc(), type, x, rows, bias);
  remarkRaised(op->getLoc(), kPass, "Linear") << "raised from " << onnxir::getOpType(op);
  replace(last->getResult(0), linear);
  return linear;
}

bool LinearRaiser::raiseQuantized(Operation *op) {
  std::string reason;
  auto product = params.quantized.matchProduct(op, reason);
  if (!product) {
    if (!reason.empty())
      remarkMissed(op->getLoc(), kPass, "Linear") << reason;
    return false;
  }
  int64_t width = product->weight.type.getDimSize(0);
  Operation *last = product->result.getDefiningOp();
  Value bias = product->bias;
  if (bias && !isRow(bias, width))
    return false;
  if (!bias)
    if (Operation *add = findBias(product->result, width, bias))
      last = add;
  return createLinear(op, last, product->x, {Value(), false, product->weight}, bias, width) != nullptr;
}

unsigned LinearRaiser::run() {
  SmallVector<Operation *> ops;
  unsigned raised = 0;
  function.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    if (onnxir::isOnnxOp(op))
      raised += raiseProduct(op);
  eraseDead(function);
  return raised;
}

namespace {
struct RaiseLinear : impl::RaiseLinearBase<RaiseLinear> {
  void runOnOperation() override {
    ParamTable params(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>())
      numLinears += LinearRaiser(function, params).run();
    params.finish();
  }
};
} // namespace

} // namespace hone::raising
