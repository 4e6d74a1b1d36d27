// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrices of 8 times 8 numbers of 16 bits between shared memory and registers: lane 4 r + c has words of row r.

#include "exec/addresses.h"
#include "exec/families.h"
#include "exec/fragments.h"

namespace hone::emulation {
namespace {

constexpr uint32_t kSide = 8;
constexpr uint32_t kRowBytes = 16;

/// The address of each row: row r of matrix m is what lane 8 m + r points at.
void locateRows(Warp &warp, const Inst &inst, std::byte **rows) {
  uint32_t count = inst.count * kSide;
  uint32_t lanes = count == kLanes ? kAllLanes : (1u << count) - 1;
  locateLanes(warp, inst, lanes, 1, kRowBytes, rows);
}

// Inst::width: 1 where matrices are transposed.
void loadMatrices(Warp &warp, const Inst &inst, uint32_t mask) {
  expectWholeWarp(mask);
  std::byte *rows[kLanes];
  locateRows(warp, inst, rows);
  for (uint32_t m = 0; m < inst.count; ++m) {
    auto *d = warp.at<uint16_t>(inst.list[m]);
    for (uint32_t i = 0; i < 2 * kLanes; ++i) {
      uint32_t row = i / kSide;
      uint32_t column = i % kSide;
      if (inst.width != 0)
        std::swap(row, column);
      std::memcpy(d + i, rows[m * kSide + row] + column * 2, 2);
    }
  }
}

void storeMatrices(Warp &warp, const Inst &inst, uint32_t mask) {
  expectWholeWarp(mask);
  std::byte *rows[kLanes];
  locateRows(warp, inst, rows);
  for (uint32_t m = 0; m < inst.count; ++m) {
    const auto *a = warp.at<uint16_t>(inst.list[m]);
    for (uint32_t i = 0; i < 2 * kLanes; ++i) {
      uint32_t row = i / kSide;
      uint32_t column = i % kSide;
      if (inst.width != 0)
        std::swap(row, column);
      std::memcpy(rows[m * kSide + row] + column * 2, a + i, 2);
    }
  }
}

void transpose(Warp &warp, const Inst &inst, uint32_t mask) {
  expectWholeWarp(mask);
  uint16_t numbers[2 * kLanes];
  std::memcpy(numbers, warp.at<uint16_t>(inst.op[1]), sizeof numbers);
  auto *d = warp.at<uint16_t>(inst.op[0]);
  for (uint32_t i = 0; i < 2 * kLanes; ++i)
    d[i] = numbers[i % kSide * kSide + i / kSide];
}

} // namespace

void decodeMatrixMove(Decoder &decoder, Statement &statement) {
  bool loads = statement.root == "ldmatrix";
  statement.take("sync");
  statement.take("aligned");
  bool transposed = statement.take("trans");
  int matrices = statement.takeOneOf({"x1", "x2", "x4"});
  int space = statement.takeOneOf({"shared", "shared::cta"});
  statement.expectOperands(2);
  if (!statement.take("m8n8") || matrices < 0 || statement.type() != Type::B16)
    statement.refuse("the emulation does not have this shape");
  const Operand &registers = statement.operands[loads ? 0 : 1];
  auto count = static_cast<size_t>(1) << matrices;
  if (registers.elements.size() != count)
    statement.refuse("another number of registers than of matrices");
  std::vector<uint32_t> slots;
  for (const Operand &element : registers.elements)
    slots.push_back(loads ? decoder.destination(element, Type::B32) : decoder.source(element, Type::B32));
  Inst &inst = decoder.emit(loads ? loadMatrices : storeMatrices);
  decoder.address(inst, statement.operands[loads ? 1 : 0], space >= 0 ? Space::Shared : Space::Generic, 1);
  inst.width = transposed ? 1 : 0;
  inst.count = static_cast<uint16_t>(count);
  inst.list = decoder.list(std::move(slots));
}

void decodeTransposition(Decoder &decoder, Statement &statement) {
  statement.take("sync");
  statement.take("aligned");
  statement.expectOperands(2);
  if (!statement.take("m8n8") || !statement.take("trans") || statement.type() != Type::B16)
    statement.refuse("the emulation does not have this shape");
  Inst &inst = decoder.emit(transpose);
  inst.op[0] = decoder.destination(statement.operands[0], Type::B32);
  inst.op[1] = decoder.source(statement.operands[1], Type::B32);
}

} // namespace hone::emulation
