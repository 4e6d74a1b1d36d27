// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prefill attention on sm_90a as in FlashAttention-3 (Shah et al., 2024), warp-specialized: one thread issues TMA
// loads of tiles of keys and values, and two warpgroups have 64 queries each. A warpgroup issues the product with the
// next tile of keys before it multiplies the last probabilities with their values, and computes the next softmax
// meanwhile. Ping-pong scheduling: the warpgroups issue products in turn, so that one computes softmax while the
// other's products are in flight.
//
// Logits are kept unscaled: probabilities are 2^(c · product - c · maximum) with c = scale · log2(e). With a soft cap
// they are kept as capped logits, with c = log2(e).

#include "../device/attention_rows.h"
#include "../device/cp_async.h"
#include "../device/tma.h"
#include "../device/wgmma.h"
#include "hopper_flash.h"

namespace hone::cuda {

constexpr float kLog2E = 1.4426950408889634f;

__device__ inline float ex2Approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// The mbarriers: queries loaded; keys, values of a stage loaded (full); keys, values of a stage released (empty).
class Barriers {
public:
  __device__ explicit Barriers(uint32_t address) : address(address) {}
  __device__ uint32_t queries() const { return address; }
  __device__ uint32_t full(int kind, int stage) const { return address + 8 * (1 + 2 * stage + kind); }
  __device__ uint32_t empty(int kind, int stage) const { return full(kind, stage) + 16 * kHopperFlashStages; }
  __device__ void init() const {
    constexpr uint32_t kConsumerWarps = 4 * kHopperFlashConsumers;
    mbarrierInit(queries(), 1);
    for (int stage = 0; stage < kHopperFlashStages; ++stage)
      for (int kind = 0; kind < 2; ++kind)
        mbarrierInit(full(kind, stage), 1), mbarrierInit(empty(kind, stage), kConsumerWarps);
    fenceMbarrierInit();
  }

private:
  const uint32_t address;
};
constexpr int kKeys = 0, kValues = 1; // kinds

struct HopperFlashMaps {
  const TensorMap &query, &key, &value;
};

/// The work of a block.
struct HopperFlashWork {
  int64_t sequence, head, kvHead, firstQuery;
  KeyTiles tiles;

  __device__ HopperFlashWork(const HopperFlashArguments &args) {
    const AttentionArguments &attention = args.attention;
    HopperFlashTile unit = flashTileOf(args.plan, blockIdx.x);
    auto heads = static_cast<int32_t>(attention.queryHeads);
    sequence = unit.head / heads;
    head = unit.head % heads;
    kvHead = head / (attention.queryHeads / attention.kvHeads);
    firstQuery = int64_t{unit.tile} * kHopperFlashQueries;
    int64_t last =
        firstQuery + kHopperFlashQueries < attention.queries ? firstQuery + kHopperFlashQueries : attention.queries;
    tiles = keyTilesOf({visibleTo(attention, firstQuery).begin, visibleTo(attention, last - 1).end});
  }

  /// None for queries past the end.
  __device__ KeyInterval visibleTo(const AttentionArguments &attention, int64_t query) const {
    if (query >= attention.queries)
      return {0, 0};
    return kernels::intervalOf(attention.visibility, sequence, query);
  }
  /// Tiles from the last to the first: with causal masking those that need a mask come first.
  __device__ int32_t tile(int32_t step) const { return tiles.first + tiles.count - 1 - step; }
};

template <int Size> class HopperFlashProducer {
public:
  __device__ HopperFlashProducer(const HopperFlashWork &work, const HopperFlashMaps &maps, uint32_t shared)
      : work(work), maps(maps), shared(shared), barriers(shared + hopperFlashLayout(Size).barriers) {}

  __device__ void run() {
    if (work.tiles.count == 0)
      return;
    prefetchTensorMap(maps.query), prefetchTensorMap(maps.key), prefetchTensorMap(maps.value);
    mbarrierArriveExpectTx(barriers.queries(), hopperFlashQueryBytes(Size));
#pragma unroll
    for (int part = 0; part < Size / 64; ++part)
      tmaLoad(shared + part * kHopperFlashQueries * kBoxRowBytes, maps.query, 64 * part,
              static_cast<int32_t>(work.firstQuery), static_cast<int32_t>(work.head),
              static_cast<int32_t>(work.sequence), barriers.queries());
    for (int32_t step = 0; step < work.tiles.count; ++step) {
      loadTile(kKeys, maps.key, hopperFlashLayout(Size).keys, step);
      loadTile(kValues, maps.value, hopperFlashLayout(Size).values, step);
    }
  }

private:
  __device__ void loadTile(int kind, const TensorMap &map, int first, int32_t step) {
    int stage = step % kHopperFlashStages;
    uint32_t full = barriers.full(kind, stage), to = shared + first + stage * hopperFlashTileBytes(Size);
    mbarrierWait(barriers.empty(kind, stage), (step / kHopperFlashStages & 1) ^ 1);
    mbarrierArriveExpectTx(full, hopperFlashTileBytes(Size));
#pragma unroll
    for (int part = 0; part < Size / 64; ++part)
      tmaLoad(to + part * kHopperFlashKeys * kBoxRowBytes, map, 64 * part, work.tile(step) * kHopperFlashKeys,
              static_cast<int32_t>(work.kvHead), static_cast<int32_t>(work.sequence), full);
  }

  const HopperFlashWork &work;
  const HopperFlashMaps &maps;
  const uint32_t shared;
  const Barriers barriers;
};

template <bool IsHalf, int Size> class HopperFlashConsumer {
public:
  __device__ HopperFlashConsumer(const AttentionArguments &args, const HopperFlashWork &work, uint32_t shared)
      : args(args), work(work), shared(shared), barriers(shared + hopperFlashLayout(Size).barriers),
        group(__shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0) - 1), lane(threadIdx.x % 32),
        firstRow(work.firstQuery + 64 * group + threadIdx.x % 128 / 32 * 16 + lane / 4),
        scale((args.softcap > 0 ? 1 : args.scale) * kLog2E) {
    int64_t first = work.firstQuery + 64 * group, last = first + 63 < args.queries ? first + 63 : args.queries - 1;
    firstEnd = static_cast<int32_t>(work.visibleTo(args, first).end);
    lastBegin = static_cast<int32_t>(work.visibleTo(args, last).begin);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      KeyInterval range = work.visibleTo(args, firstRow + 8 * half);
      begin[half] = static_cast<int32_t>(range.begin), end[half] = static_cast<int32_t>(range.end);
    }
  }

  __device__ void run() {
    if (work.tiles.count > 0)
      addTiles();
    writeRows();
  }

private:
  static constexpr int kSteps = kHopperFlashKeys / 16; // products of probabilities and values, of 16 keys each
  using Logits = float[kHopperFlashKeys / 2];

  __device__ void addTiles() {
    int32_t count = work.tiles.count;
    mbarrierWait(barriers.queries(), 0);
    if (group == 1 && count > 1)
      arrivePingPong();
    addFirstTile();
#pragma unroll 1
    for (int32_t step = 1; step < count; ++step)
      addTile(step, group == 0 || step + 1 < count);
    waitFull(kValues, count - 1);
    fence();
    multiplyValues(count - 1);
    wgmmaWaitGroup<0>(values);
  }

  __device__ void addFirstTile() {
    Logits logits;
    float rescale[2];
    waitFull(kKeys, 0);
    wgmmaFence(logits);
    multiplyKeys(logits, 0);
    wgmmaWaitGroup<0>(logits);
    releaseStage(kKeys, 0);
    updateSoftmax(logits, work.tile(0), rescale);
    pack(logits);
  }

  /// The probabilities of a tile, and the product with the values of the previous one.
  __device__ void addTile(int32_t step, bool passes) {
    Logits logits;
    float rescale[2];
    waitFull(kValues, step - 1);
    waitFull(kKeys, step);
    waitPingPong();
    fenceOperand(logits);
    fence();
    multiplyKeys(logits, step);
    multiplyValues(step - 1);
    if (passes)
      arrivePingPong();
    wgmmaWaitGroup<1>(logits);
    releaseStage(kKeys, step);
    updateSoftmax(logits, work.tile(step), rescale);
    wgmmaWaitGroup<0>(values);
    releaseStage(kValues, step - 1);
#pragma unroll
    for (int i = 0; i < Size / 2; ++i)
      values[i] *= rescale[i / 2 % 2];
    pack(logits);
  }

  // Ping-pong: each warpgroup waits at its own named barrier, where the other one arrives.

  __device__ void waitPingPong() const { asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory"); }
  __device__ void arrivePingPong() const { asm volatile("bar.arrive %0, 256;" ::"r"(2 - group) : "memory"); }

  __device__ void waitFull(int kind, int32_t step) const {
    mbarrierWait(barriers.full(kind, step % kHopperFlashStages), step / kHopperFlashStages & 1);
  }
  __device__ void releaseStage(int kind, int32_t step) const {
    if (lane == 0)
      mbarrierArrive(barriers.empty(kind, step % kHopperFlashStages));
  }

  // Products

  __device__ void fence() {
#pragma unroll
    for (int i = 0; i < kSteps; ++i)
      fenceOperand(probabilities[i]);
    wgmmaFence(values);
  }

  __device__ void multiplyKeys(Logits &logits, int32_t step) const {
    uint64_t a = makeSmemDescriptor(shared + group * 64 * kBoxRowBytes);
    uint64_t b = makeSmemDescriptor(shared + hopperFlashLayout(Size).keys +
                                    step % kHopperFlashStages * hopperFlashTileBytes(Size));
#pragma unroll
    for (int i = 0; i < Size / 16; ++i) { // 32 bytes of rows of 128 bytes
      int inRow = i % 4 * 32, part = i / 4 * kBoxRowBytes;
      wgmma<IsHalf>(logits, a + ((inRow + part * kHopperFlashQueries) >> 4),
                    b + ((inRow + part * kHopperFlashKeys) >> 4), i > 0);
    }
    wgmmaCommitGroup();
  }

  __device__ void multiplyValues(int32_t step) {
    uint64_t b = makeSmemDescriptor(shared + hopperFlashLayout(Size).values +
                                        step % kHopperFlashStages * hopperFlashTileBytes(Size),
                                    kHopperFlashKeys * kBoxRowBytes);
#pragma unroll
    for (int i = 0; i < kSteps; ++i)
      wgmma<IsHalf>(values, probabilities[i], b + (i * 16 * kBoxRowBytes >> 4));
    wgmmaCommitGroup();
  }

  // Softmax

  /// Online softmax: logits become probabilities relative to the running maxima; earlier sums and values have to be
  /// rescaled by `rescale`.
  __device__ void updateSoftmax(Logits &logits, int32_t tile, float (&rescale)[2]) {
    if (args.softcap > 0)
      softcapLogits(logits);
    if (needsMask(tile, lastBegin, firstEnd))
      maskLogits(logits, tile * kHopperFlashKeys);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float now = runningMax[half], part = 0;
#pragma unroll
      for (int i = 2 * half; i < kHopperFlashKeys / 2; i += 4)
        now = maxNan(now, maxNan(logits[i], logits[i + 1]));
      now = maxNan(now, __shfl_xor_sync(~0u, now, 1));
      now = maxNan(now, __shfl_xor_sync(~0u, now, 2));
      float zero = now == -infinity() ? 0 : now * scale;
      rescale[half] = ex2Approx(runningMax[half] * scale - zero);
      runningMax[half] = now;
#pragma unroll
      for (int i = 2 * half; i < kHopperFlashKeys / 2; i += 4)
#pragma unroll
        for (int j = i; j < i + 2; ++j) {
          logits[j] = ex2Approx(fmaf(logits[j], scale, -zero));
          part += logits[j];
        }
      sum[half] = sum[half] * rescale[half] + part;
    }
  }

  /// c · tanh(l / c) = c - 2c / (exp(2l / c) + 1), which errs by less than 1e-6 of c.
  __device__ void softcapLogits(Logits &logits) const {
    float factor = args.scale * 2 * kLog2E / args.softcap;
#pragma unroll
    for (int i = 0; i < kHopperFlashKeys / 2; ++i)
      logits[i] = args.softcap - __fdividef(2 * args.softcap, ex2Approx(logits[i] * factor) + 1);
  }

  __device__ void maskLogits(Logits &logits, int32_t first) const {
#pragma unroll
    for (int i = 0; i < kHopperFlashKeys / 2; ++i) {
      int key = first + i / 4 * 8 + lane % 4 * 2 + i % 2, half = i / 2 % 2;
      if (key < begin[half] || key >= end[half])
        logits[i] = -infinity();
    }
  }

  /// The layout of accumulators is that of operand A in registers.
  __device__ void pack(const Logits &logits) {
#pragma unroll
    for (int i = 0; i < kSteps; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        probabilities[i][j] = packPair<IsHalf>(logits[8 * i + 2 * j], logits[8 * i + 2 * j + 1]);
  }

  // Results

  __device__ void writeRows() const {
    bool inPairs = args.out.isVector && args.out.dtype != HONE_F32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float factor = outputScale(half);
      if (firstRow + 8 * half >= args.queries)
        continue;
      int64_t row = args.out.offset(work.sequence, work.head, firstRow + 8 * half);
#pragma unroll
      for (int i = 0; i < Size / 8; ++i) {
        int element = 8 * i + lane % 4 * 2;
        float low = values[4 * i + 2 * half] * factor, high = values[4 * i + 2 * half + 1] * factor;
        if (inPairs) {
          *reinterpret_cast<uint32_t *>(args.out.data + 2 * (row + element)) =
              args.out.dtype == HONE_F16 ? packF16x2(low, high) : packBf16x2(low, high);
        } else {
          storeElement(args.out.data, row + element * args.out.strides[3], args.out.dtype, low);
          storeElement(args.out.data, row + (element + 1) * args.out.strides[3], args.out.dtype, high);
        }
      }
    }
  }

  /// The factor of the unnormalized output: 1 over the sum of exponentials, of four lanes and the sink.
  __device__ float outputScale(int half) const {
    float total = sum[half], most = runningMax[half] * scale, factor = 1;
    total += __shfl_xor_sync(~0u, total, 1);
    total += __shfl_xor_sync(~0u, total, 2);
    if (args.sinks.data) {
      float sink = args.sinks.at(work.head, 0) * kLog2E, now = maxNan(most, sink);
      if (now == -infinity())
        return 0;
      factor = exp2f(most - now);
      total = total * factor + exp2f(sink - now);
    }
    return total == 0 ? 0 : factor / total;
  }

  const AttentionArguments &args;
  const HopperFlashWork &work;
  const uint32_t shared;
  const Barriers barriers;
  const int group, lane;
  const int64_t firstRow; // of this lane; its second row is eight further
  const float scale;      // of logits as they are kept, times log2(e)
  int32_t begin[2], end[2], firstEnd, lastBegin;
  float runningMax[2] = {-infinity(), -infinity()}, sum[2] = {}, values[Size / 2] = {};
  uint32_t probabilities[kSteps][4];
};

template <bool IsHalf, int Size>
__device__ inline void attend(const HopperFlashArguments &args, const HopperFlashMaps &maps, uint32_t shared) {
  // Each of 384 threads starts with 168 of the 65536 registers; afterwards the warpgroups have 24, 240 and 240.
  constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;
  if (threadIdx.x == 0)
    Barriers(shared + hopperFlashLayout(Size).barriers).init();
  __syncthreads();
  if (threadIdx.x < 128) {
    setmaxnregDec<kProducerRegisters>();
    if (threadIdx.x == 0) {
      HopperFlashWork work(args);
      HopperFlashProducer<Size>(work, maps, shared).run();
    }
  } else {
    setmaxnregInc<kConsumerRegisters>();
    HopperFlashWork work(args);
    HopperFlashConsumer<IsHalf, Size>(args.attention, work, shared).run();
  }
}

} // namespace hone::cuda

#define HONE_HOPPER_FLASH(name, isHalf, size)                                                                          \
  extern "C" __global__ void __launch_bounds__(hone::cuda::kHopperFlashThreads, 1)                                     \
      name(const __grid_constant__ hone::cuda::HopperFlashArguments args,                                              \
           const __grid_constant__ hone::cuda::TensorMap query, const __grid_constant__ hone::cuda::TensorMap key,     \
           const __grid_constant__ hone::cuda::TensorMap value) {                                                      \
    extern __shared__ __align__(1024) char hopperShared[];                                                             \
    hone::cuda::attend<isHalf, size>(args, {query, key, value}, hone::cuda::sharedAddress(hopperShared));              \
  }

HONE_HOPPER_FLASH(hopper_flash_f16_64, true, 64)
HONE_HOPPER_FLASH(hopper_flash_f16_128, true, 128)
HONE_HOPPER_FLASH(hopper_flash_bf16_64, false, 64)
HONE_HOPPER_FLASH(hopper_flash_bf16_128, false, 128)
