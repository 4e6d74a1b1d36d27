// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: persistent GEMV (1 to 8 rows) by weights of 16 bits, on tensor cores.
//
// A launch has as many blocks as run at once, and each goes through tiles of 16 outputs. Its warps are K-slices. Weights
// come by cp.async into rings in shared memory, one a warp, which run on from tile to tile: loads are in flight at the
// end of a tile, while other blocks finish, and, as nothing writes weights, before the kernel before this one has ended
// (overlap.h). A lane copies the 16 bytes of two outputs that it multiplies, so it waits for its own copies alone.
//
// x is converted once a block: operands B, hi and lo terms of f32, lie in shared memory. Where they have no room there,
// each warp converts what it needs, with the same results.
//
// RMSNorm of x costs no launch: x is multiplied by the norm's weight before it is split, each thread adds the squares of
// what it converts, and sums are multiplied by 1 / RMS of their row.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_STREAM_KERNEL_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_STREAM_KERNEL_H

#include "../linear/stream.h"
#include "cp_async.h"
#include "epilogue.h"
#include "input_rows.h"
#include "overlap.h"
#include "reduce.h"

namespace hone::cuda {

/// Split: x is f32, and split into hi and lo terms; else its type is that of the weights. HoldsX: x is in shared memory.
template <bool IsHalf, bool Split, int Depth, bool HoldsX> class Stream {
public:
  __device__ Stream(const StreamArguments &args, char *shared)
      : args(args), shared(shared), warp(threadIdx.x / 32), g(threadIdx.x / 4 % 8), t(threadIdx.x % 4),
        rows(static_cast<int32_t>(args.layers[0].rows)), inputs(static_cast<int32_t>(args.layers[0].inputs)),
        chunks(static_cast<int32_t>(divideUp(inputs, kPartInputs))),
        layout{HoldsX ? kPlanes : 0, chunks, rows, static_cast<int32_t>(blockDim.x / 32)},
        ring(sharedAddress(shared) + layout.ringAt() + warp * Depth * kSlotBytes + threadIdx.x % 32 * 16) {}

  __device__ void run() {
    letNextBegin();
    if (!args.layers[0].isConstant)
      waitForPrevious();
    aheadTile = warp < chunks ? blockIdx.x : args.tiles; // a slice may have no inputs
    aheadChunk = warp;
    findRows();
#pragma unroll 1
    for (int slot = 0; slot < Depth; ++slot)
      fetch(slot);
    prefetchNorm();
    waitForPrevious();
    findX();
    int slot = 0, buffer = 0;
    for (int32_t tile = blockIdx.x; tile < args.tiles; tile += gridDim.x, buffer ^= 1)
      runTile(tile, slot, buffer);
  }

private:
  static constexpr int kSlotBytes = 1024; // 32 inputs of 16 outputs
  static constexpr int kPlanes = Split ? 2 : 1;

  // Weights

  /// Where the two outputs of this lane in the next tile are. Outputs past the end read the last one.
  __device__ void findRows() {
    if (aheadTile >= args.tiles)
      return;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const LinearArguments &layer = args.layers[args.isGated ? half : args.layerOf(aheadTile)];
      int32_t output = args.isGated ? 8 * aheadTile + g : 16 * args.blockOf(aheadTile) + 8 * half + g;
      auto last = static_cast<int32_t>(layer.outputs - 1);
      weights[half] = layer.weight + (output < last ? output : last) * layer.weightStride + t * 16;
    }
  }

  /// Fetches the next chunk into a slot: one commit group, also where there is none.
  __device__ void fetch(int slot) {
    if (aheadTile < args.tiles) {
      bool exists = aheadChunk * kPartInputs + 8 * t < inputs;
#pragma unroll
      for (int half = 0; half < 2; ++half)
        cpAsync16(ring + slot * kSlotBytes + half * 512, weights[half] + (exists ? aheadChunk * 64 : 0), exists);
      aheadChunk += layout.slices;
      if (aheadChunk >= chunks) {
        aheadTile += gridDim.x;
        aheadChunk = warp;
        findRows();
      }
    }
    cpAsyncCommitGroup();
  }

  // Inputs

  __device__ const char *rowOfX(int row) const {
    return args.layers[0].x.data + args.layers[0].x.offset(row) * (Split ? 4 : 2);
  }

  /// Columns of operand B that are no row of x repeat the last one; their sums are not stored.
  __device__ void findX() {
    if (HoldsX || hasNorm()) {
#pragma unroll 1
      for (int row = 0; row < rows; ++row)
        convert(row);
      __syncthreads();
    }
    if (hasNorm())
      findScale();
    int row = g < rows ? g : rows - 1;
    own = HoldsX ? shared + row * layout.rowBytes() + t * 16 : rowOfX(row);
  }

  /// Converts a row where x is held, and adds its squares for a norm.
  __device__ void convert(int row) {
    const char *from = rowOfX(row);
    float sum = 0;
#pragma unroll 1
    for (int i = threadIdx.x; i < chunks * 4; i += blockDim.x) {
      [[maybe_unused]] Inputs<Split> x = read(from, 8 * i, sum);
      if constexpr (HoldsX) {
        auto *place = reinterpret_cast<uint4 *>(shared + row * layout.rowBytes() + i / 4 * 64 * kPlanes + i % 4 * 16);
        place[0] = {x.high[0], x.high[1], x.high[2], x.high[3]};
        if constexpr (Split)
          place[4] = {x.low[0], x.low[1], x.low[2], x.low[3]};
      }
    }
    if (hasNorm()) {
      sum = warpSum(sum);
      if (threadIdx.x % 32 == 0)
        squares()[warp * rows + row] = sum;
    }
  }

  /// Eight inputs of a row from `first` on, multiplied by the weight of a norm; adds their squares to `sum`.
  __device__ Inputs<Split> read(const char *row, int32_t first, float &sum) const {
    RawInputs<Split> raw;
    readInputs(raw, row, first, inputs);
    if constexpr (Split)
      if (hasNorm()) {
        RawInputs<true> weight;
        readInputs(weight, args.norm.weight.data, first, inputs);
        float offset = args.norm.unitOffset ? 1 : 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          float x = __uint_as_float(raw.words[i]);
          sum += x * x;
          raw.words[i] = __float_as_uint(x * (__uint_as_float(weight.words[i]) + offset));
        }
      }
    return Inputs<Split>(raw, PairOrder::Neighbours);
  }

  // Norm

  __device__ bool hasNorm() const { return Split && args.norm.weight.data; }
  __device__ float *squares() const { return reinterpret_cast<float *>(shared + layout.squaresAt()); }

  /// 1 / RMS of the row that this thread stores.
  __device__ void findScale() {
    int row = threadIdx.x / outputsOfTile();
    const float *from = squares() + (row < rows ? row : 0);
    float sum = 0;
#pragma unroll 1
    for (int slice = 0; slice < layout.slices; ++slice)
      sum += from[slice * rows];
    scale = rsqrtf(sum / static_cast<float>(inputs) + args.norm.epsilon);
  }

  /// Brings the weight of a norm near while the kernel before this one runs.
  __device__ void prefetchNorm() const {
    if (hasNorm())
#pragma unroll 1
      for (int i = 32 * threadIdx.x; i < inputs; i += 32 * blockDim.x)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(args.norm.weight.data + 4 * i));
  }

  __device__ Inputs<Split> inputsOf(int32_t chunk) const {
    if constexpr (HoldsX) {
      Inputs<Split> x;
      const auto *place = reinterpret_cast<const uint4 *>(own + chunk * 64 * kPlanes);
      uint4 high = place[0];
      x.high[0] = high.x, x.high[1] = high.y, x.high[2] = high.z, x.high[3] = high.w;
      if constexpr (Split) {
        uint4 low = place[4];
        x.low[0] = low.x, x.low[1] = low.y, x.low[2] = low.z, x.low[3] = low.w;
      }
      return x;
    } else {
      float sum = 0;
      return read(own, chunk * kPartInputs + 8 * t, sum);
    }
  }

  // Sums

  __device__ void runTile(int32_t tile, int &slot, int buffer) {
    Terms terms = loadTermsOf(tile);
    float first[4] = {}, second[4] = {};
    for (int32_t chunk = warp; chunk < chunks; chunk += layout.slices) {
      cpAsyncWaitGroup<Depth - 1>();
      uint4 a = loadShared16(ring + slot * kSlotBytes), b = loadShared16(ring + slot * kSlotBytes + 512);
      fetch(slot);
      slot = slot + 1 == Depth ? 0 : slot + 1;
      Inputs<Split> x = inputsOf(chunk);
      multiply(first, {a.x, b.x, a.y, b.y}, x, 0);
      multiply(second, {a.z, b.z, a.w, b.w}, x, 2);
    }
    float *sums = reinterpret_cast<float *>(shared + layout.sumsAt()) + buffer * layout.sumsOfBuffer();
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (2 * t + i % 2 < rows)
        sums[(warp * rows + 2 * t + i % 2) * 16 + g + i / 2 * 8] = first[i] + second[i];
    __syncthreads();
    store(tile, sums, terms);
  }

  struct Operand {
    uint32_t words[4];
  };

  __device__ static void multiply(float (&c)[4], const Operand &a, const Inputs<Split> &x, int half) {
    if constexpr (IsHalf) {
      mmaF16(c, a.words, x.high[half], x.high[half + 1]);
    } else {
      mmaBf16(c, a.words, x.high[half], x.high[half + 1]);
      if constexpr (Split)
        mmaBf16(c, a.words, x.low[half], x.low[half + 1]);
    }
  }

  __device__ static uint4 loadShared16(uint32_t address) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(address)
                 : "memory");
    return v;
  }

  // Results. A thread has one output of one row, or of a row of the gate and the up layer.

  struct Terms {
    EpilogueTerms own, up;

    __device__ EpilogueTerms of(int which) const {
      return {which == 0 ? own.bias : up.bias, which == 0 ? own.factor : up.factor,
              which == 0 ? own.residual : up.residual};
    }
  };

  __device__ int outputsOfTile() const { return args.isGated ? 8 : 16; }
  __device__ const LinearArguments &layerOf(int32_t tile) const {
    return args.layers[args.isGated ? 0 : args.layerOf(tile)];
  }
  __device__ int32_t outputOf(int32_t tile) const {
    int count = outputsOfTile();
    return (args.isGated ? tile : args.blockOf(tile)) * count + threadIdx.x % count;
  }
  __device__ bool hasOutput(int32_t tile) const {
    return threadIdx.x < rows * outputsOfTile() && outputOf(tile) < layerOf(tile).outputs;
  }

  /// What the epilogue reads, in flight while the tile is multiplied.
  __device__ Terms loadTermsOf(int32_t tile) const {
    Terms terms = {};
    if (!hasOutput(tile))
      return terms;
    int32_t row = threadIdx.x / outputsOfTile(), output = outputOf(tile);
#pragma unroll 1
    for (int which = 0; which <= args.isGated; ++which) {
      EpilogueTerms loaded = loadTerms(which == 0 ? layerOf(tile) : args.layers[1], row, output);
      if (which == 0)
        terms.own = loaded;
      else
        terms.up = loaded;
    }
    return terms;
  }

  /// Adds the K-slices of the tile in order.
  __device__ float sumOf(const float *sums) const {
    float sum = 0;
    for (int slice = 0; slice < layout.slices; ++slice)
      sum += sums[slice * rows * 16];
    return Split ? scale * sum : sum;
  }

  __device__ void store(int32_t tile, const float *sums, const Terms &terms) const {
    if (!hasOutput(tile))
      return;
    const LinearArguments &layer = layerOf(tile);
    int32_t count = outputsOfTile(), row = threadIdx.x / count;
    const float *from = sums + row * 16 + threadIdx.x % count;
    float value = 1;
#pragma unroll 1
    for (int which = 0; which <= args.isGated; ++which)
      value *= applyTerms(which == 0 ? layer : args.layers[1], sumOf(from + 8 * which), terms.of(which));
    storeElement(layer.y.data, layer.y.offset(row) + outputOf(tile) * layer.y.inner, layer.y.dtype, value);
  }

  const StreamArguments &args;
  char *const shared;
  const int warp, g, t, rows, inputs, chunks;
  const StreamLayout layout;
  const uint32_t ring;
  int32_t aheadTile, aheadChunk; // what is fetched next
  float scale = 1;               // 1 / RMS of the row that the thread stores
  const char *weights[2], *own;
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_STREAM_KERNEL_H
