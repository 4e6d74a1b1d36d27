// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention through matrix units in one pass over the keys (Dao et al., 2022): softmax with a running maximum and sum.
//
// Numbers of 16 bits of one type are multiplied as they are, copied ahead by cp.async. Queries of more than 16 bits, and
// weights with them, are sums of two numbers of bf16; so are keys and values that are wider, not aligned, or of another type.
//
// A tile is 64 keys. With rows of one step (decoding), the tile of a head of 128 numbers of bf16 is 32 KiB of keys and values, one
// is always on its way, and shared memory holds three such blocks a multiprocessor: 96 KiB on their way, three times what an
// H200's memory needs (few_rows_kernel.h).

#include "../device/async_copy.h"
#include "../device/attention_rows.h"
#include "../device/matrix_units.h"
#include "flash.h"

namespace hone::cuda {

template <bool IsHalf, int CachePlanes, int QueryPlanes, int Size, int RowWarps> class Flash {
public:
  __device__ Flash(const AttentionArguments &args, char *shared)
      : args(args), shared(shared), queries(sharedAddress(shared)),
        tiles(queries + flashQueryBytes(Size, RowWarps, QueryPlanes)), warp(threadIdx.x / 32), lane(threadIdx.x % 32),
        headsOfKey(static_cast<int32_t>(args.queryHeads / args.keyHeads)), sequence(blockIdx.y / args.keyHeads),
        keyHead(blockIdx.y % args.keyHeads), split(blockIdx.z),
        // The last rows see the most keys: they begin first.
        firstRow(int64_t{16} * RowWarps * (gridDim.x - 1 - blockIdx.x)) {}

  __device__ void run() {
    loadQueries();
    visible[0] = visibleTo(ownRow(0)), visible[1] = visibleTo(ownRow(1));
    KeyRange keys = keysOfTile();
    int64_t first = keys.begin / kFlashKeys * kFlashKeys;
    int32_t steps = keys.end > keys.begin ? static_cast<int32_t>(divideUp(keys.end - first, kFlashKeys)) : 0;
    if constexpr (CachePlanes == 1)
      runAhead(first, steps);
    else
      runInTurn(first, steps);
    __syncthreads();
    leaveSums();
    __syncthreads();
    writeRows();
  }

private:
  static constexpr int kKeys = RowWarps == 4 ? kFlashKeys : kFlashKeys / kFlashWarps; // of a warp and tile
  static constexpr int kParts = Size / 8;                                             // of 16 bytes, of a row
  static constexpr int kStageBytes = 2 * flashTileBytes(Size, CachePlanes);

  __device__ void runAhead(int64_t first, int32_t steps) {
    if (steps > 0)
      copyTile(first, 0);
    commitCopies();
    for (int32_t step = 0; step < steps; ++step) {
      if (step + 1 < steps)
        copyTile(first + (step + 1) * kFlashKeys, (step + 1) % 2);
      commitCopies();
      waitForCopies<1>();
      __syncthreads();
      addTile(first + step * kFlashKeys, tiles + step % 2 * kStageBytes);
      __syncthreads();
    }
    waitForCopies<0>();
  }

  __device__ void runInTurn(int64_t first, int32_t steps) {
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
  __device__ int64_t ownRow(int half) const { return firstRow + (RowWarps == 4 ? 16 * warp : 0) + lane / 4 + 8 * half; }
  __device__ int64_t rowCount() const { return args.queries * headsOfKey; }
  __device__ int64_t headOf(int64_t row) const { return keyHead * headsOfKey + row % headsOfKey; }

  __device__ KeyRange visibleTo(int64_t row) const {
    if (row >= rowCount())
      return {0, 0};
    return QueryRow(args, sequence, headOf(row), row / headsOfKey, split).visible;
  }

  /// What the rows of the block see: begin and end grow with the position.
  __device__ KeyRange keysOfTile() const {
    int64_t last = firstRow + 16 * RowWarps - 1;
    return {visibleTo(firstRow).begin, visibleTo(last < rowCount() ? last : rowCount() - 1).end};
  }

  /// Rows behind the last, and numbers behind the last, are 0.
  __device__ void loadQueries() {
    for (int i = threadIdx.x; i < 16 * RowWarps * kParts; i += 32 * kFlashWarps) {
      int row = i / kParts, part = i % kParts;
      float values[8] = {};
      if (firstRow + row < rowCount()) {
        int64_t from = args.query.offset(sequence, headOf(firstRow + row), (firstRow + row) / headsOfKey);
#pragma unroll
        for (int j = 0; j < 8; ++j)
          if (8 * part + j < args.size)
            values[j] = loadNumber(args.query.data, from + (8 * part + j) * args.query.strides[3], args.query.dtype);
      }
      storePlanes<QueryPlanes>(flashByte(Size, row, part), flashQueryBytes(Size, RowWarps, 1), values);
    }
  }

  template <int Planes> __device__ void storePlanes(int byte, int planeBytes, const float (&values)[8]) {
    uint32_t high[4], low[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      high[i] = pair(values[2 * i], values[2 * i + 1]);
      low[i] = restOf(high[i], values[2 * i], values[2 * i + 1]);
    }
    *reinterpret_cast<uint4 *>(shared + byte) = {high[0], high[1], high[2], high[3]};
    if constexpr (Planes == 2)
      *reinterpret_cast<uint4 *>(shared + byte + planeBytes) = {low[0], low[1], low[2], low[3]};
  }

  __device__ static uint32_t pair(float low, float high) { return IsHalf ? pairF16(low, high) : pairBf16(low, high); }
  /// What rounding to bf16 left.
  __device__ static uint32_t restOf(uint32_t rounded, float low, float high) {
    return pairBf16(low - __uint_as_float(rounded << 16), high - __uint_as_float(rounded & 0xffff0000));
  }

  // Tiles

  __device__ void copyTile(int64_t first, int stage) {
    uint32_t to = tiles + stage * kStageBytes;
    copyRows(args.key, args.size, first, to);
    copyRows(args.value, args.valueSize, first, to + flashTileBytes(Size, 1));
  }

  __device__ void copyRows(const View4 &view, int size, int64_t first, uint32_t to) {
    const char *from = view.data + view.offset(sequence, keyHead, 0) * 2;
#pragma unroll 4
    for (int i = threadIdx.x; i < kFlashKeys * kParts; i += 32 * kFlashWarps) {
      int row = i / kParts, part = i % kParts;
      bool exists = first + row < args.keys && 8 * part < size;
      copyAsync(to + flashByte(Size, row, part),
                exists ? from + ((first + row) * view.strides[2] + 8 * part) * 2 : from, exists);
    }
  }

  __device__ void convertTile(const View4 &view, int size, int64_t first, int to) {
    bool isWhole = view.isVector && view.dtype == HONE_F32 && size % 8 == 0; // pieces of eight, for all of the grid
#pragma unroll 1
    for (int i = threadIdx.x; i < kFlashKeys * kParts; i += 32 * kFlashWarps) {
      int row = i / kParts, part = i % kParts;
      float values[8] = {};
      if (first + row < args.keys && 8 * part < size)
        readPiece(values, view, view.offset(sequence, keyHead, first + row) + 8 * part * view.strides[3],
                  isWhole ? 0 : size - 8 * part);
      storePlanes<2>(to + flashByte(Size, row, part), flashTileBytes(Size, 1), values);
    }
  }

  /// Up to eight numbers of a row; with `count` 0 eight of f32 that are aligned and side by side.
  __device__ static void readPiece(float (&values)[8], const View4 &view, int64_t from, int count) {
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
        values[j] = loadNumber(view.data, from + j * view.strides[3], view.dtype);
  }

  // Sums

  __device__ void addTile(int64_t first, uint32_t tile) {
    int offset = RowWarps == 4 ? 0 : kKeys * warp;
    float logits[kKeys / 8][4] = {};
    multiplyKeys(logits, tile, offset);
    weigh(logits, first + offset);
    multiplyValues(logits, tile + flashTileBytes(Size, CachePlanes), offset);
  }

  __device__ void multiplyKeys(float (&logits)[kKeys / 8][4], uint32_t tile, int offset) {
    int firstOfWarp = RowWarps == 4 ? 16 * warp : 0;
#pragma unroll
    for (int step = 0; step < Size / 16; ++step) {
      uint32_t a[QueryPlanes][4];
#pragma unroll
      for (int plane = 0; plane < QueryPlanes; ++plane)
        loadMatrices(a[plane], queries + plane * flashQueryBytes(Size, RowWarps, 1) +
                                   flashByte(Size, firstOfWarp + lane % 16, 2 * step + lane / 16));
#pragma unroll
      for (int keys = 0; keys < kKeys / 16; ++keys) {
        int row = offset + 16 * keys + lane / 16 * 8 + lane % 8;
#pragma unroll
        for (int plane = 0; plane < CachePlanes; ++plane) {
          uint32_t b[4];
          loadMatrices(b, tile + plane * flashTileBytes(Size, 1) + flashByte(Size, row, 2 * step + lane / 8 % 2));
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
      multiplyF16(c, a, b0, b1);
    else
      multiplyBf16(c, a, b0, b1);
  }

  /// Products become weights, relative to the largest logit so far; earlier sums are brought to it.
  __device__ void weigh(float (&logits)[kKeys / 8][4], int64_t first) {
#pragma unroll
    for (int i = 0; i < kKeys / 8; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        logits[i][j] *= args.scale;
    if (args.softcap > 0)
      capLogits(logits);
    if (args.alibi.data || (args.bias.data && first + kKeys > args.firstWithBias))
      addToLogits(logits, first, 0), addToLogits(logits, first, 1);
    float now[2] = {largest[0], largest[1]};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int begin = placeIn(first, visible[half].begin), end = placeIn(first, visible[half].end);
#pragma unroll
      for (int i = 0; i < kKeys / 8; ++i)
#pragma unroll
        for (int j = 2 * half; j < 2 * half + 2; ++j) {
          int key = 8 * i + lane % 4 * 2 + j % 2;
          if (key < begin || key >= end)
            logits[i][j] = -infinity();
          now[half] = larger(now[half], logits[i][j]);
        }
    }
    float factors[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      now[half] = larger(now[half], __shfl_xor_sync(~0u, now[half], 1));
      now[half] = larger(now[half], __shfl_xor_sync(~0u, now[half], 2));
      factors[half] = weightOf(largest[half], now[half]);
      largest[half] = now[half];
      sum[half] *= factors[half];
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
        values[i][j] *= factors[j / 2];
  }

  /// Of the keys from `first` on, the number of one, as far as this warp has them.
  __device__ static int placeIn(int64_t first, int64_t key) {
    return key <= first ? 0 : key - first < kKeys ? static_cast<int>(key - first) : kKeys;
  }

  /// c · tanh(l / c) = c - 2c / (exp(2l / c) + 1), which errs by less than 1e-6 of c.
  __device__ void capLogits(float (&logits)[kKeys / 8][4]) const {
    float factor = 2 / args.softcap;
#pragma unroll
    for (int i = 0; i < kKeys / 8; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        logits[i][j] = args.softcap - __fdividef(2 * args.softcap, __expf(logits[i][j] * factor) + 1);
  }

  __device__ void addToLogits(float (&logits)[kKeys / 8][4], int64_t first, int half) {
    int64_t row = ownRow(half), head = headOf(row), query = row / headsOfKey;
    if (row >= rowCount())
      return;
    float slope = args.alibi.at(head, 0);
    auto distance = static_cast<int>(first - (args.keys - args.queries + query));
    int begin = placeIn(first, args.firstWithBias), end = placeIn(first, visible[half].end);
    bool hasBias = args.bias.data && begin < end;
    int64_t bias = args.bias.offset(sequence, head, query) + first * args.bias.strides[3];
#pragma unroll
    for (int i = 0; i < kKeys / 8; ++i)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        int key = 8 * i + lane % 4 * 2 + j;
        float added = slope * static_cast<float>(distance + key);
        if (hasBias && static_cast<uint32_t>(key - begin) < static_cast<uint32_t>(end - begin))
          added += loadNumber(args.bias.data, bias + key * args.bias.strides[3], args.bias.dtype);
        logits[i][2 * half + j] += added;
      }
  }

  __device__ void multiplyValues(const float (&weights)[kKeys / 8][4], uint32_t tile, int offset) {
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      uint32_t a[QueryPlanes][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float (&from)[4] = weights[2 * step + i / 2];
        a[0][i] = pair(from[i % 2 * 2], from[i % 2 * 2 + 1]);
        if constexpr (QueryPlanes == 2)
          a[1][i] = restOf(a[0][i], from[i % 2 * 2], from[i % 2 * 2 + 1]);
      }
      int row = offset + 16 * step + lane % 16;
#pragma unroll
      for (int part = 0; part < kParts; part += 2)
#pragma unroll
        for (int plane = 0; plane < CachePlanes; ++plane) {
          uint32_t b[4];
          loadMatricesTransposed(b, tile + plane * flashTileBytes(Size, 1) + flashByte(Size, row, part + lane / 16));
#pragma unroll
          for (int query = 0; query < QueryPlanes - plane; ++query) {
            multiply(values[part], a[query], b[0], b[1]);
            multiply(values[part + 1], a[query], b[2], b[3]);
          }
        }
    }
  }

  // Results

  /// sums[warp][16][Size], and behind them [warp][16][largest, sum].
  __device__ void leaveSums() {
    auto *sums = reinterpret_cast<float *>(shared), *states = sums + kFlashWarps * 16 * Size;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = 16 * warp + lane / 4 + 8 * half;
      sum[half] += __shfl_xor_sync(~0u, sum[half], 1);
      sum[half] += __shfl_xor_sync(~0u, sum[half], 2);
      if (lane % 4 == 0)
        states[2 * row] = largest[half], states[2 * row + 1] = sum[half];
#pragma unroll
      for (int part = 0; part < kParts; ++part)
        *reinterpret_cast<float2 *>(sums + row * Size + 8 * part + lane % 4 * 2) = {values[part][2 * half],
                                                                                    values[part][2 * half + 1]};
    }
  }

  /// Warps that had the same rows are joined. Sinks count with the first split.
  __device__ void writeRows() {
    constexpr int kShares = RowWarps == 4 ? 1 : kFlashWarps;
    const auto *sums = reinterpret_cast<const float *>(shared), *states = sums + kFlashWarps * 16 * Size;
#pragma unroll 1
    for (int i = threadIdx.x; i < 16 * RowWarps * args.valueSize; i += 32 * kFlashWarps) {
      int own = i / args.valueSize, number = i % args.valueSize;
      int64_t row = firstRow + own, head = headOf(row), query = row / headsOfKey;
      if (row >= rowCount())
        break;
      bool hasSink = args.sinks.data && split == 0;
      float sink = hasSink ? args.sinks.at(head, 0) : -infinity(), most = sink, value = 0;
#pragma unroll
      for (int share = 0; share < kShares; ++share)
        most = larger(most, states[2 * (16 * share + own)]);
      float total = weightOf(sink, most);
#pragma unroll
      for (int share = 0; share < kShares; ++share) {
        float factor = weightOf(states[2 * (16 * share + own)], most);
        total += factor * states[2 * (16 * share + own) + 1];
        value += factor * sums[(16 * share + own) * Size + number];
      }
      int64_t place = (sequence * args.queryHeads + head) * args.queries + query;
      if (args.splits == 1) {
        storeNumber(args.out.data, args.out.offset(sequence, head, query) + number * args.out.strides[3],
                    args.out.dtype, total == 0 ? 0 : value / total);
        continue;
      }
      partialValues(args, place, split)[number] = value;
      if (number == 0) {
        float *state = partialState(args, place, split);
        state[0] = most, state[1] = total;
      }
    }
  }

  const AttentionArguments &args;
  char *const shared;
  const uint32_t queries, tiles;
  const int warp, lane, headsOfKey;
  const int64_t sequence, keyHead, split, firstRow;
  KeyRange visible[2];
  float largest[2] = {-infinity(), -infinity()}, sum[2] = {}, values[kParts][4] = {};
};

} // namespace hone::cuda

// Blocks of a multiprocessor that registers have to suffice for; 0 leaves it to ptxas, which with the fewest numbers wants five, and
// spills.
constexpr int residentsOf(int size, int rowWarps) { return size == 64 && rowWarps == 1 ? 1 : 0; }

#define HONE_FLASH(name, isHalf, cachePlanes, queryPlanes, size, rowWarps)                                             \
  extern "C" __global__ void __launch_bounds__(32 * hone::cuda::kFlashWarps, residentsOf(size, rowWarps))              \
      name(const __grid_constant__ hone::cuda::AttentionArguments args) {                                              \
    extern __shared__ __align__(128) char flashShared[];                                                               \
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
