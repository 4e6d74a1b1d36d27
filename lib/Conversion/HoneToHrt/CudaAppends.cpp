// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys and values of one attention go to the state in one launch, which also rotates them and the queries where the model does: the
// kernel writes into the room that the state makes.

#include "KernelSelection.h"

#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace hone {

namespace {

/// What one launch does.
struct Appends {
  AttentionOp attention;
  hrt::StateAppendOp key, value;
  Value freshKey, freshValue; // in the elements that they were computed in
  RopeOp queryRope, keyRope;  // both or neither

  /// The inputs of the launch.
  KernelCall call() {
    if (!keyRope)
      return {"cuda.append.f32", {{"key", freshKey}, {"value", freshValue}, {"lags", attention.getLags()}}, {}, {}};
    return {"cuda.rope_append.f32",
            {{"query", queryRope.getX()},
             {"key", keyRope.getX()},
             {"value", freshValue},
             {"cos", keyRope.getCos()},
             {"sin", keyRope.getSin()},
             {"lags", attention.getLags()}},
            {{"interleaved", keyRope.getInterleaved()}},
            {}};
  }
};

} // namespace

static Value skipCasts(Value value) {
  while (auto cast = value.getDefiningOp<tensor::CastOp>())
    value = cast.getSource();
  return value;
}

/// What `value` is rounded from, element by element, if nothing else reads that; else `value`.
static Value skipRounding(Value value) {
  auto generic = skipCasts(value).getDefiningOp<linalg::GenericOp>();
  if (!generic || generic.getNumDpsInputs() != 1 || generic.getNumDpsInits() != 1 || !generic->hasOneUse() ||
      !llvm::all_of(generic.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }))
    return skipCasts(value);
  Block &body = generic.getRegion().front();
  auto rounded = body.getTerminator()->getOperand(0).getDefiningOp<arith::TruncFOp>();
  bool isRounding = rounded && rounded.getIn() == body.getArgument(0) && llvm::hasNItems(body, 2);
  return skipCasts(isRounding ? generic.getInputs()[0] : value);
}

static bool isRow(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return !type.getEncoding() && !getFloatName(type.getElementType()).empty();
}

/// Rotations of the queries and keys of one attention that are alike and that nothing else reads.
static bool areAlike(RopeOp query, RopeOp key) {
  return query && key && query != key && query->hasOneUse() && key->hasOneUse() && query.getCos() == key.getCos() &&
         query.getSin() == key.getSin() && query.getInterleaved() == key.getInterleaved();
}

/// Kernels read integers as i64.
static bool hasReadableLags(AttentionOp attention) {
  return !attention.getLags() || attention.getLags().getType().getElementType().isInteger(64);
}

static std::optional<Appends> findAppends(AttentionOp attention) {
  Appends found;
  found.attention = attention;
  found.key = skipCasts(attention.getKey()).getDefiningOp<hrt::StateAppendOp>();
  found.value = skipCasts(attention.getValue()).getDefiningOp<hrt::StateAppendOp>();
  if (!found.key || !found.value || found.key.getSlot() == found.value.getSlot() ||
      found.key->getBlock() != attention->getBlock() || found.value->getBlock() != attention->getBlock() ||
      !isRow(found.key.getAll()) || !isRow(found.value.getAll()))
    return std::nullopt;
  found.freshKey = skipRounding(found.key.getFresh());
  found.freshValue = skipRounding(found.value.getFresh());
  auto query = skipCasts(attention.getQuery()).getDefiningOp<RopeOp>(), key = found.freshKey.getDefiningOp<RopeOp>();
  if (areAlike(query, key)) {
    found.queryRope = query;
    found.keyRope = key;
  }
  bool areRead = llvm::all_of(found.call().operands, [&](const auto &operand) {
    return operand.second == attention.getLags() || isRow(operand.second);
  });
  return areRead && hasReadableLags(attention) ? std::optional(found) : std::nullopt;
}

/// The operation of the attention's block after which all that the launch reads is there, or null.
static Operation *findLastInput(Appends &appends) {
  Block *block = appends.attention->getBlock();
  Operation *last = nullptr;
  for (const auto &[name, input] : appends.call().operands)
    if (Operation *maker = input ? input.getDefiningOp() : nullptr)
      if (maker->getBlock() == block && (!last || last->isBeforeInBlock(maker)))
        last = maker;
  return last;
}

static bool usesSlot(Operation *op, int64_t slot) {
  auto append = dyn_cast<hrt::StateAppendOp>(op);
  auto view = dyn_cast<hrt::StateViewOp>(op);
  return (append && append.getSlot() == static_cast<uint64_t>(slot)) ||
         (view && view.getSlot() == static_cast<uint64_t>(slot));
}

/// Whether the launch can follow `last`: what reads its results comes later, and what reads the slots before does not come between.
static bool canFollow(Appends &appends, Operation *last) {
  Block *block = last->getBlock();
  SmallVector<Value> results = {appends.key.getAll(), appends.value.getAll()};
  if (appends.queryRope)
    results.push_back(appends.queryRope.getResult());
  for (Value result : results)
    for (Operation *user : result.getUsers())
      if (Operation *at = block->findAncestorOpInBlock(*user); !at || !last->isBeforeInBlock(at))
        return false;
  Operation *first = appends.key->isBeforeInBlock(appends.value) ? appends.key : appends.value;
  for (Operation *op = first; op && op->isBeforeInBlock(last); op = op->getNextNode()) {
    WalkResult result = op->walk([&](Operation *inner) {
      bool isOwn = inner == appends.key || inner == appends.value;
      bool isOther = !isOwn && (usesSlot(inner, appends.key.getSlot()) || usesSlot(inner, appends.value.getSlot()));
      return isOther ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return false;
  }
  return true;
}

/// Room in the slot of `append` for positions of the shape of `fresh`.
static Value createRoom(OpBuilder &b, hrt::StateAppendOp append, Value fresh) {
  auto type = cast<RankedTensorType>(fresh.getType());
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, strides);
  Type elements = cast<RankedTensorType>(append.getAll().getType()).getElementType();
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(tensor::DimOp::create(b, append.getLoc(), fresh, dim));
  return hrt::StateExtendOp::create(b, append.getLoc(), MemRefType::get(type.getShape(), elements, layout),
                                    append.getCall(), append.getSlot(), sizes);
}

/// Erases what made `value`, if nothing needs it any more.
static void eraseDead(Value value) {
  Operation *maker = value.getDefiningOp();
  if (!maker || !isOpTriviallyDead(maker))
    return;
  SmallVector<Value> operands = llvm::to_vector(maker->getOperands());
  maker->erase();
  for (Value operand : operands)
    eraseDead(operand);
}

/// What the slot of `append` holds.
static Value createView(OpBuilder &b, hrt::StateAppendOp append) {
  return hrt::StateViewOp::create(b, append.getLoc(), append.getAll().getType(), append.getCall(), append.getSlot());
}

static void replace(hrt::StateAppendOp append, Value all) {
  Value fresh = append.getFresh();
  append.getAll().replaceAllUsesWith(all);
  append.erase();
  eraseDead(fresh);
}

static void launch(Appends &appends, Operation *last) {
  OpBuilder b(appends.attention);
  b.setInsertionPointAfter(last);
  Location loc = appends.attention.getLoc();
  Value call = appends.key.getCall();
  KernelCall launched = appends.call();
  if (appends.queryRope) {
    Value query = appends.queryRope.getX();
    auto type = cast<RankedTensorType>(query.getType());
    Value rotated = tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, query), type.getElementType());
    if (rotated.getType() != appends.queryRope.getType())
      rotated = tensor::CastOp::create(b, loc, appends.queryRope.getType(), rotated);
    launched.operands.push_back({"rotated", rotated});
  }
  launched.operands.push_back(
      {"keyRoom", createRoom(b, appends.key, appends.keyRope ? appends.keyRope.getX() : appends.freshKey)});
  launched.operands.push_back({"valueRoom", createRoom(b, appends.value, appends.freshValue)});
  hrt::KernelOp kernel = createKernel(b, loc, call, launched);
  Value keys = createView(b, appends.key), values = createView(b, appends.value);
  replace(appends.key, keys); // after which nothing is built: where `b` builds may be gone
  replace(appends.value, values);
  if (!appends.queryRope)
    return;
  appends.queryRope.replaceAllUsesWith(kernel.getResult(0));
  eraseDead(appends.queryRope.getResult());
}

/// What is rotated has the sizes of the result, so that who asks for sizes is no reader of it: a rounding does, for instance.
static void takeSizesBeforeRotation(func::FuncOp entry) {
  entry.walk([](tensor::DimOp dim) {
    if (auto rope = dim.getSource().getDefiningOp<RopeOp>())
      dim.getSourceMutable().assign(rope.getX());
  });
}

int64_t selectCudaAppends(func::FuncOp entry) {
  takeSizesBeforeRotation(entry);
  int64_t count = 0;
  entry.walk([&](AttentionOp attention) {
    std::optional<Appends> appends = findAppends(attention);
    Operation *last = appends ? findLastInput(*appends) : nullptr;
    if (!last || !canFollow(*appends, last))
      return;
    launch(*appends, last);
    ++count;
  });
  return count;
}

} // namespace hone
