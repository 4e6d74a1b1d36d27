// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of rotary position embedding and of appends to the state.

#include "rope.h"

#include "../entry.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"

namespace hone::cuda {
namespace {

RopeRows sideOf(const hone_tensor &from, const hone_tensor &to, const hone_tensor &lags = {}) {
  RopeRows side = {rowsOf(from), rowsOf(to), 0, from.sizes[1], kernels::viewIntegers<1>(lags), to.strides[2], 0};
  side.rows = side.from.count > 0 ? countRows(from) : 0;
  return side;
}

void setTables(RopeArguments &args, const hone_tensor &cosine, const hone_tensor &sine, int64_t interleaved) {
  args.cosine = rowsOf(cosine);
  args.sine = rowsOf(sine);
  args.half = args.cosine.count;
  args.tables = static_cast<int32_t>(cosine.sizes[0]);
  args.interleaved = static_cast<int32_t>(interleaved);
}

/// Passes where rows of the state go relative to the state's length.
void makeRelative(KernelDevice &device, RopeArguments &args) {
  StateLength length = device.stateLength();
  args.stateLength = length.onDevice;
  for (RopeRows *side : {&args.key, &args.value}) {
    side->moved = side->positionStride;
    if (side->to.data)
      side->to.data -= length.here * side->moved * bytesOf(side->to.dtype);
  }
}

void launchRope(hone_call *call, RopeArguments &args) {
  int32_t pairs = pairsOf(args);
  auto blocks = static_cast<uint32_t>(blocksOf(args, pairs));
  if (blocks == 0)
    return;
  uint32_t sides = args.value.rows > 0 ? 3 : args.key.rows > 0 ? 2 : 1;
  void *pointers[] = {&args};
  kernelDevice(call).launch({kRopeFatbin, pairs == 4 ? "rope_4" : "rope_1"},
                            {{blocks, sides, 1}, {kRopeThreads, 1, 1}, 0}, pointers);
}

template <typename Signature> using Call = kernels::Call<Signature, kernels::NoWeight>;

void run(hone_call *call, const Call<kernels::Rope> &rope) {
  const auto &o = rope.operands;
  RopeArguments args = {};
  args.positions = o.x.sizes[2];
  args.query = sideOf(o.x, o.y);
  setTables(args, o.cos, o.sin, rope.ints.interleaved);
  launchRope(call, args);
}

void run(hone_call *call, const Call<kernels::Append> &append) {
  const auto &o = append.operands;
  RopeArguments args = {};
  args.positions = o.key.sizes[2];
  args.key = sideOf(o.key, o.keyRoom, o.lags);
  args.value = sideOf(o.value, o.valueRoom, o.lags);
  makeRelative(kernelDevice(call), args);
  launchRope(call, args);
}

void run(hone_call *call, const Call<kernels::RopeAppend> &append) {
  const auto &o = append.operands;
  RopeArguments args = {};
  args.positions = o.query.sizes[2];
  args.query = sideOf(o.query, o.rotated);
  args.key = sideOf(o.key, o.keyRoom, o.lags);
  args.value = sideOf(o.value, o.valueRoom, o.lags);
  setTables(args, o.cos, o.sin, append.ints.interleaved);
  makeRelative(kernelDevice(call), args);
  launchRope(call, args);
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cuda/rope.def"
#undef HONE_KERNEL

} // namespace hone::cuda
