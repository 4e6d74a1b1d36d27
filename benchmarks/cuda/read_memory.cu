// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: reads memory at peak bandwidth, to which other measurements are compared. Without CUDA's headers, for
// drivers older than the toolkit.

using Chunk = unsigned __attribute__((ext_vector_type(4)));

/// Reads `count` chunks of 16 bytes once. The sum is stored only if it has one improbable value, so that no load is
/// optimized away.
extern "C" __attribute__((global)) void read_memory(const Chunk *memory, long long count, unsigned *sum) {
  constexpr int kAtOnce = 8;
  const long long threads = static_cast<long long>(__nvvm_read_ptx_sreg_nctaid_x()) * __nvvm_read_ptx_sreg_ntid_x();
  long long i = static_cast<long long>(__nvvm_read_ptx_sreg_ctaid_x()) * __nvvm_read_ptx_sreg_ntid_x() +
                __nvvm_read_ptx_sreg_tid_x();
  Chunk total = 0;
  for (; i + (kAtOnce - 1) * threads < count; i += kAtOnce * threads) {
    Chunk chunks[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      chunks[j] = memory[i + j * threads];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      total ^= chunks[j];
  }
  for (; i < count; i += threads)
    total ^= memory[i];
  if ((total.x ^ total.y ^ total.z ^ total.w) == 0x600DF00D)
    *sum = total.x;
}
