// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of attention: operands to arguments, and which kernel runs a problem.

#include "../entry.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "../row_view.h"
#include "attention_fma.h"
#include "flash.h"
#include "hopper_decode.h"
#include "hopper_flash.h"

#include <algorithm>

namespace hone::cuda {
namespace {

View4 viewOf(const hone_tensor &tensor) {
  View4 view = {};
  if (isAbsent(tensor))
    return view;
  view.data = static_cast<char *>(tensor.data);
  view.dtype = tensor.dtype;
  for (int32_t axis = 0; axis < 4; ++axis)
    view.strides[axis] = tensor.sizes[axis] == 1 ? 0 : tensor.strides[axis];
  view.isVector = rowsOf(tensor).isVector;
  return view;
}

template <typename Element> ListView<Element> listOf(const hone_tensor &tensor) {
  if (isAbsent(tensor))
    return {};
  return {static_cast<const Element *>(tensor.data), tensor.strides[0]};
}

using Call = kernels::Call<kernels::TailAttention, kernels::NoWeight>;

AttentionArguments argumentsOf(const Call &call) {
  const auto &o = call.operands;
  AttentionArguments args = {};
  args.query = viewOf(o.query);
  args.key = viewOf(o.key);
  args.value = viewOf(o.value);
  args.bias = viewOf(o.bias);
  args.alibi = listOf<float>(o.alibi);
  args.sinks = listOf<float>(o.sinks);
  args.visibility = kernels::visibilityOf(o, call.ints);
  args.out = viewOf(o.out);
  if (!isAbsent(o.lse)) {
    args.lse = static_cast<float *>(o.lse.data);
    std::copy_n(o.lse.strides, 3, args.lseStrides);
  }
  args.sequences = o.query.sizes[0];
  args.queryHeads = o.query.sizes[1];
  args.queries = o.query.sizes[2];
  args.size = static_cast<int32_t>(o.query.sizes[3]);
  args.kvHeads = o.key.sizes[1];
  args.headsPerKvHead = args.kvHeads > 0 ? static_cast<int32_t>(args.queryHeads / args.kvHeads) : 1;
  args.keys = o.key.sizes[2];
  args.valueSize = static_cast<int32_t>(o.value.sizes[3]);
  if (args.bias.data && call.ints.tail != 0) {
    args.firstWithBias = args.keys - o.bias.sizes[3];
    args.bias.data -= args.firstWithBias * args.bias.strides[3] * bytesOf(args.bias.dtype);
  }
  args.scale = static_cast<float>(call.floats.scale);
  args.softcap = static_cast<float>(call.floats.softcap);
  return args;
}

/// Split-KV: divides the keys into `splits` ranges of whole tiles, and acquires memory for partial results where
/// there is more than one.
void splitKv(KernelDevice &device, AttentionArguments &args, int32_t splits, int32_t tile) {
  args.splitKeys = keysPerSplit(args.candidates(), splits, tile);
  args.splits = args.splitKeys == 0 ? 1 : static_cast<int32_t>(divideUp(args.candidates(), args.splitKeys));
  if (args.splits > 1)
    args.partial =
        static_cast<float *>(device.acquire(static_cast<uint64_t>(args.rows()) * static_cast<uint64_t>(args.splits) *
                                            static_cast<uint64_t>(args.valueSize + 2) * sizeof(float)));
}

void mergeSplits(KernelDevice &device, AttentionArguments &args) {
  if (args.splits == 1)
    return;
  void *pointers[] = {&args};
  device.launch({kAttentionFmaFatbin, "attention_merge"},
                {{static_cast<uint32_t>(args.rows()), 1, 1}, {kMergeThreads, 1, 1}, 0}, pointers);
  device.release(args.partial);
}

void runAttentionFma(KernelDevice &device, AttentionArguments args) {
  constexpr int32_t kTile = 32 * kAttentionFmaWarps;
  int32_t residents = args.isMasked() ? kMaskedFmaResidents : kFmaResidents;
  splitKv(device, args,
          kvSplits(args.rows(), args.candidates(), device.limits().multiprocessors, residents, kLeastSplitKeys), kTile);
  void *pointers[] = {&args};
  device.launch({kAttentionFmaFatbin, args.isMasked() ? "attention_fma_masked" : "attention_fma"},
                {{static_cast<uint32_t>(args.rows()), static_cast<uint32_t>(args.splits), 1},
                 {32 * kAttentionFmaWarps, 1, 1},
                 static_cast<uint32_t>(attentionFmaSharedBytes(args.size, args.valueSize))},
                pointers);
  mergeSplits(device, args);
}

/// Whether keys and values can be copied unconverted to the tiles that tensor cores read.
bool areTiles(const AttentionArguments &args) {
  return args.key.dtype == args.value.dtype && args.key.dtype != HONE_F32 && args.key.isVector && args.value.isVector &&
         args.size % 8 == 0 && args.valueSize % 8 == 0;
}

/// Kernels for a pair of types: by head size 64 or 128, and by warps that divide rows, 1 or 4.
struct FlashFunctions {
  const char *names[2][2];
  int32_t cachePlanes, queryPlanes;
};

const FlashFunctions &flashFunctions(const AttentionArguments &args) {
  static constexpr FlashFunctions f16 = {
      {{"flash_f16_64_1", "flash_f16_64_4"}, {"flash_f16_128_1", "flash_f16_128_4"}}, 1, 1};
  static constexpr FlashFunctions bf16 = {
      {{"flash_bf16_64_1", "flash_bf16_64_4"}, {"flash_bf16_128_1", "flash_bf16_128_4"}}, 1, 1};
  static constexpr FlashFunctions split = {
      {{"flash_split_64_1", "flash_split_64_4"}, {"flash_split_128_1", "flash_split_128_4"}}, 1, 2};
  static constexpr FlashFunctions wide = {
      {{"flash_double_64_1", "flash_double_64_4"}, {"flash_double_128_1", "flash_double_128_4"}}, 2, 2};
  if (areTiles(args) && args.query.dtype == args.key.dtype)
    return args.key.dtype == HONE_F16 ? f16 : bf16;
  return areTiles(args) && args.key.dtype == HONE_BF16 ? split : wide;
}

void runFlash(KernelDevice &device, AttentionArguments args) {
  FlashPlan plan = planFlash(args.size, args.valueSize, args.queries, args.headsPerKvHead);
  const FlashFunctions &functions = flashFunctions(args);
  int64_t heads = args.sequences * args.kvHeads;
  splitKv(device, args, flashSplits(plan, heads, args.keys, device.limits().multiprocessors), kFlashKeys);
  void *pointers[] = {&args};
  device.launch(
      {kFlashFatbin, functions.names[plan.size == 128][plan.rowWarps == 4]},
      {{static_cast<uint32_t>(plan.tiles), static_cast<uint32_t>(heads), static_cast<uint32_t>(args.splits)},
       {32 * kFlashWarps, 1, 1},
       static_cast<uint32_t>(flashSharedBytes(plan.size, plan.rowWarps, functions.cachePlanes, functions.queryPlanes))},
      pointers);
  mergeSplits(device, args);
}

/// The tensor-core kernel has heads of up to 128 elements, and tiles of which rows see an interval of keys; grids are limited
/// along y, and rows are counted in 32 bits.
bool fitsFlash(const AttentionArguments &args) {
  return !args.isMasked() && flashSize(args.size, args.valueSize) != 0 && args.keys > 0 &&
         args.sequences * args.kvHeads <= kMaxGridY && args.queries * args.headsPerKvHead <= kMostFlashRows;
}

void run(hone_call *call, const Call &attention) {
  if (isAbsent(attention.operands.out) && isAbsent(attention.operands.lse))
    return;
  AttentionArguments args = argumentsOf(attention);
  KernelDevice &device = kernelDevice(call);
  if (fitsHopperFlash(device.limits(), args))
    runHopperFlash(device, args);
  else if (fitsHopperDecode(device.limits(), args))
    runHopperDecode(device, args);
  else
    (fitsFlash(args) ? runFlash : runAttentionFma)(device, args);
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cuda/attention.def"
#undef HONE_KERNEL

} // namespace hone::cuda
