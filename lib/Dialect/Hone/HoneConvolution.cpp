//===- HoneConvolution.cpp - verifiers and shapes of convolution and pool ---------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Verify.h"

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/CheckedArithmetic.h"

#include <limits>

using namespace mlir;
using namespace hone;

//===- Windows ----------------------------------------------------------------------------------------------------===//

static LogicalResult verifyNumbers(Operation *op, StringRef name, ArrayRef<int64_t> numbers, size_t count,
                                   int64_t least) {
  if (numbers.size() != count) // convolution C1, pool C1
    return op->emitOpError() << "expected " << count << " numbers in '" << name << "', but got " << numbers.size();
  for (int64_t number : numbers)
    if (number < least) // convolution C2, pool C2
      return op->emitOpError() << "expected the numbers of '" << name << "' to be positive, but got " << number;
  return success();
}

template <typename Op> static LogicalResult verifyWindows(Op op) {
  constexpr int64_t any = std::numeric_limits<int64_t>::min();
  ArrayRef<int64_t> x = shapeOf(op.getX()), result = shapeOf(op.getResult());
  if (failed(verifyRank(op, "x", op.getX(), 3))) // convolution C1, pool C1
    return failure();
  if (result.size() != x.size())
    return op.emitOpError() << "expected the result to have " << x.size() << " dimensions, but got " << result.size();
  size_t spatial = x.size() - 2;
  if (failed(verifyNumbers(op, "kernel", op.getKernel(), spatial, 1)) ||
      failed(verifyNumbers(op, "strides", op.getStrides(), spatial, 1)) ||
      failed(verifyNumbers(op, "dilations", op.getDilations(), spatial, 1)) ||
      failed(verifyNumbers(op, "low", op.getLow(), spatial, any)) ||
      failed(verifySize(op, "the batch of the result", result[0], x[0])))
    return failure();
  int64_t open = llvm::count_if(result.drop_front(2), ShapedType::isDynamic), given = op.getSizes().size();
  if (open != given) // convolution C5, pool C4
    return op.emitOpError() << "expected " << open << " sizes of the result, but got " << given;
  return success();
}

/// The sizes of the result, of which `channels` is one.
template <typename Op>
static SmallVector<OpFoldResult> reifySizes(OpBuilder &builder, Op op, OpFoldResult channels) {
  SmallVector<OpFoldResult> sizes{tensor::getMixedSize(builder, op.getLoc(), op.getX(), 0), channels};
  auto next = op.getSizes().begin();
  for (int64_t size : shapeOf(op.getResult()).drop_front(2))
    sizes.push_back(ShapedType::isDynamic(size) ? OpFoldResult(*next++) : builder.getIndexAttr(size));
  for (auto [known, size] : llvm::zip(shapeOf(op.getResult()).take_front(2), sizes))
    if (!ShapedType::isDynamic(known))
      size = builder.getIndexAttr(known);
  return sizes;
}

//===- convolution ------------------------------------------------------------------------------------------------===//

/// The elements of a kernel, or as many as there can be.
static int64_t countPlaces(ArrayRef<int64_t> kernel) {
  int64_t places = 1;
  for (int64_t size : kernel)
    places = llvm::checkedMul(places, size).value_or(std::numeric_limits<int64_t>::max());
  return places;
}

LogicalResult ConvolutionOp::verify() {
  if (failed(verifyWindows(*this)))
    return failure();
  ArrayRef<int64_t> x = shapeOf(getX()), weight = shapeOf(getWeight()), result = shapeOf(getResult());
  int64_t groups = getGroups(), places = countPlaces(getKernel());
  if (groups < 1) // convolution C2
    return emitOpError() << "expected 'groups' to be positive, but got " << groups;
  if (!getWeight().getType().hasStaticShape()) // convolution C3
    return emitOpError() << "expected the sizes of the weight to be known, but got " << toText(weight);
  if (weight[1] % places != 0)
    return emitOpError() << "expected the columns of the weight to be a multiple of the kernel's " << places
                         << " elements, but got " << weight[1];
  if (!ShapedType::isDynamic(x[1]) && (x[1] % groups != 0 || x[1] / groups != weight[1] / places)) // convolution C3
    return emitOpError() << "expected the columns of the weight to be the " << x[1] << " channels of x over " << groups
                         << " groups, times the kernel's " << places << " elements, but got " << weight[1];
  if (weight[0] % groups != 0) // convolution C4
    return emitOpError() << "expected the rows of the weight to be a multiple of " << groups << " groups, but got "
                         << weight[0];
  if (failed(verifySize(*this, "the channels of the result", result[1], weight[0])))
    return failure();
  return verifyCount(*this, "bias", getBias(), weight[0]);
}

LogicalResult ConvolutionOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  shapes.push_back(reifySizes(builder, *this, tensor::getMixedSize(builder, getLoc(), getWeight(), 0)));
  return success();
}

//===- pool -------------------------------------------------------------------------------------------------------===//

LogicalResult PoolOp::verify() {
  if (failed(verifyWindows(*this)))
    return failure();
  return verifySize(*this, "the channels of the result", shapeOf(getResult())[1], shapeOf(getX())[1]); // pool C3
}

LogicalResult PoolOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  shapes.push_back(reifySizes(builder, *this, tensor::getMixedSize(builder, getLoc(), getX(), 1)));
  return success();
}
