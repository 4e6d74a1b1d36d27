// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sizes of sliding windows.

#include "Window.h"

#include "Indices.h"

using namespace mlir;

namespace hone::lowering {

FailureOr<SmallVector<int64_t>> getPerDimension(Node &node, StringRef attribute, size_t rank, int64_t otherwise) {
  auto values = node.integers(attribute);
  if (!values || values->empty())
    return SmallVector<int64_t>(rank, otherwise);
  if (values->size() != rank || llvm::any_of(*values, [&](int64_t value) { return value < otherwise; })) {
    node.fail() << "expected '" << attribute << "' to be " << rank << " integers of at least " << otherwise
                << ", but got " << *values;
    return failure();
  }
  return *values;
}

FailureOr<SmallVector<Size>> getKernelShape(Node &node, size_t rank) {
  auto values = getPerDimension(node, "kernel_shape", rank, 1);
  if (failed(values))
    return failure();
  SmallVector<Size> kernel;
  for (int64_t value : *values)
    kernel.push_back(node.b.getIndexAttr(value));
  return kernel;
}

Size Window::extent(Node &node, size_t dim) const {
  Size one = node.b.getIndexAttr(1), steps = node.math.sub(kernel[dim], one);
  return node.math.add(node.math.mul(steps, node.b.getIndexAttr(dilations[dim])), one);
}

bool Window::isPadded() const {
  return llvm::any_of(llvm::concat<const Size>(low, high), [](Size size) { return IndexMath::getConstant(size) != 0; });
}

SmallVector<Value> Window::getOpenSizes(Node &node) const {
  SmallVector<Value> open;
  for (Size size : output)
    if (!IndexMath::getConstant(size))
      open.push_back(node.math.value(size));
  return open;
}

std::optional<SmallVector<int64_t>> getConstants(ArrayRef<Size> sizes) {
  SmallVector<int64_t> numbers;
  for (Size size : sizes) {
    auto number = IndexMath::getConstant(size);
    if (!number)
      return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

Value Window::pad(Node &node, Value x, Value scalar) const {
  SmallVector<Size> sizes = node.sizes(x), before(2, node.b.getIndexAttr(0)), after = before;
  Size one = node.b.getIndexAttr(1);
  for (size_t i = 0; i < rank(); ++i) {
    before.push_back(low[i]);
    Size start = node.math.mul(node.math.sub(output[i], one), node.b.getIndexAttr(strides[i]));
    Size needed = node.math.sub(node.math.add(start, extent(node, i)), node.math.add(sizes[2 + i], low[i]));
    after.push_back(node.math.max(needed, node.b.getIndexAttr(0)));
  }
  return surround(node, x, before, after, scalar);
}

SmallVector<AffineExpr> Window::positions(Node &node, unsigned first, unsigned kernelFirst) const {
  SmallVector<AffineExpr> exprs;
  for (size_t i = 0; i < rank(); ++i)
    exprs.push_back(node.b.getAffineDimExpr(first + i) * strides[i] +
                    node.b.getAffineDimExpr(kernelFirst + i) * dilations[i]);
  return exprs;
}

LogicalResult requireWindows(Node &node, Size padded, Size extent, Size windows) {
  if (node.math.isAtLeast(windows, 0))
    return success();
  auto have = IndexMath::getConstant(padded), need = IndexMath::getConstant(extent);
  if (have && need)
    return node.fail() << "expected the padded input of size " << *have
                       << " to be at least as large as the kernel of size " << *need;
  node.check(compare(node, arith::CmpIPredicate::sge, windows, node.math.constant(0)),
             "expected the padded input of size {} to be at least as large as the kernel of size {}", {padded, extent});
  node.math.assume(windows, 0);
  return success();
}

/// Padding of auto_pad SAME_*: as many windows as strides fit in the input.
static void padToSame(Node &node, Window &window, ArrayRef<Size> spatial, bool isLower) {
  for (size_t i = 0; i < window.rank(); ++i) {
    Size stride = node.b.getIndexAttr(window.strides[i]), one = node.b.getIndexAttr(1);
    Size output = node.math.ceilDiv(spatial[i], stride);
    Size reach = node.math.add(node.math.mul(node.math.sub(output, one), stride), window.extent(node, i));
    Size total = node.math.max(node.math.sub(reach, spatial[i]), node.b.getIndexAttr(0));
    Size half = node.math.floorDiv(total, node.b.getIndexAttr(2)), rest = node.math.sub(total, half);
    window.low.push_back(isLower ? rest : half);
    window.high.push_back(isLower ? half : rest);
    window.output.push_back(output);
  }
}

/// How many windows fit; with ceil_mode also one that starts inside but ends outside.
static Size countWindows(Node &node, const Window &window, Size spatial, Size padded, size_t i) {
  Size stride = node.b.getIndexAttr(window.strides[i]), one = node.b.getIndexAttr(1);
  Size room = node.math.sub(padded, window.extent(node, i));
  if (!node.integer("ceil_mode"))
    return node.math.add(node.math.floorDiv(room, stride), one);
  Size fitting = node.math.add(node.math.ceilDiv(room, stride), one);
  Size starting = node.math.ceilDiv(node.math.add(spatial, window.low[i]), stride);
  return node.math.min(fitting, starting);
}

static LogicalResult padAsGiven(Node &node, Window &window, ArrayRef<Size> spatial, bool isValid) {
  SmallVector<int64_t> pads(2 * window.rank(), 0);
  if (auto given = node.integers("pads"); given && !isValid && !given->empty())
    pads = *given;
  if (pads.size() != 2 * window.rank())
    return node.fail() << "expected 'pads' to be " << 2 * window.rank() << " integers, but got " << pads;
  for (size_t i = 0; i < window.rank(); ++i) {
    window.low.push_back(node.b.getIndexAttr(pads[i]));
    window.high.push_back(node.b.getIndexAttr(pads[window.rank() + i]));
  }
  for (size_t i = 0; i < window.rank(); ++i) {
    Size padded = node.math.add(spatial[i], node.math.add(window.low[i], window.high[i]));
    window.output.push_back(countWindows(node, window, spatial[i], padded, i));
    if (failed(requireWindows(node, padded, window.extent(node, i), window.output.back())))
      return failure();
  }
  return success();
}

FailureOr<Window> getWindow(Node &node, Value x, ArrayRef<Size> kernel) {
  SmallVector<Size> sizes = node.sizes(x);
  if (sizes.size() < 3 || sizes.size() - 2 != kernel.size()) {
    node.fail() << "expected a batch, channels and " << kernel.size() << " spatial dimensions, but got " << x.getType();
    return failure();
  }
  Window window;
  window.kernel = llvm::to_vector(kernel);
  auto strides = getPerDimension(node, "strides", kernel.size(), 1);
  auto dilations = getPerDimension(node, "dilations", kernel.size(), 1);
  if (failed(strides) || failed(dilations))
    return failure();
  window.strides = *strides;
  window.dilations = *dilations;
  ArrayRef<Size> spatial = ArrayRef(sizes).drop_front(2);
  StringRef automatic = node.string("auto_pad", "NOTSET");
  if (automatic.starts_with("SAME_"))
    padToSame(node, window, spatial, automatic == "SAME_LOWER");
  else if (failed(padAsGiven(node, window, spatial, automatic == "VALID")))
    return failure();
  return window;
}

} // namespace hone::lowering
