// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-rotate-inputs: what products read that no norm computes is multiplied with Hadamard matrices while the model runs,
// and the weights with the same. The model means the same.

#include "hone/Compress/Rotation.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/InputRotation.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Transforms/MeasuredInputs.h"
#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

namespace hone {
#define GEN_PASS_DEF_ROTATEINPUTS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

static constexpr int64_t kMostBlock = 256; // a matrix of a quarter of a megabyte

namespace {
struct RotateInputs : impl::RotateInputsBase<RotateInputs> {
  using RotateInputsBase::RotateInputsBase;

  LogicalResult initialize(MLIRContext *context) override {
    if (block >= 2 && block <= kMostBlock && llvm::isPowerOf2_64(block))
      return success();
    return emitError(UnknownLoc::get(context))
           << "expected the block to be a power of two from 2 to " << kMostBlock << ", but got " << block.getValue();
  }
  void runOnOperation() override;

private:
  /// The largest power of two up to `block` that divides the inputs of `param`.
  int64_t getBlock(ParamOp param) const {
    int64_t inputs = param.getTensorType().getDimSize(1);
    return std::min<int64_t>(inputs & -inputs, block);
  }
  std::string getBlocker(ParamOp param, ArrayRef<GetParamOp> reads) const;
  FailureOr<std::string> rotate(ParamOp param, ArrayRef<GetParamOp> reads);

  llvm::DenseMap<std::pair<Value, int64_t>, Value> rotated; // inputs, by what they were and the block
};
} // namespace

std::string RotateInputs::getBlocker(ParamOp param, ArrayRef<GetParamOp> reads) const {
  RankedTensorType type = param.getTensorType();
  if (type.getRank() != 2 || !type.getElementType().isF32() ||
      (type.getEncoding() && !isa<StoredAttr>(type.getEncoding())))
    return "it is no matrix of f32";
  if (getInputRotation(param))
    return "its inputs are rotated already";
  if (getBlock(param) < 2)
    return ("its " + Twine(type.getDimSize(1)) + " inputs are no multiple of 2").str();
  for (GetParamOp read : reads)
    for (OpOperand &use : read->getUses()) {
      std::optional<WeightUse> weight = findWeight(use);
      if (!weight || !weight->isProduct())
        return "something other than products reads it";
      Value x = weight->read->get();
      auto rows = cast<RankedTensorType>(x.getType());
      if (!rows.getElementType().isF32() || rows.isDynamicDim(rows.getRank() - 1))
        return "its inputs are no f32 of a known number";
      if (isa_and_nonnull<NormOpInterface>(x.getDefiningOp()))
        return "a norm computes its inputs";
    }
  return reads.empty() ? "nothing reads it" : "";
}

/// H over the root of its size, [block, block].
static Value createHadamard(OpBuilder &b, Location loc, int64_t block) {
  std::vector<float> elements;
  auto one = static_cast<float>(1 / std::sqrt(static_cast<double>(block)));
  for (int64_t i = 0; i < block; ++i)
    for (int64_t j = 0; j < block; ++j)
      elements.push_back(llvm::popcount(static_cast<uint64_t>(i & j)) % 2 ? -one : one);
  auto type = RankedTensorType::get({block, block}, b.getF32Type());
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, ArrayRef(elements)));
}

/// `x`, [.., K], with each `block` neighbours multiplied with H.
static Value rotateValue(OpBuilder &b, Location loc, Value x, int64_t block) {
  auto type = cast<RankedTensorType>(x.getType());
  int64_t rank = type.getRank(), inputs = type.getShape().back();
  SmallVector<int64_t> shape(type.getShape().drop_back());
  shape.append({inputs / block, block});
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, x);
  sizes.pop_back();
  sizes.append({b.getIndexAttr(inputs / block), b.getIndexAttr(block)});
  SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0; i + 1 < rank; ++i)
    groups.push_back({i});
  groups.push_back({rank - 1, rank});
  auto inBlocks = RankedTensorType::get(shape, type.getElementType());
  Value blocks = tensor::ExpandShapeOp::create(b, loc, inBlocks, x, groups, sizes);
  Value product = LinearOp::create(b, loc, inBlocks, blocks, createHadamard(b, loc, block), /*bias=*/Value());
  return tensor::CollapseShapeOp::create(b, loc, type, product, groups);
}

FailureOr<std::string> RotateInputs::rotate(ParamOp param, ArrayRef<GetParamOp> reads) {
  FailureOr<std::vector<float>> elements = readElements(param);
  if (failed(elements) || failed(checkFinite(param, *elements)))
    return failure();
  int64_t size = getBlock(param);
  compress::Weight weight = asWeight(param, *elements);
  compress::Rotation::ofBlocks(weight.columns, size).rotateInputs(weight);
  writeElements(param, *elements);
  noteInputRotation(param, {{}, 0, size});
  for (GetParamOp read : reads)
    for (OpOperand &use : read->getUses()) {
      OpOperand *input = findWeight(use)->read;
      Value x = input->get();
      Value &result = rotated[{x, size}];
      if (!result) {
        OpBuilder b(use.getOwner());
        b.setInsertionPointAfterValue(x);
        result = rotateValue(b, use.getOwner()->getLoc(), x, size);
      }
      input->set(result);
    }
  return ("has its inputs rotated, " + Twine(size) + " at a time").str();
}

void RotateInputs::runOnOperation() {
  rotated.clear();
  if (failed(keepFingerprint(getOperation())))
    return signalPassFailure();
  auto blocker = [&](ParamOp param, ArrayRef<GetParamOp> reads) { return getBlocker(param, reads); };
  auto change = [&](ParamOp param, ArrayRef<GetParamOp> reads) { return rotate(param, reads); };
  ParameterChange rotating{"hone-rotate-inputs", "Rotated", "stays as it is", blocker, change};
  rotating.keepsMeaning = true;
  FailureOr<int64_t> count = changeParameters(getOperation(), rotating);
  if (failed(count))
    return signalPassFailure();
  numRotated += *count;
}

} // namespace hone
