// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic: integers and floats share its instructions.

#include "exec/families.h"

namespace hone::emulation {

void decodeArithmetic(Decoder &decoder, Statement &statement) {
  Type type = statement.type();
  if (type == Type::U16x2 || type == Type::S16x2) {
    decodePackedIntegers(decoder, statement, type);
    return;
  }
  if (!isInteger(type)) {
    decodeFloatArithmetic(decoder, statement, type);
    return;
  }
  bool carries = statement.root.ends_with('c') || statement.take("cc");
  if (carries)
    decodeCarry(decoder, statement, type);
  else
    decodeIntegerArithmetic(decoder, statement, type);
}

} // namespace hone::emulation
