// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buffers of an entry share the slots of one arena: those that are never needed at once get the same slot. The largest
// buffers are placed first, each in the smallest slot that is free from its first use to its last ("greedy by size",
// Pisarchyk and Lee, *Efficient Memory Management for Deep Neural Net Inference*, 2020); sizes that are not known are
// guessed for that choice, and only for that: what a slot holds at run time is the largest of its buffers.

#include "Aliases.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <map>

namespace hone {
#define GEN_PASS_DEF_PLANMEMORY
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// What sizes in bytes stop at: more than any memory.
constexpr int64_t kLargest = int64_t{1} << 62;

struct Buffer {
  memref::AllocOp alloc;
  memref::DeallocOp dealloc;
  int64_t first, last; // positions in the entry's block
  int64_t guess;       // bytes
  Value bytes;
};

struct Slot {
  Value bytes;
  int64_t guess;
  SmallVector<Buffer *> buffers;
  std::map<int64_t, int64_t> lives; // from the first position to the last

  /// How long before `buffer` is needed the slot was needed last; nothing where it is needed at once with it.
  std::optional<int64_t> getGap(const Buffer &buffer) const {
    auto next = lives.upper_bound(buffer.last);
    if (next == lives.begin())
      return buffer.first;
    int64_t before = std::prev(next)->second;
    return before < buffer.first ? std::optional(buffer.first - before) : std::nullopt;
  }
};

/// Positions of the operations of a block and of what is inside of them, in their order.
class Positions {
public:
  explicit Positions(Block &block) { enter(block); }

  /// The first and the last position of what is in `block` and has `op` inside: what a loop reads is needed until it ends.
  std::pair<int64_t, int64_t> of(Operation *op, Block &block) const {
    Operation *inBlock = block.findAncestorOpInBlock(*op);
    return inBlock ? ranges.lookup(inBlock) : std::pair<int64_t, int64_t>(0, next);
  }

private:
  void enter(Block &block) {
    for (Operation &op : block) {
      int64_t first = next++;
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          enter(inner);
      ranges[&op] = {first, next - 1};
    }
  }

  int64_t next = 0;
  llvm::DenseMap<Operation *, std::pair<int64_t, int64_t>> ranges;
};

/// The sizes of buffers, computed once more where the entry begins.
class Sizes {
public:
  /// `likely` is what sizes of inputs that are not known count as, for choosing among slots.
  Sizes(Block &block, Value call, const PlanMemoryOptions &likely) : block(block), call(call), likely(likely) {}

  /// Whether `value` can be computed before all else.
  bool isEarly(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return value == call;
    if (auto known = early.find(op); known != early.end())
      return known->second;
    bool possible = op->getBlock() == &block && op->getNumRegions() == 0 && (isPure(op) || isDivision(op)) &&
                    llvm::all_of(op->getOperands(), [&](Value operand) { return isEarly(operand); });
    return early[op] = possible;
  }

  /// What is early and at least `value`, or null: of the smaller of two numbers one of them.
  Value getBound(Value value) {
    if (isEarly(value))
      return value;
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<arith::MinUIOp, arith::MinSIOp>(op))
      return {};
    for (Value operand : op->getOperands())
      if (Value bound = getBound(operand))
        return bound;
    return {};
  }

  /// `value`, which is early, computed where the builder stands. Divisions come before the checks of their divisors here:
  /// dividing by zero gives any number, as what would need it is never reached.
  Value compute(OpBuilder &b, Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || computed.contains(value))
      return computed.lookupOrDefault(value);
    for (Value operand : op->getOperands())
      compute(b, operand);
    Operation *copy = b.clone(*op, computed);
    if (isDivision(op)) {
      OpBuilder before(copy);
      Value one = arith::ConstantIndexOp::create(before, op->getLoc(), 1);
      copy->setOperand(1, before.createOrFold<arith::MaxUIOp>(op->getLoc(), copy->getOperand(1), one));
    }
    return computed.lookup(value);
  }

  /// What `value`, which is early, would be if each size of an input that is not known were a likely one.
  int64_t guess(Value value) {
    auto number = dyn_cast_or_null<IntegerAttr>(evaluate(value));
    return number ? std::clamp<int64_t>(number.getInt(), 0, kLargest) : likely.size;
  }

private:
  /// The constant that `value` would be, or null.
  Attribute evaluate(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return {};
    if (auto known = guesses.find(value); known != guesses.end())
      return known->second;
    auto operands = llvm::map_to_vector(op->getOperands(), [&](Value operand) { return evaluate(operand); });
    Attribute result;
    SmallVector<OpFoldResult> folded;
    if (auto dim = dyn_cast<memref::DimOp>(op); dim && isUnknown(dim))
      result = IntegerAttr::get(dim.getType(), isBatch(dim) ? likely.batch : likely.size);
    else if (op->getNumResults() == 1 && succeeded(op->fold(operands, folded)) && folded.size() == 1)
      result = isa<Attribute>(folded[0]) ? cast<Attribute>(folded[0]) : evaluate(cast<Value>(folded[0]));
    return guesses[value] = result;
  }

  static bool isUnknown(memref::DimOp dim) {
    auto index = dim.getConstantIndex();
    return index && cast<MemRefType>(dim.getSource().getType()).isDynamicDim(*index);
  }
  static bool isBatch(memref::DimOp dim) {
    return dim.getConstantIndex() == 0 && cast<MemRefType>(dim.getSource().getType()).getRank() > 1;
  }

  static bool isDivision(Operation *op) {
    return isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp>(op) && op->getResult(0).getType().isIndex();
  }

  Block &block;
  Value call;
  PlanMemoryOptions likely;
  llvm::DenseMap<Operation *, bool> early;
  llvm::DenseMap<Value, Attribute> guesses;
  IRMapping computed;
};

/// The bytes of one element as memory holds it; nothing for types whose buffers are not planned.
std::optional<int64_t> getElementBytes(MemRefType type) {
  Type element = type.getElementType();
  int64_t count = 1;
  if (auto complex = dyn_cast<ComplexType>(element)) {
    element = complex.getElementType();
    count = 2;
  }
  if (element.isIndex())
    return 8;
  if (!element.isIntOrFloat())
    return std::nullopt;
  return count * llvm::PowerOf2Ceil(llvm::divideCeil(element.getIntOrFloatBitWidth(), 8));
}

/// Bytes of the fixed sizes' product; nothing if that is too large a number.
std::optional<int64_t> getFixedBytes(MemRefType type) {
  std::optional<int64_t> bytes = getElementBytes(type);
  if (!bytes)
    return std::nullopt;
  for (int64_t size : type.getShape())
    if (!ShapedType::isDynamic(size) && llvm::MulOverflow(*bytes, size, *bytes))
      return std::nullopt;
  return *bytes <= kLargest ? bytes : std::nullopt;
}

class Planner {
public:
  /// Plans the host's memory or the device's.
  Planner(func::FuncOp entry, bool isDevice, const PlanMemoryOptions &likely)
      : isDevice(isDevice), block(entry.getBody().front()), call(entry.getArgument(0)), aliases(entry),
        positions(block), sizes(block, call, likely) {}

  /// Returns the number of buffers that got a slot.
  int64_t run() {
    collect();
    if (buffers.empty())
      return 0;
    OpBuilder b = OpBuilder::atBlockBegin(&block);
    for (Buffer &buffer : buffers)
      buffer.bytes = computeBytes(b, buffer.alloc);
    assign(b);
    replace(b);
    return buffers.size();
  }

  int64_t getSlotCount() const { return slots.size(); }

private:
  void collect() {
    for (memref::AllocOp alloc : findBuffers()) {
      if (hrt::isOnDevice(alloc) != isDevice)
        continue;
      auto options = remark::RemarkOpts::name("Planned").category("hone-plan-memory");
      Buffer buffer{alloc, {}, 0, 0, 0, {}};
      StringRef blocker = describe(buffer);
      if (blocker.empty()) {
        buffers.push_back(buffer);
        continue;
      }
      remark::missed(alloc.getLoc(), options) << ("a buffer is allocated when it is needed: " + blocker).str();
    }
    inOrder = llvm::map_to_vector(buffers, [](Buffer &buffer) { return &buffer; });
    llvm::sort(inOrder, [](const Buffer *a, const Buffer *b) {
      return std::tuple(b->guess, a->first, a) < std::tuple(a->guess, b->first, b);
    });
  }

  /// Those of the entry and of its loops, whose iterations come one after the other.
  SmallVector<memref::AllocOp> findBuffers() {
    SmallVector<memref::AllocOp> found;
    block.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto alloc = dyn_cast<memref::AllocOp>(op))
        found.push_back(alloc);
      return op->getNumRegions() == 0 || isa<scf::ForOp>(op) ? WalkResult::advance() : WalkResult::skip();
    });
    return found;
  }

  /// Fills in what is known of a buffer, or says why it gets no slot.
  StringRef describe(Buffer &buffer) {
    auto type = cast<MemRefType>(buffer.alloc.getType());
    std::optional<int64_t> fixed = getFixedBytes(type);
    if (!type.getLayout().isIdentity() || !fixed)
      return "its type has no plain size";
    if (!llvm::all_of(buffer.alloc.getDynamicSizes(), [&](Value size) { return sizes.getBound(size) != Value(); }))
      return "its size is only known on the way";
    for (Operation *user : buffer.alloc->getUsers())
      if (auto dealloc = dyn_cast<memref::DeallocOp>(user)) {
        if (buffer.dealloc || dealloc->getBlock() != buffer.alloc->getBlock())
          return "it is freed in more than one place";
        buffer.dealloc = dealloc;
      }
    if (!buffer.dealloc)
      return "it is freed under another name";
    setLife(buffer);
    buffer.guess = *fixed;
    for (Value size : buffer.alloc.getDynamicSizes())
      buffer.guess = std::min<int64_t>(
          llvm::SaturatingMultiply<uint64_t>(buffer.guess, sizes.guess(sizes.getBound(size))), kLargest);
    return "";
  }

  void setLife(Buffer &buffer) {
    buffer.first = std::numeric_limits<int64_t>::max();
    buffer.last = -1;
    for (Value view : aliases.getViews(buffer.alloc.getResult()))
      for (Operation *user : view.getUsers()) {
        if (user == buffer.dealloc)
          continue;
        auto [first, last] = positions.of(user, *buffer.alloc->getBlock());
        buffer.first = std::min(buffer.first, first);
        buffer.last = std::max(buffer.last, last);
      }
  }

  /// The bytes of a buffer, at most kLargest; what is negative counts as nothing, as a check that is to come refuses it.
  Value computeBytes(OpBuilder &b, memref::AllocOp alloc) {
    Location loc = alloc.getLoc();
    Value bytes = arith::ConstantIndexOp::create(b, loc, *getFixedBytes(alloc.getType()));
    if (alloc.getDynamicSizes().empty())
      return bytes;
    Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
    Value largest = arith::ConstantIndexOp::create(b, loc, kLargest);
    for (Value dynamic : alloc.getDynamicSizes()) {
      Value bound = sizes.compute(b, sizes.getBound(dynamic));
      Value size = b.createOrFold<arith::MaxSIOp>(loc, bound, zero);
      Value limit = b.createOrFold<arith::DivUIOp>(loc, largest, b.createOrFold<arith::MaxSIOp>(loc, size, one));
      Value fits = b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ule, bytes, limit);
      Value product = b.createOrFold<arith::MulIOp>(loc, bytes, size);
      bytes = b.createOrFold<arith::SelectOp>(loc, fits, product, largest);
    }
    return bytes;
  }

  /// The smallest of the slots that are free, all of which are large enough, and of these the one that caches hold most of; or null.
  Slot *choose(const Buffer &buffer) {
    Slot *best = nullptr;
    std::pair<int64_t, int64_t> least;
    for (Slot &slot : slots)
      if (std::optional<int64_t> gap = slot.getGap(buffer))
        if (std::pair<int64_t, int64_t> cost(slot.guess, *gap); !best || cost < least) {
          best = &slot;
          least = cost;
        }
    return best;
  }

  void assign(OpBuilder &b) {
    for (Buffer *buffer : inOrder) {
      Slot *slot = choose(*buffer);
      if (!slot)
        slot = &slots.emplace_back(Slot{buffer->bytes, buffer->guess, {}, {}});
      slot->lives.emplace(buffer->first, buffer->last);
      slot->bytes = b.createOrFold<arith::MaxUIOp>(buffer->alloc.getLoc(), slot->bytes, buffer->bytes);
      slot->buffers.push_back(buffer);
    }
  }

  void replace(OpBuilder &b) {
    auto bytes = llvm::map_to_vector(slots, [](const Slot &slot) { return slot.bytes; });
    Attribute space = isDevice ? hrt::getDeviceSpace(b.getContext()) : Attribute();
    auto type = MemRefType::get({ShapedType::kDynamic}, b.getI8Type(), MemRefLayoutAttrInterface(), space);
    auto arena =
        hrt::ArenaOp::create(b, buffers.front().alloc.getLoc(), SmallVector<Type>(slots.size(), type), call, bytes);
    for (auto [slot, memory] : llvm::zip_equal(slots, arena.getSlots()))
      for (Buffer *buffer : slot.buffers) {
        OpBuilder at(buffer->alloc);
        Location loc = buffer->alloc.getLoc();
        Value zero = arith::ConstantIndexOp::create(at, loc, 0);
        Value view =
            memref::ViewOp::create(at, loc, buffer->alloc.getType(), memory, zero, buffer->alloc.getDynamicSizes());
        buffer->dealloc.erase();
        buffer->alloc.replaceAllUsesWith(view);
        buffer->alloc.erase();
      }
  }

  bool isDevice;
  Block &block;
  Value call;
  Aliases aliases;
  Positions positions;
  Sizes sizes;
  SmallVector<Buffer, 0> buffers;
  SmallVector<Buffer *> inOrder;
  SmallVector<Slot> slots;
};

struct PlanMemory : impl::PlanMemoryBase<PlanMemory> {
  using PlanMemoryBase::PlanMemoryBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!function->hasAttr(hrt::kEntryAttr) || !function.getBody().hasOneBlock())
      return;
    for (bool isDevice : {false, true}) {
      Planner planner(function, isDevice, {batch, size});
      numPlanned += planner.run();
      numSlots += planner.getSlotCount();
    }
  }
};

} // namespace
} // namespace hone
