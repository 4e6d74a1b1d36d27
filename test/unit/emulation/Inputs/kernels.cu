// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that the tests of the emulated driver run. kernels.ptx is this file as a compiler makes PTX of it:
//   nvcc -ptx -arch=sm_80 kernels.cu -o kernels.ptx

#include <cuda_bf16.h>
#include <cuda_fp16.h>
extern "C" __global__ void vector_add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    c[i] = a[i] + b[i];
}
// Sum of a row; each warp first, then the first warp.
extern "C" __global__ void row_sum(const float *x, float *y, int n) {
  __shared__ float partial[32];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    sum += x[(size_t)blockIdx.x * n + i];
  for (int d = 16; d > 0; d /= 2)
    sum += __shfl_down_sync(0xffffffff, sum, d);
  if (threadIdx.x % 32 == 0)
    partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0f;
    for (int d = 16; d > 0; d /= 2)
      sum += __shfl_xor_sync(0xffffffff, sum, d);
    if (threadIdx.x == 0)
      y[blockIdx.x] = sum;
  }
}
// Steps of the Collatz sequence: lanes loop a different number of times and branch differently each time.
extern "C" __global__ void collatz(const unsigned *x, unsigned *steps, unsigned *turns, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned v = x[i], s = 0;
  while (v != 1) {
    if (v % 2 == 0)
      v /= 2;
    else
      v = 3 * v + 1;
    ++s;
  }
  steps[i] = s;
  turns[i] = __popc(__activemask());
}
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
  __shared__ float as[16][16], bs[16][17];
  int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < k; t += 16) {
    as[threadIdx.y][threadIdx.x] = row < m && t + threadIdx.x < k ? a[row * k + t + threadIdx.x] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = col < n && t + threadIdx.y < k ? b[(t + threadIdx.y) * n + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < 16; ++i)
      sum = fmaf(as[threadIdx.y][i], bs[i][threadIdx.x], sum);
    __syncthreads();
  }
  if (row < m && col < n)
    c[row * n + col] = sum;
}
extern "C" __global__ void histogram(const unsigned char *x, unsigned *counts, float *sum, unsigned *most, int n) {
  extern __shared__ unsigned local[];
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[x[i]], 1u);
    atomicAdd(sum, (float)x[i]);
    atomicMax(most, (unsigned)x[i]);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (local[i])
      atomicAdd(&counts[i], local[i]);
}
// Blocks take numbers by compare-and-swap; the last block to finish adds them up.
extern "C" __global__ void last_block(unsigned *ticket, unsigned *partial, unsigned *result) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = blockIdx.x + 1;
    __threadfence();
    unsigned old = *ticket, seen;
    do {
      seen = old;
      old = atomicCAS(ticket, seen, seen + 1);
    } while (old != seen);
    last = old == gridDim.x - 1;
  }
  if (!__syncthreads_or(threadIdx.x == 0 && last))
    return;
  unsigned sum = 0;
  for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x)
    sum += ((volatile unsigned *)partial)[i];
  sum = __reduce_add_sync(0xffffffff, sum);
  if (threadIdx.x % 32 == 0)
    atomicAdd(result, sum);
}
// A lock that lanes of one warp take from each other.
extern "C" __global__ void locked(int *lock, int *value) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      *(volatile int *)value += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
extern "C" __global__ void beyond(float *x, int n) { x[n + threadIdx.x] = 1; }
extern "C" __global__ void misaligned(char *x) { *(float4 *)(x + 4) = make_float4(1, 2, 3, 4); }
extern "C" __global__ void stuck(int *x) {
  if (threadIdx.x < 32)
    asm volatile("bar.sync 1, 128;");
  *x = 1;
}
struct Big {
  double d[3];
  int i;
  char c;
};
__constant__ float factors[4] = {1, 2, 4, 8};
__device__ int counter = 5;
extern "C" __global__ void parameters(Big big, short s, unsigned long long u, double *out) {
  int k = threadIdx.x;
  double local[8];
  for (int i = 0; i < 8; ++i)
    local[(i * 3 + k) % 8] = i * big.d[i % 3];
  double sum = 0;
  for (int i = 0; i < 8; ++i)
    sum += local[(i + k) % 8] * (i + 1);
  out[k] = sum + big.i + big.c + s + (double)u + factors[k % 4] + (k == 0 ? atomicAdd(&counter, 1) : 0);
}
extern "C" __global__ void functions(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float v = x[i];
  y[i] = expf(v);
  y[n + i] = logf(fabsf(v));
  y[2 * n + i] = sinf(v * 100.0f);
  y[3 * n + i] = tanhf(v);
  y[4 * n + i] = erff(v);
  y[5 * n + i] = sqrtf(fabsf(v));
  y[6 * n + i] = 1.0f / v;
  y[7 * n + i] = (float)__float2int_rd(v) + (float)__float2uint_rz(v);
  y[8 * n + i] = powf(fabsf(v), 1.7f);
  y[9 * n + i] = fmodf(v, 0.7f);
  y[10 * n + i] = cbrtf(v);
  y[11 * n + i] = rsqrtf(fabsf(v));
}
extern "C" __global__ void halves(const float *x, __half *h, __nv_bfloat16 *b, __half2 *h2, __nv_bfloat162 *b2, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  __half hv = __float2half(x[i]);
  __nv_bfloat16 bv = __float2bfloat16(x[i]);
  h[i] = __hfma(hv, hv, __float2half(0.1f));
  b[i] = __hfma(bv, bv, __float2bfloat16(0.1f));
  __half2 p = __floats2half2_rn(x[i], -x[i]);
  h2[i] = __hmax2(__hadd2(p, p), __hmul2(p, p));
  __nv_bfloat162 q = __floats2bfloat162_rn(x[i], -x[i]);
  b2[i] = __hmin2(__hadd2(q, q), __hmul2(q, q));
}
extern "C" __global__ void wide(const long long *x, unsigned long long *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  long long v = x[i];
  y[i] = __mul64hi(v, v * 3);
  y[n + i] = v / 7 + v % 13;
  y[2 * n + i] = __brevll(v) ^ __clzll(v) ^ __popcll(v) ^ __ffsll(v);
  y[3 * n + i] =
      (unsigned)__byte_perm((int)v, (int)(v >> 32), 0x5173) + __funnelshift_l((int)v, (int)(v >> 32), (int)v);
  y[4 * n + i] = __dp4a((int)v, (int)(v >> 32), 5) + __sad((int)v, (int)(v >> 32), 7u);
  y[5 * n + i] = (unsigned long long)((unsigned __int128)v * (unsigned long long)~v >> 37);
}
struct Pair {
  double sum;
  int count;
};
__device__ __noinline__ Pair accumulate(const float *x, int n, Pair start) {
  if (n == 0)
    return start;
  for (int i = 0; i < n; ++i) {
    if (x[i] < 0)
      return {start.sum - 1, start.count};
    start.sum += x[i];
    ++start.count;
  }
  return start;
}
__device__ __noinline__ int choose(int kind, int value) {
  switch (kind) {
  case 0:
    return value * 3;
  case 1:
    return value ^ 0x55;
  case 2:
    return value - 100;
  case 3:
    return __popc(value);
  case 4:
    return value << 2;
  case 5:
    return accumulate((const float *)0, 0, {2.0, value}).count;
  case 6:
    return -value;
  case 7:
    return value / 7;
  default:
    return kind;
  }
}
// Functions that stay functions, called by some lanes, and a branch by a table.
extern "C" __global__ void calls(const float *x, int n, double *sums, int *counts, int *chosen) {
  int k = threadIdx.x;
  Pair result{0.5, 100};
  if (k % 3 != 0)
    result = accumulate(x + k, n, result);
  sums[k] = result.sum;
  counts[k] = result.count;
  chosen[k] = choose(k % 10, k + 1000);
}
// The second block faults; the others wait for what nobody writes.
extern "C" __global__ void waits(int *flag) {
  if (blockIdx.x == 1)
    flag[1 + threadIdx.x] = 1;
  while (*(volatile int *)flag == 0)
    ;
}
