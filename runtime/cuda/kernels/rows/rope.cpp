// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of rotary position embedding and of appends to the state.

#include "rope.h"

#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "../kernels.h"

namespace hone::cuda {
namespace {

RopeRows sideOf(const hone_tensor &from, const hone_tensor &to) {
  RopeRows side = {rowsOf(from), rowsOf(to), 0, from.sizes[1]};
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

} // namespace

void ropeF32(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  RopeArguments args = {};
  args.positions = operands[0].sizes[2];
  args.query = sideOf(operands[0], operands[3]);
  setTables(args, operands[1], operands[2], ints[0]);
  launchRope(call, args);
}

void appendF32(hone_call *call, const hone_tensor *operands, const int64_t *, const double *) {
  RopeArguments args = {};
  args.positions = operands[0].sizes[2];
  args.key = sideOf(operands[0], operands[2]);
  args.value = sideOf(operands[1], operands[3]);
  launchRope(call, args);
}

void ropeAppendF32(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  RopeArguments args = {};
  args.positions = operands[0].sizes[2];
  args.query = sideOf(operands[0], operands[5]);
  args.key = sideOf(operands[1], operands[6]);
  args.value = sideOf(operands[2], operands[7]);
  setTables(args, operands[3], operands[4], ints[0]);
  launchRope(call, args);
}

} // namespace hone::cuda
