// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention of one query a sequence over a cache of 16 bits: split-KV within a cluster.
//
// A decoding step is a chain of such kernels, each shorter than a launch used to be, so what counts is latency: the
// blocks of a cluster divide the keys, their warps go through tiles of 16 keys without a barrier, and the cluster merges
// its partial results by way of distributed shared memory, without another kernel. What only other problems need is left
// to flash.cu, so that the instructions of a step stay in the caches of the SMs.

#include "../device/attention_rows.h"
#include "../device/cp_async.h"
#include "../device/mbarrier.h"
#include "../device/mma.h"
#include "../device/overlap.h"
#include "../device/vectors.h"
#include "hopper_decode.h"

namespace hone::cuda {

/// Size: of a head at most; elements past the end are zeros. Split: queries are of more bits than the cache, and split into hi and lo terms of bf16, and so are probabilities.
template <bool IsHalf, bool Split, int Size> class Decode {
public:
  __device__ Decode(const DecodeArguments &all, char *shared)
      : args(all.attention), stateLength(all.stateLength), shared(shared), warp(threadIdx.x / 32),
        lane(threadIdx.x % 32), rows(args.headsPerKvHead), sequence(blockIdx.y / static_cast<uint32_t>(args.kvHeads)),
        kvHead(blockIdx.y - sequence * args.kvHeads),
        tiles(sharedAddress(shared) + decodeQueryBytes(Size) + warp * kDecodeStages * kStageBytes) {}

  __device__ void run() {
    kernels::Visibility visibility = args.visibility;
    visibility.keys += *stateLength;
    KeyInterval keys = kernels::intervalOf(visibility, sequence, 0);
    begin = static_cast<int32_t>(keys.begin), end = static_cast<int32_t>(keys.end);
    int32_t key = begin / kDecodeKeys * kDecodeKeys + kDecodeKeys * (kDecodeWarps * blockIdx.x + warp), ahead = key;
#pragma unroll 1
    for (int stage = 0; stage < kDecodeStages; ++stage, ahead += kStep)
      fetch(ahead, tiles + stage * kStageBytes);
    loadQueries();
    __syncthreads();
    int stage = 0;
#pragma unroll 1
    for (; key < end; key += kStep, ahead += kStep) {
      cpAsyncWaitGroup<kDecodeStages - 1>();
      __syncwarp();
      uint32_t tile = tiles + stage * kStageBytes;
      addTile(key, tile);
      __syncwarp();
      fetch(ahead, tile);
      stage = stage + 1 == kDecodeStages ? 0 : stage + 1;
    }
    cpAsyncWaitGroup<0>();
    __syncthreads();
    stageSums();
    __syncthreads();
    mergeWarps();
    clusterBarrier();
    mergeBlocks();
    clusterBarrier(); // nobody exits while others read its memory
  }

private:
  static constexpr int kParts = Size / 8; // 16-byte chunks of a row
  static constexpr int kTileBytes = decodeTileBytes(Size), kStageBytes = 2 * kTileBytes;
  static constexpr int kStep = kDecodeKeys * kDecodeWarps * kDecodeBlocks;
  static constexpr int kPlanes = Split ? 2 : 1;

  // Operands

  /// Copies the keys and values of a tile, one commit group; zeros where there is no key and past the end of a head.
  __device__ void fetch(int32_t first, uint32_t to) {
    copyRows(args.key, args.size, first, to);
    copyRows(args.value, args.valueSize, first, to + kTileBytes);
    cpAsyncCommitGroup();
  }

  __device__ void copyRows(const View4 &view, int32_t size, int32_t first, uint32_t to) {
    constexpr int kRowsAtOnce = 32 / kParts;
    int part = lane % kParts, row = lane / kParts;
    const char *from = view.data + (view.offset(sequence, kvHead, first + row) + 8 * part) * 2;
#pragma unroll 4
    for (; row < kDecodeKeys; row += kRowsAtOnce) {
      bool exists = first + row < end && 8 * part < size;
      cpAsync16(to + flashByte(Size, row, part), exists ? from : view.data, exists);
      from += kRowsAtOnce * view.strides[2] * 2;
    }
  }

  /// Rows past the end are 0.
  __device__ void loadQueries() {
    const View4 &query = args.query;
#pragma unroll 1
    for (int i = threadIdx.x; i < kDecodeRows * kParts; i += 32 * kDecodeWarps) {
      int row = i / kParts, part = i % kParts;
      float x[8] = {};
      if (row < rows && 8 * part < args.size) {
        int64_t from = query.offset(sequence, kvHead * rows + row, 0) + 8 * part;
        loadFour(x, query.data, from, query.dtype);
        loadFour(x + 4, query.data, from + 4, query.dtype);
      }
      uint32_t high[4], low[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        high[j] = packPair<IsHalf>(x[2 * j], x[2 * j + 1]);
        low[j] = packRestBf16x2(high[j], x[2 * j], x[2 * j + 1]);
      }
      char *to = shared + flashByte(Size, row, part);
      *reinterpret_cast<uint4 *>(to) = {high[0], high[1], high[2], high[3]};
      if constexpr (Split)
        *reinterpret_cast<uint4 *>(to + decodeQueryBytes(Size) / 2) = {low[0], low[1], low[2], low[3]};
    }
  }

  __device__ static void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    if constexpr (IsHalf)
      mmaF16(c, a, b0, b1);
    else
      mmaBf16(c, a, b0, b1);
  }

  // Sums

  __device__ void addTile(int32_t first, uint32_t tile) {
    float logits[2][4] = {}; // of keys 0 … 7 and 8 … 15
#pragma unroll
    for (int step = 0; step < Size / 16; ++step) {
      uint32_t b[4];
      ldmatrixX4(b, tile + flashByte(Size, lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
#pragma unroll
      for (int plane = 0; plane < kPlanes; ++plane) {
        uint32_t a[4];
        ldmatrixX4(a, sharedAddress(shared) + plane * decodeQueryBytes(Size) / 2 +
                          flashByte(Size, lane % 16, 2 * step + lane / 16));
        multiply(logits[0], a, b[0], b[1]);
        multiply(logits[1], a, b[2], b[3]);
      }
    }
    updateSoftmax(logits, first);
    uint32_t a[kPlanes][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float (&from)[4] = logits[i / 2];
      a[0][i] = packPair<IsHalf>(from[i % 2 * 2], from[i % 2 * 2 + 1]);
      if constexpr (Split)
        a[1][i] = packRestBf16x2(a[0][i], from[i % 2 * 2], from[i % 2 * 2 + 1]);
    }
#pragma unroll
    for (int part = 0; part < kParts; part += 2) {
      uint32_t b[4];
      ldmatrixX4Transposed(b, tile + kTileBytes + flashByte(Size, lane % 16, part + lane / 16));
#pragma unroll
      for (int plane = 0; plane < kPlanes; ++plane) {
        multiply(values[part], a[plane], b[0], b[1]);
        multiply(values[part + 1], a[plane], b[2], b[3]);
      }
    }
  }

  /// Online softmax: logits become probabilities relative to the running maximum; earlier sums and values are
  /// rescaled.
  __device__ void updateSoftmax(float (&logits)[2][4], int32_t first) {
#pragma unroll
    for (int half = 0; half < 2; ++half) { // rows g and g + 8
      float now = runningMax[half];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int32_t key = first + i / 2 * 8 + lane % 4 * 2 + i % 2;
        float &logit = logits[i / 2][2 * half + i % 2];
        logit = key >= begin && key < end ? logit * args.scale : -infinity();
        now = maxNan(now, logit);
      }
      now = maxNan(now, __shfl_xor_sync(~0u, now, 1));
      now = maxNan(now, __shfl_xor_sync(~0u, now, 2));
      float rescale = weightOf(runningMax[half], now);
      runningMax[half] = now;
      sum[half] *= rescale;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float &logit = logits[i / 2][2 * half + i % 2];
        logit = weightOf(logit, now);
        sum[half] += logit;
      }
#pragma unroll
      for (int part = 0; part < kParts; ++part)
        values[part][2 * half] *= rescale, values[part][2 * half + 1] *= rescale;
    }
  }

  /// exp(logit - runningMax); 0 where no logit above -inf has been seen.
  __device__ static float weightOf(float logit, float runningMax) {
    return runningMax == -infinity() ? 0 : __expf(logit - runningMax);
  }

  // Merges. Sums are [row][Size], and states [row] of running maximum and sum of exponentials.

  __device__ float *sumsOf(int part) const {
    return reinterpret_cast<float *>(shared) + part * kDecodeRows * (Size + 2);
  }
  __device__ float2 *statesOf(int part) const { return reinterpret_cast<float2 *>(sumsOf(part) + kDecodeRows * Size); }

  __device__ void stageSums() {
    float *to = sumsOf(warp);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = lane / 4 + 8 * half;
      sum[half] += __shfl_xor_sync(~0u, sum[half], 1);
      sum[half] += __shfl_xor_sync(~0u, sum[half], 2);
      if (lane % 4 == 0)
        statesOf(warp)[row] = {runningMax[half], sum[half]};
#pragma unroll
      for (int part = 0; part < kParts; ++part)
        *reinterpret_cast<float2 *>(to + row * Size + 8 * part + lane % 4 * 2) = {values[part][2 * half],
                                                                                  values[part][2 * half + 1]};
    }
  }

  /// Those of the warps become those of the block.
  __device__ void mergeWarps() {
#pragma unroll 1
    for (int i = threadIdx.x; i < rows * Size; i += 32 * kDecodeWarps) {
      int row = i / Size;
      float most = -infinity(), total = 0, value = 0;
#pragma unroll
      for (int part = 0; part < kDecodeWarps; ++part)
        most = maxNan(most, statesOf(part)[row].x);
#pragma unroll
      for (int part = 0; part < kDecodeWarps; ++part) {
        float2 state = statesOf(part)[row];
        float factor = weightOf(state.x, most);
        total += factor * state.y;
        value += factor * sumsOf(part)[i];
      }
      sumsOf(kDecodeWarps)[i] = value;
      if (i % Size == 0)
        statesOf(kDecodeWarps)[row] = {most, total};
    }
  }

  /// Each block of the cluster merges and stores a part of the output.
  __device__ void mergeBlocks() {
    uint32_t sums = sharedAddress(sumsOf(kDecodeWarps)), states = sharedAddress(statesOf(kDecodeWarps));
#pragma unroll 1
    for (int i = 32 * kDecodeWarps * blockIdx.x + threadIdx.x; i < rows * Size;
         i += 32 * kDecodeWarps * kDecodeBlocks) {
      int row = i / Size;
      if (i % Size >= args.valueSize)
        continue;
      int64_t head = kvHead * rows + row;
      float most[kDecodeBlocks], sum[kDecodeBlocks], value[kDecodeBlocks];
#pragma unroll
      for (int block = 0; block < kDecodeBlocks; ++block) {
        most[block] = loadRemote(states + 8 * row, block);
        sum[block] = loadRemote(states + 8 * row + 4, block);
        value[block] = loadRemote(sums + 4 * i, block);
      }
      float sink = args.sinks.at(head, -infinity()), running = sink;
#pragma unroll
      for (int block = 0; block < kDecodeBlocks; ++block)
        running = maxNan(running, most[block]);
      float total = weightOf(sink, running), result = 0;
#pragma unroll
      for (int block = 0; block < kDecodeBlocks; ++block) {
        float factor = weightOf(most[block], running);
        total += factor * sum[block];
        result += factor * value[block];
      }
      storeElement(args.out.data, args.out.offset(sequence, head, 0) + i % Size * args.out.strides[3], args.out.dtype,
                   total == 0 ? 0 : result / total);
    }
  }

  /// From shared memory of another block of the cluster.
  __device__ static float loadRemote(uint32_t address, uint32_t block) {
    float value;
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %1, %2; ld.shared::cluster.f32 %0, [there]; }"
                 : "=f"(value)
                 : "r"(address), "r"(block)
                 : "memory");
    return value;
  }

  const AttentionArguments &args;
  const int64_t *const stateLength;
  char *const shared;
  const int warp, lane, rows;
  const int64_t sequence, kvHead;
  const uint32_t tiles;
  int32_t begin, end; // visible keys
  float runningMax[2] = {-infinity(), -infinity()}, sum[2] = {}, values[kParts][4] = {};
};

} // namespace hone::cuda

#define HONE_DECODE(name, isHalf, split, size)                                                                         \
  extern "C" __global__ void __launch_bounds__(32 * hone::cuda::kDecodeWarps)                                          \
      __cluster_dims__(hone::cuda::kDecodeBlocks, 1, 1)                                                                \
          name(const __grid_constant__ hone::cuda::DecodeArguments args) {                                             \
    extern __shared__ __align__(128) char decodeShared[];                                                              \
    hone::cuda::enterInOrder();                                                                                        \
    hone::cuda::Decode<isHalf, split, size>(args, decodeShared).run();                                                 \
  }

#define HONE_DECODE_SIZES(name, isHalf, split)                                                                         \
  HONE_DECODE(name##_64, isHalf, split, 64)                                                                            \
  HONE_DECODE(name##_128, isHalf, split, 128)

HONE_DECODE_SIZES(hopper_decode_f16, true, false)
HONE_DECODE_SIZES(hopper_decode_bf16, false, false)
HONE_DECODE_SIZES(hopper_decode_split, false, true)
