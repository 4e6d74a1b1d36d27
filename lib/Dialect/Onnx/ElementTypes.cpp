// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ONNX's numbers for element types, as `to` and `dtype` attributes and tensors give them.

#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/IR/Builders.h"
#include "onnx/onnx_pb.h"

using namespace mlir;

namespace hone::onnxir {

Type getElementType(int64_t dataType, MLIRContext *context) {
  Builder b(context);
  auto integer = [&](unsigned width, bool isUnsigned) -> Type {
    return isUnsigned ? IntegerType::get(context, width, IntegerType::Unsigned) : b.getIntegerType(width);
  };
  switch (dataType) {
  case ::onnx::TensorProto::FLOAT:
    return b.getF32Type();
  case ::onnx::TensorProto::FLOAT16:
    return b.getF16Type();
  case ::onnx::TensorProto::BFLOAT16:
    return b.getBF16Type();
  case ::onnx::TensorProto::DOUBLE:
    return b.getF64Type();
  case ::onnx::TensorProto::INT2:
    return integer(2, false);
  case ::onnx::TensorProto::UINT2:
    return integer(2, true);
  case ::onnx::TensorProto::INT4:
    return integer(4, false);
  case ::onnx::TensorProto::UINT4:
    return integer(4, true);
  case ::onnx::TensorProto::INT8:
    return integer(8, false);
  case ::onnx::TensorProto::UINT8:
    return integer(8, true);
  case ::onnx::TensorProto::INT16:
    return integer(16, false);
  case ::onnx::TensorProto::UINT16:
    return integer(16, true);
  case ::onnx::TensorProto::INT32:
    return integer(32, false);
  case ::onnx::TensorProto::UINT32:
    return integer(32, true);
  case ::onnx::TensorProto::INT64:
    return integer(64, false);
  case ::onnx::TensorProto::UINT64:
    return integer(64, true);
  case ::onnx::TensorProto::BOOL:
    return b.getI1Type();
  case ::onnx::TensorProto::FLOAT8E4M3FN:
    return Float8E4M3FNType::get(context);
  case ::onnx::TensorProto::FLOAT8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case ::onnx::TensorProto::FLOAT8E5M2:
    return Float8E5M2Type::get(context);
  case ::onnx::TensorProto::FLOAT8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case ::onnx::TensorProto::FLOAT8E8M0:
    return Float8E8M0FNUType::get(context);
  case ::onnx::TensorProto::FLOAT6E2M3:
    return Float6E2M3FNType::get(context);
  case ::onnx::TensorProto::FLOAT6E3M2:
    return Float6E3M2FNType::get(context);
  case ::onnx::TensorProto::FLOAT4E2M1:
    return Float4E2M1FNType::get(context);
  case ::onnx::TensorProto::COMPLEX64:
    return ComplexType::get(b.getF32Type());
  case ::onnx::TensorProto::COMPLEX128:
    return ComplexType::get(b.getF64Type());
  case ::onnx::TensorProto::STRING:
    return getStringType(context);
  default:
    return {};
  }
}

} // namespace hone::onnxir
