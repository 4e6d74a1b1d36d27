// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// IR that finds codes in packed bytes.

#include "Panels.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace hone::hrt {

Value IndexBuilder::half(Value byte, Value isHigh) {
  Value shift = arith::IndexCastOp::create(builder, loc, byte.getType(), multiply(isHigh, 4));
  Value mask = arith::ConstantOp::create(builder, loc, builder.getI8IntegerAttr(0xf));
  return arith::AndIOp::create(builder, loc, arith::ShRUIOp::create(builder, loc, byte, shift), mask);
}

Value IndexBuilder::pick(Value quad, ArrayRef<int32_t> numbers, Type type) {
  auto number = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, static_cast<int8_t>(value)));
  };
  Value picked = number(numbers.front());
  if (llvm::all_equal(numbers))
    return picked;
  for (auto [i, value] : llvm::enumerate(numbers.drop_front())) {
    Value isThis = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, quad, constant(i + 1));
    picked = arith::SelectOp::create(builder, loc, isThis, number(value), picked);
  }
  return picked;
}

Value IndexBuilder::code(const cpu::BitLayout &codes, Value quad, function_ref<Value(Value)> read) {
  Value code;
  for (int part = 0; part < cpu::kMostFields; ++part) {
    auto pickOf = [&](Type type, function_ref<int32_t(const cpu::BitField &)> getNumber) {
      SmallVector<int32_t> numbers;
      for (const auto &parts : ArrayRef(codes.parts).take_front(codes.quads))
        numbers.push_back(getNumber(parts[part]));
      return pick(quad, numbers, type);
    };
    Type byte = builder.getI8Type();
    Value mask = pickOf(byte, [](const cpu::BitField &of) { return ((1 << of.bits) - 1) << of.to; });
    if (part > 0 && matchPattern(mask, m_Zero()))
      break;
    Value bits = read(pickOf(builder.getIndexType(), [](const cpu::BitField &of) { return of.line; }));
    bits = builder.createOrFold<arith::ShRUIOp>(loc, bits,
                                                pickOf(byte, [](const cpu::BitField &of) { return of.shift - of.to; }));
    bits = builder.createOrFold<arith::AndIOp>(loc, bits, mask);
    code = code ? arith::OrIOp::create(builder, loc, code, bits) : bits;
  }
  return code;
}

Value IndexBuilder::code(const cpu::BitLayout &codes, Value plane, Value panel, Value input, Value output) {
  Value quad = divide(remainder(input, codes.inputs()), 4), column = remainder(input, 4);
  Value first = multiply(divide(input, codes.inputs()), codes.lines);
  return code(codes, quad, [&](Value line) { return extract(plane, {panel, add(first, line), output, column}); });
}

} // namespace hone::hrt
