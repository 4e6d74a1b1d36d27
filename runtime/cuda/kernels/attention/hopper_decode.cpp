// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of attention in decoding on sm_90.

#include "hopper_decode.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"

namespace hone::cuda {

bool fitsHopperDecode(const DeviceLimits &limits, const AttentionArguments &args) {
  bool isFormat = args.key.dtype == args.value.dtype && args.key.dtype != HONE_F32 && args.key.isVector &&
                  args.value.isVector && args.query.isVector &&
                  (args.key.dtype == HONE_BF16 || args.query.dtype == HONE_F16);
  bool isSize = flashSize(args.size, args.valueSize) != 0 && args.size % 8 == 0 && args.valueSize % 8 == 0;
  bool isInterval = !args.bias.data && !args.alibi.data && !args.isMasked() && !args.lse && args.softcap == 0;
  int64_t heads = args.sequences * args.kvHeads;
  return limits.chip == 90 && isFormat && isSize && isInterval && args.queries == 1 && args.keys > 0 &&
         args.headsPerKvHead <= kDecodeRows && heads <= kMaxGridY &&
         suitsDecodeClusters(heads, args.keys, limits.multiprocessors);
}

void runHopperDecode(KernelDevice &device, const AttentionArguments &args) {
  bool isHalf = args.key.dtype == HONE_F16, isSplit = args.query.dtype != args.key.dtype;
  int32_t size = flashSize(args.size, args.valueSize);
  bool isWide = size == 128;
  const char *name = isHalf    ? (isWide ? "hopper_decode_f16_128" : "hopper_decode_f16_64")
                     : isSplit ? (isWide ? "hopper_decode_split_128" : "hopper_decode_split_64")
                               : (isWide ? "hopper_decode_bf16_128" : "hopper_decode_bf16_64");
  StateLength length = device.stateLength();
  DecodeArguments own = {args, length.onDevice};
  own.attention.visibility.keys -= length.here;
  own.attention.keys = own.attention.splitKeys = 0; // not read
  void *pointers[] = {&own};
  device.launch({kHopperDecodeFatbin, name},
                {{kDecodeBlocks, static_cast<uint32_t>(args.sequences * args.kvHeads), 1},
                 {32 * kDecodeWarps, 1, 1},
                 static_cast<uint32_t>(decodeSharedBytes(size))},
                pointers);
}

} // namespace hone::cuda
