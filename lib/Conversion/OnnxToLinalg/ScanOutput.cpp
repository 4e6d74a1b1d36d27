// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values that a loop collects.

#include "ScanOutput.h"

#include "Indices.h"

using namespace mlir;

namespace hone::lowering {

/// Length of a growing buffer after its first element.
static constexpr int64_t kFirstLength = 4;

ScanOutput ScanOutput::create(Node &node, Type element, std::optional<Size> trips) {
  auto type = dyn_cast<RankedTensorType>(element);
  if (!type)
    return {};
  ScanOutput output;
  output.grows = !trips || !type.hasStaticShape();
  SmallVector<Size> sizes{output.grows ? node.math.constant(0) : *trips};
  SmallVector<int64_t> shape{output.grows ? ShapedType::kDynamic
                                          : IndexMath::getConstant(sizes[0]).value_or(ShapedType::kDynamic)};
  for (int64_t size : type.getShape()) {
    sizes.push_back(node.math.constant(ShapedType::isDynamic(size) ? 0 : size));
    shape.push_back(size);
  }
  Value buffer = node.empty(sizes, type.getElementType());
  auto wanted = RankedTensorType::get(shape, type.getElementType());
  output.initial = buffer.getType() == wanted ? buffer : tensor::CastOp::create(node.b, wanted, buffer).getResult();
  return output;
}

/// Checks that the elements of all iterations have the sizes of the first one.
static void checkSameSizes(Node &node, Value buffer, Value iteration, ArrayRef<Size> element) {
  Size zero = node.math.constant(0);
  Value first = compare(node, arith::CmpIPredicate::eq, iteration, zero);
  SmallVector<Size> have = node.sizes(buffer);
  for (auto [old, size] : llvm::zip(ArrayRef(have).drop_front(), element)) {
    Value same = compare(node, arith::CmpIPredicate::eq, old, size);
    node.check(node.math.simplify(node.b.createOrFold<arith::OrIOp>(first, same)),
               "expected every iteration to collect a tensor of the same sizes");
  }
}

/// `buffer`, or a longer one with the same first `count` elements if it is full.
static Value makeRoom(Node &node, Value buffer, Value count, ArrayRef<Size> element) {
  Builder &b = node.b;
  IndexMath &math = node.math;
  SmallVector<Size> old = node.sizes(buffer), larger(element);
  Size doubled = math.max(math.mul(old[0], math.constant(2)), math.constant(kFirstLength));
  larger.insert(larger.begin(), doubled);
  Value full = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, count, math.value(old[0]));
  auto type = cast<RankedTensorType>(buffer.getType());
  SmallVector<Value> dynamicSizes;
  for (auto [dim, size] : llvm::enumerate(larger))
    if (type.isDynamicDim(dim))
      dynamicSizes.push_back(math.value(size));
  auto choice = scf::IfOp::create(
      b, full,
      [&](OpBuilder &nested, Location loc) {
        SmallVector<Size> kept(old), offsets(old.size(), b.getIndexAttr(0)), ones(old.size(), b.getIndexAttr(1));
        kept[0] = count;
        Value room = tensor::EmptyOp::create(nested, loc, type, dynamicSizes);
        Value filled = tensor::ExtractSliceOp::create(nested, loc, buffer, offsets, kept, ones);
        scf::YieldOp::create(nested, loc,
                             tensor::InsertSliceOp::create(nested, loc, filled, room, offsets, kept, ones).getResult());
      },
      [&](OpBuilder &nested, Location loc) { scf::YieldOp::create(nested, loc, buffer); });
  node.lowerer.setSizes(choice.getResult(0), larger);
  return choice.getResult(0);
}

FailureOr<Value> ScanOutput::append(Node &node, Value buffer, Value iteration, Value value) const {
  auto type = buffer ? cast<RankedTensorType>(buffer.getType()) : RankedTensorType();
  auto element = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !element || element.getRank() + 1 != type.getRank() || element.getElementType() != type.getElementType())
    return node.fail() << "expected a collected value of the type that the body declares, but got " << value.getType();
  auto wanted = RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
  if (failed(verifyCompatibleShape(wanted.getShape(), element.getShape())))
    return node.fail() << "expected a collected value of type " << wanted << ", but got " << element;
  // A size that the buffer fixes may be a run-time one of the value, and the other way round.
  SmallVector<int64_t> shape;
  for (auto [mine, its] : llvm::zip(wanted.getShape(), element.getShape()))
    shape.push_back(ShapedType::isDynamic(mine) ? its : mine);
  value =
      node.lowerer.castTo(value, RankedTensorType::get(shape, type.getElementType()), "a value that a loop collects");
  SmallVector<Size> sizes = node.sizes(value);
  if (grows) {
    checkSameSizes(node, buffer, iteration, sizes);
    buffer = makeRoom(node, buffer, iteration, sizes);
  }
  SmallVector<Size> offsets(type.getRank(), node.math.constant(0)), ones(type.getRank(), node.math.constant(1)),
      extent(sizes);
  offsets[0] = iteration;
  extent.insert(extent.begin(), node.math.constant(1));
  return tensor::InsertSliceOp::create(node.b, value, buffer, offsets, extent, ones).getResult();
}

Value ScanOutput::finish(Node &node, Value buffer, Size trips) const {
  SmallVector<Size> sizes = node.sizes(buffer);
  SmallVector<Size> offsets(sizes.size(), node.math.constant(0)), ones(sizes.size(), node.math.constant(1));
  sizes[0] = trips;
  if (!grows) {
    node.lowerer.setSizes(buffer, sizes);
    return buffer;
  }
  return node.slice(buffer, offsets, sizes, ones);
}

} // namespace hone::lowering
