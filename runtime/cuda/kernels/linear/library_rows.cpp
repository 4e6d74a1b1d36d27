// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of many rows by the library of the machine: a product for each pair of planes that our own kernel multiplies too, sums in f32,
// and what the library's epilogues do not have in a kernel behind them.

#include "library_rows.h"
#include "../kernel_device.h"
#include "../matrix_product.h"
#include "finish_sums.h"

namespace hone::cuda {
namespace {

/// Rows whose numbers lie side by side, a stride apart.
bool isMatrix(const RowView &view) { return view.inner == 1 && view.sizes[0] == 1; }

/// Whether the library can finish sums of `products` products. Its activations are used for numbers of 16 bits alone: its tanh is no
/// better than those.
bool canFinish(const LinearArguments &layer, int32_t products, int32_t type) {
  const RowView &y = layer.y;
  bool isNarrow = products == 1 && y.dtype == type;
  auto fits = [&](const RowView &view) { return !view.data || (view.dtype == y.dtype && isMatrix(view)); };
  bool isActivation =
      layer.activation == 0 || (isNarrow && !layer.residual.data && (layer.activation == 1 || layer.activation == 4));
  return isMatrix(y) && (y.dtype == HONE_F32 || isNarrow) && isActivation && !layer.factor.data && fits(layer.bias) &&
         fits(layer.residual);
}

/// x · Wᵀ of planes `x` and `weight` of the layer.
MatrixProduct productOf(const ManyRowsArguments &args, int32_t x, int32_t weight, int32_t type) {
  MatrixProduct product = {};
  product.x = args.x.data + x * args.x.planeBytes;
  product.weight = args.weight.data + weight * args.weight.planeBytes;
  product.rows = args.linear.rows;
  product.outputs = args.linear.outputs;
  product.inputs = args.depth;
  product.xStride = args.x.rowBytes / 2;
  product.weightStride = args.weight.rowBytes / 2;
  product.type = type;
  return product;
}

/// Adds the products up in `target`; false where the library has no way for one of them.
bool multiplyPlanes(KernelDevice &device, const ManyRowsArguments &args, const Planes &planes, const RowView &target,
                    bool isFinished) {
  int32_t count = planes.x + planes.weight - 1;
  const LinearArguments &layer = args.linear;
  for (int32_t i = 0; i < count; ++i) { // (0, 0), then the rest of x, then the rest of W
    MatrixProduct product = productOf(args, i == 1 ? 1 : 0, i == 2 ? 1 : 0, planes.type);
    product.y = target.data;
    product.yStride = target.strides[2];
    product.yType = target.dtype;
    const RowView &addend = i > 0 ? target : layer.residual;
    if (i > 0 || isFinished) {
      product.addend = addend.data;
      product.addendStride = addend.strides[2];
    }
    if (isFinished && i + 1 == count) {
      product.bias = layer.bias.data;
      product.activation = layer.activation;
    }
    if (!device.multiply(product))
      return false;
  }
  return true;
}

} // namespace

bool multiplyByLibrary(KernelDevice &device, const ManyRowsArguments &args, const Planes &planes) {
  const LinearArguments &layer = args.linear;
  if (args.depth == 0)
    return false;
  bool isFinished = canFinish(layer, planes.x + planes.weight - 1, planes.type);
  bool isInPlace = isFinished || (isMatrix(layer.y) && layer.y.dtype == HONE_F32);
  RowView target = layer.y;
  if (!isInPlace) {
    target.dtype = HONE_F32;
    target.strides[2] = layer.outputs;
    target.data = static_cast<char *>(device.acquire(static_cast<uint64_t>(4 * layer.rows * layer.outputs)));
  }
  bool isDone = multiplyPlanes(device, args, planes, target, isFinished);
  if (isDone && !isFinished)
    finishSums(device, {layer, reinterpret_cast<const float *>(target.data), target.strides[2], 0, 1});
  if (!isInPlace)
    device.release(target.data);
  return isDone;
}

} // namespace hone::cuda
