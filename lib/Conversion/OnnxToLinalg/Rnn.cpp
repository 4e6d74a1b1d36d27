// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recurrent layers: RNN, GRU and LSTM. The products with the input are made for all time steps at once, then a loop runs
// over the steps; step s of a reversed sequence reads the s-th element from the sequence's end.

#include "ConstantWeights.h"
#include "Formula.h"
#include "Indices.h"
#include "Loops.h"
#include "RecurrentActivations.h"

using namespace mlir;

namespace hone::lowering {

namespace {

/// The parameters of one direction, in the type that is computed in.
struct Direction {
  Value weight;                     // [G * H, I]
  SmallVector<Value> recurrences;   // [G * H, H], cut as getProducts says
  Value weightBias, recurrenceBias; // [G * H] or null
  SmallVector<Value> peepholes;     // of gates i, o, f: [H]; or none
  SmallVector<RecurrentActivation> activations;
  bool isReversed = false;
};

class Recurrence {
public:
  Recurrence(Node &node, int64_t gates, unsigned activations)
      : node(node), b(node.b), gates(gates), weights(node, 1), recurrences(node, 2), activationCount(activations),
        clip(node.real("clip", 0)) {}
  virtual ~Recurrence() = default;
  LogicalResult lower();

protected:
  /// New states from the products with the input of one step and the old states.
  virtual FailureOr<SmallVector<Value>> step(const Direction &direction, Value input, ArrayRef<Value> states) = 0;

  Value gate(Value all, int64_t index) {
    return sliceAxis(node, all, 1, node.math.mul(b.getIndexAttr(index), hidden), hidden);
  }
  /// How many gates each product with a state makes, in order.
  virtual SmallVector<int64_t> getProducts() const { return {gates}; }

  Value rows(Value parameter, int64_t first, int64_t count);
  Value combine(ValueRange tensors, llvm::function_ref<Number(ArrayRef<Number>)> body);
  /// An activation of what `clip` bounds.
  Number activate(const RecurrentActivation &activation, Number x);

  Node &node;
  Builder &b;
  int64_t gates;
  Size batch, hidden;
  Type compute;

private:
  LogicalResult prepare();
  void fixBatch();
  LogicalResult checkOptionalInputs(Size directions, Size rows);
  SmallVector<Value> getMatrices(ConstantMatrices &constants, unsigned input, int64_t index, ArrayRef<int64_t> counts);
  FailureOr<Direction> getDirection(int64_t index, bool isReversed);
  Value part(Value tensor, int64_t index);
  Value initialState(unsigned input, int64_t direction);
  FailureOr<SmallVector<Value>> run(const Direction &direction, SmallVector<Value> states);
  Value readStep(Value projected, Value step, bool isReversed);
  Value keepFinished(Value fresh, Value old, Value step);
  Value order(Value outputs, bool isReversed);
  void setResults(ArrayRef<SmallVector<Value>> directions);

  ConstantMatrices weights, recurrences;
  unsigned activationCount;
  double clip;
  Size steps;
  Value x, lengths; // [T, B, I], [B] or null
};

} // namespace

Number Recurrence::activate(const RecurrentActivation &activation, Number x) {
  if (clip > 0)
    x = min(max(x, x.with(-clip)), x.with(clip));
  return activation(x);
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

Value Recurrence::combine(ValueRange tensors, llvm::function_ref<Number(ArrayRef<Number>)> body) {
  return node.elementwiseOver({batch, hidden}, tensors, compute, [&](Builder &inner, ValueRange values) {
    SmallVector<Number> numbers;
    for (Value value : values)
      numbers.push_back({&inner, value});
    return body(numbers).value;
  });
}

/// Gates [first, first + count) of a parameter of all gates; null of null.
Value Recurrence::rows(Value parameter, int64_t first, int64_t count) {
  if (!parameter)
    return {};
  return sliceAxis(node, parameter, 0, node.math.mul(b.getIndexAttr(first), hidden),
                   node.math.mul(b.getIndexAttr(count), hidden));
}

/// Element `index` of the first dimension, without it.
Value Recurrence::part(Value tensor, int64_t index) {
  Value slice = sliceAxis(node, tensor, 0, b.getIndexAttr(index), b.getIndexAttr(1));
  return node.reshape(slice, ArrayRef(node.sizes(slice)).drop_front());
}

/// Matrices of `counts` gates each, of the weight at `input`.
SmallVector<Value> Recurrence::getMatrices(ConstantMatrices &constants, unsigned input, int64_t index,
                                           ArrayRef<int64_t> counts) {
  SmallVector<Value> matrices;
  auto size = IndexMath::getConstant(hidden);
  Value all;
  for (int64_t first = 0; int64_t count : counts) {
    Value constant = size ? constants.get(index, first * *size, count * *size) : Value();
    if (!constant && !all)
      all = part(convertFloats(node, node.in(input), compute), index);
    matrices.push_back(constant ? constant : count == gates ? all : rows(all, first, count));
    first += count;
  }
  return matrices;
}

FailureOr<Direction> Recurrence::getDirection(int64_t index, bool isReversed) {
  Direction direction;
  direction.isReversed = isReversed;
  auto activations = getRecurrentActivations(node, activationCount, index);
  if (failed(activations))
    return failure();
  direction.activations = *activations;
  direction.weight = getMatrices(weights, 1, index, gates).front();
  direction.recurrences = getMatrices(recurrences, 2, index, getProducts());
  if (node.has(3)) {
    Value bias = part(convertFloats(node, node.in(3), compute), index);
    direction.weightBias = rows(bias, 0, gates);
    direction.recurrenceBias = rows(bias, gates, gates);
  }
  if (node.has(7)) {
    Value peepholes = part(convertFloats(node, node.in(7), compute), index);
    for (int64_t gate = 0; gate < 3; ++gate)
      direction.peepholes.push_back(rows(peepholes, gate, 1));
  }
  return direction;
}

LogicalResult Recurrence::prepare() {
  if (node.rank(0) != 3 || node.rank(1) != 3 || node.rank(2) != 3)
    return node.fail() << "expected X, W and R to have three dimensions, but got " << node.type(0) << ", "
                       << node.type(1) << " and " << node.type(2);
  compute = getAccumulator(node.element(0));
  x = convertFloats(node, node.in(0), compute);
  if (node.integer("layout"))
    x = node.transpose(x, {1, 0, 2});
  steps = node.size(x, 0);
  fixBatch();
  batch = node.size(x, 1);
  hidden = node.size(node.in(2), 2);
  lengths = node.in(4);
  int64_t directions = node.string("direction", "forward") == "bidirectional" ? 2 : 1;
  Size wanted = node.math.mul(hidden, b.getIndexAttr(gates));
  Size count = b.getIndexAttr(directions), inputs = node.size(x, 2);
  if (failed(requireShape(node, node.in(1), {count, wanted, inputs}, "W", "[directions, gates * hidden, inputs]")) ||
      failed(requireShape(node, node.in(2), {count, wanted, hidden}, "R", "[directions, gates * hidden, hidden]")))
    return failure();
  return checkOptionalInputs(count, wanted);
}

/// A batch that the initial states fix is that of all: sizes made of it are known, a Squeeze after the layer finds what is 1.
void Recurrence::fixBatch() {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> shape(type.getShape());
  for (unsigned input : {5, 6})
    if (ShapedType::isDynamic(shape[1]) && node.has(input) && node.rank(input) == 3)
      shape[1] = node.type(input).getDimSize(node.integer("layout") ? 0 : 1);
  x = node.lowerer.castTo(x, RankedTensorType::get(shape, type.getElementType()), "the input of a recurrent layer");
}

/// Inputs from the third on, each of which may be left out. A sequence has up to all steps.
LogicalResult Recurrence::checkOptionalInputs(Size directions, Size rows) {
  Size zero = b.getIndexAttr(0), two = b.getIndexAttr(2), three = b.getIndexAttr(3);
  auto check = [&](unsigned input, ArrayRef<Size> sizes, StringRef what, StringRef shape) {
    return node.has(input) ? requireShape(node, node.in(input), sizes, what, shape) : success();
  };
  SmallVector<Size> state = {directions, batch, hidden};
  StringRef stateShape = "[directions, batch, hidden]";
  if (node.integer("layout")) {
    std::swap(state[0], state[1]);
    stateShape = "[batch, directions, hidden]";
  }
  if (failed(check(3, {directions, node.math.mul(two, rows)}, "B", "[directions, 2 * gates * hidden]")) ||
      failed(check(4, batch, "sequence_lens", "[batch]")) || failed(check(5, state, "initial_h", stateShape)) ||
      failed(check(6, state, "initial_c", stateShape)) ||
      failed(check(7, {directions, node.math.mul(three, hidden)}, "P", "[directions, 3 * hidden]")))
    return failure();
  if (lengths)
    checkElements(node, lengths, zero, node.math.add(steps, b.getIndexAttr(1)),
                  "expected sequence_lens to be from 0 to the number of steps");
  return success();
}

Value Recurrence::initialState(unsigned input, int64_t direction) {
  if (!node.has(input))
    return node.filled({batch, hidden}, node.zero(compute));
  Value state = convertFloats(node, node.in(input), compute);
  state = part(node.integer("layout") ? node.transpose(state, {1, 0, 2}) : state, direction);
  SmallVector<int64_t> shape;
  for (Size size : {batch, hidden})
    shape.push_back(IndexMath::getConstant(size).value_or(ShapedType::kDynamic));
  return node.lowerer.castTo(state, RankedTensorType::get(shape, compute), "an initial state");
}

//===----------------------------------------------------------------------===//
// The loop over time
//===----------------------------------------------------------------------===//

/// Index of the element that comes `step` after the first, or before the last of a reversed sequence of `length`.
static Value getTime(Builder &b, Value step, Value length, bool isReversed) {
  if (!isReversed)
    return step;
  Value last = arith::SubIOp::create(b, length, arith::ConstantIndexOp::create(b, 1));
  Value time = arith::SubIOp::create(b, last, step);
  return arith::MaxSIOp::create(b, time, arith::ConstantIndexOp::create(b, 0));
}

static Value readLength(Builder &b, Value lengths, Value row) {
  return arith::IndexCastOp::create(b, b.getIndexType(), tensor::ExtractOp::create(b, lengths, row));
}

/// `projected[time of the step in each sequence, batch, :]`.
Value Recurrence::readStep(Value projected, Value step, bool isReversed) {
  Value all = node.math.value(steps);
  SmallVector<Size> sizes = node.sizes(projected);
  return node.generate({sizes[1], sizes[2]}, compute, [&](Builder &inner, ValueRange at) -> Value {
    Value length = lengths ? readLength(inner, lengths, at[0]) : all;
    Value time = getTime(inner, step, length, isReversed);
    return tensor::ExtractOp::create(inner, projected, ValueRange{time, at[0], at[1]});
  });
}

/// A sequence that has ended keeps its state.
Value Recurrence::keepFinished(Value fresh, Value old, Value step) {
  if (!lengths)
    return fresh;
  Value column = node.reshape(lengths, {batch, b.getIndexAttr(1)});
  return node.elementwiseOver({batch, hidden}, {fresh, old, column}, compute,
                              [&](Builder &inner, ValueRange v) -> Value {
                                Value length = arith::IndexCastOp::create(inner, inner.getIndexType(), v[2]);
                                Value runs = arith::CmpIOp::create(inner, arith::CmpIPredicate::slt, step, length);
                                return arith::SelectOp::create(inner, runs, v[0], v[1]);
                              });
}

/// The outputs of the steps in the order of time, 0 after a sequence's end.
Value Recurrence::order(Value outputs, bool isReversed) {
  if (!isReversed && !lengths)
    return outputs;
  Value all = node.math.value(steps), zero = node.zero(compute);
  return node.generate(node.sizes(outputs), compute, [&](Builder &inner, ValueRange at) -> Value {
    Value length = lengths ? readLength(inner, lengths, at[1]) : all;
    Value step = getTime(inner, at[0], length, isReversed);
    Value value = tensor::ExtractOp::create(inner, outputs, ValueRange{step, at[1], at[2]});
    Value runs = arith::CmpIOp::create(inner, arith::CmpIPredicate::slt, at[0], length);
    return arith::SelectOp::create(inner, runs, value, zero);
  });
}

/// The outputs `[T, B, H]` and the last states.
FailureOr<SmallVector<Value>> Recurrence::run(const Direction &direction, SmallVector<Value> states) {
  auto projected = applyLinear(node, x, direction.weight, direction.weightBias);
  if (failed(projected))
    return failure();
  SmallVector<Value> carried = {node.empty({steps, batch, hidden}, compute)};
  llvm::append_range(carried, states);
  Value first = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
  auto loop = scf::ForOp::create(b, first, node.math.value(steps), one, carried);
  {
    OpBuilder::InsertionGuard guard(b);
    IndexMath::RegionScope scope(node.math);
    b.setInsertionPointToStart(loop.getBody());
    Value outputs = loop.getRegionIterArg(0), at = loop.getInductionVar();
    SmallVector<Value> old(loop.getRegionIterArgs().drop_front());
    for (Value state : old)
      node.lowerer.setSizes(state, {batch, hidden});
    auto fresh = step(direction, readStep(*projected, at, direction.isReversed), old);
    if (failed(fresh))
      return failure();
    SmallVector<Size> offsets = {at, b.getIndexAttr(0), b.getIndexAttr(0)}, ones(3, b.getIndexAttr(1));
    SmallVector<Size> sizes = {b.getIndexAttr(1), batch, hidden};
    for (auto [value, previous] : llvm::zip(*fresh, old))
      value = keepFinished(value, previous, at);
    SmallVector<Value> yielded = {tensor::InsertSliceOp::create(b, fresh->front(), outputs, offsets, sizes, ones)};
    llvm::append_range(yielded, *fresh);
    scf::YieldOp::create(b, yielded);
  }
  SmallVector<Value> results(loop.getResults());
  node.lowerer.setSizes(results[0], {steps, batch, hidden});
  for (Value state : ArrayRef(results).drop_front())
    node.lowerer.setSizes(state, {batch, hidden});
  results[0] = order(results[0], direction.isReversed);
  return results;
}

/// Y [T, D, B, H] and the last states [D, B, H]; with layout 1 the batch is first.
void Recurrence::setResults(ArrayRef<SmallVector<Value>> directions) {
  bool batchFirst = node.integer("layout");
  for (size_t i = 0; i < directions.front().size(); ++i) {
    int64_t axis = i == 0 ? 1 : 0;
    SmallVector<Value> parts;
    for (const SmallVector<Value> &direction : directions) {
      SmallVector<Size> sizes = node.sizes(direction[i]);
      sizes.insert(sizes.begin() + axis, b.getIndexAttr(1));
      parts.push_back(node.reshape(convertFloats(node, direction[i], node.element(0)), sizes));
    }
    Value all = join(node, parts, axis);
    if (batchFirst)
      all = i == 0 ? node.transpose(all, {2, 0, 1, 3}) : node.transpose(all, {1, 0, 2});
    node.set(i, all);
  }
}

LogicalResult Recurrence::lower() {
  if (failed(prepare()))
    return failure();
  StringRef kind = node.string("direction", "forward");
  SmallVector<bool> reversals = {kind == "reverse"};
  if (kind == "bidirectional")
    reversals = {false, true};
  SmallVector<SmallVector<Value>> results;
  for (auto [i, isReversed] : llvm::enumerate(reversals)) {
    auto direction = getDirection(i, isReversed);
    if (failed(direction))
      return failure();
    SmallVector<Value> states = {initialState(5, i)};
    if (gates == 4)
      states.push_back(initialState(6, i));
    auto outputs = run(*direction, states);
    if (failed(outputs))
      return failure();
    results.push_back(*outputs);
  }
  setResults(results);
  return success();
}

//===----------------------------------------------------------------------===//
// The cells
//===----------------------------------------------------------------------===//

namespace {

/// H = f(x W + H R + b).
struct RnnCell : Recurrence {
  explicit RnnCell(Node &node) : Recurrence(node, 1, 1) {}

  FailureOr<SmallVector<Value>> step(const Direction &d, Value input, ArrayRef<Value> states) override {
    auto recurrent = applyLinear(node, states[0], d.recurrences[0], d.recurrenceBias);
    if (failed(recurrent))
      return failure();
    return SmallVector<Value>{
        combine({input, *recurrent}, [&](ArrayRef<Number> v) { return activate(d.activations[0], v[0] + v[1]); })};
  }
};

/// Gates z, r, h: H = (1 - z) h + z H, where r resets H before or after its product.
struct GruCell : Recurrence {
  explicit GruCell(Node &node) : Recurrence(node, 3, 2) {}

  SmallVector<int64_t> getProducts() const override { return {2, 1}; }

  FailureOr<SmallVector<Value>> step(const Direction &d, Value input, ArrayRef<Value> states) override {
    Value old = states[0];
    auto both = applyLinear(node, old, d.recurrences[0], rows(d.recurrenceBias, 0, 2));
    if (failed(both))
      return failure();
    auto makeGate = [&](int64_t index) {
      return combine({gate(input, index), gate(*both, index)},
                     [&](ArrayRef<Number> v) { return activate(d.activations[0], v[0] + v[1]); });
    };
    Value update = makeGate(0), reset = makeGate(1);
    bool resetsAfter = node.integer("linear_before_reset");
    Value read = resetsAfter ? old : combine({reset, old}, [](ArrayRef<Number> v) { return v[0] * v[1]; });
    auto recurrent = applyLinear(node, read, d.recurrences[1], rows(d.recurrenceBias, 2, 1));
    if (failed(recurrent))
      return failure();
    return SmallVector<Value>{combine({gate(input, 2), *recurrent, reset, update, old}, [&](ArrayRef<Number> v) {
      Number candidate = activate(d.activations[1], v[0] + (resetsAfter ? v[2] * v[1] : v[1]));
      return (1.0 - v[3]) * candidate + v[3] * v[4];
    })};
  }
};

/// Gates i, o, f, c: C = f C + i c, H = o h(C).
struct LstmCell : Recurrence {
  explicit LstmCell(Node &node) : Recurrence(node, 4, 3) {}

  FailureOr<SmallVector<Value>> step(const Direction &d, Value input, ArrayRef<Value> states) override {
    auto recurrent = applyLinear(node, states[0], d.recurrences[0], d.recurrenceBias);
    if (failed(recurrent))
      return failure();
    Value all = node.elementwiseOver(node.sizes(input), {input, *recurrent}, compute,
                                     [](Builder &inner, ValueRange v) { return addScalars(inner, v[0], v[1]); });
    bool peeks = !d.peepholes.empty(), couples = node.integer("input_forget");
    SmallVector<Value> operands = {gate(all, 0), gate(all, 2), gate(all, 3), states[1]};
    if (peeks)
      operands.append({d.peepholes[0], d.peepholes[2]});
    Value cell = combine(operands, [&](ArrayRef<Number> v) {
      Number in = activate(d.activations[0], peeks ? v[0] + v[4] * v[3] : v[0]);
      Number forget = couples ? 1.0 - in : activate(d.activations[0], peeks ? v[1] + v[5] * v[3] : v[1]);
      return forget * v[3] + in * activate(d.activations[1], v[2]);
    });
    operands = {gate(all, 1), cell};
    if (peeks)
      operands.push_back(d.peepholes[1]);
    Value output = combine(operands, [&](ArrayRef<Number> v) {
      Number out = activate(d.activations[0], peeks ? v[0] + v[2] * v[1] : v[0]);
      return out * d.activations[2](v[1]);
    });
    return SmallVector<Value>{output, cell};
  }
};

} // namespace

template <typename Cell>
static LogicalResult lowerCell(Node &node) {
  return Cell(node).lower();
}

void addRnnLowerings(LoweringTable &table) {
  table["onnx.RNN"] = lowerCell<RnnCell>;
  table["onnx.GRU"] = lowerCell<GruCell>;
  table["onnx.LSTM"] = lowerCell<LstmCell>;
}

} // namespace hone::lowering
