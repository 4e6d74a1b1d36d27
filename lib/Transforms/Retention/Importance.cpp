// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums over the queries of the probabilities of each key. The sums of the exponentials are attention's own (lse), and keys are read as
// pooled keys of blocks of one: so every layout of the cache serves.

#include "Importance.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/DecomposedParts.h"
#include "hone/Transforms/Loops.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone::retention {
namespace {

/// Loops of the mass `[B, Hk, Sk - 1]`, over query heads and queries.
enum : int64_t { Batch, Head, Key, Group, Query };

class MassBuilder {
public:
  MassBuilder(LocBuilder &b, Value state, const ScoredLayer &layer)
      : b(b), attention(layer.attention), parts(layer.getParts(b, state)), queries(parts.query), keys(parts.key) {}

  Value build();

private:
  Value buildLse();
  Value buildEarlierKeys();

  LocBuilder &b;
  AttentionOp attention;
  AttentionParts parts;
  Value queries, keys;
};

} // namespace

Value MassBuilder::buildLse() {
  parts.hasLse = true;
  return AttentionOp::create(b, parts).getLse();
}

/// All keys but the last, `[B, Hk, Sk - 1, D]` of f32: with blocks of one key, row j + 1 of pooled keys is key j.
Value MassBuilder::buildEarlierKeys() {
  Value count = asIndex(b, getSize(b, keys, 2)), one = arith::ConstantIndexOp::create(b, 1);
  SmallVector<int64_t> shape(cast<RankedTensorType>(keys.getType()).getShape());
  Value rows =
      PoolKeysOp::create(b, RankedTensorType::get(shape, b.getF32Type()), keys, count, /*key_begin=*/Value(), 1);
  Value first = arith::MinSIOp::create(b, count, one);
  SmallVector<OpFoldResult> offsets(4, b.getIndexAttr(0)), strides(4, b.getIndexAttr(1));
  offsets[2] = first;
  Sizes sizes = tensor::getMixedSizes(b, b.getLoc(), rows);
  sizes[2] = arith::SubIOp::create(b, count, first).getResult();
  return tensor::ExtractSliceOp::create(b, rows, offsets, sizes, strides);
}

Value MassBuilder::build() {
  Value lse = expandHeads(b, buildLse(), 1, getSize(b, keys, 1)), earlier = buildEarlierKeys();
  Value query = expandHeads(b, queries, 1, getSize(b, keys, 1)); // [B, Hk, G, R, D]
  Value firstOwn = arith::SubIOp::create(b, asIndex(b, getSize(b, keys, 2)), asIndex(b, getSize(b, queries, 2)));
  Sizes sizes = tensor::getMixedSizes(b, b.getLoc(), earlier);
  sizes.pop_back();
  Sizes products = sizes;
  products.append({getSize(b, query, 2), getSize(b, query, 3)});
  constexpr int64_t inner = Query + 1;
  Value dots =
      buildContraction(b, products, {earlier, {Batch, Head, Key, inner}}, {query, {Batch, Head, Group, Query, inner}});
  float scale = attention.getScale().convertToFloat();
  auto step = [&](LocBuilder &at, ValueRange args) -> Value {
    Value logit = arith::MulFOp::create(at, args[0], constantF32(at, scale));
    if (std::optional<APFloat> softcap = attention.getSoftcap()) {
      Value cap = constantF32(at, softcap->convertToFloat());
      logit = arith::MulFOp::create(at, cap, math::TanhOp::create(at, arith::DivFOp::create(at, logit, cap)));
    }
    Value share = math::ExpOp::create(at, arith::SubFOp::create(at, logit, args[1]));
    Value own = arith::AddIOp::create(at, firstOwn, linalg::IndexOp::create(at, Query));
    Value isSeen = arith::CmpIOp::create(at, arith::CmpIPredicate::sle, linalg::IndexOp::create(at, Key), own);
    return arith::SelectOp::create(at, isSeen, share, constantF32(at, 0));
  };
  return buildReduce(b, Reduction::Sum, sizes, {{dots, loopRange(0, 5)}, {lse, {Batch, Head, Group, Query}}}, step);
}

void addImportance(func::FuncOp forward, ArrayRef<ScoredLayer> layers) {
  func::FuncOp function = addStateEntry(forward, kImportance, {}, [&](LocBuilder &b, auto arguments) {
    SmallVector<Value> masses;
    for (const ScoredLayer &layer : layers) {
      b.setLoc(layer.attention->getLoc());
      masses.push_back(MassBuilder(b, arguments.back(), layer).build());
    }
    return masses;
  });
  for (auto [i, layer] : llvm::enumerate(layers))
    function.setResultAttr(i, onnxir::kNameAttr, StringAttr::get(function.getContext(), "mass." + layer.getName()));
}

} // namespace hone::retention
