// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots are found by dataflow: an input that is only extended, and the output that is its extension. The other inputs are
// known by their names and shapes.

#include "StateSignature.h"

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-raise-state";

StringRef getInputName(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), onnxir::kNameAttr);
  return name ? name.getValue() : StringRef();
}

/// The name of a dynamic dimension, "" without one.
static StringRef getDimName(BlockArgument argument, int64_t dim) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto names = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), onnxir::kDimsAttr);
  bool known = names && dim < static_cast<int64_t>(names.size());
  return known ? cast<StringAttr>(names[dim]).getValue() : StringRef();
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

/// The output that `value` is, if it is one.
static std::optional<unsigned> findOutput(Value value) {
  for (OpOperand &use : value.getUses())
    if (isa<func::ReturnOp>(use.getOwner()))
      return use.getOperandNumber();
  return std::nullopt;
}

namespace {
/// How an operator extends its operand: the result, the axis, and sizes of the operand as far as the operator says them.
struct Extension {
  Value grown;
  int64_t axis = 0;
  SmallVector<int64_t> sizes;
};
} // namespace

static std::optional<Extension> matchExtension(OpOperand &use) {
  Operation *op = use.getOwner();
  int64_t rank = getRank(use.get());
  unsigned operand = use.getOperandNumber();
  if (isOp(op, "Concat") && op->getNumOperands() == 2 && operand == 0 && getRank(op->getOperand(1)) == rank) {
    int64_t axis = getInteger(op, "axis", 0);
    return Extension{op->getResult(0), axis < 0 ? axis + rank : axis,
                     SmallVector<int64_t>(getRankedType(op->getOperand(1)).getShape())};
  }
  if (!isOp(op, "GroupQueryAttention", kMicrosoft) || (operand != 3 && operand != 4) || rank != 4)
    return std::nullopt;
  int64_t heads = getInteger(op, "num_heads", 0), shared = getInteger(op, "kv_num_heads", 0),
          width = getLastSize(op->getOperand(0));
  int64_t all = getOperand(op, 1) ? heads : heads + 2 * shared, dynamic = ShapedType::kDynamic;
  int64_t size = all > 0 && !ShapedType::isDynamic(width) && width % all == 0 ? width / all : dynamic;
  Value grown = getResult(op, operand - 2);
  return grown ? std::optional(Extension{grown, 2, {dynamic, shared, dynamic, size}}) : std::nullopt;
}

static std::optional<Slot> matchSlot(BlockArgument argument) {
  auto type = getRankedType(argument);
  std::optional<Slot> slot;
  for (OpOperand &use : argument.getUses()) {
    if (isOp(use.getOwner(), "Shape"))
      continue;
    auto extension = matchExtension(use);
    auto output = extension ? findOutput(extension->grown) : std::nullopt;
    if (!output || slot || !type)
      return std::nullopt;
    SmallVector<int64_t> sizes(type.getShape());
    for (auto [dim, size] : llvm::enumerate(extension->sizes))
      if (ShapedType::isDynamic(sizes[dim]) && dim != 0 && static_cast<int64_t>(dim) != extension->axis)
        sizes[dim] = size;
    slot = Slot{argument, *output, extension->axis, RankedTensorType::get(sizes, type.getElementType())};
  }
  if (!slot || slot->axis < 0 || slot->axis >= type.getRank() || !type.isDynamicDim(slot->axis))
    return std::nullopt;
  // A session knows the batch and how long the slot is; its other sizes are those of the program.
  for (int64_t dim = 1; dim < type.getRank(); ++dim)
    if (dim != slot->axis && slot->type.isDynamicDim(dim))
      return std::nullopt;
  return slot;
}

bool hasPast(func::FuncOp function) {
  return llvm::any_of(function.getArguments(), [](BlockArgument argument) { return matchSlot(argument).has_value(); });
}

//===----------------------------------------------------------------------===//
// The other inputs
//===----------------------------------------------------------------------===//

/// Whether nobody computes with the argument: it is only handed on to outputs.
static bool isHandedThrough(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<func::ReturnOp>(user) || (isOp(user, "Identity") && isHandedThrough(user->getResult(0)));
  });
}

namespace {
class SignatureReader {
public:
  explicit SignatureReader(func::FuncOp function) : function(function) {}
  std::optional<Signature> read();

private:
  bool classify(BlockArgument argument);
  bool classifyByName(BlockArgument argument);
  bool isContext(BlockArgument argument);
  bool findLogits();

  func::FuncOp function;
  Signature signature;
};
} // namespace

/// Tokens, their mask and their positions.
bool SignatureReader::classifyByName(BlockArgument argument) {
  auto type = getRankedType(argument);
  StringRef name = getInputName(argument);
  if (!type)
    return false;
  auto take = [&](BlockArgument &part) {
    if (part)
      return false;
    part = argument;
    return true;
  };
  bool isInteger = type.getElementType().isSignlessInteger(), isLong = type.getElementType().isInteger(64);
  if (isInteger && type.getRank() == 2 && name.contains("input_ids"))
    return take(signature.tokens);
  bool isMask = type.getRank() == 2 && name.contains("attention_mask") && !name.contains("encoder");
  if (isMask && (isInteger || type.getElementType().isF32()))
    return take(signature.mask);
  if (isLong && type.getRank() == 2 && name.contains("position_ids"))
    return take(signature.positions);
  return isLong && type.getRank() == 1 && name.contains("cache_position") && take(signature.cachePositions);
}

/// What an encoder gave says so in its name. Other floats are context where no size depends on tokens or positions.
bool SignatureReader::isContext(BlockArgument argument) {
  auto type = getRankedType(argument);
  StringRef name = getInputName(argument);
  if (!type || type.getRank() == 0)
    return false;
  if (name.contains("encoder") || name.contains("cross"))
    return true;
  if (!isFloat(argument) || !signature.tokens)
    return false;
  llvm::SmallDenseSet<StringRef> growing{getDimName(signature.tokens, 1)};
  for (const Slot &slot : signature.slots)
    growing.insert(getDimName(slot.past, slot.axis));
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (StringRef size = getDimName(argument, dim); type.isDynamicDim(dim) && (size.empty() || growing.contains(size)))
      return false;
  return true;
}

bool SignatureReader::classify(BlockArgument argument) {
  if (isHandedThrough(argument)) {
    signature.unused.push_back(argument);
    return true;
  }
  if (isContext(argument)) {
    signature.context.push_back(argument);
    return true;
  }
  remarkMissed(function.getLoc(), kPass, "State")
      << "input '" << getInputName(argument) << "' has no meaning in a program with state";
  return false;
}

bool SignatureReader::findLogits() {
  Operation *terminator = function.getBody().front().getTerminator();
  llvm::SmallDenseSet<unsigned> grown;
  for (const Slot &slot : signature.slots)
    grown.insert(slot.output);
  std::optional<unsigned> logits;
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    auto name = function.getResultAttrOfType<StringAttr>(i, onnxir::kNameAttr);
    bool candidate = !grown.contains(i) && isFloat(value) && getRank(value) == 3;
    if (candidate && (!logits || (name && name == "logits")))
      logits = i;
  }
  if (logits)
    signature.logits = *logits;
  return logits.has_value();
}

std::optional<Signature> SignatureReader::read() {
  SmallVector<BlockArgument> others;
  for (BlockArgument argument : function.getArguments()) {
    if (auto slot = matchSlot(argument))
      signature.slots.push_back(*slot);
    else if (!classifyByName(argument))
      others.push_back(argument);
  }
  if (!llvm::all_of(others, [&](BlockArgument argument) { return classify(argument); }))
    return std::nullopt;
  if (!signature.tokens || !findLogits()) {
    remarkMissed(function.getLoc(), kPass, "State") << "there are no token ids, or no logits";
    return std::nullopt;
  }
  return signature;
}

std::optional<Signature> readSignature(func::FuncOp function) { return SignatureReader(function).read(); }

//===----------------------------------------------------------------------===//
// Merged decoders
//===----------------------------------------------------------------------===//

/// The `If`s that the boolean input alone decides, if nothing else reads it.
static SmallVector<Operation *> findSwitched(Value flag) {
  SmallVector<Operation *> found;
  for (Operation *user : flag.getUsers()) {
    bool passesOn = isOp(user, "Identity") || isOp(user, "Squeeze") || isOp(user, "Reshape") || isOp(user, "Cast");
    if (passesOn && user->getOperand(0) == flag)
      found.append(findSwitched(user->getResult(0)));
    else if (isOp(user, "If"))
      found.push_back(user);
    else
      return {};
  }
  return found;
}

/// Puts the operations of a region in place of the operation.
static void inlineRegion(Operation *op, Region &region) {
  Block &body = region.front();
  Operation *terminator = body.getTerminator();
  SmallVector<Value> results(terminator->getOperands());
  op->getBlock()->getOperations().splice(op->getIterator(), body.getOperations(), body.begin(),
                                         terminator->getIterator());
  for (auto [old, fresh] : llvm::zip(op->getResults(), results))
    old.replaceAllUsesWith(fresh);
  op->erase();
}

/// A boolean input of one element that alone decides `If`s, or null.
static BlockArgument findFlag(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    auto type = getRankedType(argument);
    bool isFlag = type && type.getElementType().isInteger(1) &&
                  (type.getRank() == 0 || (type.getRank() == 1 && type.getDimSize(0) == 1));
    if (isFlag && !findSwitched(argument).empty())
      return argument;
  }
  return {};
}

/// A private copy of `main` with one branch of each `If` that input `flag` decides: that number 0 where it is true, 1 where it is false.
static func::FuncOp copyBranch(func::FuncOp main, unsigned flag, unsigned branch) {
  OpBuilder b(main);
  auto copy = cast<func::FuncOp>(b.clone(*main));
  copy.setPrivate();
  for (Operation *op : findSwitched(copy.getArgument(flag)))
    if (op->getNumRegions() == 2 && llvm::hasSingleElement(op->getRegion(branch)))
      inlineRegion(op, op->getRegion(branch));
  inferShapes(copy);
  eraseDead(copy);
  return copy;
}

namespace {
/// The branch of a merged decoder that extends a past; the function is null where there is none.
struct PastBranch {
  func::FuncOp copy;
  unsigned flag = 0, branch = 0;
};
} // namespace

static PastBranch findPastBranch(func::FuncOp main) {
  BlockArgument flag = findFlag(main);
  if (!flag || hasPast(main))
    return {};
  for (unsigned branch : {0u, 1u}) {
    func::FuncOp copy = copyBranch(main, flag.getArgNumber(), branch);
    if (hasPast(copy))
      return {copy, flag.getArgNumber(), branch};
    copy.erase();
  }
  return {};
}

func::FuncOp specializeToPast(func::FuncOp main) { return findPastBranch(main).copy; }

func::FuncOp specializeToNoPast(func::FuncOp main) {
  PastBranch past = findPastBranch(main);
  if (!past.copy)
    return {};
  past.copy.erase();
  return copyBranch(main, past.flag, 1 - past.branch);
}

} // namespace hone::raising
