// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FlashAttention on tensor cores (Dao et al., 2022): one pass over the keys with online softmax.
//
// Operands of one 16-bit type are multiplied unconverted, loaded by cp.async. Queries of more than 16 bits, and
// probabilities with them, are split into hi and lo terms of bf16; so are keys and values that are wider, not
// aligned, or of another type.
//
// A tile is 64 keys. In decoding, a tile of a head of 128 elements of bf16 is 32 KiB of keys and values. One is
// always in flight, and shared memory holds three blocks an SM: 96 KiB in flight, three times what an H200 needs
// (gemv_kernel.h).

#include "../device/attention_rows.h"
#include "../device/cp_async.h"
#include "../device/mma.h"
#include "../device/overlap.h"
#include "flash.h"

namespace hone::cuda {

template <bool IsHalf, int CachePlanes, int QueryPlanes, int Size, int RowWarps> class Flash {
public:
  __device__ Flash(const AttentionArguments &args, char *shared)
      : args(args), shared(shared), queries(sharedAddress(shared)),
        tiles(queries + flashQueryBytes(Size, RowWarps, QueryPlanes)), warp(threadIdx.x / 32), lane(threadIdx.x % 32),
        sequence(blockIdx.y / static_cast<uint32_t>(args.kvHeads)),
        kvHead(blockIdx.y % static_cast<uint32_t>(args.kvHeads)), split(blockIdx.z),
        keyCount(kernels::keyCountOf(args.visibility, sequence)),
        rowCount(static_cast<int32_t>(args.queries) * args.headsPerKvHead),
        // Blocks with the last rows see the most keys and start first.
        firstRow(16 * RowWarps * static_cast<int32_t>(gridDim.x - 1 - blockIdx.x)) {}

  __device__ void run() {
    KeyInterval keys = keysOfTile();
    int64_t first = keys.begin & ~int64_t{kFlashKeys - 1};
    int32_t steps = keys.end > keys.begin ? static_cast<int32_t>(divideUp(keys.end - first, kFlashKeys)) : 0;
    if constexpr (CachePlanes == 1)
      runPipelined(first, steps);
    else
      runUnpipelined(first, steps);
    __syncthreads();
    stageSums();
    __syncthreads();
    if (args.lse && args.splits == 1) {
      writeLse();
      __syncthreads();
    }
    writeRows();
  }

private:
  static constexpr int kKeys = RowWarps == 4 ? kFlashKeys : kFlashKeys / kFlashWarps; // of a warp, of a tile
  static constexpr int kParts = Size / 8;                                             // 16-byte chunks of a row
  static constexpr int kStageBytes = 2 * flashTileBytes(Size, CachePlanes);

  __device__ void runPipelined(int64_t first, int32_t steps) {
    if (steps > 0)
      copyTile(first, 0);
    cpAsyncCommitGroup();
    loadQueries();
    for (int32_t step = 0; step < steps; ++step) {
      if (step + 1 < steps)
        copyTile(first + (step + 1) * kFlashKeys, (step + 1) % 2);
      cpAsyncCommitGroup();
      cpAsyncWaitGroup<1>();
      __syncthreads();
      addTile(first + step * kFlashKeys, tiles + step % 2 * kStageBytes);
      __syncthreads();
    }
    cpAsyncWaitGroup<0>();
  }

  __device__ void runUnpipelined(int64_t first, int32_t steps) {
    loadQueries();
    for (int32_t step = 0; step < steps; ++step) {
      __syncthreads();
      int64_t key = first + int64_t{step} * kFlashKeys;
      convertTile(args.key, args.size, key, flashQueryBytes(Size, RowWarps, QueryPlanes));
      convertTile(args.value, args.valueSize, key,
                  flashQueryBytes(Size, RowWarps, QueryPlanes) + flashTileBytes(Size, CachePlanes));
      __syncthreads();
      addTile(key, tiles);
    }
  }

  // Rows

  /// Row g or g + 8 of this warp.
  __device__ int32_t ownRow(int half) const { return firstRow + (RowWarps == 4 ? 16 * warp : 0) + lane / 4 + 8 * half; }

  /// The query and the head of a row; a decoding step does not divide.
  __device__ int32_t queryOf(int32_t row) const {
    return args.queries == 1 ? 0 : static_cast<uint32_t>(row) / static_cast<uint32_t>(args.headsPerKvHead);
  }
  __device__ int64_t headOf(int32_t row) const {
    return kvHead * args.headsPerKvHead + row - queryOf(row) * args.headsPerKvHead;
  }

  __device__ KeyInterval visibleTo(int32_t row) const {
    if (row >= rowCount)
      return {0, 0};
    return keysOfSplit(args, kernels::intervalOf(args.visibility, sequence, queryOf(row)), split);
  }

  /// Finds the keys that this lane's rows see, and returns those that rows of the block see: begin and end grow with the
  /// position.
  __device__ KeyInterval keysOfTile() {
    int32_t last = firstRow + 16 * RowWarps - 1;
    KeyInterval begin = visibleTo(firstRow);
    if (args.queries == 1) { // the heads of one query; rows past the end are not stored
      visible[0] = visible[1] = begin;
      return begin;
    }
    visible[0] = visibleTo(ownRow(0)), visible[1] = visibleTo(ownRow(1));
    return {begin.begin, visibleTo(last < rowCount ? last : rowCount - 1).end};
  }

  /// Rows and elements past the end are 0.
  __device__ void loadQueries() {
    bool isWhole = args.query.isVector && args.size % 8 == 0; // uniform over the grid
    for (int i = threadIdx.x; i < 16 * RowWarps * kParts; i += 32 * kFlashWarps) {
      int row = i / kParts, part = i % kParts;
      float values[8] = {};
      if (firstRow + row < rowCount && 8 * part < args.size)
        readChunk(values, args.query,
                  args.query.offset(sequence, headOf(firstRow + row), queryOf(firstRow + row)) +
                      8 * part * args.query.strides[3],
                  isWhole ? 0 : args.size - 8 * part);
      storePlanes<QueryPlanes>(flashByte(Size, row, part), flashQueryBytes(Size, RowWarps, 1), values);
    }
  }

  template <int Planes> __device__ void storePlanes(int byte, int planeBytes, const float (&values)[8]) {
    uint32_t high[4], low[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      high[i] = packPair<IsHalf>(values[2 * i], values[2 * i + 1]);
      low[i] = packRestBf16x2(high[i], values[2 * i], values[2 * i + 1]);
    }
    *reinterpret_cast<uint4 *>(shared + byte) = {high[0], high[1], high[2], high[3]};
    if constexpr (Planes == 2)
      *reinterpret_cast<uint4 *>(shared + byte + planeBytes) = {low[0], low[1], low[2], low[3]};
  }

  // Tiles

  __device__ void copyTile(int64_t first, int stage) {
    uint32_t to = tiles + stage * kStageBytes;
    copyRows(args.key, args.size, first, to);
    copyRows(args.value, args.valueSize, first, to + flashTileBytes(Size, 1));
  }

  __device__ void copyRows(const View4 &view, int size, int64_t first, uint32_t to) {
    const char *from = view.data + view.offset(sequence, kvHead, 0) * 2;
#pragma unroll 4
    for (int i = threadIdx.x; i < kFlashKeys * kParts; i += 32 * kFlashWarps) {
      int row = i / kParts, part = i % kParts;
      bool exists = first + row < keyCount && 8 * part < size;
      cpAsync16(to + flashByte(Size, row, part),
                exists ? from + ((first + row) * view.strides[2] + 8 * part) * 2 : from, exists);
    }
  }

  __device__ void convertTile(const View4 &view, int size, int64_t first, int to) {
    bool isWhole = view.isVector && size % 8 == 0; // uniform over the grid
#pragma unroll 1
    for (int i = threadIdx.x; i < kFlashKeys * kParts; i += 32 * kFlashWarps) {
      int row = i / kParts, part = i % kParts;
      float values[8] = {};
      if (first + row < keyCount && 8 * part < size)
        readChunk(values, view, view.offset(sequence, kvHead, first + row) + 8 * part * view.strides[3],
                  isWhole ? 0 : size - 8 * part);
      storePlanes<2>(to + flashByte(Size, row, part), flashTileBytes(Size, 1), values);
    }
  }

  /// Up to eight elements of a row; `count` 0 means eight aligned contiguous ones.
  __device__ static void readChunk(float (&values)[8], const View4 &view, int64_t from, int count) {
    if (count == 0 && view.dtype != HONE_F32) {
      uint4 v = *reinterpret_cast<const uint4 *>(view.data + from * 2);
      uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        auto bits = static_cast<uint16_t>(words[j / 2] >> 16 * (j % 2));
        values[j] = view.dtype == HONE_F16 ? fromF16(bits) : fromBf16(bits);
      }
      return;
    }
    if (count == 0) {
      const auto *address = reinterpret_cast<const float4 *>(view.data + from * 4);
      float4 a = address[0], b = address[1];
      values[0] = a.x, values[1] = a.y, values[2] = a.z, values[3] = a.w;
      values[4] = b.x, values[5] = b.y, values[6] = b.z, values[7] = b.w;
      return;
    }
#pragma unroll
    for (int j = 0; j < 8; ++j)
      if (j < count)
        values[j] = loadElement(view.data, from + j * view.strides[3], view.dtype);
  }

  // Sums

  __device__ void addTile(int64_t first, uint32_t tile) {
    int offset = RowWarps == 4 ? 0 : kKeys * warp;
    float logits[kKeys / 8][4] = {};
    multiplyKeys(logits, tile, offset);
    updateSoftmax(logits, first + offset);
    multiplyValues(logits, tile + flashTileBytes(Size, CachePlanes), offset);
  }

  __device__ void multiplyKeys(float (&logits)[kKeys / 8][4], uint32_t tile, int offset) {
    int firstOfWarp = RowWarps == 4 ? 16 * warp : 0;
#pragma unroll
    for (int step = 0; step < Size / 16; ++step) {
      uint32_t a[QueryPlanes][4];
#pragma unroll
      for (int plane = 0; plane < QueryPlanes; ++plane)
        ldmatrixX4(a[plane], queries + plane * flashQueryBytes(Size, RowWarps, 1) +
                                 flashByte(Size, firstOfWarp + lane % 16, 2 * step + lane / 16));
#pragma unroll
      for (int keys = 0; keys < kKeys / 16; ++keys) {
        int row = offset + 16 * keys + lane / 16 * 8 + lane % 8;
#pragma unroll
        for (int plane = 0; plane < CachePlanes; ++plane) {
          uint32_t b[4];
          ldmatrixX4(b, tile + plane * flashTileBytes(Size, 1) + flashByte(Size, row, 2 * step + lane / 8 % 2));
#pragma unroll
          for (int query = 0; query < QueryPlanes - plane; ++query) {
            multiply(logits[2 * keys], a[query], b[0], b[1]);
            multiply(logits[2 * keys + 1], a[query], b[2], b[3]);
          }
        }
      }
    }
  }

  __device__ static void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    if constexpr (IsHalf)
      mmaF16(c, a, b0, b1);
    else
      mmaBf16(c, a, b0, b1);
  }

  /// Online softmax: logits become probabilities relative to the running maximum; earlier sums and values are
  /// rescaled.
  __device__ void updateSoftmax(float (&logits)[kKeys / 8][4], int64_t first) {
#pragma unroll
    for (int i = 0; i < kKeys / 8; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        logits[i][j] *= args.scale;
    if (args.softcap > 0)
      softcapLogits(logits);
    if (args.alibi.data || (args.bias.data && first + kKeys > args.firstWithBias))
      addToLogits(logits, first, 0), addToLogits(logits, first, 1);
    float now[2] = {runningMax[0], runningMax[1]};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int begin = indexIn(first, visible[half].begin), end = indexIn(first, visible[half].end);
#pragma unroll
      for (int i = 0; i < kKeys / 8; ++i)
#pragma unroll
        for (int j = 2 * half; j < 2 * half + 2; ++j) {
          int key = 8 * i + lane % 4 * 2 + j % 2;
          if (key < begin || key >= end)
            logits[i][j] = -infinity();
          now[half] = maxNan(now[half], logits[i][j]);
        }
    }
    float rescale[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      now[half] = maxNan(now[half], __shfl_xor_sync(~0u, now[half], 1));
      now[half] = maxNan(now[half], __shfl_xor_sync(~0u, now[half], 2));
      rescale[half] = probabilityOf(runningMax[half], now[half]);
      runningMax[half] = now[half];
      sum[half] *= rescale[half];
    }
#pragma unroll
    for (int i = 0; i < kKeys / 8; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        logits[i][j] = now[j / 2] == -infinity() ? 0 : __expf(logits[i][j] - now[j / 2]);
        sum[j / 2] += logits[i][j];
      }
#pragma unroll
    for (int i = 0; i < kParts; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        values[i][j] *= rescale[j / 2];
  }

  /// The index of a key among the keys from `first` on, clamped to those of this warp.
  __device__ static int indexIn(int64_t first, int64_t key) {
    return key <= first ? 0 : key - first < kKeys ? static_cast<int>(key - first) : kKeys;
  }

  /// c · tanh(l / c) = c - 2c / (exp(2l / c) + 1), which errs by less than 1e-6 of c.
  __device__ void softcapLogits(float (&logits)[kKeys / 8][4]) const {
    float factor = 2 / args.softcap;
#pragma unroll
    for (int i = 0; i < kKeys / 8; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        logits[i][j] = args.softcap - __fdividef(2 * args.softcap, __expf(logits[i][j] * factor) + 1);
  }

  __device__ void addToLogits(float (&logits)[kKeys / 8][4], int64_t first, int half) {
    int32_t row = ownRow(half), query = queryOf(row);
    int64_t head = headOf(row);
    if (row >= rowCount)
      return;
    float slope = args.alibi.at(head, 0);
    auto distance = static_cast<int>(first - kernels::ownKeyOf(args.visibility, sequence, query));
    int begin = indexIn(first, args.firstWithBias), end = indexIn(first, visible[half].end);
    bool hasBias = args.bias.data && begin < end;
    int64_t bias = args.bias.offset(sequence, head, query) + first * args.bias.strides[3];
#pragma unroll
    for (int i = 0; i < kKeys / 8; ++i)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        int key = 8 * i + lane % 4 * 2 + j;
        float added = slope * static_cast<float>(distance + key);
        if (hasBias && static_cast<uint32_t>(key - begin) < static_cast<uint32_t>(end - begin))
          added += loadElement(args.bias.data, bias + key * args.bias.strides[3], args.bias.dtype);
        logits[i][2 * half + j] += added;
      }
  }

  __device__ void multiplyValues(const float (&probabilities)[kKeys / 8][4], uint32_t tile, int offset) {
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      uint32_t a[QueryPlanes][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float (&from)[4] = probabilities[2 * step + i / 2];
        a[0][i] = packPair<IsHalf>(from[i % 2 * 2], from[i % 2 * 2 + 1]);
        if constexpr (QueryPlanes == 2)
          a[1][i] = packRestBf16x2(a[0][i], from[i % 2 * 2], from[i % 2 * 2 + 1]);
      }
      int row = offset + 16 * step + lane % 16;
#pragma unroll
      for (int part = 0; part < kParts; part += 2)
#pragma unroll
        for (int plane = 0; plane < CachePlanes; ++plane) {
          uint32_t b[4];
          ldmatrixX4Transposed(b, tile + plane * flashTileBytes(Size, 1) + flashByte(Size, row, part + lane / 16));
#pragma unroll
          for (int query = 0; query < QueryPlanes - plane; ++query) {
            multiply(values[part], a[query], b[0], b[1]);
            multiply(values[part + 1], a[query], b[2], b[3]);
          }
        }
    }
  }

  // Results

  /// sums[warp][16][Size], then [warp][16][running maximum, sum of exponentials].
  __device__ void stageSums() {
    auto *sums = reinterpret_cast<float *>(shared), *states = sums + kFlashWarps * 16 * Size;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = 16 * warp + lane / 4 + 8 * half;
      sum[half] += __shfl_xor_sync(~0u, sum[half], 1);
      sum[half] += __shfl_xor_sync(~0u, sum[half], 2);
      if (lane % 4 == 0)
        states[2 * row] = runningMax[half], states[2 * row + 1] = sum[half];
#pragma unroll
      for (int part = 0; part < kParts; ++part)
        *reinterpret_cast<float2 *>(sums + row * Size + 8 * part + lane % 4 * 2) = {values[part][2 * half],
                                                                                    values[part][2 * half + 1]};
    }
  }

  /// Writes the lse of each row, and then adds its sink to the sum of a warp that has the largest running maximum.
  __device__ void writeLse() {
    constexpr int kWarps = RowWarps == 4 ? 1 : kFlashWarps;
    float *states = reinterpret_cast<float *>(shared) + kFlashWarps * 16 * Size;
    int own = threadIdx.x;
    int32_t row = firstRow + own;
    if (own >= 16 * RowWarps || row >= rowCount)
      return;
    int first = 0;
    for (int merged = 1; merged < kWarps; ++merged)
      first = states[2 * (16 * merged + own)] > states[2 * (16 * first + own)] ? merged : first;
    float most = states[2 * (16 * first + own)], total = 0;
    for (int merged = 0; merged < kWarps; ++merged)
      total += probabilityOf(states[2 * (16 * merged + own)], most) * states[2 * (16 * merged + own) + 1];
    int64_t head = headOf(row);
    storeLse(args, sequence, head, queryOf(row), most, total);
    if (args.sinks.data && total != 0)
      states[2 * (16 * first + own) + 1] += probabilityOf(args.sinks.at(head, 0), most);
  }

  /// Merges warps that had the same rows. Sinks are added by the first split, or at the end where lse is asked for.
  __device__ void writeRows() {
    constexpr int kWarps = RowWarps == 4 ? 1 : kFlashWarps;
    const auto *sums = reinterpret_cast<const float *>(shared), *states = sums + kFlashWarps * 16 * Size;
#pragma unroll 1
    for (int i = threadIdx.x; i < 16 * RowWarps * args.valueSize; i += 32 * kFlashWarps) {
      int own = i / args.valueSize, element = i % args.valueSize;
      int32_t row = firstRow + own, query = queryOf(row);
      int64_t head = headOf(row);
      if (row >= rowCount)
        break;
      bool hasSink = args.sinks.data && split == 0 && !args.lse;
      float sink = hasSink ? args.sinks.at(head, 0) : -infinity(), most = sink, value = 0;
#pragma unroll
      for (int merged = 0; merged < kWarps; ++merged)
        most = maxNan(most, states[2 * (16 * merged + own)]);
      float total = probabilityOf(sink, most);
#pragma unroll
      for (int merged = 0; merged < kWarps; ++merged) {
        float factor = probabilityOf(states[2 * (16 * merged + own)], most);
        total += factor * states[2 * (16 * merged + own) + 1];
        value += factor * sums[(16 * merged + own) * Size + element];
      }
      if (args.splits == 1) {
        storeElement(args.out.data, args.out.offset(sequence, head, query) + element * args.out.strides[3],
                     args.out.dtype, total == 0 ? 0 : value / total);
        continue;
      }
      partialValues(args, indexOf(row), split)[element] = value;
      if (element == 0) {
        float *state = partialState(args, indexOf(row), split);
        state[0] = most, state[1] = total;
      }
    }
  }

  __device__ int64_t indexOf(int32_t row) const {
    return (sequence * args.queryHeads + headOf(row)) * args.queries + queryOf(row);
  }

  const AttentionArguments &args;
  char *const shared;
  const uint32_t queries, tiles;
  const int warp, lane;
  const int64_t sequence, kvHead, split, keyCount;
  const int32_t rowCount, firstRow;
  KeyInterval visible[2];
  float runningMax[2] = {-infinity(), -infinity()}, sum[2] = {}, values[kParts][4] = {};
};

} // namespace hone::cuda

// Minimum blocks an SM for __launch_bounds__; 0 leaves the choice to ptxas, which aims at five for the smallest
// kernel, and spills.
constexpr int residentsOf(int size, int rowWarps) { return size == 64 && rowWarps == 1 ? 1 : 0; }

#define HONE_FLASH(name, isHalf, cachePlanes, queryPlanes, size, rowWarps)                                             \
  extern "C" __global__ void __launch_bounds__(32 * hone::cuda::kFlashWarps, residentsOf(size, rowWarps))              \
      name(const __grid_constant__ hone::cuda::AttentionArguments args) {                                              \
    extern __shared__ __align__(128) char flashShared[];                                                               \
    hone::cuda::enterInOrder();                                                                                        \
    hone::cuda::Flash<isHalf, cachePlanes, queryPlanes, size, rowWarps>(args, flashShared).run();                      \
  }

#define HONE_FLASH_SIZES(name, isHalf, cachePlanes, queryPlanes)                                                       \
  HONE_FLASH(name##_64_1, isHalf, cachePlanes, queryPlanes, 64, 1)                                                     \
  HONE_FLASH(name##_64_4, isHalf, cachePlanes, queryPlanes, 64, 4)                                                     \
  HONE_FLASH(name##_128_1, isHalf, cachePlanes, queryPlanes, 128, 1)                                                   \
  HONE_FLASH(name##_128_4, isHalf, cachePlanes, queryPlanes, 128, 4)

HONE_FLASH_SIZES(flash_f16, true, 1, 1)
HONE_FLASH_SIZES(flash_bf16, false, 1, 1)
HONE_FLASH_SIZES(flash_split, false, 1, 2)
HONE_FLASH_SIZES(flash_double, false, 2, 2)
