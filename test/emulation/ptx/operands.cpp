// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands of instructions: registers, immediates, symbols and addresses become slots of a frame.

#include "ptx/decoder.h"
#include "ptx/launch.h"

#include <algorithm>
#include <bit>

namespace hone::emulation {
namespace {

struct Named {
  std::string_view name;
  Special special;
};

// Clusters are of blocks along x.
constexpr Named kSpecials[] = {
    {"%tid.x", kTidX},
    {"%tid.y", kTidY},
    {"%tid.z", kTidZ},
    {"%ntid.x", kNtidX},
    {"%ntid.y", kNtidY},
    {"%ntid.z", kNtidZ},
    {"%ctaid.x", kCtaidX},
    {"%ctaid.y", kCtaidY},
    {"%ctaid.z", kCtaidZ},
    {"%nctaid.x", kNctaidX},
    {"%nctaid.y", kNctaidY},
    {"%nctaid.z", kNctaidZ},
    {"%clusterid.x", kClusterX},
    {"%clusterid.y", kCtaidY},
    {"%clusterid.z", kCtaidZ},
    {"%nclusterid.x", kNumClustersX},
    {"%nclusterid.y", kNctaidY},
    {"%nclusterid.z", kNctaidZ},
    {"%cluster_ctaid.x", kClusterRank},
    {"%cluster_ctaid.y", kZero},
    {"%cluster_ctaid.z", kZero},
    {"%cluster_ctarank", kClusterRank},
    {"%cluster_nctaid.x", kClusterBlocks},
    {"%cluster_nctaid.y", kOne},
    {"%cluster_nctaid.z", kOne},
    {"%cluster_nctarank", kClusterBlocks},
    {"%laneid", kLaneId},
    {"%warpid", kWarpId},
    {"%nwarpid", kNumWarps},
    {"%smid", kSmId},
    {"%nsmid", kNumSms},
    {"%gridid", kGridId},
    {"%lanemask_eq", kMaskEq},
    {"%lanemask_le", kMaskLe},
    {"%lanemask_lt", kMaskLt},
    {"%lanemask_ge", kMaskGe},
    {"%lanemask_gt", kMaskGt},
    {"%dynamic_smem_size", kDynamicShared},
    {"%total_smem_size", kTotalShared},
    {"%aggr_smem_size", kTotalShared},
};

constexpr uint32_t kSlotAlignment = 64;

} // namespace

uint32_t Decoder::allocate(unsigned bytesPerLane) {
  uint32_t slot = kernel.frameBytes;
  kernel.frameBytes += (bytesPerLane * kLanes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  return slot;
}

uint32_t Decoder::constant(uint64_t low, unsigned bytes, uint64_t high) {
  auto [entry, isNew] = constants.try_emplace({low, high, bytes}, 0);
  if (isNew) {
    entry->second = allocate(bytes);
    kernel.constants.push_back({entry->second, bytes, {low, high}});
  }
  return entry->second;
}

uint32_t *Decoder::list(std::vector<uint32_t> slots) { return kernel.lists.emplace_back(std::move(slots)).data(); }

std::optional<Decoder::Register> Decoder::findRegister(std::string_view name) {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
    --digits;
  for (size_t i = scopes.size(); i-- > 0;) {
    Scope &scope = scopes[i];
    if (auto found = scope.registers.find(name); found != scope.registers.end())
      return found->second;
    for (Range &range : scope.ranges) {
      if (digits == name.size() || !name.starts_with(range.prefix) || range.prefix.size() < digits)
        continue;
      uint64_t number = 0;
      for (char digit : name.substr(range.prefix.size()))
        number = number * 10 + static_cast<uint64_t>(digit - '0');
      if (number >= range.slots.size())
        continue;
      uint32_t &slot = range.slots[number];
      slot = slot != 0 ? slot : allocate(bytesOf(range.type));
      return Register{range.type, slot};
    }
    if (scope.isFunction)
      break;
  }
  for (const Named &special : kSpecials)
    if (special.name == name)
      return Register{Type::U32, specialSlot(special.special)};
  if (name == "WARP_SZ")
    return Register{Type::U32, constant(kLanes, 4)};
  return std::nullopt;
}

std::optional<Decoder::Place> Decoder::variable(std::string_view name) {
  for (size_t i = scopes.size(); i-- > 0;) {
    if (auto found = scopes[i].variables.find(name); found != scopes[i].variables.end())
      return found->second;
    if (scopes[i].isFunction)
      break;
  }
  if (uint64_t address = module.addressOf(name))
    return Place{Space::Global, address};
  const PtxVariable *declared = module.variable(name);
  if (declared == nullptr || declared->space != "shared")
    return std::nullopt;
  auto [entry, isNew] = moduleShared.try_emplace(name);
  if (isNew)
    entry->second = placeShared(*declared);
  return entry->second;
}

uint32_t Decoder::symbolSlot(const Operand &operand, const Place &place, unsigned bytes) {
  uint64_t address = place.address + static_cast<uint64_t>(operand.offset);
  if (!place.endOfShared)
    return constant(address, bytes);
  uint32_t slot = allocate(bytes);
  dynamicShared.push_back(kernel.constants.size());
  kernel.constants.push_back({slot, bytes, {address, 0}});
  return slot;
}

uint32_t Decoder::immediate(const Operand &operand, Type type) {
  unsigned bytes = bytesOf(type);
  if (type == Type::Pred)
    return constant(operand.bits != 0 ? kAllLanes : 0, 4);
  uint64_t bits = operand.bits;
  if (operand.kind == Operand::Kind::Float) {
    if (bytes == 8)
      bits = std::bit_cast<uint64_t>(operand.value);
    else if (bytes == 4)
      bits = std::bit_cast<uint32_t>(static_cast<float>(operand.value));
    else
      refuse("a number with a fraction of less than 32 bits");
  }
  uint64_t high = bytes == 16 && static_cast<int64_t>(bits) < 0 ? ~uint64_t{0} : 0;
  if (bytes < 8)
    bits &= (uint64_t{1} << (8 * bytes)) - 1;
  return constant(bits, bytes, high);
}

uint32_t Decoder::wideSource(const Operand &operand, Type type, unsigned &bytes) {
  bytes = bytesOf(type);
  if (operand.kind == Operand::Kind::Integer || operand.kind == Operand::Kind::Float)
    return immediate(operand, type);
  if (operand.kind != Operand::Kind::Name || operand.negated)
    refuse("an operand that is neither a register nor a number");
  if (std::optional<Register> found = findRegister(operand.name)) {
    if ((found->type == Type::Pred) != (type == Type::Pred))
      refuse("'" + std::string(operand.name) + "' has another type");
    bytes = bytesOf(found->type);
    return found->slot;
  }
  std::optional<Place> place = variable(operand.name);
  if (!place)
    refuse("there is no '" + std::string(operand.name) + "'");
  return symbolSlot(operand, *place, bytes);
}

uint32_t Decoder::source(const Operand &operand, Type type) {
  unsigned bytes = 0;
  uint32_t slot = wideSource(operand, type, bytes);
  if (bytes != bytesOf(type))
    refuse("'" + std::string(operand.name) + "' has " + std::to_string(8 * bytes) + " bits");
  return slot;
}

uint32_t Decoder::wideDestination(const Operand &operand, Type type, unsigned &bytes) {
  bytes = bytesOf(type);
  if (operand.kind == Operand::Kind::Sink)
    return allocate(std::max(bytes, 8u));
  if (operand.kind != Operand::Kind::Name || !findRegister(operand.name))
    refuse("a result that is not a register");
  return wideSource(operand, type, bytes);
}

uint32_t Decoder::destination(const Operand &operand, Type type) {
  unsigned bytes = 0;
  uint32_t slot = wideDestination(operand, type, bytes);
  if (bytes != bytesOf(type))
    refuse("'" + std::string(operand.name) + "' has " + std::to_string(8 * bytes) + " bits");
  return slot;
}

uint32_t Decoder::predicate(const Operand &operand, uint32_t &flip) {
  flip = operand.negated ? kAllLanes : 0;
  Operand plain = operand;
  plain.negated = false;
  return source(plain, Type::Pred);
}

bool Decoder::isPredicate(const Operand &operand) {
  std::optional<Register> found = findRegister(operand.name);
  return found && found->type == Type::Pred;
}

unsigned Decoder::bytesOfRegister(const Operand &operand) {
  std::optional<Register> found = findRegister(operand.name);
  return found ? bytesOf(found->type) : 0;
}

uint32_t Decoder::predicate(const Operand &operand) {
  uint32_t flip = 0;
  uint32_t slot = predicate(operand, flip);
  if (flip != 0)
    refuse("a negated predicate");
  return slot;
}

void Decoder::address(Inst &inst, const Operand &operand, Space space, unsigned at) {
  if (operand.kind != Operand::Kind::Address || !operand.elements.empty())
    refuse("an address of another form");
  inst.immediate = operand.offset;
  inst.space = space;
  inst.narrowBase = false;
  if (operand.name.empty()) {
    inst.op[at] = constant(0, 8);
  } else if (std::optional<Register> base = findRegister(operand.name)) {
    if (bytesOf(base->type) != 8 && bytesOf(base->type) != 4)
      refuse("an address of " + std::to_string(8 * bytesOf(base->type)) + " bits");
    inst.op[at] = base->slot;
    inst.narrowBase = bytesOf(base->type) == 4;
  } else {
    std::optional<Place> place = variable(operand.name);
    if (!place)
      refuse("there is no '" + std::string(operand.name) + "'");
    inst.immediate = 0;
    inst.op[at] = symbolSlot(operand, *place, 8);
    inst.space = place->space;
  }
}

} // namespace hone::emulation
