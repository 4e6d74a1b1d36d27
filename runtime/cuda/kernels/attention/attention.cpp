// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of attention: operands to arguments, and which kernel has which problem.

#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "../kernels.h"
#include "../row_view.h"
#include "exact.h"

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

template <typename Element> const Element *listOf(const hone_tensor &tensor) {
  return isAbsent(tensor) ? nullptr : static_cast<const Element *>(tensor.data);
}

AttentionArguments argumentsOf(const hone_tensor *operands, const int64_t *ints, const double *floats) {
  const hone_tensor &query = operands[0], &key = operands[1], &value = operands[2];
  AttentionArguments args = {};
  args.query = viewOf(query);
  args.key = viewOf(key);
  args.value = viewOf(value);
  args.bias = viewOf(operands[3]);
  args.alibi = listOf<float>(operands[4]);
  args.sinks = listOf<float>(operands[5]);
  args.keyBegin = listOf<int64_t>(operands[6]);
  args.keyEnd = listOf<int64_t>(operands[7]);
  args.prefix = listOf<int64_t>(operands[8]);
  args.out = viewOf(operands[9]);
  args.sequences = query.sizes[0];
  args.queryHeads = query.sizes[1];
  args.queries = query.sizes[2];
  args.size = static_cast<int32_t>(query.sizes[3]);
  args.keyHeads = key.sizes[1];
  args.keys = key.sizes[2];
  args.valueSize = static_cast<int32_t>(value.sizes[3]);
  args.causal = static_cast<int32_t>(ints[0]);
  args.window = ints[1];
  args.scale = static_cast<float>(floats[0]);
  args.softcap = static_cast<float>(floats[1]);
  return args;
}

/// Divides the keys into `splits` pieces of whole tiles, and acquires memory for the sums where there is more than one.
void divideKeys(KernelDevice &device, AttentionArguments &args, int32_t splits, int32_t tile) {
  args.splitKeys = keysOfSplit(args.keys, splits, tile);
  args.splits = args.splitKeys == 0 ? 1 : static_cast<int32_t>(divideUp(args.keys, args.splitKeys));
  if (args.splits > 1)
    args.partial =
        static_cast<float *>(device.acquire(static_cast<uint64_t>(args.rows()) * static_cast<uint64_t>(args.splits) *
                                            static_cast<uint64_t>(args.valueSize + 2) * sizeof(float)));
}

void joinSplits(KernelDevice &device, AttentionArguments &args) {
  if (args.splits == 1)
    return;
  void *pointers[] = {&args};
  device.launch({kAttentionExactFatbin, "attention_join"},
                {{static_cast<uint32_t>(divideUp(args.rows(), 4)), 1, 1}, {128, 1, 1}, 0}, pointers);
  device.release(args.partial);
}

void runExact(KernelDevice &device, AttentionArguments args) {
  constexpr int32_t kResidents = 8,
                    kTile = 32 * kExactWarps; // blocks of a multiprocessor by the kernel's launch bounds
  divideKeys(device, args, splitsOf(args.rows(), args.keys, device.limits().multiprocessors, kResidents), kTile);
  void *pointers[] = {&args};
  device.launch({kAttentionExactFatbin, "attention_exact"},
                {{static_cast<uint32_t>(args.rows()), static_cast<uint32_t>(args.splits), 1},
                 {32 * kExactWarps, 1, 1},
                 static_cast<uint32_t>(exactSharedBytes(args.size, args.valueSize))},
                pointers);
  joinSplits(device, args);
}

} // namespace

void attentionF32(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *floats) {
  if (isAbsent(operands[9]))
    return;
  runExact(kernelDevice(call), argumentsOf(operands, ints, floats));
}

} // namespace hone::cuda
