// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolutions of floats: Conv and ConvTranspose.

#include "ConstantWeights.h"
#include "Convolve.h"

#include "hone/Dialect/Hone/HoneOps.h"

using namespace mlir;

namespace hone::lowering {

static Size one(Node &node) { return node.b.getIndexAttr(1); }
static Size nothing(Node &node) { return node.b.getIndexAttr(0); }

/// Sizes of the dimensions from `first` on.
static SmallVector<Size> getTrailing(Node &node, Value tensor, size_t first) {
  SmallVector<Size> sizes = node.sizes(tensor);
  return SmallVector<Size>(sizes.begin() + first, sizes.end());
}

/// The tensor with dimension `dim` of size G * n as two, [G, n].
static Value splitGroups(Node &node, Value tensor, size_t dim, int64_t groups) {
  SmallVector<Size> sizes = node.sizes(tensor);
  Size count = node.b.getIndexAttr(groups), each = node.math.floorDiv(sizes[dim], count);
  sizes[dim] = each;
  sizes.insert(sizes.begin() + dim, count);
  return node.reshape(tensor, sizes);
}

/// Correlation of padded `x[N, G, C, spatial...]` with `weight[G, M, C, kernel...]` (`isOutputSecond`) or
/// `weight[G, C, M, kernel...]`: `[N, G * M, output...]`.
static Value correlate(Node &node, Value x, Value weight, const Window &window, bool isOutputSecond) {
  SmallVector<Size> from = node.sizes(x), kernel = node.sizes(weight);
  unsigned rank = window.rank(), channel = 3 + rank, loops = channel + 1 + rank;
  auto dim = [&](unsigned loop) { return node.b.getAffineDimExpr(loop); };
  SmallVector<AffineExpr> inputs = {dim(0), dim(1), dim(channel)}, weights = {dim(1), dim(2), dim(channel)};
  if (!isOutputSecond)
    std::swap(weights[1], weights[2]);
  llvm::append_range(inputs, window.positions(node, 3, channel + 1));
  for (unsigned i = 0; i < rank; ++i)
    weights.push_back(dim(channel + 1 + i));
  SmallVector<Size> sizes = {from[0], from[1], kernel[isOutputSecond ? 1 : 2]}, reduced = {from[2]};
  llvm::append_range(sizes, window.output);
  llvm::append_range(reduced, window.kernel);
  MLIRContext *context = node.b.getContext();
  Value sum = sumProducts(node, sizes, reduced, {x, AffineMap::get(loops, 0, inputs, context)},
                          {weight, AffineMap::get(loops, 0, weights, context)});
  SmallVector<Size> merged = {sizes[0], node.math.mul(sizes[1], sizes[2])};
  llvm::append_range(merged, window.output);
  return node.reshape(sum, merged);
}

/// The convolution of `x[N, G * C, spatial...]` with `weight[G * M, C, kernel...]` as an operation of its own, in f32; null where the sizes
/// of the weight are not known.
static Value createConvolution(Node &node, Value x, Value weight, Value bias, const Window &window, int64_t groups) {
  auto kernel = getConstants(window.kernel), low = getConstants(window.low), shape = getConstants(node.sizes(weight));
  auto type = cast<RankedTensorType>(x.getType());
  if (!shape || !kernel || (*shape)[0] == 0 || (*shape)[1] == 0)
    return {};
  if (!low) { // only a call knows how much padding there is
    x = window.pad(node, x, node.zero(type.getElementType()));
    low = SmallVector<int64_t>(window.rank(), 0);
  }
  Type f32 = node.b.getF32Type();
  SmallVector<Size> sizes = {node.size(x, 0), node.b.getIndexAttr((*shape)[0])};
  llvm::append_range(sizes, window.output);
  Size columns = node.b.getIndexAttr(llvm::product_of(ArrayRef(*shape).drop_front()));
  weight = node.reshape(convertFloats(node, weight, f32), {node.b.getIndexAttr((*shape)[0]), columns});
  node.isBroken = node.isBroken || failed(node.lowerer.requireSizes(node.op, sizes, f32));
  Value result = ConvolutionOp::create(node.b, getTensorType(sizes, f32), convertFloats(node, x, f32), weight,
                                       bias ? convertFloats(node, bias, f32) : Value(), window.getOpenSizes(node),
                                       *kernel, window.strides, window.dilations, *low, groups, /*exact=*/false);
  node.lowerer.setSizes(result, sizes);
  return convertFloats(node, result, type.getElementType());
}

/// `tensor[N, M, spatial...]` plus `bias[M]`.
FailureOr<Value> addBias(Node &node, Value tensor, Value bias) {
  if (!bias)
    return tensor;
  SmallVector<Size> sizes = node.sizes(tensor), column(sizes.size() - 1, one(node));
  if (failed(requireShape(node, bias, sizes[1], "the bias", "[M]")))
    return failure();
  column[0] = sizes[1];
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  return node.elementwiseOver(sizes, {tensor, node.reshape(bias, column)}, element,
                              [](Builder &b, ValueRange v) { return addScalars(b, v[0], v[1]); });
}

static LogicalResult checkGroups(Node &node, Value x, Value weight, int64_t groups) {
  if (groups < 1)
    return node.fail() << "expected 'group' to be at least 1, but got " << groups;
  return failure(failed(requireMultiple(node, node.size(x, 1), groups, "the channels of the input")) ||
                 failed(requireMultiple(node, node.size(weight, 0), groups, "the channels of the weight")));
}

/// With `bias[M]`, unless that is null.
FailureOr<Value> convolve(Node &node, Value x, Value weight, Value bias) {
  int64_t groups = node.integer("group", 1);
  if (node.sizes(weight).size() < 3 || failed(checkGroups(node, x, weight, groups)))
    return failure();
  auto window = getWindow(node, x, getTrailing(node, weight, 2));
  if (failed(window))
    return failure();
  Size perGroup = node.math.floorDiv(node.size(x, 1), node.b.getIndexAttr(groups));
  if (failed(requireEqual(node, perGroup, node.size(weight, 1), "the channels of a group and of the weight")))
    return failure();
  if (bias && failed(requireShape(node, bias, node.size(weight, 0), "the bias", "[M]")))
    return failure();
  Type element = cast<RankedTensorType>(x.getType()).getElementType();
  if (isHoneFloat(element))
    if (Value result = createConvolution(node, x, weight, bias, *window, groups))
      return result;
  Value padded = splitGroups(node, window->pad(node, x, node.zero(element)), 1, groups);
  return addBias(node, correlate(node, padded, splitGroups(node, weight, 0, groups), *window, /*isOutputSecond=*/true),
                 bias);
}

static LogicalResult lowerConv(Node &node) {
  auto result = convolve(node, node.in(0), node.in(1), node.in(2));
  if (failed(result))
    return failure();
  node.set(0, *result);
  return success();
}

//===----------------------------------------------------------------------===//
// Transposed convolution
//===----------------------------------------------------------------------===//

/// The tensor with `low` and `high` zeros around each dimension, or with that many elements less where they are negative.
static Value padOrCut(Node &node, Value tensor, ArrayRef<Size> low, ArrayRef<Size> high) {
  SmallVector<Size> sizes = node.sizes(tensor), offsets, kept, before, after;
  SmallVector<Size> ones(sizes.size(), one(node));
  auto positive = [&](Size size) { return node.math.max(size, nothing(node)); };
  for (size_t i = 0; i < sizes.size(); ++i) {
    Size cutLow = positive(node.math.sub(nothing(node), low[i])),
         cutHigh = positive(node.math.sub(nothing(node), high[i]));
    offsets.push_back(cutLow);
    kept.push_back(node.math.sub(sizes[i], node.math.add(cutLow, cutHigh)));
    before.push_back(positive(low[i]));
    after.push_back(positive(high[i]));
  }
  bool cuts =
      !llvm::all_of(llvm::zip(sizes, kept), [&](auto p) { return node.math.equal(std::get<0>(p), std::get<1>(p)); });
  if (cuts)
    tensor = node.slice(tensor, offsets, kept, ones);
  return surround(node, tensor, before, after, node.zero(cast<RankedTensorType>(tensor.getType()).getElementType()));
}

/// The tensor with stride - 1 zeros between neighbours in each spatial dimension.
static Value spread(Node &node, Value x, ArrayRef<int64_t> strides) {
  if (llvm::all_of(strides, [](int64_t stride) { return stride == 1; }))
    return x;
  SmallVector<Size> from = node.sizes(x), to = from, steps(2, one(node)), offsets(from.size(), nothing(node));
  for (auto [i, stride] : llvm::enumerate(strides)) {
    Size gaps = node.math.sub(from[2 + i], one(node));
    to[2 + i] = node.math.add(node.math.mul(gaps, node.b.getIndexAttr(stride)), one(node));
    steps.push_back(node.b.getIndexAttr(stride));
  }
  Value zeros = node.filled(to, node.zero(cast<RankedTensorType>(x.getType()).getElementType()));
  Value result = tensor::InsertSliceOp::create(node.b, x, zeros, offsets, from, steps);
  node.lowerer.setSizes(result, to);
  return result;
}

/// The weight with each kernel dimension reversed.
static Value flip(Node &node, Value weight) {
  SmallVector<Size> sizes = node.sizes(weight);
  SmallVector<Value> last;
  for (Size size : ArrayRef(sizes).drop_front(2))
    last.push_back(node.math.value(node.math.sub(size, one(node))));
  return node.generate(sizes, cast<RankedTensorType>(weight.getType()).getElementType(),
                       [&](Builder &b, ValueRange at) {
                         SmallVector<Value> from(at.take_front(2));
                         for (auto [index, end] : llvm::zip(at.drop_front(2), last))
                           from.push_back(arith::SubIOp::create(b, end, index));
                         return Value(tensor::ExtractOp::create(b, weight, from));
                       });
}

/// Result sizes and the padding before, from attributes output_shape, pads and auto_pad.
static LogicalResult placeTransposed(Node &node, Window &window, ArrayRef<Size> spatial) {
  size_t rank = window.rank();
  auto extra = getPerDimension(node, "output_padding", rank, 0);
  auto pads = getPerDimension(node, "pads", 2 * rank, 0), shape = getPerDimension(node, "output_shape", rank, 0);
  if (failed(extra) || failed(pads) || failed(shape))
    return failure();
  StringRef automatic = node.string("auto_pad", "NOTSET");
  bool same = automatic.starts_with("SAME_"), given = node.hasAttribute("output_shape");
  for (size_t i = 0; i < rank; ++i) {
    Size stride = node.b.getIndexAttr(window.strides[i]);
    Size full = node.math.add(node.math.mul(node.math.sub(spatial[i], one(node)), stride), window.extent(node, i));
    full = node.math.add(full, node.b.getIndexAttr((*extra)[i]));
    if (same || given) {
      Size output = given ? Size(node.b.getIndexAttr((*shape)[i])) : node.math.mul(spatial[i], stride);
      Size total = node.math.max(node.math.sub(full, output), nothing(node));
      Size half = node.math.floorDiv(total, node.b.getIndexAttr(2));
      window.low.push_back(automatic == "SAME_UPPER" ? half : node.math.sub(total, half));
      window.output.push_back(output);
    } else {
      int64_t low = automatic == "VALID" ? 0 : (*pads)[i], high = automatic == "VALID" ? 0 : (*pads)[rank + i];
      window.low.push_back(node.b.getIndexAttr(low));
      window.output.push_back(node.math.sub(full, node.b.getIndexAttr(low + high)));
    }
  }
  return success();
}

namespace {
/// One of the convolutions that a transposed one is: of results whose place in y, plus the padding, has remainder `residue` modulo the
/// stride in each dimension. They read the taps of that remainder.
struct Phase {
  SmallVector<int64_t> residue, taps, low, first; // `first`: the place in y of the first result
  SmallVector<Size> sizes;

  bool isEmpty() const { return llvm::is_contained(taps, 0); }
};
} // namespace

static Phase getPhase(Node &node, const Window &window, ArrayRef<int64_t> kernel, ArrayRef<int64_t> low,
                      int64_t number) {
  Phase phase;
  for (size_t i = 0; i < window.rank(); ++i) {
    int64_t stride = window.strides[i], residue = number % stride;
    number /= stride;
    int64_t taps = residue < kernel[i] ? llvm::divideCeil(kernel[i] - residue, stride) : 0;
    // Result q of the phase is y[stride * q + residue - low], the sum over j of x[q - j] * weight[residue + stride * j].
    int64_t skipped = low[i] > residue ? llvm::divideCeil(low[i] - residue, stride) : 0;
    phase.residue.push_back(residue);
    phase.taps.push_back(taps);
    phase.low.push_back(taps - 1 - skipped);
    phase.first.push_back(stride * skipped + residue - low[i]);
    Size rest = node.math.max(node.math.sub(window.output[i], node.b.getIndexAttr(phase.first.back())), nothing(node));
    phase.sizes.push_back(node.math.ceilDiv(rest, node.b.getIndexAttr(stride)));
  }
  return phase;
}

/// The taps of a phase of `weight[G * C, M, kernel...]`, the last one first: `[G * M, C, taps...]`.
static Value getTaps(Node &node, Value weight, const Window &window, const Phase &phase, int64_t groups) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(weight.getType()).getShape();
  int64_t inputs = shape[0] / groups;
  SmallVector<Size> sizes, merged;
  for (int64_t size : {groups, shape[1], inputs})
    sizes.push_back(node.b.getIndexAttr(size));
  for (int64_t size : phase.taps)
    sizes.push_back(node.b.getIndexAttr(size));
  Value taps = node.generate(sizes, node.b.getF32Type(), [&](Builder &b, ValueRange at) -> Value {
    Value group = arith::MulIOp::create(b, at[0], arith::ConstantIndexOp::create(b, inputs));
    SmallVector<Value> from{arith::AddIOp::create(b, group, at[2]), at[1]};
    for (size_t i = 0; i < window.rank(); ++i) {
      int64_t last = phase.residue[i] + window.strides[i] * (phase.taps[i] - 1);
      Value step = arith::MulIOp::create(b, at[3 + i], arith::ConstantIndexOp::create(b, window.strides[i]));
      from.push_back(arith::SubIOp::create(b, arith::ConstantIndexOp::create(b, last), step));
    }
    return tensor::ExtractOp::create(b, weight, from);
  });
  merged = {node.b.getIndexAttr(groups * shape[1]), node.b.getIndexAttr(inputs)};
  llvm::append_range(merged, ArrayRef(sizes).drop_front(3));
  return node.reshape(taps, merged);
}

/// The same of phases of as many taps, one after the other, of a weight that is known: a parameter, which kernels have in panels.
static Value addTaps(ConstantEvaluator &constants, Node &node, const ConstantEvaluator::Array &weight,
                     const Window &window, ArrayRef<Phase> phases, int64_t groups, int64_t number) {
  ArrayRef<int64_t> taps = phases.front().taps;
  int64_t inputs = weight.shape[0] / groups, outputs = weight.shape[1], count = llvm::product_of(taps);
  SmallVector<int64_t> shape{static_cast<int64_t>(phases.size()) * groups * outputs, inputs};
  llvm::append_range(shape, taps);
  std::vector<float> elements;
  for (const Phase &phase : phases)
    for (int64_t output = 0; output < groups * outputs; ++output)
      for (int64_t input = 0; input < inputs; ++input)
        for (int64_t tap = 0; tap < count; ++tap) {
          SmallVector<int64_t> from{output / outputs * inputs + input, output % outputs};
          int64_t rest = tap, left = count;
          for (auto [i, size] : llvm::enumerate(taps)) {
            left /= size;
            from.push_back(phase.residue[i] + window.strides[i] * (size - 1 - rest / left));
            rest %= left;
          }
          elements.push_back(weight.elements[linearize(from, weight.shape)]);
        }
  return constants.addParam(node.op->getOperand(1), shape, elements, number);
}

/// Whether the phases read x by the same windows, and their channels together fill no more lanes than those of one take.
static bool areConvolvedTogether(ArrayRef<Phase> phases, int64_t groups, int64_t outputs) {
  constexpr int64_t lanes = 16;
  return groups == 1 && outputs * static_cast<int64_t>(phases.size()) <= lanes &&
         llvm::all_of(phases, [&](const Phase &phase) {
           return phase.taps == phases.front().taps && phase.low == phases.front().low;
         });
}

/// A transposed convolution in f32 as convolutions, one for each remainder of places modulo the strides; null where sizes of the weight
/// or of the padding are not known, or taps are dilated.
static Value convolvePhases(Node &node, Value x, Value weight, Value bias, const Window &window, int64_t groups) {
  auto kernel = getConstants(window.kernel), low = getConstants(window.low), shape = getConstants(node.sizes(weight));
  bool isDilated = llvm::any_of(window.dilations, [](int64_t dilation) { return dilation != 1; });
  constexpr int64_t most = 64; // more would make code larger than it is worth
  int64_t phases = llvm::product_of(window.strides);
  if (!kernel || !low || !shape || isDilated || phases > most || llvm::is_contained(*shape, 0))
    return {};
  Type f32 = node.b.getF32Type(), element = cast<RankedTensorType>(x.getType()).getElementType();
  x = convertFloats(node, x, f32);
  weight = convertFloats(node, weight, f32);
  int64_t outputs = groups * (*shape)[1];
  SmallVector<Size> sizes{node.size(x, 0), node.b.getIndexAttr(outputs)}, steps(2, one(node));
  llvm::append_range(sizes, window.output);
  for (int64_t stride : window.strides)
    steps.push_back(node.b.getIndexAttr(stride));
  node.isBroken = node.isBroken || failed(node.lowerer.requireSizes(node.op, sizes, f32));
  ConstantEvaluator constants(node);
  auto known = constants.evaluate(node.op->getOperand(1));
  auto convolve = [&](ArrayRef<Phase> phases, int64_t number, Value added) {
    const Phase &phase = phases.front(); // the others have no more results
    Window part{{}, SmallVector<int64_t>(window.rank(), 1), window.dilations, {}, {}, phase.sizes};
    for (auto [taps, before] : llvm::zip(phase.taps, phase.low)) {
      part.kernel.push_back(node.b.getIndexAttr(taps));
      part.low.push_back(node.b.getIndexAttr(before));
    }
    Value taps = known ? addTaps(constants, node, *known, window, phases, groups, number)
                       : getTaps(node, weight, window, phase, groups);
    return createConvolution(node, x, taps, added, part, groups);
  };
  std::vector<Phase> all;
  for (int64_t number = 0; number < phases; ++number)
    all.push_back(getPhase(node, window, *kernel, *low, number));
  if (phases == 1)
    return convertFloats(node, convolve(all, 0, bias), element);
  bool isTogether = known && !bias && areConvolvedTogether(all, groups, outputs);
  Value together = isTogether ? convolve(all, 0, Value()) : Value();
  Value result = node.empty(sizes, f32);
  if (llvm::any_of(all, [](const Phase &phase) { return phase.isEmpty(); })) { // places that no tap reaches
    auto biased = addBias(node, node.filled(sizes, node.zero(f32)), bias ? convertFloats(node, bias, f32) : bias);
    if (failed(biased))
      return {};
    result = *biased;
  }
  for (auto [number, phase] : llvm::enumerate(all)) {
    if (phase.isEmpty())
      continue;
    SmallVector<Size> offsets(2, nothing(node)), parts(ArrayRef(sizes).take_front(2));
    for (auto [first, size] : llvm::zip(phase.first, phase.sizes)) {
      offsets.push_back(node.b.getIndexAttr(first));
      parts.push_back(size);
    }
    Value part;
    if (isTogether) {
      SmallVector<Size> from(offsets.size(), nothing(node));
      from[1] = node.b.getIndexAttr(static_cast<int64_t>(number) * outputs);
      part = tensor::ExtractSliceOp::create(node.b, together, from, parts, SmallVector<Size>(parts.size(), one(node)));
    } else {
      part = convolve(phase, number, bias);
    }
    result = tensor::InsertSliceOp::create(node.b, part, result, offsets, parts, steps);
    node.lowerer.setSizes(result, sizes);
  }
  return convertFloats(node, result, element);
}

/// The correlation of the spread input with the flipped kernel.
static Value correlateSpread(Node &node, Value x, Value weight, Window window, int64_t groups) {
  Value wide = spread(node, x, window.strides);
  SmallVector<Size> before(2, nothing(node)), after = before, sizes = node.sizes(wide);
  for (size_t i = 0; i < window.rank(); ++i) {
    Size reach = node.math.sub(window.extent(node, i), one(node));
    before.push_back(node.math.sub(reach, window.low[i]));
    Size needed = node.math.add(window.output[i], reach);
    after.push_back(node.math.sub(needed, node.math.add(before.back(), sizes[2 + i])));
  }
  wide = splitGroups(node, padOrCut(node, wide, before, after), 1, groups);
  window.strides.assign(window.rank(), 1);
  return correlate(node, wide, splitGroups(node, flip(node, weight), 0, groups), window, /*isOutputSecond=*/false);
}

/// `[N, C, spatial...]` and `weight[C, M / groups, kernel...]`.
static LogicalResult lowerConvTranspose(Node &node) {
  Value x = node.in(0), weight = node.in(1), bias = node.in(2);
  size_t rank = node.rank(0) - 2;
  int64_t groups = node.integer("group", 1);
  if (node.rank(0) < 3 || node.rank(0) != node.rank(1))
    return node.fail() << "expected X and W to have the same rank of at least 3, but got " << x.getType() << " and "
                       << weight.getType();
  if (failed(checkGroups(node, x, weight, groups)) ||
      failed(requireEqual(node, node.size(x, 1), node.size(weight, 0), "the channels of X and W")))
    return failure();
  Size outputs = node.math.mul(node.size(weight, 1), node.b.getIndexAttr(groups));
  if (bias && failed(requireShape(node, bias, outputs, "the bias", "[M]")))
    return failure();
  auto strides = getPerDimension(node, "strides", rank, 1), dilations = getPerDimension(node, "dilations", rank, 1);
  if (failed(strides) || failed(dilations))
    return failure();
  Window window{getTrailing(node, weight, 2), *strides, *dilations, {}, {}, {}};
  if (failed(placeTransposed(node, window, getTrailing(node, x, 2))))
    return failure();
  Value result;
  if (isHoneFloat(cast<RankedTensorType>(x.getType()).getElementType()))
    result = convolvePhases(node, x, weight, bias, window, groups);
  if (!result) {
    auto sum = addBias(node, correlateSpread(node, x, weight, window, groups), bias);
    if (failed(sum))
      return failure();
    result = *sum;
  }
  node.set(0, result);
  return success();
}

void addConvLowerings(LoweringTable &table) {
  table["onnx.Conv"] = lowerConv;
  table["onnx.ConvTranspose"] = lowerConvTranspose;
}

} // namespace hone::lowering
