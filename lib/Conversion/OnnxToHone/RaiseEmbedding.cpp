// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gather of rows of a weight.

#include "QuantizedWeight.h"

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace hone {
#define GEN_PASS_DEF_RAISEEMBEDDING
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

/// Rows of fewer elements are no embeddings but small look-ups, which fuse better as what they are.
static constexpr int64_t kLeastWidth = 8;

namespace {
/// Parameters that a Gather reads, as they are or transposed.
class Tables {
public:
  explicit Tables(ModuleOp module) : module(module), symbols(module), quantized(symbols) {}

  /// The table that `value` is, or null where it is no parameter of floats with rows that are wide enough.
  Value get(OpBuilder &b, Value value);
  void finish() { passNamesOn(module, symbols, copies); }

private:
  ParamOp getTransposed(ParamOp param);
  ParamOp getDequantized(Operation *dequantize, Type elements);
  ParamOp getParam(const Twine &name, RankedTensorType type, Attribute storage, Location loc);

  ModuleOp module;
  SymbolTable symbols;
  QuantizedMatcher quantized;
  ParamCopies copies;
};
} // namespace

/// What a file keeps as columns is one parameter for all that read it as rows: products with the same weight have made it.
/// The parameter with these bytes, which a product may have had need of before.
ParamOp Tables::getParam(const Twine &name, RankedTensorType type, Attribute storage, Location loc) {
  for (auto other : module.getOps<ParamOp>())
    if (other.getTensorType() == type && other.getStorage() == storage)
      return other;
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  auto table = ParamOp::create(b, loc, name.str(), type, storage);
  symbols.insert(table);
  return table;
}

ParamOp Tables::getTransposed(ParamOp param) {
  return getParam(param.getSymName() + ".table", getTransposedType(param.getTensorType()), param.getStorage(),
                  param.getLoc());
}

/// Rows that are dequantized as they are read; null where they have no encoding.
ParamOp Tables::getDequantized(Operation *dequantize, Type elements) {
  auto weight = quantized.matchDequantized(dequantize, /*isTransposed=*/false, elements);
  if (!weight)
    return {};
  ParamOp table = getParam(weight->name + ".table", weight->type, weight->storage, dequantize->getLoc());
  if (auto original = symbols.lookup<ParamOp>(weight->name); original && original != table)
    copies.try_emplace(original, table);
  return table;
}

Value Tables::get(OpBuilder &b, Value value) {
  if (getRank(value) != 2 || !isFloat(value) || getLastSize(value) < kLeastWidth)
    return {};
  if (value.getDefiningOp<GetParamOp>())
    return value;
  if (Operation *dequantize = findDequantization(value)) {
    ParamOp table = getDequantized(dequantize, getRankedType(value).getElementType());
    return table ? Value(GetParamOp::create(b, value.getLoc(), table.getTensorType(), table.getSymName())) : Value();
  }
  Operation *transpose = getDefiningOp(value, "Transpose");
  auto read = transpose ? transpose->getOperand(0).getDefiningOp<GetParamOp>() : GetParamOp();
  auto param = read ? symbols.lookup<ParamOp>(read.getName()) : ParamOp();
  auto permutation = transpose ? getIntegers(transpose, "perm") : std::nullopt;
  bool isReversed = !permutation || *permutation == SmallVector<int64_t>{1, 0};
  if (!param || param.getTensorType().getEncoding() || !isReversed)
    return {};
  ParamOp table = getTransposed(param);
  copies.try_emplace(param, table);
  return GetParamOp::create(b, value.getLoc(), table.getTensorType(), table.getSymName());
}

static bool raiseGather(Operation *op, Tables &tables) {
  if (!isOp(op, "Gather") || getInteger(op, "axis", 0) != 0)
    return false;
  Value ids = op->getOperand(1);
  auto idType = getRankedType(ids);
  if (!idType || idType.getRank() < 1)
    return false;
  if (!idType.getElementType().isInteger(32) && !idType.getElementType().isInteger(64))
    return false;
  // Tables of angles are read once a call; what matters is the rotation.
  if (llvm::any_of(op->getResult(0).getUsers(), [](Operation *user) { return isa<RopeOp>(user); }))
    return false;
  OpBuilder b(op);
  Value table = tables.get(b, op->getOperand(0));
  if (!table)
    return false;
  SmallVector<int64_t> shape(idType.getShape());
  shape.push_back(getLastSize(table));
  auto type = RankedTensorType::get(shape, cast<RankedTensorType>(table.getType()).getElementType());
  replace(op->getResult(0), EmbeddingOp::create(b, op->getLoc(), type, ids, table));
  remarkRaised(op->getLoc(), "hone-raise-embedding", "Embedding") << "raised from Gather";
  return true;
}

namespace {
struct RaiseEmbedding : impl::RaiseEmbeddingBase<RaiseEmbedding> {
  void runOnOperation() override {
    Tables tables(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<Operation *> ops;
      function.walk([&](Operation *op) { ops.push_back(op); });
      for (Operation *op : ops)
        if (onnxir::isOnnxOp(op))
          numEmbeddings += raiseGather(op, tables);
      eraseDead(function);
    }
    tables.finish();
  }
};
} // namespace

} // namespace hone::raising
