// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear attention, token after token, with the state in registers: it is read once and written once a call. What is
// computed for a token does not depend on how many there are in the call.
//
// A lane has four columns of the slice and, of each 64 rows, four. With S before a token already decayed,
//   result = scale · (Sᵀ query + (key · query) u),
// so that both sums over rows are reduced at once, and the next token is loaded meanwhile.

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

/// Sums over the rows of a lane's columns, over the lanes of the slice. Lane i gets that of column i / 8 of its four.
__device__ inline float sumOfRows(float (&columns)[4]) { return scatteredSum<4, 2>(columns); }

/// A warp's slice of one state. `Quads` of four rows are those of a lane.
template <int Quads, bool IsDelta> class Slice {
public:
  __device__ Slice(const LinearAttentionArguments &args, int64_t sequence, int64_t head, int slice)
      : args(args), sequence(sequence), head(head), lane(threadIdx.x % 32), firstRow(lane / 2 * 4),
        firstColumn(slice * kSliceColumns + lane % 2 * 4), ownColumn(firstColumn + lane / 8) {}

  __device__ void run() {
    loadState();
    Token coming;
    if (args.tokens > 0)
      load(coming, 0);
    for (int64_t t = 0; t < args.tokens; ++t) {
      Token token = coming;
      if (t + 1 < args.tokens)
        load(coming, t + 1);
      step(token, t);
    }
    storeState();
  }

private:
  using Rows = float[Quads][4]; // an element for each row of the lane

  struct Token {
    Rows key, decay, query; // of the first query head
    float value, beta;      // of the lane's own column
  };

  __device__ int rowOf(int quad) const { return quad * 64 + firstRow; }

  __device__ int64_t rowOf(const TokenRows &tensor, int64_t t, int64_t number) const {
    return sequence * tensor.strides[0] + t * tensor.strides[1] + number * tensor.strides[2];
  }

  __device__ void loadRows(Rows &values, const TokenRows &tensor, int64_t t, int64_t number) const {
    int64_t offset = rowOf(tensor, t, number);
#pragma unroll
    for (int quad = 0; quad < Quads; ++quad)
      loadQuad(values[quad], tensor.rows, offset, rowOf(quad));
  }

  __device__ void load(Token &token, int64_t t) const {
    loadRows(token.key, args.key, t, head);
    loadRows(token.query, args.query, t, head * args.group);
    loadDecays(token.decay, t);
    token.value =
        ownColumn < args.valueSize
            ? loadElement(args.value.rows.data, rowOf(args.value, t, head) + ownColumn * args.value.rows.inner,
                          args.value.rows.dtype)
            : 0;
    if constexpr (IsDelta) {
      const RowView &beta = args.beta.rows;
      token.beta =
          loadElement(beta.data, rowOf(args.beta, t, 0) + (beta.count == 1 ? 0 : head * beta.inner), beta.dtype);
    }
  }

  /// As they are given; exp is computed where they are used, as that waits for them.
  __device__ void loadDecays(Rows &decay, int64_t t) const {
    if (!args.decay.rows.data)
      return;
    if (args.decay.rows.count > 1) {
      loadRows(decay, args.decay, t, head);
      return;
    }
    decay[0][0] = loadElement(args.decay.rows.data, rowOf(args.decay, t, head), args.decay.rows.dtype);
  }

  __device__ void decayState(const Rows &decay) {
    if (!args.decay.rows.data)
      return;
    bool isOne = args.decay.rows.count == 1;
    float all = isOne ? expf(decay[0][0]) : 1;
#pragma unroll
    for (int quad = 0; quad < Quads; ++quad)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float factor = isOne ? all : expf(decay[quad][i]);
#pragma unroll
        for (int c = 0; c < 4; ++c)
          state[quad][i][c] *= factor;
      }
  }

  /// The product of the lane's own column with a row.
  __device__ float multiply(const Rows &rows) const {
    float sums[4] = {};
#pragma unroll
    for (int quad = 0; quad < Quads; ++quad)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          sums[c] += state[quad][i][c] * rows[quad][i];
    return sumOfRows(sums);
  }

  __device__ static float dot(const Rows &a, const Rows &b) {
    float sum = 0;
#pragma unroll
    for (int quad = 0; quad < Quads; ++quad)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sum += a[quad][i] * b[quad][i];
#pragma unroll
    for (int distance = 16; distance > 1; distance /= 2)
      sum += __shfl_xor_sync(~0u, sum, distance);
    return sum;
  }

  __device__ void step(Token &token, int64_t t) {
    decayState(token.decay);
    float update = token.value;
    if constexpr (IsDelta)
      update = token.beta * (update - multiply(token.key));
    for (int g = 0; g < args.group; ++g) {
      if (g > 0)
        loadRows(token.query, args.query, t, head * args.group + g);
      store(multiply(token.query) + dot(token.key, token.query) * update, t, g);
    }
    float updates[4];
#pragma unroll
    for (int c = 0; c < 4; ++c)
      updates[c] = __shfl_sync(~0u, update, c * 8 + lane % 2);
#pragma unroll
    for (int quad = 0; quad < Quads; ++quad)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          state[quad][i][c] += token.key[quad][i] * updates[c];
  }

  /// The lanes of an own column have the same sum: one stores it.
  __device__ void store(float sum, int64_t t, int g) const {
    if (lane % 8 / 2 != 0 || ownColumn >= args.valueSize)
      return;
    const RowView &out = args.out.rows;
    int64_t to = rowOf(args.out, t, head * args.group + g) + ownColumn * out.inner;
    storeElement(out.data, to, out.dtype, args.scale * sum);
  }

  __device__ int64_t matrixOf(const MatrixView &tensor) const {
    return tensor.rows.offset((sequence * args.heads + head) * args.keySize);
  }

  __device__ void loadState() {
    int64_t first = args.state.rows.data ? matrixOf(args.state) : 0;
#pragma unroll
    for (int quad = 0; quad < Quads; ++quad)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int row = rowOf(quad) + i;
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
    for (int quad = 0; quad < Quads; ++quad)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int row = rowOf(quad) + i;
        if (row < args.keySize)
          storeColumns(first + row * args.next.rowStride, state[quad][i]);
      }
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
  float state[Quads][4][4];
};

template <int KeyRoom, bool IsDelta> __device__ inline void runSlices(const LinearAttentionArguments &args) {
  enterInOrder();
  auto warps = static_cast<int64_t>(blockDim.x / 32), blocks = divideUp(args.slices, warps);
  int64_t matrix = blockIdx.x / blocks, slice = blockIdx.x % blocks * warps + threadIdx.x / 32;
  if (slice < args.slices)
    Slice<KeyRoom / 64, IsDelta>(args, matrix / args.heads, matrix % args.heads, static_cast<int>(slice)).run();
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
