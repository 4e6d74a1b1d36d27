// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Projections to N:M as loop nests. An element's rank is the number of those in its group that are kept before it.

#include "ProjectWeight.h"

#include "hone/Dialect/Hone/ParamBytes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

namespace {
/// A weight with a dimension for the members of a group.
class GroupedWeight {
public:
  GroupedWeight(LocBuilder &b, Value weight, const Projection &projection);

  Value keepLargest() const;
  Value shrink(float scale) const;

private:
  Value buildRanks() const;
  Value buildThresholds(Value ranks) const;
  Value merge(Value projected) const;

  LocBuilder &b;
  Type type; // of the weight
  int64_t kept, member;
  SmallVector<ReassociationIndices> reassociation;
  Value grouped;
  Sizes sizes;
};
} // namespace

static Value absolute(LocBuilder &b, Value x) { return math::AbsFOp::create(b, x); }

static Value isBelow(LocBuilder &b, Value rank, int64_t kept) {
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, rank, constantF32(b, static_cast<float>(kept)));
}

GroupedWeight::GroupedWeight(LocBuilder &b, Value weight, const Projection &projection)
    : b(b), type(weight.getType()), kept(projection.pattern.kept), member(projection.axis + 1) {
  auto matrix = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(matrix.getShape());
  shape[projection.axis] /= projection.pattern.width;
  shape.insert(shape.begin() + member, projection.pattern.width);
  reassociation =
      member == 1 ? SmallVector<ReassociationIndices>{{0, 1}, {2}} : SmallVector<ReassociationIndices>{{0}, {1, 2}};
  grouped = tensor::ExpandShapeOp::create(b, matrix.clone(shape), weight, reassociation);
  sizes = getAsIndexOpFoldResult(b.getContext(), shape);
}

Value GroupedWeight::buildRanks() const {
  SmallVector<int64_t> others = loopRange(0, 3);
  others[member] = 3;
  return buildReduce(b, Reduction::Sum, sizes, {{grouped, loopRange(0, 3)}, {grouped, others}},
                     [&](LocBuilder &inner, ValueRange args) -> Value {
                       Value mine = absolute(inner, args[0]), other = absolute(inner, args[1]);
                       Value isLarger = arith::CmpFOp::create(inner, arith::CmpFPredicate::OGT, other, mine);
                       Value isEqual = arith::CmpFOp::create(inner, arith::CmpFPredicate::OEQ, other, mine);
                       Value isBefore =
                           arith::CmpIOp::create(inner, arith::CmpIPredicate::ult, linalg::IndexOp::create(inner, 3),
                                                 linalg::IndexOp::create(inner, member));
                       Value goesFirst =
                           arith::OrIOp::create(inner, isLarger, arith::AndIOp::create(inner, isEqual, isBefore));
                       return arith::SelectOp::create(inner, goesFirst, constantF32(inner, 1), constantF32(inner, 0));
                     });
}

/// The largest magnitude of each group that is not kept.
Value GroupedWeight::buildThresholds(Value ranks) const {
  Sizes groups = sizes;
  groups.erase(groups.begin() + member);
  SmallVector<int64_t> loops = loopRange(0, 2);
  loops.insert(loops.begin() + member, 2);
  return buildReduce(b, Reduction::Max, groups, {{grouped, loops}, {ranks, loops}},
                     [&](LocBuilder &inner, ValueRange args) -> Value {
                       return arith::SelectOp::create(inner, isBelow(inner, args[1], kept), constantF32(inner, 0),
                                                      absolute(inner, args[0]));
                     });
}

Value GroupedWeight::merge(Value projected) const {
  return tensor::CollapseShapeOp::create(b, cast<RankedTensorType>(type), projected, reassociation);
}

Value GroupedWeight::keepLargest() const {
  SmallVector<int64_t> all = loopRange(0, 3);
  return merge(buildMap(b, sizes, b.getF32Type(), {{grouped, all}, {buildRanks(), all}},
                        [&](LocBuilder &inner, ValueRange args) -> Value {
                          return arith::SelectOp::create(inner, isBelow(inner, args[1], kept), args[0],
                                                         constantF32(inner, 0));
                        }));
}

/// scale · sign(w) · max(|w| - t, 0).
Value GroupedWeight::shrink(float scale) const {
  SmallVector<int64_t> all = loopRange(0, 3), group = all;
  group.erase(group.begin() + member);
  return merge(buildMap(b, sizes, b.getF32Type(), {{grouped, all}, {buildThresholds(buildRanks()), group}},
                        [&](LocBuilder &inner, ValueRange args) -> Value {
                          Value rest = arith::SubFOp::create(inner, absolute(inner, args[0]), args[1]);
                          Value positive = arith::MaximumFOp::create(inner, rest, constantF32(inner, 0));
                          Value scaled = arith::MulFOp::create(inner, positive, constantF32(inner, scale));
                          return math::CopySignOp::create(inner, scaled, args[0]);
                        }));
}

Value buildProjection(LocBuilder &b, Value weight, const Projection &projection) {
  GroupedWeight groups(b, weight, projection);
  return projection.scale ? groups.shrink(*projection.scale) : groups.keepLargest();
}

/// Whether `function` has products whose weight `param` is.
static bool multipliesWith(func::FuncOp function, ParamOp param) {
  return function
      .walk([&](LinearOp linear) {
        auto read = linear.getWeight().getDefiningOp<GetParamOp>();
        return read && read.getName() == param.getSymName() ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

FailureOr<Projection> getProjection(func::FuncOp function, ParamOp param, compress::NmPattern pattern, StringRef mode) {
  RankedTensorType type = param.getTensorType();
  if (type.getRank() != 2 || type.getDimSize(1) % pattern.width != 0 || !multipliesWith(function, param))
    return param.emitError() << "cannot train '" << param.getSymName() << "' with " << pattern.kept << " of "
                             << pattern.width << " inputs: it is no matrix of products with a multiple of "
                             << pattern.width << " inputs";
  auto stored = dyn_cast_or_null<StoredAttr>(type.getEncoding());
  Projection projection{pattern, stored && stored.getTransposed() ? 0 : 1, std::nullopt};
  if (mode != kSSte)
    return projection;
  FailureOr<std::vector<float>> elements = readElements(param);
  if (failed(elements))
    return failure();
  projection.scale =
      static_cast<float>(compress::getShrinkScale({*elements, type.getDimSize(0), type.getDimSize(1)}, pattern));
  return projection;
}

} // namespace hone
