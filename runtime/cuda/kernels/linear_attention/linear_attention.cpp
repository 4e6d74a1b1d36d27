// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of linear attention.

#include "linear_attention.h"
#include "../entry.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"

#include <algorithm>

namespace hone::cuda {
namespace {

TokenRows tokensOf(const hone_tensor &tensor) {
  TokenRows tokens = {rowsOf(tensor), {}};
  if (!isAbsent(tensor))
    std::copy_n(tensor.strides, tensor.rank - 1, tokens.strides);
  return tokens;
}

using Call = kernels::Call<kernels::LinearAttention, kernels::NoWeight>;

LinearAttentionArguments argumentsOf(const Call &call) {
  const auto &o = call.operands;
  LinearAttentionArguments args = {};
  args.query = tokensOf(o.query);
  args.key = tokensOf(o.key);
  args.value = tokensOf(o.value);
  args.decay = tokensOf(o.decay);
  args.beta = tokensOf(o.beta);
  args.out = tokensOf(o.out);
  args.state = matricesOf(o.state);
  args.next = matricesOf(o.next);
  args.tokens = o.out.sizes[1];
  args.heads = o.next.sizes[1];
  args.group = static_cast<int32_t>(o.out.sizes[2] / args.heads);
  args.keySize = static_cast<int32_t>(o.next.sizes[2]);
  args.valueSize = static_cast<int32_t>(o.next.sizes[3]);
  args.scale = static_cast<float>(call.floats.scale);
  return args;
}

const char *functionOf(int32_t keyRoom, bool isDelta) {
  static constexpr const char *names[3][2] = {{"linear_attention_64", "linear_attention_delta_64"},
                                              {"linear_attention_128", "linear_attention_delta_128"},
                                              {"linear_attention_256", "linear_attention_delta_256"}};
  return names[keyRoom == 64 ? 0 : keyRoom == 128 ? 1 : 2][isDelta];
}

void run(hone_call *call, const Call &attention) {
  if (isAbsent(attention.operands.out) && isAbsent(attention.operands.next))
    return;
  LinearAttentionArguments args = argumentsOf(attention);
  KernelDevice &device = kernelDevice(call);
  int64_t states = attention.operands.next.sizes[0] * args.heads;
  LinearAttentionPlan plan = planLinearAttention(states, args.keySize, args.valueSize, device.limits().multiprocessors);
  args.slices = plan.slices;
  void *pointers[] = {&args};
  device.launch({kLinearAttentionFatbin, functionOf(plan.keyRoom, args.beta.rows.data != nullptr)},
                {{static_cast<uint32_t>(plan.blocks), 1, 1}, {static_cast<uint32_t>(32 * plan.warps), 1, 1}, 0},
                pointers);
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cuda/linear_attention.def"
#undef HONE_KERNEL

} // namespace hone::cuda
