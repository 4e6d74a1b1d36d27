// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that sample images at computed places or put windows back: RoiAlign, DeformConv, Col2Im.

#include "Formula.h"
#include "Indices.h"
#include "Window.h"

using namespace mlir;

namespace hone::lowering {

/// A bin of more samples than this has as many; they are far more than any image has elements.
static constexpr double kMostSamples = 1ull << 40;

static Value toIndex(Builder &b, Number x) {
  return arith::IndexCastOp::create(b, b.getIndexType(), arith::FPToSIOp::create(b, b.getI64Type(), x.value));
}

static Number toNumber(Builder &b, Value index, Type type) {
  return {&b, arith::SIToFPOp::create(b, type, arith::IndexCastOp::create(b, b.getI64Type(), index))};
}

//===----------------------------------------------------------------------===//
// RoiAlign
//===----------------------------------------------------------------------===//

namespace {

class RoiAlign {
public:
  explicit RoiAlign(Node &node)
      : node(node), half(node.string("coordinate_transformation_mode", "output_half_pixel") == "half_pixel"),
        takesMax(node.string("mode", "avg") == "max") {}
  LogicalResult lower();

private:
  /// One side of a bin: its first coordinate, its length, how many samples it has, and which of them may lie inside the image;
  /// the others are 0, however many they are.
  struct Side {
    Number start, length, samples;
    Value first, count;
  };
  Side getSide(Builder &b, Value region, Value bin, int64_t column, int64_t bins);
  Number sample(Builder &b, Value batch, Value channel, Number y, Number x);

  Node &node;
  bool half, takesMax;
  Type compute;
  Value height, width;
};

} // namespace

/// `x` between 0 and `limit`; 0 for NaN.
static Number clamp(Number x, Number limit) {
  Number least = select(x > 0.0, x, x.with(0));
  return select(least > limit, limit, least);
}

RoiAlign::Side RoiAlign::getSide(Builder &b, Value region, Value bin, int64_t column, int64_t bins) {
  auto edge = [&](int64_t at) {
    Value value = tensor::ExtractOp::create(b, node.in(1), ValueRange{region, arith::ConstantIndexOp::create(b, at)});
    return Number{&b, convertFloat(b, value, compute)} * node.real("spatial_scale", 1.0) - (half ? 0.5 : 0.0);
  };
  Number start = edge(column), extent = edge(column + 2) - start;
  if (!half)
    extent = max(extent, extent.with(1));
  Number length = extent / static_cast<double>(bins);
  int64_t ratio = node.integer("sampling_ratio");
  Number samples = ratio > 0 ? length.with(static_cast<double>(ratio))
                             : clamp(apply<math::CeilOp>(length), length.with(kMostSamples));
  Number begin = start + toNumber(b, bin, compute) * length, step = length / samples;
  Number size = toNumber(b, column == 0 ? width : height, compute);
  // One more on each side than needed, as quotients are rounded: every sample is asked again whether it is inside.
  Number first = clamp(apply<math::FloorOp>((-1.0 - begin) / step - 0.5) - 1.0, samples);
  Number end = clamp(apply<math::CeilOp>((size - begin) / step - 0.5) + 2.0, samples);
  Value from = toIndex(b, first), count = arith::SubIOp::create(b, toIndex(b, end), from);
  return {begin, length, samples, from, arith::MaxSIOp::create(b, count, arith::ConstantIndexOp::create(b, 0))};
}

/// Bilinear; 0 more than one element outside. With mode max it is the greatest of the four weighted neighbours.
Number RoiAlign::sample(Builder &b, Value batch, Value channel, Number y, Number x) {
  SmallVector<std::pair<Value, Number>> places[2]; // per side: index and weight of two neighbours
  Value outside;
  for (int i = 0; i < 2; ++i) {
    Number at = i == 0 ? y : x;
    Value size = i == 0 ? height : width;
    Number length = toNumber(b, size, compute), last = length - 1.0;
    Value out = arith::OrIOp::create(b, at<-1.0, at> length);
    outside = outside ? arith::OrIOp::create(b, outside, out).getResult() : out;
    Number inside = min(max(at, at.with(0)), last), low = apply<math::FloorOp>(inside), share = inside - low;
    places[i] = {{toIndex(b, low), 1.0 - share}, {toIndex(b, min(low + 1.0, last)), share}};
  }
  std::optional<Number> total;
  for (auto &[row, vertical] : places[0])
    for (auto &[column, horizontal] : places[1]) {
      Value pixel = tensor::ExtractOp::create(b, node.in(0), ValueRange{batch, channel, row, column});
      Number term = Number{&b, convertFloat(b, pixel, compute)} * (vertical * horizontal);
      total = !total ? term : takesMax ? max(*total, term) : *total + term;
    }
  return select(outside, total->with(0), *total);
}

LogicalResult RoiAlign::lower() {
  int64_t rows = node.integer("output_height", 1), columns = node.integer("output_width", 1);
  if (node.rank(0) != 4 || node.rank(1) != 2 || node.rank(2) != 1 || rows < 1 || columns < 1)
    return node.fail() << "expected X [N, C, H, W], rois [R, 4] and batch_indices [R], but got " << node.type(0) << ", "
                       << node.type(1) << " and " << node.type(2);
  Value x = node.in(0), regions = node.in(1);
  if (failed(
          requireEqual(node, node.size(regions, 0), node.size(node.in(2), 0), "the sizes of rois and batch_indices")) ||
      failed(requireEqual(node, node.size(regions, 1), node.b.getIndexAttr(4), "the coordinates of a region and 4")) ||
      failed(requireElements(node, {node.size(x, 2), node.size(x, 3)}, "the spatial dimensions of X")))
    return failure();
  checkElements(node, node.in(2), node.b.getIndexAttr(0), node.size(x, 0), "expected batch_indices inside the batch");
  compute = getAccumulator(node.element(0));
  height = node.math.value(node.size(node.in(0), 2));
  width = node.math.value(node.size(node.in(0), 3));
  SmallVector<Size> sizes = {node.size(node.in(1), 0), node.size(node.in(0), 1), node.b.getIndexAttr(rows),
                             node.b.getIndexAttr(columns)};
  node.set(0, node.generate(sizes, node.element(0), [&](Builder &b, ValueRange at) -> Value {
    Value batch = tensor::ExtractOp::create(b, node.in(2), at[0]);
    batch = arith::IndexCastOp::create(b, b.getIndexType(), batch);
    Side y = getSide(b, at[0], at[2], 1, rows), x = getSide(b, at[0], at[3], 0, columns);
    Value zero = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
    Value count = arith::MulIOp::create(b, y.count, x.count);
    Value initial =
        arith::ConstantOp::create(b, b.getFloatAttr(compute, takesMax ? -std::numeric_limits<double>::infinity() : 0));
    auto loop = scf::ForOp::create(
        b, zero, count, one, initial, [&](OpBuilder &nested, Location loc, Value i, ValueRange carried) {
          Builder inner(loc, nested);
          auto place = [&](Side side, Value step) {
            Number number = toNumber(inner, arith::AddIOp::create(inner, side.first, step), compute);
            return Number{&inner, side.start.value} + (number + 0.5) * side.length / side.samples;
          };
          Number vertical = place(y, arith::DivUIOp::create(inner, i, x.count));
          Number horizontal = place(x, arith::RemUIOp::create(inner, i, x.count));
          Number value = sample(inner, batch, at[1], vertical, horizontal), total{&inner, carried[0]};
          scf::YieldOp::create(inner, (takesMax ? max(total, value) : total + value).value);
        });
    Number result{&b, loop.getResult(0)}, all = y.samples * x.samples;
    if (takesMax)
      result = select(toNumber(b, count, compute) < all, max(result, result.with(0)), result);
    else
      result = result / all;
    return convertFloat(b, select(all > 0.0, result, result.with(0)).value, node.element(0));
  }));
  return success();
}

static LogicalResult lowerRoiAlign(Node &node) { return RoiAlign(node).lower(); }

//===----------------------------------------------------------------------===//
// DeformConv
//===----------------------------------------------------------------------===//

/// Bilinear sample of a plane; what lies outside is 0.
static Number sampleOrZero(Node &node, Builder &b, Value batch, Value channel, Number y, Number x, Type compute) {
  Number rows = apply<math::FloorOp>(y), columns = apply<math::FloorOp>(x), total = y.with(0);
  Value sizes[2] = {tensor::DimOp::create(b, node.in(0), 2), tensor::DimOp::create(b, node.in(0), 3)};
  for (int dy = 0; dy < 2; ++dy)
    for (int dx = 0; dx < 2; ++dx) {
      Number places[2] = {rows + dy, columns + dx}, weight = (1.0 - abs(y - places[0])) * (1.0 - abs(x - places[1]));
      SmallVector<Value> at = {batch, channel};
      Value inside;
      for (auto [place, size] : llvm::zip(places, sizes)) {
        Value index = toIndex(b, place), zero = arith::ConstantIndexOp::create(b, 0);
        Value isInside = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, index, size);
        inside = inside ? arith::AndIOp::create(b, inside, isInside).getResult() : isInside;
        Value last = arith::SubIOp::create(b, size, arith::ConstantIndexOp::create(b, 1));
        at.push_back(arith::MinSIOp::create(b, arith::MaxSIOp::create(b, index, zero), last));
      }
      Number pixel{&b, convertFloat(b, tensor::ExtractOp::create(b, node.in(0), at), compute)};
      total = total + select(inside, pixel * weight, total.with(0));
    }
  return total;
}

/// The sizes of all inputs follow from those of X [N, C, H, W] and W [M, C / group, kH, kW].
static LogicalResult checkDeformConv(Node &node, const Window &window, int64_t groups, int64_t offsetGroups) {
  SmallVector<Size> from = node.sizes(node.in(0)), shape = node.sizes(node.in(1));
  auto times = [&](Size size, int64_t factor) { return node.math.mul(size, node.b.getIndexAttr(factor)); };
  Size taps = times(node.math.mul(shape[2], shape[3]), offsetGroups);
  SmallVector<Size> sizes = {from[0], times(taps, 2), window.output[0], window.output[1]};
  if (failed(requireMultiple(node, shape[0], groups, "the features of W")) ||
      failed(requireMultiple(node, from[1], offsetGroups, "the channels of X")) ||
      failed(requireEqual(node, from[1], times(shape[1], groups), "the channels of X and of the groups of W")) ||
      failed(requireElements(node, {from[2], from[3]}, "the spatial dimensions of X")) ||
      failed(requireShape(node, node.in(2), sizes, "offset", "[N, offset_group * kH * kW * 2, oH, oW]")))
    return failure();
  sizes[1] = taps;
  if (node.has(4) && failed(requireShape(node, node.in(4), sizes, "mask", "[N, offset_group * kH * kW, oH, oW]")))
    return failure();
  return node.has(3) ? requireShape(node, node.in(3), shape[0], "the bias", "[M]") : success();
}

/// Convolution of two spatial dimensions whose samples are moved by offsets `[N, G * kh * kw * 2, oh, ow]`.
static LogicalResult lowerDeformConv(Node &node) {
  Value x = node.in(0), weight = node.in(1), offset = node.in(2), mask = node.in(4);
  if (node.rank(0) != 4 || node.rank(1) != 4 || node.rank(2) != 4 || (mask && node.rank(4) != 4))
    return node.fail() << "unsupported X of type " << x.getType() << "; supported: two spatial dimensions";
  SmallVector<Size> from = node.sizes(x), shape = node.sizes(weight);
  int64_t groups = node.integer("group", 1), offsetGroups = node.integer("offset_group", 1);
  auto window = getWindow(node, x, ArrayRef<Size>(shape).drop_front(2));
  if (failed(window) || groups < 1 || offsetGroups < 1)
    return failure();
  if (failed(checkDeformConv(node, *window, groups, offsetGroups)))
    return failure();
  Type element = node.element(0), compute = getAccumulator(element);
  auto value = [&](Size size) { return node.math.value(size); };
  Value perGroup = value(node.math.floorDiv(shape[0], node.b.getIndexAttr(groups))), channels = value(shape[1]);
  Value perOffset = value(node.math.floorDiv(from[1], node.b.getIndexAttr(offsetGroups)));
  Value kernel[2] = {value(window->kernel[0]), value(window->kernel[1])},
        low[2] = {value(window->low[0]), value(window->low[1])};
  SmallVector<Size> sizes = {from[0], shape[0], window->output[0], window->output[1]};
  SmallVector<Size> reduced = {shape[1], window->kernel[0], window->kernel[1]};
  Value sum =
      accumulate(node, sizes, reduced, {}, node.zero(compute), [&](Builder &b, ValueRange, Value total) -> Value {
        SmallVector<Value> at;
        for (int i = 0; i < 7; ++i)
          at.push_back(linalg::IndexOp::create(b, i));
        auto add = [&](Value l, Value r) -> Value { return arith::AddIOp::create(b, l, r); };
        auto times = [&](Value l, Value r) -> Value { return arith::MulIOp::create(b, l, r); };
        auto number = [&](int64_t n) -> Value { return arith::ConstantIndexOp::create(b, n); };
        Value channel = add(times(arith::DivUIOp::create(b, at[1], perGroup), channels), at[4]);
        Value group = arith::DivUIOp::create(b, channel, perOffset);
        Value tap = add(times(add(times(group, kernel[0]), at[5]), kernel[1]), at[6]);
        SmallVector<Number> place;
        for (int i = 0; i < 2; ++i) {
          Value regular =
              add(times(at[2 + i], number(window->strides[i])), times(at[5 + i], number(window->dilations[i])));
          Value plane = add(times(tap, number(2)), number(i));
          Value moved = tensor::ExtractOp::create(b, offset, ValueRange{at[0], plane, at[2], at[3]});
          place.push_back(toNumber(b, arith::SubIOp::create(b, regular, low[i]), compute) +
                          Number{&b, convertFloat(b, moved, compute)});
        }
        Number term = sampleOrZero(node, b, at[0], channel, place[0], place[1], compute);
        auto read = [&](Value tensor, ValueRange where) {
          return Number{&b, convertFloat(b, tensor::ExtractOp::create(b, tensor, where), compute)};
        };
        term = term * read(weight, {at[1], at[4], at[5], at[6]});
        if (mask)
          term = term * read(mask, {at[0], tap, at[2], at[3]});
        return (Number{&b, total} + term).value;
      });
  sum = convertFloats(node, sum, element);
  if (Value bias = node.in(3)) {
    Size one = node.b.getIndexAttr(1);
    sum = node.elementwiseOver(sizes, {sum, node.reshape(bias, {node.size(bias, 0), one, one})}, element,
                               [](Builder &b, ValueRange v) { return addScalars(b, v[0], v[1]); });
  }
  node.set(0, sum);
  return success();
}

//===----------------------------------------------------------------------===//
// Col2Im
//===----------------------------------------------------------------------===//

/// How many blocks begin in each dimension of the image, which must be as many as the input has, of as many elements.
static FailureOr<SmallVector<Size>> countBlocks(Node &node, ArrayRef<Size> image, ArrayRef<Size> block, Window window,
                                                ArrayRef<int64_t> pads) {
  IndexMath &math = node.math;
  SmallVector<Size> counts;
  window.kernel = llvm::to_vector(block);
  for (size_t i = 0; i < block.size(); ++i) {
    auto size = requireRange(node, block[i], 1, kMostElements, "the sizes of a block");
    Size extent = window.extent(node, i);
    Size padded = math.add(image[i], math.constant(pads[i] + pads[block.size() + i])), room = math.sub(padded, extent);
    if (failed(size) || failed(requireWindows(node, padded, extent, room)))
      return failure();
    counts.push_back(math.add(math.floorDiv(room, math.constant(window.strides[i])), math.constant(1)));
  }
  SmallVector<Size> from = node.sizes(node.in(0));
  Size taps = getProduct(node, block), channels = math.floorDiv(from[1], taps);
  if (failed(node.lowerer.requireSizes(node.op, block, node.element(0))) ||
      failed(requireEqual(node, math.mul(channels, taps), from[1], "the rows of the input and of whole blocks")) ||
      failed(requireEqual(node, getProduct(node, counts), from[2], "the blocks of the input and of the image")))
    return failure();
  return counts;
}

/// `[N, C * kernel, blocks]` added up into `[N, C, image...]`: each pixel gathers the windows that cover it.
static LogicalResult lowerCol2Im(Node &node) {
  auto image = getSizes(node, 1), block = getSizes(node, 2);
  if (failed(image) || failed(block))
    return failure();
  size_t rank = image->size();
  if (node.rank(0) != 3 || block->size() != rank || rank == 0)
    return node.fail()
           << "expected input [N, C * kernel, blocks] and an image and a block shape of one length, but got "
           << node.type(0);
  auto strides = getPerDimension(node, "strides", rank, 1), dilations = getPerDimension(node, "dilations", rank, 1);
  auto pads = getPerDimension(node, "pads", 2 * rank, 0);
  if (failed(strides) || failed(dilations) || failed(pads))
    return failure();
  auto blocks = countBlocks(node, *image, *block, Window{{}, *strides, *dilations, {}, {}, {}}, *pads);
  if (failed(blocks))
    return failure();
  Builder &b = node.b;
  SmallVector<Size> from = node.sizes(node.in(0));
  Size taps = getProduct(node, *block);
  SmallVector<Value> counts, kernel;
  for (size_t i = 0; i < rank; ++i) {
    counts.push_back(node.math.value((*blocks)[i]));
    kernel.push_back(node.math.value((*block)[i]));
  }
  SmallVector<Size> sizes = {from[0], node.math.floorDiv(from[1], taps)};
  llvm::append_range(sizes, *image);
  if (failed(requireElements(node, from[2], "the blocks of the input")))
    return failure();
  Type element = node.element(0);
  Value zero = node.zero(element), last = node.math.value(node.math.sub(from[2], b.getIndexAttr(1)));
  node.set(0, accumulate(node, sizes, *block, {}, zero, [&](Builder &inner, ValueRange, Value total) -> Value {
             auto loop = [&](size_t i) -> Value { return linalg::IndexOp::create(inner, i); };
             auto number = [&](int64_t n) -> Value { return arith::ConstantIndexOp::create(inner, n); };
             Value row = loop(1), column = number(0), isCovered;
             for (size_t i = 0; i < rank; ++i) {
               Value tap = loop(2 + rank + i);
               row = arith::AddIOp::create(inner, arith::MulIOp::create(inner, row, kernel[i]), tap);
               Value padded = arith::AddIOp::create(inner, loop(2 + i), number((*pads)[i]));
               Value shift = arith::MulIOp::create(inner, tap, number((*dilations)[i]));
               Value start = arith::SubIOp::create(inner, padded, shift), stride = number((*strides)[i]);
               Value step = arith::DivSIOp::create(inner, start, stride),
                     rest = arith::RemSIOp::create(inner, start, stride);
               Value isStart = arith::CmpIOp::create(inner, arith::CmpIPredicate::eq, rest, number(0));
               Value isInside = arith::CmpIOp::create(inner, arith::CmpIPredicate::ult, step, counts[i]);
               Value isWindow = arith::AndIOp::create(inner, isStart, isInside);
               isCovered = isCovered ? arith::AndIOp::create(inner, isCovered, isWindow).getResult() : isWindow;
               column = arith::AddIOp::create(inner, arith::MulIOp::create(inner, column, counts[i]), step);
             }
             column = arith::MinSIOp::create(inner, arith::MaxSIOp::create(inner, column, number(0)), last);
             Value value = tensor::ExtractOp::create(inner, node.in(0), ValueRange{loop(0), row, column});
             return addScalars(inner, total, arith::SelectOp::create(inner, isCovered, value, zero));
           }));
  return success();
}

void addRegionSampleLowerings(LoweringTable &table) {
  table["onnx.RoiAlign"] = lowerRoiAlign;
  table["onnx.DeformConv"] = lowerDeformConv;
  table["onnx.Col2Im"] = lowerCol2Im;
}

} // namespace hone::lowering
