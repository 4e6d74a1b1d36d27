// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads, stores, and conversions of addresses between spaces.

#include "exec/addresses.h"
#include "exec/families.h"
#include "exec/lanes.h"
#include "ptx/block.h"

namespace hone::emulation {
namespace {

struct Wide {
  uint64_t words[2];
};

const std::byte *placeOf(uint64_t origin, uint64_t address) {
  return reinterpret_cast<const std::byte *>(origin + address);
}

/// Whether numbers of a full warp lie side by side, as they often do: one copy brings them all.
template <class T> bool areContiguous(uint32_t mask, const uint64_t *addresses) {
  uint64_t apart = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    apart |= addresses[lane] ^ (addresses[0] + lane * sizeof(T));
  return mask == kAllLanes && apart == 0;
}

template <class T, class R> R readAs(const std::byte *place) {
  T value;
  std::memcpy(&value, place, sizeof value);
  if constexpr (sizeof(T) == sizeof(R))
    return std::bit_cast<R>(value);
  else
    return static_cast<R>(value);
}

/// Loads numbers of type T into registers of type R; Inst::list are the registers of a vector.
template <class T, class R> void load(Warp &warp, const Inst &inst, uint32_t mask) {
  uint64_t addresses[kLanes];
  uint64_t origin = resolveLanes(warp, inst, mask, 1, sizeof(T) * inst.count, addresses);
  if constexpr (sizeof(T) == sizeof(R)) {
    if (inst.count == 1 && areContiguous<T>(mask, addresses)) {
      std::memcpy(warp.at<R>(inst.list[0]), placeOf(origin, addresses[0]), kLanes * sizeof(T));
      return;
    }
  }
  for (uint32_t i = 0; i < inst.count; ++i) {
    R *d = warp.at<R>(inst.list[i]);
    uint64_t begin = origin + i * sizeof(T);
    eachLane(mask, [=, &addresses](uint32_t lane) { d[lane] = readAs<T, R>(placeOf(begin, addresses[lane])); });
  }
}

/// Parameters are the same for all lanes.
template <class T, class R> void loadParameter(Warp &warp, const Inst &inst, uint32_t mask) {
  for (uint32_t i = 0; i < inst.count; ++i) {
    T value;
    std::memcpy(&value, warp.block.launch.parameters.data() + inst.immediate + i * sizeof(T), sizeof value);
    R *d = warp.at<R>(inst.list[i]);
    if constexpr (sizeof(T) == sizeof(R)) {
      R same;
      std::memcpy(&same, &value, sizeof value);
      eachLane(mask, [=](uint32_t lane) { d[lane] = same; });
    } else {
      eachLane(mask, [=](uint32_t lane) { d[lane] = static_cast<R>(value); });
    }
  }
}

/// Stores the low bytes of registers, which are op[2] bytes each.
template <class T> void store(Warp &warp, const Inst &inst, uint32_t mask) {
  uint64_t addresses[kLanes];
  uint64_t origin = resolveLanes(warp, inst, mask, 1, sizeof(T) * inst.count, addresses);
  uint32_t stride = inst.op[2];
  if (inst.count == 1 && stride == sizeof(T) && areContiguous<T>(mask, addresses)) {
    std::memcpy(reinterpret_cast<std::byte *>(origin + addresses[0]), warp.at<T>(inst.list[0]), kLanes * sizeof(T));
    return;
  }
  for (uint32_t i = 0; i < inst.count; ++i) {
    const std::byte *a = warp.at<std::byte>(inst.list[i]);
    uint64_t begin = origin + i * sizeof(T);
    for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
      uint32_t lane = firstLane(lanes);
      std::memcpy(reinterpret_cast<std::byte *>(begin + addresses[lane]), a + lane * stride, sizeof(T));
    }
  }
}

template <class T, bool Parameter> Handler loadInto(unsigned bytes) {
  auto pick = [](auto sized) -> Handler {
    using R = decltype(sized);
    return Parameter ? loadParameter<T, R> : load<T, R>;
  };
  if constexpr (sizeof(T) <= 2)
    if (bytes == 2)
      return pick(std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>{});
  if constexpr (sizeof(T) <= 4)
    if (bytes == 4)
      return pick(std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>{});
  if (bytes == 8)
    return pick(std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>{});
  return nullptr;
}

template <bool Parameter> Handler loadOf(Type type, unsigned bytes) {
  bool negative = isSigned(type);
  switch (bytesOf(type)) {
  case 1:
    return negative ? loadInto<int8_t, Parameter>(bytes) : loadInto<uint8_t, Parameter>(bytes);
  case 2:
    return negative ? loadInto<int16_t, Parameter>(bytes) : loadInto<uint16_t, Parameter>(bytes);
  case 4:
    return negative ? loadInto<int32_t, Parameter>(bytes) : loadInto<uint32_t, Parameter>(bytes);
  case 8:
    return loadInto<uint64_t, Parameter>(bytes);
  default:
    if constexpr (Parameter)
      return bytes == 16 ? loadParameter<Wide, Wide> : nullptr;
    else
      return bytes == 16 ? load<Wide, Wide> : nullptr;
  }
}

Handler storeOf(Type type) {
  switch (bytesOf(type)) {
  case 1:
    return store<uint8_t>;
  case 2:
    return store<uint16_t>;
  case 4:
    return store<uint32_t>;
  case 8:
    return store<uint64_t>;
  default:
    return store<Wide>;
  }
}

/// Takes the space; hints and orders, which change nothing here, are taken too.
Space takeSpace(Statement &statement) {
  while (statement.takeOneOf({"weak", "volatile", "relaxed", "acquire", "release", "cta", "cluster", "gpu", "sys",
                              "mmio", "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "unified"}) >= 0)
    continue;
  while (!statement.takePrefixed("L1::").empty() || !statement.takePrefixed("L2::").empty())
    continue;
  switch (statement.takeOneOf({"global", "const", "shared", "shared::cta", "shared::cluster", "local", "param",
                               "param::entry", "param::func"})) {
  case 0:
  case 1:
    return Space::Global;
  case 2:
  case 3:
  case 4:
    return Space::Shared;
  case 5:
    return Space::Local;
  case 6:
  case 7:
  case 8:
    return Space::Param;
  default:
    return Space::Generic;
  }
}

/// The elements of a vector, or the one operand.
std::vector<const Operand *> elementsOf(Statement &statement, const Operand &operand) {
  int vector = statement.takeOneOf({"v2", "v4", "v8"});
  if (vector < 0)
    return {&operand};
  if (operand.elements.size() != 2u << vector)
    statement.refuse("a vector of another size");
  std::vector<const Operand *> elements;
  for (const Operand &element : operand.elements)
    elements.push_back(&element);
  return elements;
}

} // namespace

void decodeLoad(Decoder &decoder, Statement &statement) {
  statement.expectOperands(2, 3); // the third is a cache policy
  Space space = takeSpace(statement);
  Type type = statement.type();
  std::vector<uint32_t> slots;
  unsigned bytes = 0;
  bool first = true;
  for (const Operand *element : elementsOf(statement, statement.operands[0])) {
    unsigned own = 0;
    slots.push_back(decoder.wideDestination(*element, type, own));
    if (element->kind != Operand::Kind::Sink && !first && own != bytes)
      statement.refuse("registers of several sizes");
    if (element->kind != Operand::Kind::Sink)
      bytes = own, first = false;
  }
  bytes = first ? bytesOf(type) : bytes;
  Inst address;
  decoder.address(address, statement.operands[1], space, 1);
  // A parameter of the kernel with an offset that is known.
  bool parameter = false;
  if (std::optional<Decoder::Place> place = decoder.variable(statement.operands[1].name);
      place && place->space == Space::Param) {
    parameter = true;
    address.immediate = static_cast<int64_t>(place->address - kParamWindow) + statement.operands[1].offset;
  }
  Handler handler = parameter ? loadOf<true>(type, bytes) : loadOf<false>(type, bytes);
  if (handler == nullptr)
    statement.refuse("a register of " + std::to_string(8 * bytes) + " bits");
  Inst &inst = decoder.emit(handler);
  inst.op[1] = address.op[1];
  inst.immediate = address.immediate;
  inst.space = address.space;
  inst.narrowBase = address.narrowBase;
  inst.count = static_cast<uint16_t>(slots.size());
  inst.list = decoder.list(std::move(slots));
}

void decodeStore(Decoder &decoder, Statement &statement) {
  statement.expectOperands(2, 3);
  Space space = takeSpace(statement);
  Type type = statement.type();
  std::vector<uint32_t> slots;
  unsigned bytes = 0;
  for (const Operand *element : elementsOf(statement, statement.operands[1])) {
    unsigned own = 0;
    slots.push_back(decoder.wideSource(*element, type, own));
    // Immediates have the bytes of the type: registers that are wider do not stand beside them.
    if ((bytes != 0 && own != bytes) || own < bytesOf(type))
      statement.refuse("registers of several sizes");
    bytes = own;
  }
  Inst &inst = decoder.emit(storeOf(type));
  decoder.address(inst, statement.operands[0], space, 1);
  inst.op[2] = bytes;
  inst.count = static_cast<uint16_t>(slots.size());
  inst.list = decoder.list(std::move(slots));
}

void decodePrefetch(Decoder &decoder, Statement &statement) {
  // Nothing but time depends on these.
  takeSpace(statement);
  while (statement.takeOneOf(
             {"L1", "L2", "uniform", "tensormap", "tensor", "bulk", "b64", "fractional", "range", "cvt"}) >= 0)
    continue;
}

void decodeAddressConversion(Decoder &decoder, Statement &statement) {
  bool toSpace = statement.take("to");
  Space space = takeSpace(statement);
  Type type = statement.type();
  uint64_t window = space == Space::Shared ? kSharedWindow : space == Space::Local ? kLocalWindow : 0;
  if (bytesOf(type) != 8)
    statement.refuse("addresses of 32 bits");
  statement.expectOperands(2);
  struct Shift {
    static uint64_t apply(uint64_t a, uint64_t b) { return a + b; }
  };
  Inst &inst = decoder.emit(binaryLanes<Shift, uint64_t>);
  inst.op[0] = decoder.destination(statement.operands[0], type);
  inst.op[1] = decoder.source(statement.operands[1], type);
  inst.op[2] = decoder.constant(toSpace ? -window : window, 8);
}

namespace {

void testAddress(Warp &warp, const Inst &inst, uint32_t mask) {
  const auto *a = warp.at<uint64_t>(inst.op[1]);
  const DeviceMemory &memory = *warp.block.launch.memory;
  uint32_t result = 0;
  for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    uint32_t lane = firstLane(lanes);
    bool inside = inst.space == Space::Shared  ? a[lane] - kSharedWindow < kWindowBytes
                  : inst.space == Space::Local ? a[lane] - kLocalWindow < kWindowBytes
                  : inst.space == Space::Param ? a[lane] - kParamWindow < kWindowBytes
                                               : memory.owns(a[lane]);
    result |= static_cast<uint32_t>(inside) << lane;
  }
  warp.setMask(inst.op[0], mask, result);
}

} // namespace

void decodeAddressTest(Decoder &decoder, Statement &statement) {
  Space space = takeSpace(statement);
  statement.expectOperands(2);
  Inst &inst = decoder.emit(testAddress);
  inst.space = space;
  inst.op[0] = decoder.destination(statement.operands[0], Type::Pred);
  inst.op[1] = decoder.source(statement.operands[1], Type::B64);
}

} // namespace hone::emulation
