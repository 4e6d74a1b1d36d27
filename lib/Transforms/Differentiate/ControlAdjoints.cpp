// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adjoints of control flow. That of a loop is a loop from the last iteration to the first: each computes its body once more, from what was
// carried into it, and then the adjoints of the body. What an iteration reads of carried values was saved by the loop, a copy an
// iteration; nested loops save theirs within one iteration of the outer one alone. Gradients of what a body reads from outside are carried
// and added to.

#include "Models.h"
#include "Prepare.h"

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace hone {

//===- Bodies -----------------------------------------------------------------------------------------------------===//

/// The floats from outside of `op` that its regions read and `adjoints` wants.
static SmallVector<Value> findCaptured(Operation *op, const Adjoints &adjoints) {
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(op->getRegions(), used);
  return llvm::filter_to_vector(used,
                                [&](Value value) { return hasGradient(value.getType()) && adjoints.isWanted(value); });
}

/// The gradient that `value` has so far, or zeros.
static Value getOrZero(LocBuilder &b, const Adjoints &adjoints, Value value) {
  Value gradient = adjoints.get(value);
  return gradient ? gradient : buildZeroGradient(b, value);
}

static void yield(LocBuilder &b, ValueRange values) { scf::YieldOp::create(b, values); }

namespace {
/// The block of an adjoint in which a body is computed once more and then reversed.
struct ReversedBody {
  Block *body;                       // what is reversed
  IRMapping copies;                  // of its arguments
  SmallVector<Value> arguments;      // the copies of those that gradients are wanted of
  SmallVector<Value> captured, sums; // what it reads from outside, and the gradients of that so far
  SmallVector<unsigned> numbers;     // of what it yields that has a gradient
  SmallVector<Value> yielded;        // these gradients
};
} // namespace

/// Builds a copy of the body and its adjoints at the insertion point, the end of a block. Of `adjoints`, what is wanted counts.
static FailureOr<Adjoints> reverse(LocBuilder &b, ReversedBody &reversed, const Adjoints &adjoints) {
  Block &block = *b.getInsertionBlock();
  Operation *last = block.empty() ? nullptr : &block.back();
  for (Operation &op : reversed.body->without_terminator())
    b.clone(op, reversed.copies);
  Operation *end = reversed.body->getTerminator();
  SmallVector<Value> results = llvm::map_to_vector(
      reversed.numbers, [&](unsigned i) { return reversed.copies.lookupOrDefault(end->getOperand(i)); });
  auto held = scf::YieldOp::create(b, results); // so that what is replaced is replaced here
  auto want = [&] {
    Adjoints local = adjoints.withoutGradients();
    llvm::for_each(reversed.arguments, [&](Value value) { local.want(value); });
    local.wantResults(block);
    return local;
  };
  if (failed(prepareForAdjoints(block, want)))
    return failure();
  Adjoints local = want();
  results.assign(held->operand_begin(), held->operand_end());
  SmallVector<Operation *> ops;
  for (Operation *op = last ? last->getNextNode() : &block.front(); op != held; op = op->getNextNode())
    ops.push_back(op);
  held.erase();
  b.setInsertionPointToEnd(&block);
  for (auto [value, sum] : llvm::zip_equal(reversed.captured, reversed.sums))
    local.replace(value, sum);
  for (auto [result, gradient] : llvm::zip_equal(results, reversed.yielded))
    local.add(b, result, gradient);
  if (failed(buildAdjoints(b, ops, local)))
    return failure();
  return local;
}

//===- Loops ------------------------------------------------------------------------------------------------------===//

/// Whether an adjoint reads the carried value: not where it is only added to, or written into.
static bool isRead(Value carried) {
  return llvm::any_of(carried.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<scf::YieldOp>(user))
      return false;
    if (isa<arith::AddFOp, arith::SubFOp>(user))
      return isRead(user->getResult(0));
    auto destination = dyn_cast<DestinationStyleOpInterface>(user);
    bool isWritten =
        isa<tensor::InsertSliceOp, tensor::InsertOp>(user) ||
        (isa<linalg::GenericOp>(user) && cast<linalg::GenericOp>(user).getMatchingBlockArgument(&use).use_empty());
    return !destination || !isWritten || !destination.isDpsInit(&use) || isRead(destination.getTiedOpResult(&use));
  });
}

/// Whether a value that becomes the carried one has its shape, as far as the types and operations of the body say.
static bool keepsShape(Value next, Value carried) {
  auto type = dyn_cast<RankedTensorType>(carried.getType());
  if (!type || type.hasStaticShape() || next == carried)
    return true;
  auto result = dyn_cast<OpResult>(next);
  if (!result)
    return false;
  if (auto cast = dyn_cast<tensor::CastOp>(result.getOwner()))
    return keepsShape(cast.getSource(), carried);
  if (auto loop = dyn_cast<scf::ForOp>(result.getOwner()))
    return keepsShape(loop.getTiedLoopInit(result)->get(), carried);
  if (auto destination = dyn_cast<DestinationStyleOpInterface>(result.getOwner()))
    return keepsShape(destination.getTiedOpOperand(result)->get(), carried);
  return false;
}

/// The number of iterations.
static Value buildCount(LocBuilder &b, scf::ForOp loop) {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value range = arith::SubIOp::create(b, loop.getUpperBound(), loop.getLowerBound());
  return arith::MaxSIOp::create(b, zero, arith::CeilDivSIOp::create(b, range, loop.getStep()));
}

/// A tensor for a copy of `carried` an iteration.
static Value buildEmptyCopies(LocBuilder &b, Value count, Value carried) {
  Sizes sizes{count};
  if (isa<RankedTensorType>(carried.getType()))
    llvm::append_range(sizes, tensor::getMixedSizes(b, b.getLoc(), carried));
  return tensor::EmptyOp::create(b, sizes, getElementTypeOrSelf(carried.getType()));
}

namespace {
/// Where the copy of one iteration lies in that of all.
struct CopyPlace {
  CopyPlace(LocBuilder &b, Value carried, Value number) : offsets{number}, sizes{b.getIndexAttr(1)} {
    Sizes rest = tensor::getMixedSizes(b, b.getLoc(), carried);
    offsets.append(rest.size(), b.getIndexAttr(0));
    llvm::append_range(sizes, rest);
    strides.assign(sizes.size(), b.getIndexAttr(1));
  }
  Sizes offsets, sizes, strides;
};
} // namespace

static Value writeCopy(LocBuilder &b, Value copies, Value carried, Value number) {
  if (!isa<RankedTensorType>(carried.getType()))
    return tensor::InsertOp::create(b, carried, copies, number);
  CopyPlace place(b, carried, number);
  return tensor::InsertSliceOp::create(b, carried, copies, place.offsets, place.sizes, place.strides);
}

/// The copy of an iteration, which has the shape of `like`.
static Value readCopy(LocBuilder &b, Value copies, Value like, Value number) {
  auto type = dyn_cast<RankedTensorType>(like.getType());
  if (!type)
    return tensor::ExtractOp::create(b, copies, number);
  CopyPlace place(b, like, number);
  auto known =
      RankedTensorType::get(decomposeMixedValues(ArrayRef(place.sizes).drop_front()).first, type.getElementType());
  Value copy = tensor::ExtractSliceOp::create(b, known, copies, place.offsets, place.sizes, place.strides);
  return castTo(b, copy, type);
}

/// What stands for a carried value that is not read: of its shape and no other value.
static Value buildUnread(LocBuilder &b, Value like) {
  auto type = dyn_cast<RankedTensorType>(like.getType());
  if (!type)
    return arith::ConstantOp::create(b, b.getZeroAttr(like.getType()));
  Value empty = tensor::EmptyOp::create(b, tensor::getMixedSizes(b, b.getLoc(), like), type.getElementType());
  return castTo(b, empty, type);
}

namespace {

class LoopAdjoint {
public:
  LoopAdjoint(LocBuilder &b, scf::ForOp loop, Adjoints &adjoints) : b(b), loop(loop), adjoints(adjoints) {}
  LogicalResult build();

private:
  void findActive();
  LogicalResult checkShapes();
  SmallVector<Value> buildInits();
  void buildArguments(ReversedBody &reversed, Value number);

  LocBuilder &b;
  scf::ForOp loop;
  Adjoints &adjoints;
  SmallVector<int64_t> saved;   // carried values whose copies are the last results
  SmallVector<unsigned> active; // carried values that have gradients
  SmallVector<Value> captured;
};

struct ForModel : DifferentiableOpInterface::ExternalModel<ForModel, scf::ForOp> {
  void saveForAdjoint(Operation *op, RewriterBase &rewriter) const;

  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &builder, Adjoints &adjoints) const {
    return LoopAdjoint(builder, cast<scf::ForOp>(op), adjoints).build();
  }
};

} // namespace

void ForModel::saveForAdjoint(Operation *op, RewriterBase &rewriter) const {
  auto loop = cast<scf::ForOp>(op);
  rewriter.setInsertionPoint(op);
  LocBuilder b(op->getLoc(), rewriter);
  SmallVector<int64_t> saved;
  SmallVector<Value> copies;
  Value count;
  for (auto [i, carried] : llvm::enumerate(loop.getRegionIterArgs()))
    if (isRead(carried)) {
      count = count ? count : buildCount(b, loop);
      saved.push_back(static_cast<int64_t>(i));
      copies.push_back(buildEmptyCopies(b, count, loop.getInitArgs()[i]));
    }
  if (saved.empty())
    return;
  auto write = [&](OpBuilder &nested, Location loc, ArrayRef<BlockArgument> all) {
    LocBuilder inner(loc, nested);
    auto whole = cast<scf::ForOp>(all.front().getOwner()->getParentOp());
    Value number = arith::SubIOp::create(inner, whole.getInductionVar(), whole.getLowerBound());
    number = arith::DivSIOp::create(inner, number, whole.getStep());
    SmallVector<Value> written;
    for (auto [i, copy] : llvm::zip_equal(saved, all))
      written.push_back(writeCopy(inner, copy, whole.getRegionIterArg(i), number));
    return written;
  };
  (void)loop.replaceWithAdditionalYields(rewriter, copies, /*replaceInitOperandUsesInLoop=*/false, write);
}

/// Carried values that depend on what gradients are wanted of and on which, in turn, what the loop gives depends.
void LoopAdjoint::findActive() {
  auto yields = loop.getYieldedValues();
  llvm::SmallSetVector<unsigned, 4> found;
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    Adjoints local = adjoints.withoutGradients();
    for (auto [i, carried] : llvm::enumerate(loop.getRegionIterArgs()))
      if (found.contains(i))
        local.want(carried);
    local.wantResults(*loop.getBody());
    for (unsigned i = 0, count = yields.size() - saved.size(); i < count; ++i)
      if (hasGradient(yields[i].getType()) && (adjoints.isWanted(loop.getInitArgs()[i]) || local.isWanted(yields[i])))
        isChanged |= found.insert(i);
  }
  active.assign(found.begin(), found.end());
  llvm::sort(active);
}

LogicalResult LoopAdjoint::checkShapes() {
  for (unsigned i = 0, count = loop.getNumRegionIterArgs() - saved.size(); i < count; ++i)
    if (!keepsShape(loop.getYieldedValues()[i], loop.getRegionIterArg(i)))
      return loop.emitError() << "cannot differentiate " << loop->getName() << ": the shape of carried value " << i
                              << " may change";
  return success();
}

SmallVector<Value> LoopAdjoint::buildInits() {
  SmallVector<Value> inits;
  for (unsigned i : active)
    inits.push_back(getOrZero(b, adjoints, loop.getResult(i)));
  for (Value value : captured)
    inits.push_back(getOrZero(b, adjoints, value));
  return inits;
}

/// The values that iteration `number` began with.
void LoopAdjoint::buildArguments(ReversedBody &reversed, Value number) {
  Value index = arith::MulIOp::create(b, number, loop.getStep());
  reversed.copies.map(loop.getInductionVar(), arith::AddIOp::create(b, loop.getLowerBound(), index).getResult());
  unsigned firstCopy = loop.getNumResults() - saved.size();
  for (auto [i, carried] : llvm::enumerate(loop.getRegionIterArgs())) {
    const auto *found = llvm::find(saved, static_cast<int64_t>(i));
    Value init = loop.getInitArgs()[i];
    bool isSaved = found != saved.end();
    Value copy =
        isSaved ? readCopy(b, loop.getResult(firstCopy + (found - saved.begin())), init, number) : buildUnread(b, init);
    reversed.copies.map(carried, copy);
    if (llvm::is_contained(active, i))
      reversed.arguments.push_back(copy);
  }
}

LogicalResult LoopAdjoint::build() {
  for (auto [i, carried] : llvm::enumerate(loop.getRegionIterArgs()))
    if (isRead(carried)) // copies are written alone
      saved.push_back(static_cast<int64_t>(i));
  if (failed(checkShapes()))
    return failure();
  findActive();
  captured = findCaptured(loop, adjoints);
  Value zero = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
  Value count = buildCount(b, loop);
  SmallVector<Value> inits = buildInits();
  if (inits.empty())
    return success();
  auto backward = scf::ForOp::create(b, zero, count, one, inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(backward.getBody());
  Value fromEnd = arith::AddIOp::create(b, backward.getInductionVar(), one);
  ReversedBody reversed{loop.getBody(), {}, {}, captured, {}, active, {}};
  ValueRange carried = backward.getRegionIterArgs();
  reversed.yielded = llvm::to_vector(carried.take_front(active.size()));
  reversed.sums = llvm::to_vector(carried.drop_front(active.size()));
  buildArguments(reversed, arith::SubIOp::create(b, count, fromEnd));
  FailureOr<Adjoints> local = reverse(b, reversed, adjoints);
  if (failed(local))
    return failure();
  SmallVector<Value> next;
  for (auto [value, type] : llvm::zip(reversed.arguments, carried.getTypes()))
    next.push_back(castTo(b, getOrZero(b, *local, value), type));
  for (Value value : captured)
    next.push_back(local->get(value));
  yield(b, next);
  b.setInsertionPointAfter(backward);
  for (auto [value, gradient] : llvm::zip(captured, backward.getResults().drop_front(active.size())))
    adjoints.replace(value, gradient);
  for (auto [i, gradient] : llvm::zip(active, backward.getResults()))
    adjoints.add(b, loop.getInitArgs()[i], gradient);
  return success();
}

//===- Branches ---------------------------------------------------------------------------------------------------===//

namespace {

struct IfModel : DifferentiableOpInterface::ExternalModel<IfModel, scf::IfOp> {
  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &b, Adjoints &adjoints) const {
    auto branch = cast<scf::IfOp>(op);
    SmallVector<Value> captured = findCaptured(op, adjoints), sums, gradients;
    SmallVector<unsigned> numbers;
    for (Value value : captured)
      sums.push_back(getOrZero(b, adjoints, value));
    for (OpResult result : branch->getResults())
      if (Value gradient = adjoints.get(result)) {
        numbers.push_back(result.getResultNumber());
        gradients.push_back(gradient);
      }
    auto backward = scf::IfOp::create(b, TypeRange(ValueRange(sums)), branch.getCondition(), /*addThenBlock=*/true,
                                      /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(b);
    for (auto [from, to] :
         {std::pair(branch.thenBlock(), backward.thenBlock()), std::pair(branch.elseBlock(), backward.elseBlock())}) {
      b.setInsertionPointToEnd(to);
      ReversedBody reversed{from, {}, {}, captured, sums, numbers, gradients};
      FailureOr<Adjoints> local = reverse(b, reversed, adjoints);
      if (failed(local))
        return failure();
      yield(b, llvm::map_to_vector(captured, [&](Value value) { return local->get(value); }));
    }
    for (auto [value, gradient] : llvm::zip_equal(captured, backward.getResults()))
      adjoints.replace(value, gradient);
    return success();
  }
};

} // namespace

void registerControlAdjoints(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, scf::SCFDialect *) {
    scf::ForOp::attachInterface<ForModel>(*context);
    scf::IfOp::attachInterface<IfModel>(*context);
  });
}

} // namespace hone
