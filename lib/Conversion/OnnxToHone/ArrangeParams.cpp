// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights that the program brings into the form of a matrix or a row, in that form.

#include "OnnxMatch.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"

#include "mlir/IR/DialectResourceBlobManager.h"

namespace hone {
#define GEN_PASS_DEF_ARRANGEPARAMS
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

namespace {

/// What every reader of a weight does with it first.
struct Arrangement {
  SmallVector<int64_t> permutation; // empty where dimensions stay in their order
  RankedTensorType type;            // of the result
  SmallVector<Operation *> moves, reshapes, shapes;
};

} // namespace

/// The one form that all `values` are brought into; nothing where they are also read otherwise, or in several forms.
static std::optional<Arrangement> findArrangement(ArrayRef<Value> values) {
  Arrangement found;
  bool isFirst = true;
  auto addReshape = [&](Operation *op, ArrayRef<int64_t> permutation) {
    bool isReshape = isOp(op, "Reshape") || isOp(op, "Squeeze") || isOp(op, "Unsqueeze") || isOp(op, "Flatten");
    RankedTensorType type = isReshape ? getRankedType(op->getResult(0)) : RankedTensorType();
    constexpr int64_t kMaxRank = 2; // experts keep their weights in one tensor of more
    if (!type || !type.hasStaticShape() || type.getRank() > kMaxRank || type.getEncoding())
      return false;
    if (!isFirst && (type != found.type || permutation != ArrayRef(found.permutation)))
      return false;
    isFirst = false;
    found.type = type;
    found.permutation.assign(permutation.begin(), permutation.end());
    found.reshapes.push_back(op);
    return true;
  };
  for (Value value : values)
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      if (use.getOperandNumber() != 0)
        return std::nullopt;
      if (isOp(op, "Shape") && op->getAttrs().empty()) {
        found.shapes.push_back(op);
        continue;
      }
      auto permutation = isOp(op, "Transpose") ? getIntegers(op, "perm") : std::nullopt;
      if (!permutation) {
        if (!addReshape(op, {}))
          return std::nullopt;
        continue;
      }
      found.moves.push_back(op);
      for (OpOperand &next : op->getUses())
        if (next.getOperandNumber() != 0 || !addReshape(next.getOwner(), *permutation))
          return std::nullopt;
    }
  return isFirst ? std::nullopt : std::optional(found);
}

/// The elements of `bytes`, each of `width` bytes, with the dimensions of `shape` in the order of `permutation`.
static std::string permute(ArrayRef<char> bytes, int64_t width, ArrayRef<int64_t> shape,
                           ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t dim = shape.size() - 1; dim-- > 0;)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  std::string moved;
  moved.reserve(bytes.size());
  SmallVector<int64_t> at(shape.size(), 0);
  while (moved.size() < bytes.size()) {
    int64_t from = 0;
    for (auto [index, dim] : llvm::zip_equal(at, permutation))
      from += index * strides[dim];
    moved.append(bytes.data() + from * width, width);
    for (size_t dim = at.size(); dim-- > 0 && ++at[dim] == shape[permutation[dim]];)
      at[dim] = 0;
  }
  return moved;
}

/// `storage` of a weight of `type` as that of its arrangement; null where it cannot be read.
static Attribute arrange(Attribute storage, RankedTensorType type, const Arrangement &wanted, Location loc) {
  if (wanted.permutation.empty()) {
    if (auto elements = dyn_cast_or_null<DenseElementsAttr>(storage))
      return elements.reshape(wanted.type);
    if (auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(storage))
      return DenseResourceElementsAttr::get(wanted.type, resource.getRawHandle());
    return dyn_cast_or_null<ExternalAttr>(storage);
  }
  auto elements = dyn_cast_or_null<DenseElementsAttr>(storage);
  if (elements && elements.isSplat())
    return elements.reshape(wanted.type);
  int64_t width = type.getElementTypeBitWidth() / 8;
  if (elements)
    return DenseElementsAttr::getFromRawBuffer(
        wanted.type, permute(elements.getRawData(), width, type.getShape(), wanted.permutation));
  if (!isa_and_nonnull<DenseResourceElementsAttr, ExternalAttr>(storage))
    return {};
  FailureOr<StoredBytes> bytes = StoredBytes::open(storage, loc);
  bool isWhole = succeeded(bytes) && static_cast<int64_t>(bytes->get().size()) == type.getNumElements() * width;
  return isWhole ? makeResource(wanted.type, permute(bytes->get(), width, type.getShape(), wanted.permutation))
                 : Attribute();
}

/// Leaves the operations out that bring `values` into the form that they have now.
static void skip(const Arrangement &arrangement, ArrayRef<Value> values) {
  for (Operation *shape : arrangement.shapes) {
    OpBuilder b(shape);
    OnnxBuilder onnx(b, shape->getLoc());
    replace(shape->getResult(0), onnx.integers(getRankedType(shape->getOperand(0)).getShape()));
    shape->erase();
  }
  for (Value value : values)
    value.setType(arrangement.type);
  for (Operation *reshape : arrangement.reshapes) {
    Operation *source = reshape->getOperand(0).getDefiningOp();
    replace(reshape->getResult(0), isOp(source, "Transpose") ? source->getOperand(0) : reshape->getOperand(0));
    reshape->erase();
  }
  for (Operation *move : arrangement.moves)
    move->erase();
}

namespace {
struct ArrangeParams : impl::ArrangeParamsBase<ArrangeParams> {
  void runOnOperation() override {
    for (auto &[symbol, reads] : findReads(getOperation()))
      arrangeParam(dyn_cast_or_null<ParamOp>(symbol), reads);
    SmallVector<Operation *> constants;
    getOperation().walk([&](Operation *op) {
      if (isOp(op, "Constant") && isFloat(op->getResult(0)) && op->getAttrOfType<DenseElementsAttr>("value"))
        constants.push_back(op);
    });
    for (Operation *op : constants)
      arrangeConstant(op);
  }

  void arrangeParam(ParamOp param, ArrayRef<GetParamOp> reads) {
    if (!param || param.getTensorType().getEncoding() || !isa<FloatType>(param.getTensorType().getElementType()))
      return;
    auto values = llvm::map_to_vector(reads, [](GetParamOp read) -> Value { return read.getResult(); });
    auto arrangement = findArrangement(values);
    Attribute storage =
        arrangement ? arrange(param.getStorage(), param.getTensorType(), *arrangement, param.getLoc()) : Attribute();
    if (!storage)
      return;
    param.setTypeAttr(TypeAttr::get(arrangement->type));
    param.setStorageAttr(storage);
    skip(*arrangement, values);
    ++numArranged;
  }

  void arrangeConstant(Operation *op) {
    Value value = op->getResult(0);
    auto arrangement = findArrangement(value);
    Attribute elements =
        arrangement ? arrange(op->getAttr("value"), getRankedType(value), *arrangement, op->getLoc()) : Attribute();
    if (!elements)
      return;
    op->setAttr("value", elements);
    skip(*arrangement, value);
    ++numArranged;
  }
};
} // namespace

} // namespace hone::raising
