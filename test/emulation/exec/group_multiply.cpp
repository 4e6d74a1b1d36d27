// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of matrices by a warpgroup: wgmma, with a dense A or one of which two of four columns are stored. They are done when a warp waits for them, and not before: until then the registers of
// the sums hold NaN, so that a wait that is missing shows, and so does shared memory that is written again too early. Each warp does
// its 16 rows of 64.

#include "exec/families.h"
#include "exec/numbers.h"
#include "exec/shared_matrix.h"
#include "exec/warpgroup.h"

#include <algorithm>
#include <cstring>

namespace hone::emulation {
namespace {

// Inst::width. Signs are of numbers of A and of B.
enum : uint8_t {
  kRegistersOfA = 1,
  kRowsSideBySide = 2,
  kColumnsSideBySide = 4,
  kNegatedA = 8,
  kNegatedB = 16,
  kBFloats = 32,
  kSparse = 64
};
constexpr uint32_t kRegisters = 4; // of A
constexpr uint32_t kInFlight = 0x7fffdead;
constexpr const char *kWritten = "registers of a product of a warpgroup were written before it was waited for";

/// Row of the warp's 16 and column of accumulator `i` of a lane.
Position positionOfSum(uint32_t lane, uint32_t i) {
  Position at = positionInC(lane, i % 4);
  return {at.line, at.depth + i / 4 * kColumns};
}

bool areInFlight(const uint32_t *bits) {
  return std::all_of(bits, bits + kLanes, [](uint32_t word) { return word == kInFlight; });
}

/// The sums that these registers are, with what they hold if no product is under way there.
size_t beginSums(Warp &warp, const uint32_t *slots, uint32_t count) {
  for (size_t i = 0; i < warp.sums.size(); ++i) {
    const PendingSums &sums = warp.sums[i];
    if (sums.count == count && std::equal(slots, slots + count, sums.slots))
      return i;
    if (std::find_first_of(slots, slots + count, sums.slots, sums.slots + sums.count) != slots + count)
      throw Fault(Fault::Kind::IllegalInstruction, "products under way of other shapes in the same registers");
  }
  PendingSums &sums = warp.sums.emplace_back(PendingSums{slots, count, std::vector<float>(kRows * 2 * count)});
  for (uint32_t i = 0; i < count; ++i) {
    const auto *values = warp.at<float>(slots[i]);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      Position at = positionOfSum(lane, i);
      sums.values[at.line * 2 * count + at.depth] = values[lane];
    }
    std::fill_n(warp.at<uint32_t>(slots[i]), kLanes, kInFlight);
  }
  return warp.sums.size() - 1;
}

void endSums(Warp &warp, const PendingSums &sums) {
  for (uint32_t i = 0; i < sums.count; ++i) {
    if (!areInFlight(warp.at<uint32_t>(sums.slots[i])))
      throw Fault(Fault::Kind::IllegalInstruction, kWritten);
    auto *values = warp.at<float>(sums.slots[i]);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      Position at = positionOfSum(lane, i);
      values[lane] = sums.values[at.line * 2 * sums.count + at.depth];
    }
  }
}

/// The numbers of A of a warp, and of which inputs they are.
struct RowsOfA {
  alignas(64) float numbers[kRows][kInputs];
  uint32_t inputs[kRows][kInputs]; // of a sparse one
};

/// Four rows at a time, so that their sums do not wait for each other.
template <bool IsSparse>
void accumulate(const RowsOfA &a, const float (*b)[kMostLines], float *sums, uint32_t columns, bool adds) {
  constexpr uint32_t kTogether = 4;
  for (uint32_t row = 0; row < kRows; row += kTogether)
    for (uint32_t column = 0; column < columns; column += kColumns) {
      float part[kTogether][kColumns];
      for (uint32_t r = 0; r < kTogether; ++r)
        for (uint32_t i = 0; i < kColumns; ++i)
          part[r][i] = adds ? sums[(row + r) * columns + column + i] : 0;
      for (uint32_t k = 0; k < kInputs; ++k)
        for (uint32_t r = 0; r < kTogether; ++r)
          for (uint32_t i = 0; i < kColumns; ++i)
            part[r][i] =
                std::fma(a.numbers[row + r][k], b[IsSparse ? a.inputs[row + r][k] : k][column + i], part[r][i]);
      for (uint32_t r = 0; r < kTogether; ++r)
        std::copy_n(part[r], kColumns, &sums[(row + r) * columns + column]);
    }
}

/// The PTX ISA says of accumulators and of A that they are not to be written; metadata are taken to be part of A.
void expectUnchanged(Warp &warp, uint32_t slot, const std::array<uint32_t, kLanes> &before) {
  if (std::memcmp(warp.at<uint32_t>(slot), before.data(), sizeof before) != 0)
    throw Fault(Fault::Kind::IllegalInstruction, kWritten);
}

template <class T> void readRegisters(Warp &warp, const PendingProduct &product, float (*a)[kInputs]) {
  const uint32_t *slots = product.inst->list + product.inst->target;
  for (uint32_t r = 0; r < kRegisters; ++r) {
    expectUnchanged(warp, slots[r], product.registers[r]);
    const T *numbers = warp.at<T>(slots[r]);
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      for (uint32_t i = 0; i < 2; ++i) {
        Position at = positionInA(lane, r, i, 2);
        a[at.line][at.depth] = widen(numbers[2 * lane + i]);
      }
  }
}

/// The metadata's slot is op[5], Inst::immediate the selector.
void readMetadata(Warp &warp, const PendingProduct &product, RowsOfA &a) {
  expectUnchanged(warp, product.inst->op[5], product.metadata);
  for (uint32_t row = 0; row < kRows; ++row)
    for (uint32_t group = 0; group < kMostInputs / 4; ++group) {
      Kept kept = keptColumns(product.metadata.data(), row, group, kMostInputs,
                              static_cast<uint32_t>(product.inst->immediate), true);
      a.inputs[row][2 * group] = kept.first, a.inputs[row][2 * group + 1] = kept.second;
    }
}

template <class T> void multiply(Warp &warp, const PendingProduct &product) {
  const Inst &inst = *product.inst;
  const std::vector<std::byte> &shared = warp.block.shared;
  uint32_t columns = 2 * inst.target;
  bool isSparse = (inst.width & kSparse) != 0;
  RowsOfA a;
  alignas(64) float b[kMostInputs][kMostLines];
  if ((inst.width & kRegistersOfA) != 0) {
    readRegisters<T>(warp, product, a.numbers);
  } else {
    SharedMatrix matrix(product.a, (inst.width & kRowsSideBySide) != 0);
    matrix.read<T>(shared, warp.index % kWarpsOfGroup * kRows, kRows, kInputs, b);
    for (uint32_t row = 0; row < kRows; ++row)
      for (uint32_t k = 0; k < kInputs; ++k)
        a.numbers[row][k] = b[k][row];
  }
  if (((inst.width & kNegatedA) != 0) != ((inst.width & kNegatedB) != 0))
    for (auto &row : a.numbers)
      for (float &number : row)
        number = -number;
  SharedMatrix(product.b, (inst.width & kColumnsSideBySide) != 0)
      .read<T>(shared, 0, columns, isSparse ? kMostInputs : kInputs, b);
  float *sums = warp.sums[product.sums].values.data();
  if (isSparse) {
    readMetadata(warp, product, a);
    accumulate<true>(a, b, sums, columns, product.adds);
  } else {
    accumulate<false>(a, b, sums, columns, product.adds);
  }
}

uint64_t uniform(Warp &warp, uint32_t slot) {
  const auto *lanes = warp.at<uint64_t>(slot);
  if (!std::all_of(lanes, lanes + kLanes, [&](uint64_t value) { return value == lanes[0]; }))
    throw Fault(Fault::Kind::IllegalInstruction, "a descriptor that is not the same in all lanes");
  return lanes[0];
}

// Operands: the list has the registers of the sums, Inst::target of them, and those of A; op[1] and op[2] the descriptors, op[3] whether it
// adds to what the sums are, op[4] whether that is negated, op[5] the metadata of a sparse A.
void begin(Warp &warp, const Inst &inst, uint32_t mask) {
  beginForGroup(warp, mask);
  if (!warp.fenced)
    throw Fault(Fault::Kind::IllegalInstruction, "a product of a warpgroup without wgmma.fence");
  uint32_t adds = warp.maskAt(inst.op[3]) ^ inst.op[4];
  if (adds != 0 && adds != kAllLanes)
    throw Fault(Fault::Kind::IllegalInstruction, "a predicate of a product that is not the same in all lanes");
  PendingProduct product{&inst, warp.committedProducts, 0, uniform(warp, inst.op[2]), adds != 0, {}, {}, 0};
  if ((inst.width & kRegistersOfA) == 0)
    product.a = uniform(warp, inst.op[1]);
  else
    for (uint32_t r = 0; r < kRegisters; ++r)
      std::copy_n(warp.at<uint32_t>(inst.list[inst.target + r]), kLanes, product.registers[r].data());
  if ((inst.width & kSparse) != 0)
    std::copy_n(warp.at<uint32_t>(inst.op[5]), kLanes, product.metadata.data());
  product.sums = beginSums(warp, inst.list, inst.target);
  warp.products.push_back(product);
}

void fence(Warp &warp, const Inst &inst, uint32_t mask) {
  beginForGroup(warp, mask);
  warp.fenced = true;
}

void commit(Warp &warp, const Inst &inst, uint32_t mask) {
  beginForGroup(warp, mask);
  ++warp.committedProducts;
}

/// Waits until at most Inst::immediate of the committed groups are under way.
void wait(Warp &warp, const Inst &inst, uint32_t mask) {
  beginForGroup(warp, mask);
  warp.fenced = false;
  auto due = [&](const PendingProduct &product) {
    return product.group + static_cast<uint64_t>(inst.immediate) < warp.committedProducts;
  };
  for (const PendingProduct &product : warp.products)
    if (due(product))
      (product.inst->width & kBFloats) != 0 ? multiply<BFloat>(warp, product) : multiply<Half>(warp, product);
  std::erase_if(warp.products, due);
  for (size_t i = warp.sums.size(); i-- > 0;) {
    if (std::any_of(warp.products.begin(), warp.products.end(), [&](const auto &p) { return p.sums == i; }))
      continue;
    endSums(warp, warp.sums[i]);
    warp.sums.erase(warp.sums.begin() + static_cast<ptrdiff_t>(i));
    for (PendingProduct &product : warp.products)
      product.sums -= product.sums > i ? 1 : 0;
  }
}

/// The columns of a shape m64n<columns>k16, or k32 with a sparse A; 0 for another one.
uint32_t takeColumns(Statement &statement, bool isSparse) {
  std::string_view shape = statement.takePrefixed("m64n");
  uint32_t columns = 0;
  size_t at = 4;
  for (; at < shape.size() && shape[at] >= '0' && shape[at] <= '9'; ++at)
    columns = columns * 10 + static_cast<uint32_t>(shape[at] - '0');
  bool known = columns >= kColumns && columns <= kMostLines && columns % kColumns == 0;
  return known && shape.substr(std::min(at, shape.size())) == (isSparse ? "k32" : "k16") ? columns : 0;
}

/// An immediate that is one of two numbers: whether it is the second.
bool isSecond(const Statement &statement, size_t operand, int64_t first, int64_t second) {
  auto value = static_cast<int64_t>(statement.operands[operand].bits);
  if (statement.operands[operand].kind != Operand::Kind::Integer || (value != first && value != second))
    statement.refuse("expected operand " + std::to_string(operand) + " to be " + std::to_string(first) + " or " +
                     std::to_string(second));
  return value == second;
}

void appendRegisters(Decoder &decoder, Statement &statement, const Operand &operand, uint32_t count, bool written,
                     std::vector<uint32_t> &slots) {
  if (operand.elements.size() != count)
    statement.refuse("expected " + std::to_string(count) + " registers, but got " +
                     std::to_string(operand.elements.size()));
  for (const Operand &element : operand.elements)
    slots.push_back(written ? decoder.destination(element, Type::F32) : decoder.source(element, Type::B32));
}

/// The metadata and their selector, which stand before whether the product adds.
void decodeMetadata(Decoder &decoder, const Statement &statement, Inst &inst) {
  inst.op[5] = decoder.source(statement.operands[3], Type::B32);
  inst.immediate = isSecond(statement, 4, 0, 1) ? 1 : 0;
}

void decodeProduct(Decoder &decoder, Statement &statement, bool isSparse) {
  uint32_t columns = takeColumns(statement, isSparse);
  std::optional<Type> d = statement.takeType();
  std::optional<Type> a = statement.takeType();
  std::optional<Type> b = statement.takeType();
  if (columns == 0 || d != Type::F32 || a != b || (a != Type::F16 && a != Type::BF16))
    statement.refuse("the emulation has products of warpgroups of f16 and of bf16 with sums in f32");
  size_t adds = isSparse ? 5 : 3;
  statement.expectOperands(adds + 4, adds + 5);
  bool inRegisters = statement.operands[1].kind == Operand::Kind::Vector;
  statement.expectOperands(adds + (inRegisters ? 4 : 5));
  int how = (inRegisters ? kRegistersOfA : 0) | (a == Type::BF16 ? kBFloats : 0) | (isSparse ? kSparse : 0);
  how |=
      (isSecond(statement, adds + 1, 1, -1) ? kNegatedA : 0) | (isSecond(statement, adds + 2, 1, -1) ? kNegatedB : 0);
  how |= !inRegisters && isSecond(statement, adds + 3, 0, 1) ? kRowsSideBySide : 0;
  how |= isSecond(statement, adds + (inRegisters ? 3 : 4), 0, 1) ? kColumnsSideBySide : 0;
  std::vector<uint32_t> slots;
  appendRegisters(decoder, statement, statement.operands[0], columns / 2, true, slots);
  if (inRegisters)
    appendRegisters(decoder, statement, statement.operands[1], kRegisters, false, slots);
  Inst &inst = decoder.emit(begin);
  inst.width = static_cast<uint8_t>(how);
  inst.target = columns / 2;
  inst.op[1] = inRegisters ? 0 : decoder.source(statement.operands[1], Type::B64);
  inst.op[2] = decoder.source(statement.operands[2], Type::B64);
  inst.op[3] = decoder.predicate(statement.operands[adds], inst.op[4]);
  if (isSparse)
    decodeMetadata(decoder, statement, inst);
  inst.list = decoder.list(std::move(slots));
}

} // namespace

void decodeGroupMultiply(Decoder &decoder, Statement &statement) {
  decoder.requireTarget(90, true);
  int kind = statement.takeOneOf({"fence", "commit_group", "wait_group", "mma_async"});
  bool isSparse = kind == 3 && statement.take("sp");
  statement.take("sync");
  statement.take("aligned");
  switch (kind) {
  case 0:
    decoder.emit(fence);
    return;
  case 1:
    decoder.emit(commit);
    return;
  case 2:
    statement.expectOperands(1);
    if (statement.operands[0].kind != Operand::Kind::Integer)
      statement.refuse("a number of groups that is not known");
    decoder.emit(wait).immediate = static_cast<int64_t>(statement.operands[0].bits);
    return;
  case 3:
    decodeProduct(decoder, statement, isSparse);
    return;
  default:
    statement.refuse("the emulation does not have this instruction of warpgroups");
  }
}

} // namespace hone::emulation
