// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of boxes of tensors to shared memory: cp.async.bulk.tensor. Like other bulk copies they are done when somebody tests their barrier.

#include "exec/addresses.h"
#include "exec/async.h"
#include "exec/shared_matrix.h"
#include "exec/tensor_map.h"
#include "ptx/block.h"

#include <algorithm>

namespace hone::emulation {
namespace {

constexpr uint32_t kTargetAlignment = 128;

using Coordinates = std::array<int64_t, kMostAxes>;

/// The part of a box that is one row: elements side by side, of which some lie outside of the tensor.
struct BoxRow {
  const std::byte *from; // of the first that lies inside
  uint32_t before, bytes;
};

/// Throws Fault where a part of the tensor that the box has is not allocated.
BoxRow rowOf(Warp &warp, uint32_t lane, const TensorMap &map, const Coordinates &origin, uint32_t row) {
  uint64_t address = map.address;
  for (uint32_t axis = 1; axis < map.rank; ++axis) {
    int64_t at = origin[axis] + row % map.box[axis];
    row /= map.box[axis];
    if (at < 0 || at > map.last[axis])
      return {nullptr, 0, 0};
    address += static_cast<uint64_t>(at) * map.strides[axis - 1];
  }
  int64_t first = std::max<int64_t>(origin[0], 0);
  int64_t end = std::min<int64_t>(origin[0] + map.box[0], int64_t{map.last[0]} + 1);
  if (end <= first)
    return {nullptr, 0, 0};
  auto bytes = static_cast<uint32_t>(end - first) * map.elementBytes;
  address += static_cast<uint64_t>(first) * map.elementBytes;
  return {locateBytes(warp, lane, address, bytes), static_cast<uint32_t>(first - origin[0]) * map.elementBytes, bytes};
}

void copyRows(std::byte *shared, uint32_t to, const TensorMap &map, const std::vector<BoxRow> &rows) {
  std::vector<std::byte> bytes(map.rowBytes());
  for (const BoxRow &row : rows) {
    std::ranges::fill(bytes, map.fillsNan ? std::byte{0xff} : std::byte{0});
    std::copy_n(row.from, row.bytes, bytes.data() + row.before);
    for (uint32_t unit = 0; unit < map.rowBytes(); unit += kUnitBytes)
      std::memcpy(shared + swizzled(to + unit, map.swizzleWidth), bytes.data() + unit, kUnitBytes);
    to += map.rowBytes();
  }
}

/// Maps lie in memory of the device, or are parameters.
TensorMap readMap(Warp &warp, uint32_t lane, uint64_t address) {
  if (address - kSharedWindow < kWindowBytes || address - kLocalWindow < kWindowBytes)
    throw Fault(Fault::Kind::IllegalInstruction, "a tensor map in shared or local memory");
  std::byte bytes[kTensorMapBytes];
  for (uint64_t half = 0; half < kTensorMapBytes; half += kTensorMapAlignment)
    std::memcpy(bytes + half, locate(warp, Space::Generic, lane, address + half, kTensorMapAlignment),
                kTensorMapAlignment);
  std::optional<TensorMap> map = TensorMap::read(bytes);
  if (!map)
    throw Fault(Fault::Kind::IllegalInstruction, "an address where there is no tensor map");
  return *map;
}

/// Checks that the box has room, with its swizzle.
void checkTarget(Warp &warp, uint32_t lane, uint64_t to, const TensorMap &map) {
  if (to % kTargetAlignment != 0)
    throw Fault(Fault::Kind::MisalignedAddress, "a copy of a box to byte " + std::to_string(to) + " of shared memory");
  uint64_t end = to + (map.boxBytes() + kTargetAlignment - 1) / kTargetAlignment * kTargetAlignment;
  for (uint64_t at : {to, (map.swizzleWidth == 1 ? to + map.boxBytes() : end) - kUnitBytes})
    locate(warp, Space::Shared, lane, at, kUnitBytes);
}

// Operands: the list has slots of addresses (to, map, barrier), their offsets, whether they have 32 bits, and the slots of Inst::target
// coordinates; op[1] which blocks of the cluster have it (Inst::width: 1), else the own one.
enum : uint32_t { kTo, kMap, kBarrier, kAddresses };

void begin(Warp &warp, const Inst &inst, uint32_t mask) {
  uint64_t addresses[kAddresses][kLanes];
  for (uint32_t i = 0; i < kAddresses; ++i) {
    Inst one = inst;
    one.op[0] = inst.list[i];
    one.immediate = static_cast<int32_t>(inst.list[kAddresses + i]);
    one.narrowBase = inst.list[2 * kAddresses + i] != 0;
    addressesOf(warp, one, mask, 0, addresses[i]);
  }
  for (; mask != 0; mask &= mask - 1) {
    uint32_t lane = firstLane(mask);
    TensorMap map = readMap(warp, lane, addresses[kMap][lane]);
    if (map.rank != inst.target)
      throw Fault(Fault::Kind::IllegalInstruction, "a tensor map of " + std::to_string(map.rank) + " axes");
    if ((addresses[kTo][lane] | addresses[kBarrier][lane]) >> kRankBit != 0)
      throw Fault(Fault::Kind::IllegalInstruction, "a copy of a box to another block by its address");
    auto to = static_cast<uint32_t>(addresses[kTo][lane]);
    checkTarget(warp, lane, addresses[kTo][lane], map);
    Coordinates origin{};
    for (uint32_t axis = 0; axis < map.rank; ++axis)
      origin[axis] = warp.at<int32_t>(inst.list[3 * kAddresses + axis])[lane];
    std::vector<BoxRow> rows;
    for (uint32_t row = 0; row < map.rows(); ++row)
      rows.push_back(rowOf(warp, lane, map, origin, row));
    auto barrier = static_cast<size_t>(locate(warp, Space::Shared, lane, addresses[kBarrier][lane], sizeof(uint64_t)) -
                                       warp.block.shared.data());
    uint32_t blocks = inst.width != 0 ? warp.at<uint16_t>(inst.op[1])[lane] : 1u << warp.block.rank();
    for (; blocks != 0; blocks &= blocks - 1) {
      // At the same place of each block, whose own barrier counts the bytes.
      Block &block = warp.block.peer(firstLane(blocks));
      std::byte *shared = block.shared.data();
      block.bulkCopies.push_back({shared + barrier, map.boxBytes(), [=] { copyRows(shared, to, map, rows); }});
    }
  }
}

} // namespace

void decodeTensorCopy(Decoder &decoder, Statement &statement) {
  decoder.requireTarget(90, false);
  int rank = statement.takeOneOf({"1d", "2d", "3d", "4d", "5d"}) + 1;
  bool hinted = statement.take("L2::cache_hint");
  bool toSharedMemory = statement.takeOneOf({"shared::cluster", "shared::cta"}) >= 0 && statement.take("global") &&
                        statement.take("mbarrier::complete_tx::bytes");
  statement.take("tile");
  bool multicast = statement.take("multicast::cluster");
  if (!toSharedMemory || rank == 0)
    statement.refuse("the emulation does not have this copy of a box");
  statement.expectOperands(3 + (hinted ? 1 : 0) + (multicast ? 1 : 0));
  Operand map = statement.operands[1];
  const std::vector<Operand> coordinates =
      map.elements.empty() ? std::vector<Operand>() : std::move(map.elements.front().elements);
  map.elements.clear();
  if (coordinates.size() != static_cast<size_t>(rank))
    statement.refuse("expected " + std::to_string(rank) + " coordinates, but got " +
                     std::to_string(coordinates.size()));
  Inst parts[kAddresses];
  decoder.address(parts[kTo], statement.operands[0], Space::Shared, 0);
  decoder.address(parts[kMap], map, Space::Generic, 0);
  decoder.address(parts[kBarrier], statement.operands[2], Space::Shared, 0);
  std::vector<uint32_t> slots;
  for (const Inst &part : parts)
    slots.push_back(part.op[0]);
  for (const Inst &part : parts)
    slots.push_back(static_cast<uint32_t>(part.immediate));
  for (const Inst &part : parts)
    slots.push_back(part.narrowBase ? 1 : 0);
  for (const Operand &coordinate : coordinates)
    slots.push_back(decoder.source(coordinate, Type::S32));
  Inst &inst = decoder.emit(begin);
  inst.target = static_cast<uint32_t>(rank);
  inst.width = multicast ? 1 : 0;
  inst.op[1] = multicast ? decoder.source(statement.operands[3], Type::B16) : 0;
  inst.list = decoder.list(std::move(slots));
}

} // namespace hone::emulation
