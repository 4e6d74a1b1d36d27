// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Codes of few bits in IR.

#include "CodePlane.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

static Value createIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

/// Reads the bytes that a code from bit `bit` of row `row` on lies in: one, or where the number of bits does not divide eight,
/// two.
static Value readBytes(OpBuilder &builder, Location loc, int64_t bits, Value plane, Value row, Value bit) {
  Value perByte = createIndex(builder, loc, 8);
  auto read = [&](Value bit) -> Value {
    Value place = arith::DivUIOp::create(builder, loc, bit, perByte);
    return tensor::ExtractOp::create(builder, loc, plane, ValueRange{row, place});
  };
  Value first = read(bit);
  if (8 % bits == 0)
    return first;
  // Of a code that lies in one byte, what the second one holds is not asked for; there may be none after it.
  Value last = read(arith::AddIOp::create(builder, loc, bit, createIndex(builder, loc, bits - 1)));
  Type type = builder.getI16Type();
  Value eight = arith::ConstantOp::create(builder, loc, builder.getI16IntegerAttr(8));
  Value high = arith::ShLIOp::create(builder, loc, arith::ExtUIOp::create(builder, loc, type, last), eight);
  return arith::OrIOp::create(builder, loc, arith::ExtUIOp::create(builder, loc, type, first), high);
}

Value buildCodeBits(OpBuilder &builder, Location loc, int64_t bits, bool isSigned, Value plane, Value row,
                    Value column) {
  if (bits == 8)
    return tensor::ExtractOp::create(builder, loc, plane, ValueRange{row, column});
  // The code moves to the top of its bytes, and down again, which fills up with zeros or with its sign.
  Value bit = arith::MulIOp::create(builder, loc, column, createIndex(builder, loc, bits));
  Value code = readBytes(builder, loc, bits, plane, row, bit);
  Type type = code.getType();
  int64_t width = type.getIntOrFloatBitWidth();
  Value within = arith::RemUIOp::create(builder, loc, bit, createIndex(builder, loc, 8));
  Value above = arith::SubIOp::create(builder, loc, createIndex(builder, loc, width - bits), within);
  code = arith::ShLIOp::create(builder, loc, code, arith::IndexCastOp::create(builder, loc, type, above));
  Value down = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, width - bits));
  if (isSigned)
    return arith::ShRSIOp::create(builder, loc, code, down);
  return arith::ShRUIOp::create(builder, loc, code, down);
}

} // namespace hone
