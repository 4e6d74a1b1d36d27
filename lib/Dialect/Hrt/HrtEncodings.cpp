// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hrt.panels: the layout itself is the runtime's (runtime/cpu/packing), which writes and reads it.

#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "cpu/packing/layout.h"
#include "cpu/packing/pack_linear.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone::hrt {

static cpu::PackedFormat getFormat(Type type) {
  if (type.isF32())
    return cpu::PackedFormat::F32;
  return type.isF16() ? cpu::PackedFormat::F16 : cpu::PackedFormat::Bf16;
}

static cpu::LinearShape getLinearShape(ArrayRef<int64_t> shape) { return {shape[0], shape[1]}; }

LogicalResult PanelsAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, FloatType type) {
  if (!isa<Float32Type, Float16Type, BFloat16Type>(type)) // panels C1
    return emitError() << "unsupported type of packed elements " << type << "; supported: f32, f16, bf16";
  return success();
}

LogicalResult PanelsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                         llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != 2 || (elementType != getType() && !elementType.isF32())) // panels C2
    return emitError() << "expected a tensor in panels of " << getType() << " to have 2 dimensions and elements of f32"
                       << (getType().isF32() ? "" : " or the same") << ", but got " << shape.size() << " and "
                       << elementType;
  return success();
}

SmallVector<EncodingPlane> PanelsAttr::getPlanes(ArrayRef<int64_t> shape, Type) const {
  std::array<int64_t, 4> packed = cpu::packedLinearShape(getFormat(getType()), getLinearShape(shape));
  return {{"values", RankedTensorType::get(packed, getType())}};
}

LogicalResult PanelsAttr::pack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<char> dense,
                               ArrayRef<MutableArrayRef<char>> planes,
                               llvm::function_ref<InFlightDiagnostic()> emitError) const {
  SmallVector<char> rounded;
  if (elementType != getType()) {
    rounded.resize_for_overwrite(llvm::product_of(shape) * getType().getIntOrFloatBitWidth() / 8);
    MutableArrayRef<char> plane(rounded);
    if (failed(StoredAttr::get(getType()).pack(shape, elementType, dense, plane, emitError)))
      return failure();
    dense = rounded;
  }
  cpu::packLinearWeight(getFormat(getType()), getLinearShape(shape), {dense.data(), shape[1], 1},
                        {reinterpret_cast<uint8_t *>(planes[0].data()), planes[0].size()});
  return success();
}

namespace {
/// Where an element lies in the plane `[panels, steps, 16, elements]`.
struct Place {
  int64_t panel, step, output, element;
};
} // namespace

static Place getPlace(int64_t row, int64_t column, int64_t elements) {
  return {row / cpu::kPanelOutputs, column / elements, row % cpu::kPanelOutputs, column % elements};
}

void PanelsAttr::unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> planes,
                        MutableArrayRef<char> dense) const {
  std::array<int64_t, 4> packed = cpu::packedLinearShape(getFormat(getType()), getLinearShape(shape));
  int64_t bytes = getType().getIntOrFloatBitWidth() / 8;
  SmallVector<char> rows(llvm::product_of(shape) * bytes);
  for (int64_t row = 0; row < shape[0]; ++row)
    for (int64_t column = 0; column < shape[1]; ++column) {
      Place at = getPlace(row, column, packed[3]);
      int64_t from = ((at.panel * packed[1] + at.step) * packed[2] + at.output) * packed[3] + at.element;
      std::memcpy(rows.data() + (row * shape[1] + column) * bytes, planes[0].data() + from * bytes, bytes);
    }
  ArrayRef<char> plane(rows);
  StoredAttr::get(getType()).unpack(shape, elementType, plane, dense);
}

Value PanelsAttr::buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange planes,
                               ValueRange indices) const {
  auto constant = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(builder, loc, value); };
  Value outputs = constant(cpu::kPanelOutputs);
  Value elements = constant(cast<RankedTensorType>(planes[0].getType()).getDimSize(3));
  SmallVector<Value> place{arith::DivUIOp::create(builder, loc, indices[0], outputs),
                           arith::DivUIOp::create(builder, loc, indices[1], elements),
                           arith::RemUIOp::create(builder, loc, indices[0], outputs),
                           arith::RemUIOp::create(builder, loc, indices[1], elements)};
  Value element = tensor::ExtractOp::create(builder, loc, planes[0], place);
  return element.getType() == elementType ? element : arith::ExtFOp::create(builder, loc, elementType, element);
}

std::string PanelsAttr::getKernelSuffix() const {
  std::string suffix;
  llvm::raw_string_ostream(suffix) << getType();
  return suffix;
}

} // namespace hone::hrt
