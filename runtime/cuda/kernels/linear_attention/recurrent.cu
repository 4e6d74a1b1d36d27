// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear attention, token after token, with the state in registers: it is read once and written once a call. What is
// computed for a token does not depend on how many there are in the call.
//
// A warp has a slice of a state; its lanes have four columns of it and, of each 64 rows, four. With S before a token
// already decayed,
//   result = scale · (Sᵀ query + (key · query) u),
// so that both sums over rows are reduced at once. The warps of a block stage the tokens that they all read in shared
// memory, each another token, while those before are computed.

#include "../device/overlap.h"
#include "../device/reduce.h"
#include "../device/vectors.h"
#include "linear_attention.h"

namespace hone::cuda {

/// Elements first … first + 3 of the row at `offset`; those from its end on are 0.
__device__ inline void loadQuad(float (&values)[4], const RowView &view, int64_t offset, int first) {
  if (view.isVector && first + 4 <= view.count) {
    loadFour(values, view.data, offset + first, view.dtype);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    values[i] = first + i < view.count ? loadElement(view.data, offset + (first + i) * view.inner, view.dtype) : 0;
}

/// The row of a sequence, token and head, or head and group.
__device__ inline int64_t rowOf(const TokenRows &tensor, int64_t sequence, int64_t token, int64_t number) {
  return sequence * tensor.strides[0] + token * tensor.strides[1] + number * tensor.strides[2];
}

/// What a block reads of a token: the query is that of the first head of the group. Elements from the end of a row on
/// are 0, decays are factors: all are the first one where a token has one.
template <int KeyRoom> struct alignas(16) StagedToken {
  float key[KeyRoom], query[KeyRoom], decay[KeyRoom], value[kMostSliceWarps * kSliceColumns], beta;
};

/// A token on its way to shared memory, in the registers of a warp.
template <int KeyRoom> class TokenLoad {
public:
  /// Loads what the block whose columns begin at `firstColumn` reads.
  __device__ void load(const LinearAttentionArguments &args, int64_t sequence, int64_t token, int64_t head,
                       int firstColumn) {
    loadRow(key, args.key, rowOf(args.key, sequence, token, head));
    loadRow(query, args.query, rowOf(args.query, sequence, token, head * args.group));
    if (args.decay.rows.data)
      loadRow(decay, args.decay, rowOf(args.decay, sequence, token, head));
    int column = firstColumn + threadIdx.x % 32;
    const RowView &values = args.value.rows, &betas = args.beta.rows;
    value =
        column < args.valueSize
            ? loadElement(values.data, rowOf(args.value, sequence, token, head) + column * values.inner, values.dtype)
            : 0;
    if (betas.data)
      beta = loadElement(betas.data, rowOf(args.beta, sequence, token, 0) + (betas.count == 1 ? 0 : head * betas.inner),
                         betas.dtype);
  }

  __device__ void store(const LinearAttentionArguments &args, StagedToken<KeyRoom> &to) {
    if (args.decay.rows.data) {
#pragma unroll
      for (int i = 0; i < kQuads; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          decay[i][j] = expf(decay[i][j]);
      storeRow(to.decay, decay);
    }
    storeRow(to.key, key);
    storeRow(to.query, query);
    to.value[threadIdx.x % 32] = value;
    to.beta = beta; // all lanes write the same
  }

private:
  static constexpr int kQuads = KeyRoom < 128 ? 1 : KeyRoom / 128;
  using Quads = float[kQuads][4];

  __device__ static int firstOf(int quad) { return quad * 128 + threadIdx.x % 32 * 4; }

  __device__ static void loadRow(Quads &quads, const TokenRows &tensor, int64_t offset) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i)
      loadQuad(quads[i], tensor.rows, offset, firstOf(i));
  }

  __device__ static void storeRow(float (&row)[KeyRoom], const Quads &quads) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i)
      if (firstOf(i) < KeyRoom)
        *reinterpret_cast<float4 *>(row + firstOf(i)) = {quads[i][0], quads[i][1], quads[i][2], quads[i][3]};
  }

  Quads key, query, decay;
  float value, beta;
};

/// A warp's slice of one state.
template <int KeyRoom, bool IsDelta> class Slice {
public:
  __device__ Slice(const LinearAttentionArguments &args, int64_t sequence, int64_t head, int firstColumn)
      : args(args), sequence(sequence), head(head), lane(threadIdx.x % 32), firstRow(lane / 2 * 4),
        firstColumn(firstColumn + lane % 2 * 4), ownColumn(this->firstColumn + lane / 8) {}

  __device__ void loadState() {
    int64_t first = args.state.rows.data ? matrixOf(args.state) : 0;
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int row = rowOfLane(quad) + i;
        if (args.state.rows.data && row < args.keySize)
          loadQuad(state[quad][i], args.state.rows, first + row * args.state.rowStride, firstColumn);
        else
          state[quad][i][0] = state[quad][i][1] = state[quad][i][2] = state[quad][i][3] = 0;
      }
  }

  __device__ void storeState() const {
    const RowView &next = args.next.rows;
    if (!next.data)
      return;
    int64_t first = matrixOf(args.next);
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int row = rowOfLane(quad) + i;
        if (row < args.keySize)
          storeColumns(first + row * args.next.rowStride, state[quad][i]);
      }
  }

  /// Computes token t.
  __device__ void step(const StagedToken<KeyRoom> &token, int64_t t) {
    if (args.decay.rows.data)
      decayState(token);
    Rows key, query;
    readRows(key, token.key);
    float update = token.value[threadIdx.x / 32 * kSliceColumns + lane % 2 * 4 + lane / 8];
    if constexpr (IsDelta)
      update = token.beta * (update - multiply(key));
    readRows(query, token.query);
    store(multiply(query) + dot(key, query) * update, t, 0);
    for (int g = 1; g < args.group; ++g) {
      int64_t offset = rowOf(args.query, sequence, t, head * args.group + g);
#pragma unroll
      for (int quad = 0; quad < kQuads; ++quad)
        loadQuad(query[quad], args.query.rows, offset, rowOfLane(quad));
      store(multiply(query) + dot(key, query) * update, t, g);
    }
    write(key, update);
  }

private:
  static constexpr int kQuads = KeyRoom / 64;
  using Rows = float[kQuads][4]; // an element for each row of the lane

  __device__ int rowOfLane(int quad) const { return quad * 64 + firstRow; }

  __device__ void readRows(Rows &to, const float (&row)[KeyRoom]) const {
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad) {
      float4 v = *reinterpret_cast<const float4 *>(row + rowOfLane(quad));
      to[quad][0] = v.x, to[quad][1] = v.y, to[quad][2] = v.z, to[quad][3] = v.w;
    }
  }

  __device__ void decayState(const StagedToken<KeyRoom> &token) {
    bool isOne = args.decay.rows.count == 1;
    float all = token.decay[0];
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad) {
      float4 own = *reinterpret_cast<const float4 *>(token.decay + rowOfLane(quad));
      float factors[4] = {own.x, own.y, own.z, own.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          state[quad][i][c] *= isOne ? all : factors[i];
    }
  }

  /// The product of the lane's own column with a row of elements of keys.
  __device__ float multiply(const Rows &rows) const {
    float sums[4] = {};
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          sums[c] += state[quad][i][c] * rows[quad][i];
    return scatteredSum<4, 2>(sums); // lane i gets that of column i / 8 of its four
  }

  __device__ static float dot(const Rows &a, const Rows &b) {
    float sum = 0;
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sum += a[quad][i] * b[quad][i];
#pragma unroll
    for (int distance = 16; distance > 1; distance /= 2)
      sum += __shfl_xor_sync(~0u, sum, distance);
    return sum;
  }

  __device__ void write(const Rows &key, float update) {
    float updates[4];
#pragma unroll
    for (int c = 0; c < 4; ++c)
      updates[c] = __shfl_sync(~0u, update, c * 8 + lane % 2);
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          state[quad][i][c] += key[quad][i] * updates[c];
  }

  /// The lanes of an own column have the same sum: one stores it.
  __device__ void store(float sum, int64_t t, int g) const {
    if (lane % 8 / 2 != 0 || ownColumn >= args.valueSize)
      return;
    const RowView &out = args.out.rows;
    int64_t to = rowOf(args.out, sequence, t, head * args.group + g) + ownColumn * out.inner;
    storeElement(out.data, to, out.dtype, args.scale * sum);
  }

  __device__ int64_t matrixOf(const MatrixView &tensor) const {
    return tensor.rows.offset((sequence * args.heads + head) * args.keySize);
  }

  __device__ void storeColumns(int64_t offset, const float (&values)[4]) const {
    const RowView &next = args.next.rows;
    if (next.isVector && firstColumn + 4 <= args.valueSize) {
      storeFour(next.data, offset + firstColumn, HONE_F32, values);
      return;
    }
#pragma unroll
    for (int c = 0; c < 4; ++c)
      if (firstColumn + c < args.valueSize)
        storeElement(next.data, offset + (firstColumn + c) * next.inner, HONE_F32, values[c]);
  }

  const LinearAttentionArguments &args;
  int64_t sequence, head;
  int lane, firstRow, firstColumn, ownColumn;
  float state[kQuads][4][4];
};

template <int KeyRoom, bool IsDelta> __device__ inline void runSlices(const LinearAttentionArguments &args) {
  enterInOrder();
  __shared__ StagedToken<KeyRoom> staged[2][kMostSliceWarps];
  int warps = blockDim.x / 32, warp = threadIdx.x / 32;
  int64_t blocks = divideUp(args.slices, int64_t{warps}), matrix = blockIdx.x / blocks;
  int64_t sequence = matrix / args.heads, head = matrix % args.heads;
  auto firstColumn = static_cast<int>(blockIdx.x % blocks * warps) * kSliceColumns;
  Slice<KeyRoom, IsDelta> slice(args, sequence, head, firstColumn + warp * kSliceColumns);
  slice.loadState();
  TokenLoad<KeyRoom> coming = {};
  auto load = [&](int64_t token) {
    if (token < args.tokens)
      coming.load(args, sequence, token, head, firstColumn);
  };
  load(warp);
  int half = 0;
  for (int64_t first = 0; first < args.tokens; first += warps, half ^= 1) {
    coming.store(args, staged[half][warp]); // which the block has left at the barrier before
    __syncthreads();
    load(first + warps + warp);
    for (int i = 0; i < warps && first + i < args.tokens; ++i)
      slice.step(staged[half][i], first + i);
  }
  slice.storeState();
}

} // namespace hone::cuda

#define HONE_LINEAR_ATTENTION(NAME, KEY_ROOM, IS_DELTA)                                                                \
  extern "C" __global__ void __launch_bounds__(32 * hone::cuda::kMostSliceWarps, 1)                                    \
      NAME(const __grid_constant__ hone::cuda::LinearAttentionArguments args) {                                        \
    hone::cuda::runSlices<KEY_ROOM, IS_DELTA>(args);                                                                   \
  }

HONE_LINEAR_ATTENTION(linear_attention_64, 64, false)
HONE_LINEAR_ATTENTION(linear_attention_128, 128, false)
HONE_LINEAR_ATTENTION(linear_attention_256, 256, false)
HONE_LINEAR_ATTENTION(linear_attention_delta_64, 64, true)
HONE_LINEAR_ATTENTION(linear_attention_delta_128, 128, true)
HONE_LINEAR_ATTENTION(linear_attention_delta_256, 256, true)
