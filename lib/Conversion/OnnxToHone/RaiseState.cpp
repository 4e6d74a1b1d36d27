// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// @forward(tokens, state) of a decoder. Slots are found by dataflow: an input that is only extended, and the output that
// is its extension. Nothing is removed from @main.

#include "GroupQueryAttention.h"
#include "OnnxMatch.h"

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

namespace {

/// An input that becomes a slot, the axis it grows along and the output that it grows to.
struct Slot {
  BlockArgument past;
  unsigned output;
  int64_t axis;
};

/// The inputs and outputs of a decoder by their part in it.
struct Signature {
  BlockArgument tokens, mask, positions;
  SmallVector<Slot> slots;
  SmallVector<BlockArgument> unused; // only handed through to outputs
  unsigned logits = 0;
};

class StateRaiser {
public:
  explicit StateRaiser(func::FuncOp main) : main(main), module(main->getParentOfType<ModuleOp>()) {}
  /// Number of slots; 0 if there is no @forward to make.
  unsigned run();

private:
  bool findSignature();
  std::optional<Slot> matchSlot(BlockArgument argument);
  bool classify(BlockArgument argument);
  bool findLogits();
  void listSlots();
  void buildForward();
  void buildEntry(OpBuilder &b, Value tokens, Value state, IRMapping &mapping);
  void mapPasts(OpBuilder &b, Value state, IRMapping &mapping);
  Value rewriteBody(Block &body);
  StringRef nameOf(BlockArgument argument);

  func::FuncOp main;
  ModuleOp module;
  Signature signature;
  StateThread thread;
};

} // namespace

StringRef StateRaiser::nameOf(BlockArgument argument) {
  auto name = main.getArgAttrOfType<StringAttr>(argument.getArgNumber(), onnxir::kNameAttr);
  return name ? name.getValue() : StringRef();
}

//===----------------------------------------------------------------------===//
// What the inputs and outputs are
//===----------------------------------------------------------------------===//

/// The output that `value` is, if it is one.
static std::optional<unsigned> findOutput(Value value) {
  for (OpOperand &use : value.getUses())
    if (isa<func::ReturnOp>(use.getOwner()))
      return use.getOperandNumber();
  return std::nullopt;
}

std::optional<Slot> StateRaiser::matchSlot(BlockArgument argument) {
  std::optional<Slot> slot;
  for (OpOperand &use : argument.getUses()) {
    Operation *user = use.getOwner();
    if (isOp(user, "Shape"))
      continue;
    Value grown;
    int64_t axis = 0;
    if (isOp(user, "Concat") && user->getNumOperands() == 2 && use.getOperandNumber() == 0) {
      grown = user->getResult(0);
      axis = getInteger(user, "axis", 0);
      axis += axis < 0 ? getRank(argument) : 0;
    } else if (isOp(user, "GroupQueryAttention", kMicrosoft) && (use.getOperandNumber() == 3 || use.getOperandNumber() == 4)) {
      grown = getResult(user, use.getOperandNumber() - 2);
      axis = 2;
    }
    auto output = grown ? findOutput(grown) : std::nullopt;
    if (!output || slot)
      return std::nullopt;
    slot = Slot{argument, *output, axis};
  }
  auto type = getRankedType(argument);
  if (!slot || !type || slot->axis < 0 || slot->axis >= type.getRank() || !type.isDynamicDim(slot->axis))
    return std::nullopt;
  // A session knows the batch and how long the slot is; its other sizes are those of the program.
  for (int64_t dim = 1; dim < type.getRank(); ++dim)
    if (dim != slot->axis && type.isDynamicDim(dim))
      return std::nullopt;
  return slot;
}

/// Whether nobody computes with the argument: it is only handed on to outputs.
static bool isHandedThrough(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<func::ReturnOp>(user) || (isOp(user, "Identity") && isHandedThrough(user->getResult(0)));
  });
}

bool StateRaiser::classify(BlockArgument argument) {
  if (auto slot = matchSlot(argument)) {
    signature.slots.push_back(*slot);
    return true;
  }
  auto type = getRankedType(argument);
  StringRef name = nameOf(argument);
  bool isInteger = type && type.getElementType().isSignlessInteger();
  if (isInteger && type.getRank() == 2 && name.contains("input_ids") && !signature.tokens) {
    signature.tokens = argument;
    return true;
  }
  bool isMask = type && type.getRank() == 2 && name.contains("attention_mask") && !name.contains("encoder");
  if (isMask && !signature.mask && (isInteger || type.getElementType().isF32())) {
    signature.mask = argument;
    return true;
  }
  bool isPositions = isInteger && type.getElementType().isInteger(64) && type.getRank() == 2 && name.contains("position_ids");
  if (isPositions && !signature.positions) {
    signature.positions = argument;
    return true;
  }
  if (isHandedThrough(argument)) {
    signature.unused.push_back(argument);
    return true;
  }
  remarkMissed(main.getLoc(), kPass, "State") << "input '" << name << "' has no meaning in a program with state";
  return false;
}

bool StateRaiser::findLogits() {
  Operation *terminator = main.getBody().front().getTerminator();
  llvm::SmallDenseSet<unsigned> grown;
  for (const Slot &slot : signature.slots)
    grown.insert(slot.output);
  std::optional<unsigned> logits;
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    auto name = main.getResultAttrOfType<StringAttr>(i, onnxir::kNameAttr);
    bool candidate = !grown.contains(i) && isFloat(value) && getRank(value) == 3;
    if (candidate && (!logits || (name && name == "logits")))
      logits = i;
  }
  if (logits)
    signature.logits = *logits;
  return logits.has_value();
}

bool StateRaiser::findSignature() {
  Block &body = main.getBody().front();
  bool hasPast = llvm::any_of(body.getArguments(), [&](BlockArgument argument) { return matchSlot(argument).has_value(); });
  if (!hasPast)
    return false;
  for (BlockArgument argument : body.getArguments())
    if (!classify(argument))
      return false;
  if (!signature.tokens || !findLogits()) {
    remarkMissed(main.getLoc(), kPass, "State") << "there are no token ids, or no logits";
    return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// @forward
//===----------------------------------------------------------------------===//

void StateRaiser::listSlots() {
  SmallVector<Attribute> slots;
  for (const Slot &slot : signature.slots)
    slots.push_back(SlotAttr::get(main.getContext(), nameOf(slot.past), getRankedType(slot.past), slot.axis));
  module->setAttr(HoneDialect::getSlotsAttrName(), ArrayAttr::get(main.getContext(), slots));
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
  Value held = tensor::FromElementsOp::create(b, loc, scalar, length);
  Value batch = tensor::DimOp::create(b, loc, tokens, 0);
  thread.padding = tensor::GenerateOp::create(b, loc, row, batch, [&](OpBuilder &nested, Location at, ValueRange sequence) {
    Value padding = KvPaddingOp::create(nested, at, state, sequence[0]);
    tensor::YieldOp::create(nested, at, arith::IndexCastOp::create(nested, at, i64, padding));
  });
  Value shape = onnx.create("Shape", tokens, RankedTensorType::get({2}, i64));
  Value fresh = onnx.create("Gather", {shape, onnx.integer(1)}, scalar);
  Value total = onnx.create("Add", {held, fresh}, scalar);
  Value padding = onnx.unsqueeze(thread.padding, {1});
  Value zero = onnx.integer(0), one = onnx.integer(1);
  Value places = onnx.create("Range", {held, total, one}, row);
  Value behindPadding = onnx.create("Sub", {places, padding}, matrix);
  thread.positions = onnx.create("Max", {behindPadding, zero}, matrix);
  if (signature.positions)
    mapping.map(signature.positions, thread.positions);
  if (!signature.mask)
    return;
  Value keys = onnx.create("Range", {zero, total, one}, row);
  Value visible = onnx.create("GreaterOrEqual", {keys, padding}, RankedTensorType::get(matrix.getShape(), b.getI1Type()));
  mapping.map(signature.mask, onnx.cast(visible, getRankedType(signature.mask).getElementType()));
}

void StateRaiser::mapPasts(OpBuilder &b, Value state, IRMapping &mapping) {
  for (auto [i, slot] : llvm::enumerate(signature.slots)) {
    auto view = KvViewOp::create(b, main.getLoc(), slot.past.getType(), state, i);
    if (auto names = main.getArgAttrOfType<ArrayAttr>(slot.past.getArgNumber(), onnxir::kDimsAttr))
      view->setAttr(onnxir::kDimsAttr, names);
    mapping.map(slot.past, view);
  }
  // What is only handed through has no uses that stay.
  for (BlockArgument argument : signature.unused)
    mapping.map(argument, onnxir::NoValueOp::create(b, main.getLoc(), b.getNoneType()));
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
    auto view = isOp(&op, "Concat") && op.getNumOperands() == 2 ? op.getOperand(0).getDefiningOp<KvViewOp>() : KvViewOp();
    if (!view)
      continue;
    OpBuilder b(&op);
    auto append = KvAppendOp::create(b, op.getLoc(), KvType::get(b.getContext()), op.getResult(0).getType(), thread.state, op.getOperand(1),
                                     view.getSlot());
    thread.state = append.getNext();
    replace(op.getResult(0), append.getAll());
    op.erase();
  }
  return thread.state;
}

void StateRaiser::buildForward() {
  OpBuilder b(main.getContext());
  b.setInsertionPointAfter(main);
  Block &from = main.getBody().front();
  Operation *terminator = from.getTerminator();
  Type state = KvType::get(b.getContext()), tokens = signature.tokens.getType(), logits = terminator->getOperand(signature.logits).getType();
  auto forward = func::FuncOp::create(b, main.getLoc(), "forward", b.getFunctionType({tokens, state}, {logits, state}));
  Block &body = *forward.addEntryBlock();
  forward.setArgAttrs(0, main.getArgAttrDict(signature.tokens.getArgNumber()));
  forward.setResultAttrs(0, main.getResultAttrDict(signature.logits));
  b.setInsertionPointToEnd(&body);
  IRMapping mapping;
  mapping.map(signature.tokens, body.getArgument(0));
  thread.state = body.getArgument(1);
  mapPasts(b, thread.state, mapping);
  buildEntry(b, body.getArgument(0), thread.state, mapping);
  for (Operation &op : from.without_terminator())
    b.clone(op, mapping);
  auto end = func::ReturnOp::create(b, main.getLoc(), ValueRange{mapping.lookup(terminator->getOperand(signature.logits)), thread.state});
  Value last = rewriteBody(body);
  if (!last) {
    forward.erase();
    return;
  }
  end->setOperand(1, last);
  eraseDead(forward);
}

unsigned StateRaiser::run() {
  if (!findSignature())
    return 0;
  listSlots();
  buildForward();
  if (!SymbolTable::lookupSymbolIn(module, "forward")) {
    module->removeAttr(HoneDialect::getSlotsAttrName());
    return 0;
  }
  remarkRaised(main.getLoc(), kPass, "State") << std::to_string(signature.slots.size()) << " slots";
  return signature.slots.size();
}

namespace {
struct RaiseState : impl::RaiseStateBase<RaiseState> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (main && !main.isExternal() && !getOperation().lookupSymbol("forward"))
      numSlots += StateRaiser(main).run();
  }
};
} // namespace

} // namespace hone::raising
