// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loop and Scan. Bodies are lowered in place, so that they see the values around them; what leaves a body has the static sizes that hold
// after every iteration.

#include "Indices.h"
#include "ScanOutput.h"
#include "Subgraphs.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace hone::lowering {

//===----------------------------------------------------------------------===//
// Bodies of loops
//===----------------------------------------------------------------------===//

namespace {

/// The body of a Loop or Scan while it is lowered: what it carries from one iteration to the next, and what it collects.
struct LoopBody {
  Node &node;
  Region &region;
  /// Outputs of the subgraph before the carried values (the condition of Loop).
  unsigned leading;
  SmallVector<Value> initial;
  /// One an output that is collected.
  SmallVector<ScanOutput> outputs;
  /// Which sizes of carried values every iteration keeps.
  SmallVector<SmallVector<bool>> kept;
  /// True if something carried has a size that is fixed before the first iteration only.
  bool losesSizes = false;

  ValueRange yields() { return region.front().back().getOperands(); }
};

} // namespace

/// The type in which a value is carried: a size stays fixed if the body says that it gives the same back.
static Type getCarriedType(Value initial, Value argument, Value yielded) {
  auto type = cast<RankedTensorType>(initial.getType());
  auto declared = dyn_cast<RankedTensorType>(yielded.getType());
  SmallVector<int64_t> shape(type.getRank(), ShapedType::kDynamic);
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    bool same = declared && declared.getRank() == type.getRank() && declared.getDimSize(dim) == size;
    if (yielded == argument || same)
      shape[dim] = size;
  }
  return RankedTensorType::get(shape, type.getElementType());
}

/// The inputs of the subgraph in one iteration.
using Arguments = llvm::function_ref<SmallVector<Value>(Value iteration, Value condition, ValueRange states)>;

/// The types that values have where the file does not say it: of a draft of the body, in a branch that is never taken. Their sizes may
/// differ from those in the loop. A draft has no drafts of its own, or their number would double with each loop around another.
static FailureOr<SmallVector<Type>> draftTypes(LoopBody &body, Arguments getArguments) {
  Node &node = body.node;
  Builder &b = node.b;
  if (node.lowerer.isDraft)
    return node.fail()
           << "unsupported loop inside of a loop, both of which collect values whose rank the file does not "
              "say; supported: one of them";
  llvm::SaveAndRestore drafts(node.lowerer.isDraft, true);
  auto branch = scf::IfOp::create(b, arith::ConstantOp::create(b, b.getBoolAttr(false)), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  IndexMath::RegionScope scope(node.math);
  b.setInsertionPointToStart(branch.thenBlock());
  Value zero = arith::ConstantIndexOp::create(b, 0), yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  // In the loop, a size that is not in the type is not known.
  auto states = llvm::map_to_vector(
      body.initial, [&](Value value) -> Value { return tensor::CastOp::create(b, value.getType(), value); });
  auto values = node.lowerer.inlineRegion(body.region, getArguments(zero, yes, states));
  if (failed(values))
    return failure();
  b.setLoc(node.op->getLoc());
  return llvm::map_to_vector(*values, [](Value value) -> Type {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return value.getType();
    return RankedTensorType::get(SmallVector<int64_t>(type.getRank(), ShapedType::kDynamic), type.getElementType());
  });
}

/// The types of the collected values, as the file says them where it does.
static FailureOr<SmallVector<Type>> getCollectedTypes(LoopBody &body, Arguments getArguments) {
  size_t first = body.leading + body.initial.size();
  auto types = llvm::map_to_vector(body.yields().drop_front(first),
                                   [](Value yielded) -> Type { return withoutSign(yielded.getType()); });
  if (llvm::all_of(types, llvm::IsaPred<RankedTensorType>))
    return types;
  FailureOr<SmallVector<Type>> drafted = draftTypes(body, getArguments);
  if (failed(drafted))
    return failure();
  for (auto [type, found] : llvm::zip(types, ArrayRef(*drafted).drop_front(first)))
    type = isa<RankedTensorType>(type) ? type : found;
  return types;
}

/// Gives the carried values the types that they have in every iteration, and the collected ones room.
static LogicalResult prepareBody(LoopBody &body, unsigned leadingArguments, std::optional<Size> trips,
                                 Arguments getArguments) {
  Node &node = body.node;
  for (auto [i, value] : llvm::enumerate(body.initial)) {
    Type type =
        getCarriedType(value, body.region.front().getArgument(leadingArguments + i), body.yields()[body.leading + i]);
    SmallVector<Size> sizes = node.sizes(value);
    if (type != value.getType()) {
      value = tensor::CastOp::create(node.b, type, value);
      node.lowerer.setSizes(value, sizes);
      body.losesSizes = true;
    }
  }
  FailureOr<SmallVector<Type>> types = getCollectedTypes(body, getArguments);
  if (failed(types))
    return failure();
  for (Type type : *types) {
    body.outputs.push_back(ScanOutput::create(node, type, trips));
    body.losesSizes |= body.outputs.back().grows;
    if (!body.outputs.back().initial)
      return node.fail() << "unsupported collected value of type " << type << "; supported: tensors";
  }
  return success();
}

static SmallVector<Value> getInitialValues(const LoopBody &body) {
  SmallVector<Value> values = body.initial;
  for (const ScanOutput &output : body.outputs)
    values.push_back(output.initial);
  return values;
}

/// Lowers one iteration at the insertion point. `carried` are the carried values and the buffers of collected ones; the
/// next ones come back, after the leading outputs.
static FailureOr<SmallVector<Value>> lowerIteration(LoopBody &body, ValueRange arguments, ValueRange carried,
                                                    Value iteration) {
  Node &node = body.node;
  size_t count = body.initial.size();
  SmallVector<Value> inputs(arguments);
  auto values = node.lowerer.inlineRegion(body.region, inputs);
  if (failed(values))
    return failure();
  node.b.setLoc(node.op->getLoc());
  SmallVector<Value> next(values->begin(), values->begin() + body.leading);
  for (size_t i = 0; i < count; ++i) {
    Value state = carried[i], value = (*values)[body.leading + i];
    if (auto type = dyn_cast<RankedTensorType>(value.getType());
        type && type.getRank() == cast<RankedTensorType>(state.getType()).getRank()) {
      SmallVector<bool> &kept = body.kept.emplace_back();
      for (auto [before, after] : llvm::zip(node.sizes(state), node.sizes(value)))
        kept.push_back(node.math.equal(before, after));
    }
    Value cast = node.lowerer.castTo(value, state.getType(), "a value that a loop carries");
    if (cast.getType() != state.getType())
      return node.fail() << "expected carried value " << i << " to keep its type " << state.getType() << ", but got "
                         << value.getType();
    next.push_back(cast);
  }
  for (auto [i, output] : llvm::enumerate(body.outputs)) {
    auto buffer = output.append(node, carried[count + i], iteration, (*values)[body.leading + count + i]);
    if (failed(buffer))
      return failure();
    next.push_back(*buffer);
  }
  return next;
}

/// Sets the results of the node from those of the loop: carried values, then collected ones.
static void setLoopResults(LoopBody &body, ValueRange results, Size trips,
                           llvm::function_ref<Value(size_t, Value)> arrange) {
  Node &node = body.node;
  size_t count = body.initial.size();
  for (auto [i, initial] : llvm::enumerate(body.initial)) {
    SmallVector<Size> sizes = node.sizes(results[i]), before = node.sizes(initial);
    for (auto [size, old, keeps] : llvm::zip(sizes, before, body.kept[i]))
      size = keeps ? old : size;
    node.lowerer.setSizes(results[i], sizes);
    if (i < node.results())
      node.set(i, results[i]);
  }
  for (auto [i, output] : llvm::enumerate(body.outputs))
    if (count + i < node.results())
      node.set(count + i, arrange(i, output.finish(node, results[count + i], trips)));
}

/// The condition that the body gives, as a scalar.
static FailureOr<Value> getNextCondition(Node &node, Value condition) {
  auto type = dyn_cast<RankedTensorType>(condition.getType());
  if (!type || !type.hasStaticShape() || type.getNumElements() != 1)
    return node.fail() << "expected the condition of the body to be one bool, but got " << condition.getType();
  SmallVector<Value> at(type.getRank(), arith::ConstantIndexOp::create(node.b, 0));
  return tensor::ExtractOp::create(node.b, condition, at).getResult();
}

/// The block of a region of scf.while, which some builders make and some leave out.
static Block *enterBlock(Builder &b, Region &region, TypeRange types, ArrayRef<Location> locations) {
  if (region.empty())
    return b.createBlock(&region, {}, types, locations);
  b.setInsertionPointToEnd(&region.front());
  return &region.front();
}

/// A loop that its body may end, or `limit` does. It carries the number of the iteration and the condition before
/// everything else; all of that comes back.
static FailureOr<SmallVector<Value>> buildWhile(LoopBody &body, std::optional<Size> limit, Value condition,
                                                Arguments getArguments) {
  Node &node = body.node;
  Builder &b = node.b;
  SmallVector<Value> initial{arith::ConstantIndexOp::create(b, 0), condition};
  initial.append(getInitialValues(body));
  Value most = limit ? node.math.value(*limit) : Value();
  SmallVector<Location> locations(initial.size(), node.op->getLoc());
  auto loop = scf::WhileOp::create(b, ValueRange(initial).getTypes(), initial);
  OpBuilder::InsertionGuard guard(b);
  IndexMath::RegionScope scope(node.math);
  Block *before = enterBlock(b, loop.getBefore(), loop.getResultTypes(), locations);
  Value more = before->getArgument(1);
  if (most) {
    Value below = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, before->getArgument(0), most);
    more = arith::AndIOp::create(b, more, below);
  }
  scf::ConditionOp::create(b, more, before->getArguments());
  Block *after = enterBlock(b, loop.getAfter(), loop.getResultTypes(), locations);
  Value iteration = after->getArgument(0), now = after->getArgument(1);
  ValueRange carried = ValueRange(after->getArguments()).drop_front(2);
  node.math.markNonNegative(iteration);
  auto next =
      lowerIteration(body, getArguments(iteration, now, carried.take_front(body.initial.size())), carried, iteration);
  if (failed(next))
    return failure();
  FailureOr<Value> goOn = body.leading > 0 ? getNextCondition(node, next->front()) : FailureOr<Value>(now);
  if (failed(goOn))
    return failure();
  SmallVector<Value> yields{arith::AddIOp::create(b, iteration, arith::ConstantIndexOp::create(b, 1)), *goOn};
  yields.append(next->begin() + body.leading, next->end());
  scf::YieldOp::create(b, yields);
  node.math.markNonNegative(loop.getResult(0));
  return llvm::to_vector_of<Value>(loop.getResults());
}

/// A loop of a known number of iterations. `for` is not for tensors that lose a fixed size: its canonical form takes a
/// cast before the loop for a promise that all iterations keep.
static FailureOr<SmallVector<Value>> buildCounted(LoopBody &body, Size trips, Arguments getArguments) {
  Node &node = body.node;
  Builder &b = node.b;
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  if (body.losesSizes) {
    auto results = buildWhile(body, trips, yes, getArguments);
    if (succeeded(results))
      results->erase(results->begin(), results->begin() + 2);
    return results;
  }
  Value zero = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
  auto loop = scf::ForOp::create(b, zero, node.math.value(trips), one, getInitialValues(body));
  OpBuilder::InsertionGuard guard(b);
  Block *block = loop.getBody();
  if (!block->empty()) // no values: the builder has ended the block already
    block->back().erase();
  b.setInsertionPointToEnd(block);
  IndexMath::RegionScope scope(node.math);
  node.math.markNonNegative(loop.getInductionVar());
  ValueRange carried = loop.getRegionIterArgs();
  auto arguments = getArguments(loop.getInductionVar(), yes, carried.take_front(body.initial.size()));
  auto next = lowerIteration(body, arguments, carried, loop.getInductionVar());
  if (failed(next))
    return failure();
  scf::YieldOp::create(b, ArrayRef(*next).drop_front(body.leading));
  return llvm::to_vector_of<Value>(loop.getResults());
}

//===----------------------------------------------------------------------===//
// Loop
//===----------------------------------------------------------------------===//

/// A tensor with the type of an argument of a subgraph (rank 0, or one element) from a scalar.
static Value makeScalarTensor(Node &node, Value like, Value scalar) {
  auto declared = dyn_cast<RankedTensorType>(like.getType());
  SmallVector<int64_t> shape(declared ? declared.getRank() : 0, 1);
  return node.fromScalars(RankedTensorType::get(shape, scalar.getType()), scalar);
}

/// True if the condition that the body gives is the one that it got, or a constant that says to go on.
static bool goesOn(Value condition, Block &block) {
  while (Operation *op = condition.getDefiningOp()) {
    if (op->getName().getStringRef() == "onnx.Constant") {
      auto value = op->getAttrOfType<DenseElementsAttr>("value");
      return value && value.getElementType().isInteger(1) && value.isSplat() && value.getSplatValue<bool>();
    }
    if (op->getName().getStringRef() != "onnx.Identity")
      return false;
    condition = op->getOperand(0);
  }
  return condition == block.getArgument(1);
}

static LogicalResult buildLoop(LoopBody &body, std::optional<Size> limit, Value condition) {
  Node &node = body.node;
  Block &block = body.region.front();
  auto getArguments = [&](Value iteration, Value now, ValueRange states) {
    Value number = arith::IndexCastOp::create(node.b, node.b.getI64Type(), iteration);
    SmallVector<Value> arguments{makeScalarTensor(node, block.getArgument(0), number),
                                 makeScalarTensor(node, block.getArgument(1), now)};
    arguments.append(states.begin(), states.end());
    return arguments;
  };
  auto keep = [](size_t, Value value) { return value; };
  if (limit && goesOn(block.back().getOperand(0), block)) {
    Size trips = node.math.select(condition, *limit, node.math.constant(0));
    if (failed(prepareBody(body, 2, trips, getArguments)))
      return failure();
    auto results = buildCounted(body, trips, getArguments);
    if (failed(results))
      return failure();
    setLoopResults(body, *results, trips, keep);
    return success();
  }
  if (failed(prepareBody(body, 2, std::nullopt, getArguments)))
    return failure();
  auto results = buildWhile(body, limit, condition, getArguments);
  if (failed(results))
    return failure();
  setLoopResults(body, ArrayRef(*results).drop_front(2), results->front(), keep);
  return success();
}

static LogicalResult lowerLoop(Node &node) {
  size_t states = node.inputs() < 2 ? 0 : node.inputs() - 2;
  auto region = requireSubgraph(node, "body", 2 + states, 1 + states);
  if (failed(region))
    return failure();
  std::optional<Size> limit;
  if (node.has(0)) {
    auto given = getScalarIndex(node, 0);
    if (failed(given))
      return failure();
    limit = node.math.max(*given, node.math.constant(0));
  }
  FailureOr<Value> condition =
      node.has(1) ? getScalar(node, 1)
                  : FailureOr<Value>(arith::ConstantOp::create(node.b, node.b.getBoolAttr(true)).getResult());
  if (failed(condition))
    return failure();
  LoopBody body{node, **region, 1, {}, {}, {}, false};
  for (size_t i = 0; i < states; ++i) {
    if (!node.has(2 + i))
      return node.fail() << "expected carried value " << i << " to be given";
    body.initial.push_back(node.in(2 + i));
  }
  return buildLoop(body, limit, *condition);
}

//===----------------------------------------------------------------------===//
// Scan
//===----------------------------------------------------------------------===//

/// Entry `index` of a list attribute that is 0 where it is not given.
static int64_t getEntry(Node &node, StringRef attribute, size_t index) {
  auto values = node.integers(attribute);
  return values && index < values->size() ? (*values)[index] : 0;
}

/// The slice of scan input `input` for one iteration, without the scanned dimension.
static Value takeScanned(Node &node, Value input, int64_t axis, bool backward, Value index, Size trips) {
  IndexMath &math = node.math;
  SmallVector<Size> sizes = node.sizes(input);
  SmallVector<Size> offsets(sizes.size(), math.constant(0)), ones(sizes.size(), math.constant(1)), rest = sizes;
  offsets[axis] = backward ? math.sub(math.sub(trips, math.constant(1)), index) : Size(index);
  sizes[axis] = math.constant(1);
  rest.erase(rest.begin() + axis);
  return node.reshape(node.slice(input, offsets, sizes, ones), rest);
}

/// A collected output with its iterations in the order and the dimension that the node asks for.
static Value arrangeCollected(Node &node, Value collected, int64_t axis, bool backward) {
  SmallVector<Size> sizes = node.sizes(collected);
  if (backward) {
    Value last = node.math.value(node.math.sub(sizes[0], node.math.constant(1)));
    collected = node.generate(sizes, getElementTypeOrSelf(collected), [&](Builder &b, ValueRange at) -> Value {
      SmallVector<Value> from(at);
      from[0] = arith::SubIOp::create(b, last, at[0]);
      return tensor::ExtractOp::create(b, collected, from);
    });
  }
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(1, sizes.size()));
  order.insert(order.begin() + axis, 0);
  return node.transpose(collected, order);
}

static LogicalResult lowerScan(Node &node) {
  int64_t scanned = node.integer("num_scan_inputs"), states = static_cast<int64_t>(node.inputs()) - scanned;
  if (scanned < 1 || states < 0)
    return node.fail() << "expected num_scan_inputs to be in [1, " << node.inputs() << "], but got " << scanned;
  auto region = requireSubgraph(node, "body", node.inputs(), states);
  if (failed(region))
    return failure();
  SmallVector<int64_t> axes;
  Size trips;
  for (int64_t i = 0; i < scanned; ++i) {
    auto axis = node.axis(getEntry(node, "scan_input_axes", i), node.rank(states + i));
    if (failed(axis))
      return failure();
    axes.push_back(*axis);
    Size size = node.size(node.in(states + i), *axis);
    trips = i == 0 ? size : trips;
    node.check(compare(node, arith::CmpIPredicate::eq, trips, size), "expected the scanned sizes to agree");
  }
  LoopBody body{node, **region, 0, {}, {}, {}, false};
  for (int64_t i = 0; i < states; ++i)
    body.initial.push_back(node.in(i));
  auto getArguments = [&](Value index, Value, ValueRange values) {
    SmallVector<Value> arguments(values);
    for (int64_t i = 0; i < scanned; ++i)
      arguments.push_back(takeScanned(node, node.in(states + i), axes[i],
                                      getEntry(node, "scan_input_directions", i) != 0, index, trips));
    return arguments;
  };
  if (failed(prepareBody(body, 0, trips, getArguments)))
    return failure();
  SmallVector<int64_t> outputAxes;
  for (auto [i, output] : llvm::enumerate(body.outputs)) {
    auto axis =
        node.axis(getEntry(node, "scan_output_axes", i), cast<RankedTensorType>(output.initial.getType()).getRank());
    if (failed(axis))
      return failure();
    outputAxes.push_back(*axis);
  }
  auto results = buildCounted(body, trips, getArguments);
  if (failed(results))
    return failure();
  setLoopResults(body, *results, trips, [&](size_t i, Value collected) {
    return arrangeCollected(node, collected, outputAxes[i], getEntry(node, "scan_output_directions", i) != 0);
  });
  return success();
}

void addLoopLowerings(LoweringTable &table) {
  table["onnx.Loop"] = lowerLoop;
  table["onnx.Scan"] = lowerScan;
}

} // namespace hone::lowering
