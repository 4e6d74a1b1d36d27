// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention for many queries on sm_90a, in the way of FlashAttention-3 (Shah et al., 2024): one thread has the copy engine bring tiles of keys
// and values, and two warpgroups have 64 queries each. A warpgroup begins the product with the next tile of keys before it
// multiplies the last weights with their values, and computes the next weights meanwhile; the two take turns in beginning products, so
// that one computes weights while the other's products are under way.
//
// Logits are kept as products with the query, before the scale: weights are 2^(c · product - c · largest) with c = scale · log2(e).
// With a soft cap they are kept as capped logits, with c = log2(e).

#include "../device/async_copy.h"
#include "../device/attention_rows.h"
#include "../device/box_copy.h"
#include "../device/warpgroup.h"
#include "hopper_flash.h"

namespace hone::cuda {

constexpr float kLog2E = 1.4426950408889634f;

__device__ inline float exp2Fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Barriers in shared memory: queries have come; keys, values of a stage have come; keys, values of a stage are not needed any more.
class Barriers {
public:
  __device__ explicit Barriers(uint32_t address) : address(address) {}
  __device__ uint32_t queries() const { return address; }
  __device__ uint32_t full(int kind, int stage) const { return address + 8 * (1 + 2 * stage + kind); }
  __device__ uint32_t empty(int kind, int stage) const { return full(kind, stage) + 16 * kHopperStages; }
  __device__ void make() const {
    constexpr uint32_t kConsumerWarps = 4 * kHopperConsumers;
    makeBarrier(queries(), 1);
    for (int stage = 0; stage < kHopperStages; ++stage)
      for (int kind = 0; kind < 2; ++kind)
        makeBarrier(full(kind, stage), 1), makeBarrier(empty(kind, stage), kConsumerWarps);
    publishBarriers();
  }

private:
  const uint32_t address;
};
constexpr int kKeys = 0, kValues = 1; // kinds

struct HopperMaps {
  const TensorMap &query, &key, &value;
};

/// What a block has to do.
struct HopperWork {
  int64_t sequence, head, keyHead, firstQuery;
  HopperTiles tiles;

  __device__ HopperWork(const HopperArguments &args) {
    const AttentionArguments &attention = args.attention;
    HopperUnit unit = unitOf(args.plan, blockIdx.x);
    auto heads = static_cast<int32_t>(attention.queryHeads);
    sequence = unit.head / heads;
    head = unit.head % heads;
    keyHead = head / (attention.queryHeads / attention.keyHeads);
    firstQuery = int64_t{unit.tile} * kHopperRows;
    int64_t last = firstQuery + kHopperRows < attention.queries ? firstQuery + kHopperRows : attention.queries;
    tiles = tilesOf({visibleTo(attention, firstQuery).begin, visibleTo(attention, last - 1).end});
  }

  /// Nothing for queries behind the last.
  __device__ KeyRange visibleTo(const AttentionArguments &attention, int64_t query) const {
    if (query >= attention.queries)
      return {0, 0};
    return visibleKeys(attention.keys - attention.queries + query, attention.keys, attention.causal, attention.window,
                       attention.keyBegin.at(sequence, 0), attention.keyEnd.at(sequence, attention.keys),
                       attention.prefix.at(sequence, 0));
  }
  /// Tiles from the last to the first: those with a mask are the first for a causal one, and then the way is straight.
  __device__ int32_t tile(int32_t step) const { return tiles.first + tiles.count - 1 - step; }
};

template <int Size> class HopperProducer {
public:
  __device__ HopperProducer(const HopperWork &work, const HopperMaps &maps, uint32_t shared)
      : work(work), maps(maps), shared(shared), barriers(shared + hopperLayout(Size).barriers) {}

  __device__ void run() {
    if (work.tiles.count == 0)
      return;
    prefetchMap(maps.query), prefetchMap(maps.key), prefetchMap(maps.value);
    arriveAndExpect(barriers.queries(), hopperQueryBytes(Size));
#pragma unroll
    for (int part = 0; part < Size / 64; ++part)
      copyBox(shared + part * kHopperRows * kBoxRowBytes, maps.query, 64 * part, static_cast<int32_t>(work.firstQuery),
              static_cast<int32_t>(work.head), static_cast<int32_t>(work.sequence), barriers.queries());
    for (int32_t step = 0; step < work.tiles.count; ++step) {
      copyTile(kKeys, maps.key, hopperLayout(Size).keys, step);
      copyTile(kValues, maps.value, hopperLayout(Size).values, step);
    }
  }

private:
  __device__ void copyTile(int kind, const TensorMap &map, int first, int32_t step) {
    int stage = step % kHopperStages;
    uint32_t full = barriers.full(kind, stage), to = shared + first + stage * hopperTileBytes(Size);
    waitAt(barriers.empty(kind, stage), (step / kHopperStages & 1) ^ 1);
    arriveAndExpect(full, hopperTileBytes(Size));
#pragma unroll
    for (int part = 0; part < Size / 64; ++part)
      copyBox(to + part * kHopperKeys * kBoxRowBytes, map, 64 * part, work.tile(step) * kHopperKeys,
              static_cast<int32_t>(work.keyHead), static_cast<int32_t>(work.sequence), full);
  }

  const HopperWork &work;
  const HopperMaps &maps;
  const uint32_t shared;
  const Barriers barriers;
};

template <bool IsHalf, int Size> class HopperConsumer {
public:
  __device__ HopperConsumer(const AttentionArguments &args, const HopperWork &work, uint32_t shared)
      : args(args), work(work), shared(shared), barriers(shared + hopperLayout(Size).barriers),
        group(__shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0) - 1), lane(threadIdx.x % 32),
        firstRow(work.firstQuery + 64 * group + threadIdx.x % 128 / 32 * 16 + lane / 4),
        scale((args.softcap > 0 ? 1 : args.scale) * kLog2E) {
    int64_t first = work.firstQuery + 64 * group, last = first + 63 < args.queries ? first + 63 : args.queries - 1;
    firstEnd = static_cast<int32_t>(work.visibleTo(args, first).end);
    lastBegin = static_cast<int32_t>(work.visibleTo(args, last).begin);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      KeyRange range = work.visibleTo(args, firstRow + 8 * half);
      begin[half] = static_cast<int32_t>(range.begin), end[half] = static_cast<int32_t>(range.end);
    }
  }

  __device__ void run() {
    if (work.tiles.count > 0)
      addTiles();
    writeRows();
  }

private:
  static constexpr int kSteps = kHopperKeys / 16; // products of weights and values, of 16 keys each
  using Logits = float[kHopperKeys / 2];

  __device__ void addTiles() {
    int32_t count = work.tiles.count;
    waitAt(barriers.queries(), 0);
    if (group == 1 && count > 1)
      passTurn();
    beginWeights();
#pragma unroll 1
    for (int32_t step = 1; step < count; ++step)
      addTile(step, group == 0 || step + 1 < count);
    await(kValues, count - 1);
    fence();
    multiplyValues(count - 1);
    waitForProducts<0>(values);
  }

  __device__ void beginWeights() {
    Logits logits;
    float factors[2];
    await(kKeys, 0);
    fenceProducts(logits);
    multiplyKeys(logits, 0);
    waitForProducts<0>(logits);
    release(kKeys, 0);
    weigh(logits, work.tile(0), factors);
    pack(logits);
  }

  /// The weights of a tile, and the values of the one before.
  __device__ void addTile(int32_t step, bool passes) {
    Logits logits;
    float factors[2];
    await(kValues, step - 1);
    await(kKeys, step);
    awaitTurn();
    settle(logits);
    fence();
    multiplyKeys(logits, step);
    multiplyValues(step - 1);
    if (passes)
      passTurn();
    waitForProducts<1>(logits);
    release(kKeys, step);
    weigh(logits, work.tile(step), factors);
    waitForProducts<0>(values);
    release(kValues, step - 1);
#pragma unroll
    for (int i = 0; i < Size / 2; ++i)
      values[i] *= factors[i / 2 % 2];
    pack(logits);
  }

  // Turns of the two warpgroups: each waits at its own barrier, where the other one arrives.

  __device__ void awaitTurn() const { asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory"); }
  __device__ void passTurn() const { asm volatile("bar.arrive %0, 256;" ::"r"(2 - group) : "memory"); }

  __device__ void await(int kind, int32_t step) const {
    waitAt(barriers.full(kind, step % kHopperStages), step / kHopperStages & 1);
  }
  __device__ void release(int kind, int32_t step) const {
    if (lane == 0)
      arriveAt(barriers.empty(kind, step % kHopperStages));
  }

  // Products

  __device__ void fence() {
#pragma unroll
    for (int i = 0; i < kSteps; ++i)
      settle(weights[i]);
    fenceProducts(values);
  }

  __device__ void multiplyKeys(Logits &logits, int32_t step) const {
    uint64_t a = matrixAt(shared + group * 64 * kBoxRowBytes);
    uint64_t b = matrixAt(shared + hopperLayout(Size).keys + step % kHopperStages * hopperTileBytes(Size));
#pragma unroll
    for (int i = 0; i < Size / 16; ++i) { // 32 bytes of rows of 128
      int inRow = i % 4 * 32, part = i / 4 * kBoxRowBytes;
      beginProduct<IsHalf>(logits, a + ((inRow + part * kHopperRows) >> 4), b + ((inRow + part * kHopperKeys) >> 4),
                           i > 0);
    }
    commitProducts();
  }

  __device__ void multiplyValues(int32_t step) {
    uint64_t b = matrixAt(shared + hopperLayout(Size).values + step % kHopperStages * hopperTileBytes(Size),
                          kHopperKeys * kBoxRowBytes);
#pragma unroll
    for (int i = 0; i < kSteps; ++i)
      beginProduct<IsHalf>(values, weights[i], b + (i * 16 * kBoxRowBytes >> 4));
    commitProducts();
  }

  // Weights

  /// Products with queries become weights, relative to the largest logits so far; `factors` bring earlier sums to these.
  __device__ void weigh(Logits &logits, int32_t tile, float (&factors)[2]) {
    if (args.softcap > 0)
      capLogits(logits);
    if (needsMask(tile, lastBegin, firstEnd))
      hideLogits(logits, tile * kHopperKeys);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float now = largest[half], part = 0;
#pragma unroll
      for (int i = 2 * half; i < kHopperKeys / 2; i += 4)
        now = larger(now, larger(logits[i], logits[i + 1]));
      now = larger(now, __shfl_xor_sync(~0u, now, 1));
      now = larger(now, __shfl_xor_sync(~0u, now, 2));
      float zero = now == -infinity() ? 0 : now * scale;
      factors[half] = exp2Fast(largest[half] * scale - zero);
      largest[half] = now;
#pragma unroll
      for (int i = 2 * half; i < kHopperKeys / 2; i += 4)
#pragma unroll
        for (int j = i; j < i + 2; ++j) {
          logits[j] = exp2Fast(fmaf(logits[j], scale, -zero));
          part += logits[j];
        }
      sum[half] = sum[half] * factors[half] + part;
    }
  }

  /// c · tanh(l / c) = c - 2c / (exp(2l / c) + 1), which errs by less than 1e-6 of c.
  __device__ void capLogits(Logits &logits) const {
    float factor = args.scale * 2 * kLog2E / args.softcap;
#pragma unroll
    for (int i = 0; i < kHopperKeys / 2; ++i)
      logits[i] = args.softcap - __fdividef(2 * args.softcap, exp2Fast(logits[i] * factor) + 1);
  }

  __device__ void hideLogits(Logits &logits, int32_t first) const {
#pragma unroll
    for (int i = 0; i < kHopperKeys / 2; ++i) {
      int key = first + i / 4 * 8 + lane % 4 * 2 + i % 2, half = i / 2 % 2;
      if (key < begin[half] || key >= end[half])
        logits[i] = -infinity();
    }
  }

  __device__ static uint32_t pair(float low, float high) { return IsHalf ? pairF16(low, high) : pairBf16(low, high); }

  /// Sums of products lie in registers as numbers of A do.
  __device__ void pack(const Logits &logits) {
#pragma unroll
    for (int i = 0; i < kSteps; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        weights[i][j] = pair(logits[8 * i + 2 * j], logits[8 * i + 2 * j + 1]);
  }

  // Results

  __device__ void writeRows() const {
    bool inPairs = args.out.isVector && args.out.dtype != HONE_F32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float factor = factorOf(half);
      if (firstRow + 8 * half >= args.queries)
        continue;
      int64_t row = args.out.offset(work.sequence, work.head, firstRow + 8 * half);
#pragma unroll
      for (int i = 0; i < Size / 8; ++i) {
        int number = 8 * i + lane % 4 * 2;
        float low = values[4 * i + 2 * half] * factor, high = values[4 * i + 2 * half + 1] * factor;
        if (inPairs) {
          *reinterpret_cast<uint32_t *>(args.out.data + 2 * (row + number)) =
              args.out.dtype == HONE_F16 ? pairF16(low, high) : pairBf16(low, high);
        } else {
          storeNumber(args.out.data, row + number * args.out.strides[3], args.out.dtype, low);
          storeNumber(args.out.data, row + (number + 1) * args.out.strides[3], args.out.dtype, high);
        }
      }
    }
  }

  /// What sums of weighted values are multiplied with: 1 over the sum of all weights, of four lanes and the sink.
  __device__ float factorOf(int half) const {
    float total = sum[half], most = largest[half] * scale, factor = 1;
    total += __shfl_xor_sync(~0u, total, 1);
    total += __shfl_xor_sync(~0u, total, 2);
    if (args.sinks.data) {
      float sink = args.sinks.at(work.head, 0) * kLog2E, now = larger(most, sink);
      if (now == -infinity())
        return 0;
      factor = exp2f(most - now);
      total = total * factor + exp2f(sink - now);
    }
    return total == 0 ? 0 : factor / total;
  }

  const AttentionArguments &args;
  const HopperWork &work;
  const uint32_t shared;
  const Barriers barriers;
  const int group, lane;
  const int64_t firstRow; // of this lane; the other one is eight rows further
  const float scale;      // of logits as they are kept, times log2(e)
  int32_t begin[2], end[2], firstEnd, lastBegin;
  float largest[2] = {-infinity(), -infinity()}, sum[2] = {}, values[Size / 2] = {};
  uint32_t weights[kSteps][4];
};

template <bool IsHalf, int Size>
__device__ inline void attend(const HopperArguments &args, const HopperMaps &maps, uint32_t shared) {
  // Of 65536 registers each of 384 threads has 168 at the beginning, and in the end 24 and twice 240.
  constexpr int kFewRegisters = 24, kManyRegisters = 240;
  if (threadIdx.x == 0)
    Barriers(shared + hopperLayout(Size).barriers).make();
  __syncthreads();
  if (threadIdx.x < 128) {
    giveRegistersBack<kFewRegisters>();
    if (threadIdx.x == 0) {
      HopperWork work(args);
      HopperProducer<Size>(work, maps, shared).run();
    }
  } else {
    takeRegisters<kManyRegisters>();
    HopperWork work(args);
    HopperConsumer<IsHalf, Size>(args.attention, work, shared).run();
  }
}

} // namespace hone::cuda

#define HONE_HOPPER_FLASH(name, isHalf, size)                                                                          \
  extern "C" __global__ void __launch_bounds__(hone::cuda::kHopperThreads, 1) name(                                    \
      const __grid_constant__ hone::cuda::HopperArguments args, const __grid_constant__ hone::cuda::TensorMap query,   \
      const __grid_constant__ hone::cuda::TensorMap key, const __grid_constant__ hone::cuda::TensorMap value) {        \
    extern __shared__ __align__(1024) char hopperShared[];                                                             \
    hone::cuda::attend<isHalf, size>(args, {query, key, value}, hone::cuda::sharedAddress(hopperShared));              \
  }

HONE_HOPPER_FLASH(hopper_f16_64, true, 64)
HONE_HOPPER_FLASH(hopper_f16_128, true, 128)
HONE_HOPPER_FLASH(hopper_bf16_64, false, 64)
HONE_HOPPER_FLASH(hopper_bf16_128, false, 128)
