// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How lanes part and meet.

#include "ptx/warp.h"

#include "ptx/block.h"

#include <algorithm>

namespace hone::emulation {
namespace {

// Lanes that spin until another lane of their warp has done something would keep it from ever going first: after so many
// choices in favour of the lowest program counter, the highest is taken for once.
constexpr uint32_t kPatience = 4096;

template <class T> void fill(T *lanes, T value) { std::fill_n(lanes, kLanes, value); }

} // namespace

Warp::Warp(Block &block, uint32_t index) : block(block), index(index) {
  const Kernel &kernel = *block.launch.kernel;
  storage.resize(kernel.frameBytes / sizeof(uint64_t) + 8);
  auto aligned = (reinterpret_cast<uint64_t>(storage.data()) + 63) / 64 * 64;
  frame = reinterpret_cast<std::byte *>(aligned);
  localStorage.resize(size_t{kernel.localBytes} * kLanes);
  local = localStorage.data();
  for (const Constant &constant : kernel.constants)
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      std::memcpy(frame + constant.slot + lane * constant.bytes, constant.bits.data(), constant.bytes);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    at<uint32_t>(specialSlot(kLaneId))[lane] = lane;
    at<uint32_t>(specialSlot(kMaskEq))[lane] = 1u << lane;
    at<uint32_t>(specialSlot(kMaskLt))[lane] = (1u << lane) - 1;
    at<uint32_t>(specialSlot(kMaskLe))[lane] = (1u << lane) | ((1u << lane) - 1);
    at<uint32_t>(specialSlot(kMaskGe))[lane] = ~((1u << lane) - 1);
    at<uint32_t>(specialSlot(kMaskGt))[lane] = ~((1u << lane) | ((1u << lane) - 1));
  }
  const Launch &launch = block.launch;
  auto same = [&](Special special, uint32_t value) { fill(at<uint32_t>(specialSlot(special)), value); };
  for (uint32_t axis = 0; axis < 3; ++axis) {
    same(static_cast<Special>(kNtidX + axis), launch.block[axis]);
    same(static_cast<Special>(kNctaidX + axis), launch.grid[axis]);
  }
  same(kWarpId, index);
  same(kNumWarps, (launch.threads() + kLanes - 1) / kLanes);
  same(kNumSms, launch.multiprocessors);
  same(kGridId, 1);
  same(kNumClustersX, launch.grid[0] / kernel.cluster);
  same(kClusterBlocks, kernel.cluster);
  same(kDynamicShared, launch.dynamicShared);
  same(kTotalShared, launch.sharedBytes());
  same(kZero, 0);
  same(kOne, 1);
  same(kAlways, kAllLanes);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    uint32_t thread = index * kLanes + lane;
    at<uint32_t>(specialSlot(kTidX))[lane] = thread % launch.block[0];
    at<uint32_t>(specialSlot(kTidY))[lane] = thread / launch.block[0] % launch.block[1];
    at<uint32_t>(specialSlot(kTidZ))[lane] = thread / launch.block[0] / launch.block[1];
  }
}

void Warp::reset() {
  const Launch &launch = block.launch;
  for (uint32_t axis = 0; axis < 3; ++axis)
    fill(at<uint32_t>(specialSlot(static_cast<Special>(kCtaidX + axis))), block.position[axis]);
  fill(at<uint32_t>(specialSlot(kClusterX)), block.position[0] / launch.kernel->cluster);
  fill(at<uint32_t>(specialSlot(kClusterRank)), block.position[0] % launch.kernel->cluster);
  uint64_t linear =
      block.position[0] + uint64_t{launch.grid[0]} * (block.position[1] + uint64_t{launch.grid[1]} * block.position[2]);
  fill(at<uint32_t>(specialSlot(kSmId)), static_cast<uint32_t>(linear % launch.multiprocessors));
  std::fill(localStorage.begin(), localStorage.end(), std::byte{0xff});
  uint32_t threads = std::min(launch.threads() - index * kLanes, kLanes);
  alive = threads == kLanes ? kAllLanes : (1u << threads) - 1;
  active = alive;
  blocked = 0;
  gathering = 0;
  carry = 0;
  pc = 0;
  join = kAllLanes;
  partings = 0;
  copies.clear();
  committedCopies = {};
  products.clear();
  sums.clear();
  committedProducts = 0;
  fenced = false;
  groupTrace = 0;
  clusterArrivals = 0;
  registers = registersAtLaunch(launch);
  atBarrier = {};
}

void Warp::run(uint32_t quantum) {
  const Inst *code = block.launch.kernel->code.data();
  budget = quantum;
  if (active == 0)
    regroup();
  while (active != 0 && budget-- > 0) {
    const Inst &inst = code[pc];
    uint32_t mask = active & (maskAt(inst.guard) ^ inst.flip);
    ++executed;
    if (inst.control) {
      inst.run(*this, inst, mask);
      continue;
    }
    if (mask != 0)
      inst.run(*this, inst, mask);
    advance();
  }
}

void Warp::park() {
  for (uint32_t lanes = active; lanes != 0; lanes &= lanes - 1)
    lanePc[firstLane(lanes)] = pc;
  active = 0;
}

void Warp::regroup() {
  park();
  uint32_t ready = alive & ~blocked;
  join = kAllLanes;
  if (ready == 0)
    return;
  uint32_t lowest = kAllLanes;
  uint32_t highest = 0;
  for (uint32_t lanes = ready; lanes != 0; lanes &= lanes - 1) {
    lowest = std::min(lowest, lanePc[firstLane(lanes)]);
    highest = std::max(highest, lanePc[firstLane(lanes)]);
  }
  pc = lowest;
  partings = lowest == highest ? 0 : partings + 1;
  if (partings == kPatience) {
    pc = highest;
    partings = 0;
  }
  for (uint32_t lanes = ready; lanes != 0; lanes &= lanes - 1) {
    uint32_t lane = firstLane(lanes);
    if (lanePc[lane] == pc)
      active |= 1u << lane;
    else if (lanePc[lane] > pc)
      join = std::min(join, lanePc[lane]);
  }
}

void Warp::branch(uint32_t mask, uint32_t target) {
  if (mask == 0) {
    advance();
    return;
  }
  // Others may wait at lower program counters than where this goes, or where it came from.
  bool together = mask == active && join == kAllLanes;
  if (together && (alive & ~blocked) == active) {
    pc = target;
    return;
  }
  uint32_t rest = active & ~mask;
  ++pc;
  park();
  for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1)
    lanePc[firstLane(lanes)] = target;
  for (uint32_t lanes = rest; lanes != 0; lanes &= lanes - 1)
    lanePc[firstLane(lanes)] = pc;
  regroup();
}

void Warp::branchTo(uint32_t mask, const uint32_t *targets) {
  ++pc;
  park();
  for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1)
    lanePc[firstLane(lanes)] = targets[firstLane(lanes)];
  regroup();
}

void Warp::exit(uint32_t mask) {
  alive &= ~mask;
  ++pc;
  park();
  if (mask != 0)
    block.updateAll();
  regroup();
}

bool Warp::gather(uint32_t members, uint32_t &mask) {
  uint32_t here = mask;
  for (uint32_t lanes = gathering & alive; lanes != 0; lanes &= lanes - 1)
    if (lanePc[firstLane(lanes)] == pc)
      here |= 1u << firstLane(lanes);
  if ((members & alive & ~here) == 0) {
    blocked &= ~here;
    gathering &= ~here;
    active |= here;
    mask = here;
    return true;
  }
  uint32_t rest = active & ~mask;
  uint32_t waiting = pc;
  ++pc;
  park();
  for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1)
    lanePc[firstLane(lanes)] = waiting;
  for (uint32_t lanes = rest; lanes != 0; lanes &= lanes - 1)
    lanePc[firstLane(lanes)] = pc;
  blocked |= mask;
  gathering |= mask;
  regroup();
  return false;
}

void Warp::waitAtBarrier(uint32_t mask, uint32_t barrier) {
  ++pc;
  park();
  blocked |= mask;
  atBarrier[barrier] |= mask;
  block.update(barrier);
  regroup();
}

uint32_t Warp::release(uint32_t barrier) {
  uint32_t lanes = atBarrier[barrier];
  atBarrier[barrier] = 0;
  blocked &= ~lanes;
  return lanes;
}

} // namespace hone::emulation
