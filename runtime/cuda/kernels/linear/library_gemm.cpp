// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMM by cuBLASLt: a product for each pair of planes, as in our own kernel, with f32 accumulation. What the
// library's epilogues lack is computed by reduce_epilogue.

#include "library_gemm.h"
#include "../kernel_device.h"
#include "../matrix_product.h"
#include "reduce_epilogue.h"

namespace hone::cuda {
namespace {

/// Rows of contiguous elements, a stride apart.
bool isMatrix(const RowView &view) { return view.inner == 1 && view.sizes[0] == 1; }

/// Whether the library's epilogue covers that of a layer of `products` products. Its activations are used for 16-bit
/// outputs only: its tanh is no more precise than those.
bool canFuseEpilogue(const LinearArguments &layer, int32_t products, int32_t type) {
  const RowView &y = layer.y;
  bool isNarrow = products == 1 && y.dtype == type;
  auto fits = [&](const RowView &view) { return !view.data || (view.dtype == y.dtype && isMatrix(view)); };
  bool isActivation =
      layer.activation == 0 || (isNarrow && !layer.residual.data && (layer.activation == 1 || layer.activation == 4));
  return isMatrix(y) && (y.dtype == HONE_F32 || isNarrow) && isActivation && !layer.factor.data && fits(layer.bias) &&
         fits(layer.residual);
}

/// x · Wᵀ of planes `x` and `weight` of the layer.
MatrixProduct productOf(const GemmArguments &args, int32_t x, int32_t weight, int32_t type) {
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

/// Accumulates the products in `target`; false where the library supports none for one of them.
bool multiplyPlanes(KernelDevice &device, const GemmArguments &args, const Planes &planes, const RowView &target,
                    bool isFused) {
  int32_t count = planes.x + planes.weight - 1;
  const LinearArguments &layer = args.linear;
  for (int32_t i = 0; i < count; ++i) { // hi · hi, then x's lo terms, then W's
    MatrixProduct product = productOf(args, i == 1 ? 1 : 0, i == 2 ? 1 : 0, planes.type);
    product.y = target.data;
    product.yStride = target.strides[2];
    product.yType = target.dtype;
    const RowView &addend = i > 0 ? target : layer.residual;
    if (i > 0 || isFused) {
      product.addend = addend.data;
      product.addendStride = addend.strides[2];
    }
    if (isFused && i + 1 == count) {
      product.bias = layer.bias.data;
      product.activation = layer.activation;
    }
    if (!device.multiply(product))
      return false;
  }
  return true;
}

} // namespace

bool runLibraryGemm(KernelDevice &device, const GemmArguments &args, const Planes &planes) {
  const LinearArguments &layer = args.linear;
  if (args.depth == 0)
    return false;
  bool isFused = canFuseEpilogue(layer, planes.x + planes.weight - 1, planes.type);
  bool isInPlace = isFused || (isMatrix(layer.y) && layer.y.dtype == HONE_F32);
  RowView target = layer.y;
  if (!isInPlace) {
    target.dtype = HONE_F32;
    target.strides[2] = layer.outputs;
    target.data = static_cast<char *>(device.acquire(static_cast<uint64_t>(4 * layer.rows * layer.outputs)));
  }
  bool isDone = multiplyPlanes(device, args, planes, target, isFused);
  if (isDone && !isFused)
    reduceEpilogue(device, {layer, reinterpret_cast<const float *>(target.data), target.strides[2], 0, 1});
  if (!isInPlace)
    device.release(target.data);
  return isDone;
}

} // namespace hone::cuda
