// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of what a loop nest reads at sums of its loops: of convolutions and poolings. Loops over the elements of a window stand
// around a nest over all others, which adds to a slice of the gradient with the strides of the windows.

#include "LinalgAdjoints.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace hone {

/// The coefficients of the loops in `expr` and, last, its constant; nothing where it is not linear.
static std::optional<SmallVector<int64_t>> getCoefficients(AffineExpr expr, unsigned loops) {
  SmallVector<int64_t> coefficients;
  if (failed(getFlattenedAffineExpr(expr, loops, 0, &coefficients)) || coefficients.size() != loops + 1)
    return std::nullopt;
  return coefficients;
}

/// Each dimension is read along one loop, of the results where there is such a one; the others that it is at are taps.
std::optional<WindowReads> findWindows(linalg::GenericOp op, AffineMap map) {
  unsigned loops = map.getNumDims();
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  auto isReduced = [&](unsigned loop) { return iterators[loop] == utils::IteratorType::reduction; };
  WindowReads reads{SmallVector<std::optional<unsigned>>(map.getNumResults()), SmallVector<bool>(loops)};
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    auto coefficients = getCoefficients(expr, loops);
    if (!coefficients)
      return std::nullopt;
    std::optional<unsigned> &along = reads.along[dim];
    for (unsigned loop = 0; loop < loops; ++loop)
      if ((*coefficients)[loop] > 0 && (!along || (isReduced(*along) && !isReduced(loop))))
        along = loop;
    for (unsigned loop = 0; loop < loops; ++loop)
      reads.isTap[loop] = reads.isTap[loop] || ((*coefficients)[loop] != 0 && along != loop);
  }
  for (auto [dim, along] : llvm::enumerate(reads.along))
    if (!along || (reads.isTap[*along] || llvm::is_contained(ArrayRef(reads.along).take_front(dim), along)))
      return std::nullopt;
  return reads;
}

/// What is read of an access while the taps are at `taps`: a slice of it, over the loops that are left.
FailureOr<Access> GenericAdjoint::sliceAt(const Access &access, const WindowReads &reads, ArrayRef<OpFoldResult> taps) {
  unsigned loops = access.map.getNumDims(), left = llvm::count(reads.isTap, false);
  Sizes offsets, sizes, strides;
  SmallVector<AffineExpr> places;
  for (AffineExpr expr : access.map.getResults()) {
    auto coefficients = getCoefficients(expr, loops);
    std::optional<unsigned> along;
    AffineExpr offset = builder.getAffineConstantExpr(coefficients ? coefficients->back() : 0);
    for (unsigned loop = 0; coefficients && loop < loops; ++loop) {
      if (int64_t factor = (*coefficients)[loop]; reads.isTap[loop])
        offset = offset + builder.getAffineSymbolExpr(loop) * factor;
      else if (factor < 0 || (factor > 0 && along))
        return failure();
      else if (factor > 0)
        along = loop;
    }
    if (!coefficients)
      return failure();
    offsets.push_back(affine::makeComposedFoldedAffineApply(
        builder, builder.getLoc(), AffineMap::get(0, loops, offset, builder.getContext()), taps));
    sizes.push_back(along ? loopSizes[*along] : OpFoldResult(builder.getIndexAttr(1)));
    strides.push_back(builder.getIndexAttr(along ? (*coefficients)[*along] : 1));
    places.push_back(along ? builder.getAffineDimExpr(numbers[*along]) : builder.getAffineConstantExpr(0));
  }
  Value slice = tensor::ExtractSliceOp::create(builder, access.tensor, offsets, sizes, strides);
  return Access{slice, AffineMap::get(left, 0, places, builder.getContext())};
}

/// The gradient of a tensor that is read in windows: for each place in the window, a part is added to what is read there.
LogicalResult GenericAdjoint::addWindows(OpOperand &operand, const WindowReads &reads) {
  Access read{operand.get(), op.getMatchingIndexingMap(&operand)};
  Type type = getElementTypeOrSelf(operand.get().getType());
  Value element = op.getMatchingBlockArgument(&operand);
  findActive({element});
  SmallVector<Value> lower, upper, steps;
  loopSizes.clear();
  numbers.clear();
  unsigned left = 0;
  for (auto [range, isTap] : llvm::zip_equal(
           cast<linalg::LinalgOp>(op.getOperation()).createLoopRanges(builder, builder.getLoc()), reads.isTap)) {
    loopSizes.push_back(range.size);
    numbers.push_back(left);
    if (!isTap) {
      ++left;
      continue;
    }
    lower.push_back(asIndex(builder, range.offset));
    upper.push_back(asIndex(builder, range.size));
    steps.push_back(asIndex(builder, range.stride));
  }
  SmallVector<AffineExpr> places;
  Sizes sizes;
  for (std::optional<unsigned> along : reads.along) {
    places.push_back(builder.getAffineDimExpr(numbers[*along]));
    sizes.push_back(loopSizes[*along]);
  }
  AffineMap chosen = AffineMap::get(left, 0, places, builder.getContext());
  SmallVector<Access> whole = accesses;
  LogicalResult status = success();
  auto gradientOf = [&](LocBuilder &b, ValueRange elements) {
    IRMapping copies;
    FailureOr<Value> gradient = buildGradient(b, elements, element, copies);
    status = failure(failed(status) || failed(gradient));
    return succeeded(gradient) ? *gradient : Value();
  };
  auto body = [&](OpBuilder &nested, Location, ValueRange loops, ValueRange carried) -> scf::ValueVector {
    OpBuilder::InsertionGuard guard(builder);
    builder.restoreInsertionPoint(nested.saveInsertionPoint());
    SmallVector<OpFoldResult> at(reads.isTap.size(), builder.getIndexAttr(0));
    taps.assign(reads.isTap.size(), Value());
    for (unsigned loop = 0, next = 0; loop < at.size(); ++loop)
      if (reads.isTap[loop])
        at[loop] = taps[loop] = loops[next++];
    FailureOr<Access> sum = sliceAt({carried.front(), read.map}, reads, at);
    for (Access &access : accesses) {
      FailureOr<Access> slice = sliceAt(access, reads, at);
      status = failure(failed(status) || failed(slice));
      access = succeeded(slice) ? *slice : access;
    }
    if (failed(status) || failed(sum))
      return {carried.front()};
    auto place = sum->tensor.getDefiningOp<tensor::ExtractSliceOp>();
    Value next = buildNest(chosen, type, sizes, gradientOf, sum->tensor);
    nested.restoreInsertionPoint(builder.saveInsertionPoint());
    return {tensor::InsertSliceOp::create(nested, builder.getLoc(), next, carried.front(), place.getMixedOffsets(),
                                          place.getMixedSizes(), place.getMixedStrides())};
  };
  Value gradient =
      scf::buildLoopNest(builder, builder.getLoc(), lower, upper, steps, {buildZeros(builder, operand.get())}, body)
          .results.front();
  accesses = whole;
  taps.clear();
  if (failed(status))
    return refuse("it reads operand #" + Twine(operand.getOperandNumber()) +
                  " in windows, and another one in a way that is none");
  adjoints.add(builder, operand.get(), gradient);
  return success();
}

} // namespace hone
