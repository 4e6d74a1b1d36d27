// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of prefill attention on sm_90a.

#include "hopper_flash.h"

#include "../fatbin_index.h"
#include "../kernel_device.h"

namespace hone::cuda {
namespace {

constexpr int64_t kFewestQueries = 64; // fewer leave most rows of a block empty
constexpr int64_t kMostKeys = (int64_t{1} << 31) - kHopperFlashKeys;

/// Whether TMA can load it: 16-bit elements, and positions that begin at multiples of 16 bytes.
bool isTensor(const View4 &view) { return view.dtype != HONE_F32 && view.isVector; }

HopperFlashPlan planOf(const AttentionArguments &args) {
  return planHopperFlash(args.sequences * args.queryHeads, args.queryHeads / args.kvHeads, args.queries, args.keys,
                         args.size);
}

TensorMap makeTensorMap(KernelDevice &device, const View4 &view, const AttentionArguments &args, int64_t positions,
                        int64_t heads, int32_t rows) {
  TensorBox box = {view.data,
                   view.dtype,
                   {static_cast<uint64_t>(args.size), static_cast<uint64_t>(positions), static_cast<uint64_t>(heads),
                    static_cast<uint64_t>(args.sequences)},
                   {},
                   static_cast<uint32_t>(rows)};
  // A view has no stride along an axis of size one; a tensor map wants a multiple of 16 bytes.
  constexpr uint64_t kAny = 16;
  for (int32_t axis = 0; axis < 3; ++axis)
    box.strides[axis] = view.strides[2 - axis] == 0 ? kAny : 2 * static_cast<uint64_t>(view.strides[2 - axis]);
  return device.makeTensorMap(box);
}

} // namespace

bool fitsHopperFlash(const DeviceLimits &limits, const AttentionArguments &args) {
  bool isFormat = args.query.dtype == args.key.dtype && args.key.dtype == args.value.dtype && isTensor(args.query) &&
                  isTensor(args.key) && isTensor(args.value);
  bool isSize = args.size == args.valueSize && (args.size == 64 || args.size == 128);
  bool isInterval = !args.bias.data && !args.alibi.data && !args.isMasked() && !args.visibility.lags.data && !args.lse;
  return limits.chip == 90 && isFormat && isSize && isInterval && args.scale > 0 && args.queries >= kFewestQueries &&
         args.keys > 0 && args.keys <= kMostKeys &&
         kvSplits(planOf(args).blocks(), args.keys, limits.multiprocessors, 1, kLeastSplitKeys) == 1;
}

void runHopperFlash(KernelDevice &device, const AttentionArguments &args) {
  HopperFlashArguments all = {args, planOf(args)};
  TensorMap query = makeTensorMap(device, args.query, args, args.queries, args.queryHeads, kHopperFlashQueries);
  TensorMap key = makeTensorMap(device, args.key, args, args.keys, args.kvHeads, kHopperFlashKeys);
  TensorMap value = makeTensorMap(device, args.value, args, args.keys, args.kvHeads, kHopperFlashKeys);
  bool isHalf = args.query.dtype == HONE_F16, isWide = args.size == 128;
  const char *name = isHalf ? (isWide ? "hopper_flash_f16_128" : "hopper_flash_f16_64")
                            : (isWide ? "hopper_flash_bf16_128" : "hopper_flash_bf16_64");
  void *pointers[] = {&all, &query, &key, &value};
  device.launch({kHopperFlashFatbin, name},
                {{static_cast<uint32_t>(all.plan.blocks()), 1, 1},
                 {kHopperFlashThreads, 1, 1},
                 static_cast<uint32_t>(hopperFlashLayout(args.size).bytes)},
                pointers);
}

} // namespace hone::cuda
