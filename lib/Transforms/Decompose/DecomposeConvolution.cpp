//===- DecomposeConvolution.cpp - decompositions of convolution and pool --------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As folds over windows of what is padded.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <limits>

using namespace mlir;
using namespace hone;

static ReassociationIndices range(int64_t begin, int64_t end) {
  return llvm::to_vector<2>(llvm::seq<int64_t>(begin, end));
}

namespace {

/// Windows over the spatial dimensions of a padded tensor.
template <typename Op> class Windows {
public:
  Windows(LocBuilder &builder, Op op, float padding)
      : sizes(getResultSizes(builder, op)), builder(builder), op(op), spatial(op.getKernel().size()),
        padded(pad(tensor::getMixedSizes(builder, op.getLoc(), op.getX()), padding)) {}

  /// The padded tensor, and where loops read it: `sample` and `channel`, and in order those of the result from `output` on and those of the
  /// kernel from `kernel` on.
  Value getPadded() const { return padded; }
  AffineMap getReads(unsigned loops, AffineExpr channel, unsigned output, unsigned kernel);

  Sizes sizes; // of the result

private:
  Value pad(ArrayRef<OpFoldResult> from, float padding);

  LocBuilder &builder;
  Op op;
  unsigned spatial;
  Value padded;
};

} // namespace

template <typename Op> Value Windows<Op>::pad(ArrayRef<OpFoldResult> from, float padding) {
  Sizes offsets(from.size(), builder.getIndexAttr(0)), whole(from), steps(from.size(), builder.getIndexAttr(1));
  for (unsigned i = 0; i < spatial; ++i) {
    int64_t before = op.getLow()[i], low = std::max<int64_t>(before, 0);
    int64_t extent = (op.getKernel()[i] - 1) * op.getDilations()[i] + 1;
    AffineExpr output = builder.getAffineSymbolExpr(0), input = builder.getAffineSymbolExpr(1);
    AffineExpr reached = (output - 1) * op.getStrides()[i] + extent + (low - before);
    auto most = AffineMap::get(0, 2, {reached, input + low}, builder.getContext());
    offsets[2 + i] = builder.getIndexAttr(low);
    whole[2 + i] = affine::makeComposedFoldedAffineMax(builder, op.getLoc(), most, {sizes[2 + i], from[2 + i]});
  }
  if (ArrayRef<OpFoldResult>(whole) == from)
    return op.getX();
  Value empty = tensor::EmptyOp::create(builder, whole, builder.getF32Type());
  Value filled = linalg::FillOp::create(builder, constantF32(builder, padding), empty).getResult(0);
  return tensor::InsertSliceOp::create(builder, op.getX(), filled, offsets, from, steps);
}

template <typename Op>
AffineMap Windows<Op>::getReads(unsigned loops, AffineExpr channel, unsigned output, unsigned kernel) {
  SmallVector<AffineExpr> places{builder.getAffineDimExpr(0), channel};
  for (unsigned i = 0; i < spatial; ++i)
    places.push_back(builder.getAffineDimExpr(output + i) * op.getStrides()[i] +
                     builder.getAffineDimExpr(kernel + i) * op.getDilations()[i] +
                     std::max<int64_t>(-op.getLow()[i], 0)); // negative padding leaves elements out
  return AffineMap::get(loops, 0, places, builder.getContext());
}

/// Folds over all loops but the first, which are those of `sizes`; `maps` are those of the inputs.
static Value foldLoops(LocBuilder &builder, const Sizes &sizes, unsigned loops, ValueRange inputs,
                       SmallVector<AffineMap> maps, float initial,
                       llvm::function_ref<Value(LocBuilder &, ValueRange, Value)> body) {
  Value empty = tensor::EmptyOp::create(builder, sizes, builder.getF32Type());
  Value init = linalg::FillOp::create(builder, constantF32(builder, initial), empty).getResult(0);
  SmallVector<utils::IteratorType> iterators(loops, utils::IteratorType::reduction);
  std::fill_n(iterators.begin(), sizes.size(), utils::IteratorType::parallel);
  maps.push_back(builder.getMultiDimIdentityMap(loops).getMajorSubMap(sizes.size()));
  auto generic = linalg::GenericOp::create(builder, init.getType(), inputs, init, maps, iterators,
                                           [&](OpBuilder &nested, Location loc, ValueRange args) {
                                             LocBuilder b(loc, nested);
                                             linalg::YieldOp::create(b, body(b, args.drop_back(), args.back()));
                                           });
  return generic.getResult(0);
}

//===- convolution ------------------------------------------------------------------------------------------------===//

namespace {
/// Channels of a group.
struct Channels {
  explicit Channels(ConvolutionOp op)
      : groups(op.getGroups()), outputs(op.getWeight().getType().getDimSize(0) / groups),
        inputs(op.getWeight().getType().getDimSize(1) / llvm::product_of(op.getKernel())) {}

  int64_t groups, outputs, inputs;
};
} // namespace

/// `[N, G, M, output...]`: loops n, g, m, o..., c, k...
static Value contract(LocBuilder &builder, ConvolutionOp op, Value weight) {
  Windows<ConvolutionOp> windows(builder, op, 0.0f);
  Channels channels(op);
  SmallVector<int64_t> shape{channels.groups, channels.outputs, channels.inputs};
  llvm::append_range(shape, op.getKernel());
  SmallVector<ReassociationIndices> parts{{0, 1}, range(2, shape.size())};
  weight = tensor::ExpandShapeOp::create(builder, RankedTensorType::get(shape, builder.getF32Type()), weight, parts);
  unsigned spatial = op.getKernel().size(), c = 3 + spatial, loops = c + 1 + spatial;
  AffineExpr channel = builder.getAffineDimExpr(1) * channels.inputs + builder.getAffineDimExpr(c);
  SmallVector<AffineExpr> weights{builder.getAffineDimExpr(1), builder.getAffineDimExpr(2)};
  for (unsigned loop = c; loop < loops; ++loop)
    weights.push_back(builder.getAffineDimExpr(loop));
  Sizes sizes{windows.sizes[0], builder.getIndexAttr(channels.groups), builder.getIndexAttr(channels.outputs)};
  sizes.append(windows.sizes.begin() + 2, windows.sizes.end());
  SmallVector<AffineMap> maps{windows.getReads(loops, channel, 3, c + 1),
                              AffineMap::get(loops, 0, weights, builder.getContext())};
  return foldLoops(builder, sizes, loops, {windows.getPadded(), weight}, maps, 0.0f,
                   [](LocBuilder &b, ValueRange args, Value sum) -> Value {
                     return arith::AddFOp::create(b, sum, arith::MulFOp::create(b, args[0], args[1]));
                   });
}

/// `[N, G, M, output...]` as the result has it.
static Value mergeGroups(LocBuilder &builder, Value product) {
  auto type = cast<RankedTensorType>(product.getType());
  SmallVector<ReassociationIndices> parts{{0}, {1, 2}};
  for (int64_t dim = 3; dim < type.getRank(); ++dim)
    parts.push_back({dim});
  return tensor::CollapseShapeOp::create(builder, product, parts);
}

static Value addBias(LocBuilder &builder, ConvolutionOp op, Value sum) {
  if (!op.getBias())
    return sum;
  Sizes sizes = tensor::getMixedSizes(builder, op.getLoc(), sum);
  return buildMap(builder, sizes, builder.getF32Type(), {{sum, loopRange(0, sizes.size())}, {op.getBias(), {1}}},
                  [](LocBuilder &b, ValueRange args) -> Value { return arith::AddFOp::create(b, args[0], args[1]); });
}

static Value decomposeConvolution(LocBuilder &builder, ConvolutionOp op) {
  Value sum = contract(builder, op, getPlain(builder, op.getWeight()));
  return addBias(builder, op, mergeGroups(builder, sum));
}

//===- pool -------------------------------------------------------------------------------------------------------===//

/// Loops n, c, o..., k..., of which the last are those of a tensor that nobody reads.
static Value decomposePool(LocBuilder &builder, PoolOp op) {
  bool isMax = op.getKind() == PoolKind::Max;
  float initial = isMax ? -std::numeric_limits<float>::infinity() : 0.0f;
  Windows<PoolOp> windows(builder, op, initial);
  unsigned spatial = op.getKernel().size(), kernel = 2 + spatial, loops = kernel + spatial;
  Value places = tensor::EmptyOp::create(builder, op.getKernel(), builder.getF32Type());
  SmallVector<AffineExpr> place;
  for (unsigned loop = kernel; loop < loops; ++loop)
    place.push_back(builder.getAffineDimExpr(loop));
  SmallVector<AffineMap> maps{windows.getReads(loops, builder.getAffineDimExpr(1), 2, kernel),
                              AffineMap::get(loops, 0, place, builder.getContext())};
  return foldLoops(builder, windows.sizes, loops, {windows.getPadded(), places}, maps, initial,
                   [&](LocBuilder &b, ValueRange args, Value sofar) -> Value {
                     if (isMax)
                       return arith::MaximumFOp::create(b, sofar, args[0]);
                     return arith::AddFOp::create(b, sofar, args[0]);
                   });
}

void hone::addConvolutionDecompositions(RewritePatternSet &patterns) {
  addDecomposition<ConvolutionOp>(patterns, decomposeConvolution);
  addDecomposition<PoolOp>(patterns, decomposePool);
}
