// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// @forward(tokens, context..., state) of a decoder: its past is a state, and what an encoder gave is context, the same in
// all calls of a session. Nothing is removed from @main.

#include "GroupQueryAttention.h"
#include "StateSignature.h"

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

namespace hone {
#define GEN_PASS_DEF_RAISESTATE
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-raise-state";
static constexpr llvm::StringLiteral kStateName = "kv";

namespace {

class StateRaiser {
public:
  /// `source` is what @forward is made of: @main itself or a form of it.
  StateRaiser(func::FuncOp main, func::FuncOp source, Signature signature)
      : main(main), source(source), module(main->getParentOfType<ModuleOp>()), signature(std::move(signature)) {}
  /// Number of slots; 0 if @forward cannot be made.
  unsigned run();

private:
  StateOp declareState();
  func::FuncOp createForward(OpBuilder &b);
  void buildForward();
  void buildEntry(OpBuilder &b, Value tokens, Value state, IRMapping &mapping);
  void mapPasts(OpBuilder &b, Value state, IRMapping &mapping);
  void replaceShapes(KvViewOp view, Value tokens);
  Value rewriteBody(Block &body);

  func::FuncOp main, source;
  ModuleOp module;
  Signature signature;
  StateThread thread;
  Value held; // i64: how many positions the state holds
};

} // namespace

//===----------------------------------------------------------------------===//
// @forward
//===----------------------------------------------------------------------===//

/// First in the module, where it is found soonest.
StateOp StateRaiser::declareState() {
  SmallVector<Attribute> slots;
  for (const Slot &slot : signature.slots)
    slots.push_back(SlotAttr::get(main.getContext(), getInputName(slot.past), slot.type, slot.axis));
  auto b = OpBuilder::atBlockBegin(module.getBody());
  return StateOp::create(b, main.getLoc(), kStateName, b.getArrayAttr(slots));
}

/// Values for the inputs that the state answers: how many positions are padding, which keys are not, and where new tokens are.
void StateRaiser::buildEntry(OpBuilder &b, Value tokens, Value state, IRMapping &mapping) {
  Location loc = main.getLoc();
  OnnxBuilder onnx(b, loc);
  Type i64 = b.getI64Type();
  auto scalar = RankedTensorType::get({}, i64);
  auto matrix = RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic}, i64);
  auto row = RankedTensorType::get({ShapedType::kDynamic}, i64);
  Value length = arith::IndexCastOp::create(b, loc, i64, KvLengthOp::create(b, loc, state));
  held = tensor::FromElementsOp::create(b, loc, scalar, length);
  Value batch = tensor::DimOp::create(b, loc, tokens, 0);
  thread.padding =
      tensor::GenerateOp::create(b, loc, row, batch, [&](OpBuilder &nested, Location at, ValueRange sequence) {
        Value padding = KvPaddingOp::create(nested, at, state, sequence[0]);
        tensor::YieldOp::create(nested, at, arith::IndexCastOp::create(nested, at, i64, padding));
      });
  Value shape = onnx.create("Shape", tokens, RankedTensorType::get({2}, i64));
  Value fresh = onnx.create("Gather", {shape, onnx.integer(1)}, scalar);
  Value total = onnx.create("Add", {held, fresh}, scalar);
  Value padding = onnx.unsqueeze(thread.padding, {1});
  Value zero = onnx.integer(0), one = onnx.integer(1);
  Value places = onnx.create("Range", {held, total, one}, row);
  Value afterPadding = onnx.create("Sub", {places, padding}, matrix);
  thread.positions = onnx.create("Max", {afterPadding, zero}, matrix);
  if (signature.positions)
    mapping.map(signature.positions, thread.positions);
  if (signature.cachePositions)
    mapping.map(signature.cachePositions, places);
  if (!signature.mask)
    return;
  Value keys = onnx.create("Range", {zero, total, one}, row);
  Value visible =
      onnx.create("GreaterOrEqual", {keys, padding}, RankedTensorType::get(matrix.getShape(), b.getI1Type()));
  mapping.map(signature.mask, onnx.cast(visible, getRankedType(signature.mask).getElementType()));
}

void StateRaiser::mapPasts(OpBuilder &b, Value state, IRMapping &mapping) {
  for (auto [i, slot] : llvm::enumerate(signature.slots)) {
    auto view = KvViewOp::create(b, main.getLoc(), slot.type, state, i);
    if (auto names = source.getArgAttrOfType<ArrayAttr>(slot.past.getArgNumber(), onnxir::kDimsAttr))
      view->setAttr(onnxir::kDimsAttr, names);
    mapping.map(slot.past, view);
  }
  // What is only handed through has no uses that stay.
  for (BlockArgument argument : signature.unused)
    mapping.map(argument, onnxir::NoValueOp::create(b, main.getLoc(), b.getNoneType()));
}

/// The dimensions that a Shape gives of a tensor of this rank: from `start` up to `end`, both counted from the end where they
/// are negative.
static std::pair<int64_t, int64_t> getShapeRange(Operation *shape, int64_t rank) {
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  return {clamp(getInteger(shape, "start", 0)), clamp(getInteger(shape, "end", rank))};
}

/// The shape of a slot from the state and the tokens: an empty session has no slot to ask.
void StateRaiser::replaceShapes(KvViewOp view, Value tokens) {
  auto type = cast<RankedTensorType>(view.getType());
  int64_t axis = signature.slots[view.getSlot()].axis;
  for (Operation *user : llvm::make_early_inc_range(view->getUsers())) {
    if (!isOp(user, "Shape"))
      continue;
    auto [first, end] = getShapeRange(user, type.getRank());
    if (first >= end)
      continue;
    OpBuilder b(user);
    OnnxBuilder onnx(b, user->getLoc());
    auto one = RankedTensorType::get({1}, b.getI64Type());
    SmallVector<Value> sizes;
    for (int64_t dim = first; dim < end; ++dim) {
      if (dim == axis)
        sizes.push_back(onnx.unsqueeze(held, {0}));
      else if (!type.isDynamicDim(dim))
        sizes.push_back(onnx.integers(type.getDimSize(dim)));
      else
        sizes.push_back(onnx.create(
            "Gather",
            {onnx.create("Shape", tokens, RankedTensorType::get({2}, b.getI64Type())), onnx.integers(int64_t(0))},
            one));
    }
    replace(user->getResult(0),
            onnx.create("Concat", sizes, user->getResult(0).getType(), onnx.integerAttr("axis", 0)));
    user->erase();
  }
}

/// Extends slots where the body concatenated, in order, and returns the last state.
Value StateRaiser::rewriteBody(Block &body) {
  SymbolicAnalysis analysis(cast<func::FuncOp>(body.getParentOp()));
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (isOp(&op, "GroupQueryAttention", kMicrosoft)) {
      Value past = getOperand(&op, 3);
      bool isSlot = past && past.getDefiningOp<KvViewOp>();
      if (isSlot && failed(raiseGroupQueryAttention(&op, analysis, &thread)))
        return {};
      continue;
    }
    auto view =
        isOp(&op, "Concat") && op.getNumOperands() == 2 ? op.getOperand(0).getDefiningOp<KvViewOp>() : KvViewOp();
    if (!view)
      continue;
    OpBuilder b(&op);
    auto append = KvAppendOp::create(b, op.getLoc(), thread.state.getType(), op.getResult(0).getType(), thread.state,
                                     op.getOperand(1), view.getSlot());
    thread.state = append.getNext();
    replace(op.getResult(0), append.getAll());
    op.erase();
  }
  return thread.state;
}

/// @forward(tokens, context..., state) -> (logits, state), without a body.
func::FuncOp StateRaiser::createForward(OpBuilder &b) {
  Type state = KvType::get(b.getContext(), FlatSymbolRefAttr::get(b.getContext(), kStateName));
  Value logits = source.getBody().front().getTerminator()->getOperand(signature.logits);
  SmallVector<BlockArgument> inputs{signature.tokens};
  inputs.append(signature.context);
  SmallVector<Type> types(ValueRange(inputs).getTypes());
  types.push_back(state);
  auto forward = func::FuncOp::create(b, main.getLoc(), "forward", b.getFunctionType(types, {logits.getType(), state}));
  for (auto [i, input] : llvm::enumerate(inputs))
    forward.setArgAttrs(i, source.getArgAttrDict(input.getArgNumber()));
  for (size_t i = 1; i < inputs.size(); ++i)
    forward.setArgAttr(i, HoneDialect::getContextAttrName(), b.getUnitAttr());
  forward.setResultAttrs(0, source.getResultAttrDict(signature.logits));
  return forward;
}

void StateRaiser::buildForward() {
  OpBuilder b(main.getContext());
  b.setInsertionPointAfter(main);
  Block &from = source.getBody().front();
  func::FuncOp forward = createForward(b);
  Block &body = *forward.addEntryBlock();
  Value tokens = body.getArgument(0);
  b.setInsertionPointToEnd(&body);
  IRMapping mapping;
  mapping.map(signature.tokens, tokens);
  for (auto [i, input] : llvm::enumerate(signature.context))
    mapping.map(input, body.getArgument(1 + i));
  thread.state = body.getArguments().back();
  mapPasts(b, thread.state, mapping);
  buildEntry(b, tokens, thread.state, mapping);
  for (Operation &op : from.without_terminator())
    b.clone(op, mapping);
  Value logits = mapping.lookup(from.getTerminator()->getOperand(signature.logits));
  auto end = func::ReturnOp::create(b, main.getLoc(), ValueRange{logits, thread.state});
  for (const Slot &slot : signature.slots)
    replaceShapes(mapping.lookup(Value(slot.past)).getDefiningOp<KvViewOp>(), tokens);
  Value last = rewriteBody(body);
  if (!last) {
    forward.erase();
    return;
  }
  end->setOperand(1, last);
  eraseDead(forward);
}

unsigned StateRaiser::run() {
  StateOp state = declareState();
  buildForward();
  if (!SymbolTable::lookupSymbolIn(module, "forward")) {
    state.erase();
    return 0;
  }
  remarkRaised(main.getLoc(), kPass, "State") << std::to_string(signature.slots.size()) << " slots";
  return signature.slots.size();
}

static unsigned raiseState(func::FuncOp main) {
  func::FuncOp special = specializeToPast(main), source = special ? special : main;
  unsigned slots = 0;
  if (hasPast(source))
    if (auto signature = readSignature(source))
      slots = StateRaiser(main, source, std::move(*signature)).run();
  if (special)
    special.erase();
  return slots;
}

namespace {
struct RaiseState : impl::RaiseStateBase<RaiseState> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main || main.isExternal() || getOperation().lookupSymbol("forward"))
      return;
    moveCacheCasts(main);
    numSlots += raiseState(main);
  }
};
} // namespace

} // namespace hone::raising
