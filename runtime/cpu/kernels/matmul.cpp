// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of matrices. Products of a few rows (GEMV), as in decode, are memory-bound: they read the second operand
// once and have loops of their own. Those of a large M, as in training, are GEMMs whose second operand is packed in the
// cache; the rest goes to a dense product after copying what is strided along both axes.

#include "entry.h"

#include "../bf16_rate.h"
#include "../scratch_memory.h"
#include "../sgemm.h"
#include "linear/gemm_split.h"
#include "linear/gemm_tiles.h"
#include "linear/strided_weight.h"
#include "linear/unpacked_tiles.h"
#include "matrix.h"
#include "parallel_for.h"
#include "parts.h"
#include "precision.h"
#include "vector.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

constexpr int64_t kGemvRows = 4;        // rows of the loops for decoding
constexpr int64_t kFewestColumns = 32;  // of a GEMM that packs the second operand, for which it converts the first one
constexpr int64_t kSmallWork = 1 << 15; // multiply-adds that are not worth a second thread

/// A matrix as the dense product takes it, copied where neither axis has stride 1.
class Packed {
public:
  explicit Packed(const Matrix &matrix) {
    if (matrix.isRowMajor())
      dense = {matrix.data, false, larger(matrix.rows == 1 ? 1 : matrix.rowStride, matrix.columns)};
    else if (matrix.transposed().isRowMajor())
      dense = {matrix.data, true, larger(matrix.columns == 1 ? 1 : matrix.columnStride, matrix.rows)};
    else
      copy(matrix);
  }
  ~Packed() { freeScratch(owned); }
  Packed(const Packed &) = delete;
  Packed &operator=(const Packed &) = delete;

  DenseMatrix dense;

  Matrix of(const Matrix &shape) const {
    return {dense.data, shape.rows, shape.columns, dense.transposed ? 1 : dense.leading,
            dense.transposed ? dense.leading : 1};
  }

private:
  void copy(const Matrix &matrix) {
    owned = allocateScratch(matrix.rows * matrix.columns);
    for (int64_t i = 0; i < matrix.rows; ++i)
      for (int64_t j = 0; j < matrix.columns; ++j)
        owned[i * matrix.columns + j] = matrix.at(i, j);
    dense = {owned, false, matrix.columns};
  }

  float *owned = nullptr;
};

/// What is added to a product: a bias along its rows, or what c has. What has no data is absent.
struct Addend {
  Row bias;
  bool isOutput = false;

  float at(const Matrix &c, int64_t i, int64_t j) const { return isOutput ? c.at(i, j) : bias.data ? bias[j] : 0.0f; }
};

void fillRows(const Matrix &c, const Addend &addend) {
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < c.columns; ++j)
      c.at(i, j) = addend.at(c, i, j);
}

/// Columns [begin, begin + kLanes * VECTORS) of up to kGemvRows rows of a·b, b row-major.
template <int ROWS, int VECTORS>
void gemvBlock(const Matrix &a, const Matrix &b, const Matrix &c, const Addend &addend, int64_t begin) {
  Vector sums[ROWS][VECTORS] = {};
  for (int64_t k = 0; k < a.columns; ++k) {
    const float *row = b.data + k * b.rowStride + begin;
    for (int r = 0; r < ROWS; ++r)
      for (int v = 0; v < VECTORS; ++v)
        sums[r][v] += a.at(r, k) * load(row + v * kLanes);
  }
  for (int r = 0; r < ROWS; ++r)
    for (int64_t j = 0; j < VECTORS * kLanes; ++j)
      c.at(r, begin + j) = sums[r][j / kLanes][j % kLanes] + addend.at(c, r, begin + j);
}

void gemvTail(const Matrix &a, const Matrix &b, const Matrix &c, const Addend &addend, int64_t begin) {
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = begin; j < c.columns; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < a.columns; ++k)
        sum += a.at(i, k) * b.at(k, j);
      c.at(i, j) = sum + addend.at(c, i, j);
    }
}

template <int ROWS>
void gemvByColumns(const Matrix &a, const Matrix &b, const Matrix &c, const Addend &addend) {
  constexpr int64_t width = 4 * kLanes;
  int64_t blocks = c.columns / width;
  parallelFor(blocks + 1, a.columns * c.columns > kSmallWork, [&](int64_t block) {
    if (block < blocks)
      gemvBlock<ROWS, 4>(a, b, c, addend, block * width);
    else
      gemvTail(a, b, c, addend, blocks * width);
  });
}

/// b is column-major: every element is a dot product of two dense rows.
void gemvByDots(const Matrix &a, const Matrix &b, const Matrix &c, const Addend &addend) {
  parallelFor(c.columns, a.columns * c.columns > kSmallWork, [&](int64_t j) {
    for (int64_t i = 0; i < c.rows; ++i)
      c.at(i, j) = dot(a.data + i * a.rowStride, b.data + j * b.columnStride, a.columns) + addend.at(c, i, j);
  });
}

/// True where the GEMV loops did the product.
bool gemvRows(const Matrix &a, const Matrix &b, const Matrix &c, const Addend &addend) {
  if (a.rows > kGemvRows)
    return false;
  if (b.rowStride == 1 && a.columnStride == 1 && b.columnStride != 1) {
    gemvByDots(a, b, c, addend);
    return true;
  }
  if (b.columnStride != 1)
    return false;
  switch (a.rows) {
  case 1:
    gemvByColumns<1>(a, b, c, addend);
    break;
  case 2:
    gemvByColumns<2>(a, b, c, addend);
    break;
  case 3:
    gemvByColumns<3>(a, b, c, addend);
    break;
  default:
    gemvByColumns<4>(a, b, c, addend);
  }
  return true;
}

/// The engine that packs the second operand of a GEMM (large M), from so many rows on: where that is not faster than a dense product,
/// there is none.
template <typename Precision> struct PackingGemm {
  static int64_t fewestRows() { return INT64_MAX; }
  template <typename Body> static void withEngine(const Matrix &, int64_t, const Body &) {}
};

#if defined(__AMX_TILE__)
template <> struct PackingGemm<RoundedProducts> {
  using Pairs = StridedPairs<kTileStepInputs / 2>;

  static int64_t fewestRows() { return kTileRows + 1; }
  template <typename Body> static void withEngine(const Matrix &b, int64_t rows, const Body &body) {
    body(TileEngine<StepTiles<Pairs>>(StepTiles<Pairs>(Pairs(b)), rows));
  }
};

template <> struct PackingGemm<ExactProducts> {
  static int64_t fewestRows() { return SplitEngine<StridedSplit>::fewestRows(); }
  template <typename Body> static void withEngine(const Matrix &b, int64_t rows, const Body &body) {
    body(SplitEngine<StridedSplit>(StridedSplit(b), rows));
  }
};
#elif defined(__AVX512BF16__)
template <> struct PackingGemm<RoundedProducts> {
  static int64_t fewestRows() { return hasFastBf16Products() ? kDenseGemvRows + 1 : INT64_MAX; }
  template <typename Body> static void withEngine(const Matrix &b, int64_t, const Body &body) {
    body(VectorEngine<StridedPairs<1>>(StridedPairs<1>(b)));
  }
};
#endif

hone_tensor tensorOf(const Matrix &matrix) {
  return {matrix.data, HONE_F32, 2, {matrix.rows, matrix.columns}, {matrix.rowStride, matrix.columnStride}};
}

/// True where a GEMM that packs b did the product.
template <typename Precision>
bool multiplyPanels(const Matrix &a, const Matrix &b, const Matrix &c, const Addend &addend) {
  if (!c.isRowMajor() && c.transposed().isRowMajor() && !addend.bias.data)
    return multiplyPanels<Precision>(b.transposed(), a.transposed(), c.transposed(), addend);
  if (c.rows < PackingGemm<Precision>::fewestRows() || c.columns < kFewestColumns)
    return false;
  Packed packedA(a), packedB(b);
  hone_tensor x = tensorOf(packedA.of(a)), y = tensorOf(c), absent = {};
  PackingGemm<Precision>::withEngine(packedB.of(b), c.rows, [&](const auto &engine) {
    using Engine = __remove_cvref(decltype(engine));
    const hone_tensor &residual = addend.isOutput ? y : absent; // read where the sum is written, before it is
    GemmLayer<Engine>(x, engine, y, Epilogue(addend.bias, absent, residual, kIdentity)).run();
  });
  return true;
}

void multiplyDense(const Matrix &a, const Matrix &b, const Matrix &c, float beta) {
  Packed packedA(a), packedB(b), packedC(c);
  if (packedC.dense.transposed) {
    multiplyDense(b.transposed(), a.transposed(), c.transposed(), beta);
    return;
  }
  sgemm(c.rows, c.columns, a.columns, packedA.dense, packedB.dense, beta, packedC.dense);
  if (packedC.dense.data == c.data)
    return;
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < c.columns; ++j)
      c.at(i, j) = packedC.dense.data[i * c.columns + j];
}

/// c = a · b + addend
template <typename Precision>
void multiply(const Matrix &a, const Matrix &b, const Matrix &c, const Addend &addend) {
  if (c.rows == 0 || c.columns == 0)
    return;
  if (a.columns == 0)
    return fillRows(c, addend);
  if (gemvRows(a, b, c, addend) || multiplyPanels<Precision>(a, b, c, addend))
    return;
  if (addend.bias.data)
    fillRows(c, addend);
  multiplyDense(a, b, c, addend.isOutput || addend.bias.data ? 1.0f : 0.0f);
}

/// Offset of the matrix that belongs to matrix `index` of `output`, with sizes of 1 and absent axes repeated.
int64_t batchOffset(const hone_tensor &tensor, const hone_tensor &output, int64_t index) {
  int64_t offset = 0;
  for (int32_t axis = output.rank - 2; axis-- > 0;) {
    int64_t position = index % output.sizes[axis];
    index /= output.sizes[axis];
    int32_t own = axis + tensor.rank - output.rank;
    if (own >= 0 && tensor.sizes[own] != 1)
      offset += position * tensor.strides[own];
  }
  return offset;
}

bool isOneMatrix(const hone_tensor &tensor) { return countRows(tensor, 2) == 1; }

template <typename Precision>
void multiplyBatches(const hone_tensor &a, const hone_tensor &b, const hone_tensor &c, const Addend &addend) {
  Matrix wideA, wideC;
  if (isOneMatrix(b) && collapseRows(a, wideA) && collapseRows(c, wideC) && wideA.rows == wideC.rows)
    return multiply<Precision>(wideA, matrixAt(b, 0), wideC, addend);
  int64_t batches = countRows(c, 2);
  auto multiplyOne = [&](int64_t index) {
    multiply<Precision>(matrixAt(a, batchOffset(a, c, index)), matrixAt(b, batchOffset(b, c, index)),
                        matrixAt(c, batchOffset(c, c, index)), addend);
  };
  // Many products share the threads, few products have all threads each.
  constexpr int64_t many = 8;
  if (batches < many) {
    for (int64_t index = 0; index < batches; ++index)
      multiplyOne(index);
    return;
  }
  Parts threads;
  parallelFor(batches, true, [&](int64_t index) { threads.run([&] { multiplyOne(index); }); });
  threads.finish();
}

template <typename Precision> void run(const kernels::Call<kernels::Matmul, kernels::NoWeight> &call) {
  multiplyBatches<Precision>(call.operands.a, call.operands.b, call.operands.c,
                             {{nullptr, 0}, call.ints.accumulates != 0});
}

template <typename Precision> void run(const kernels::Call<kernels::PlainLinear, kernels::NoWeight> &call) {
  const auto &o = call.operands;
  hone_tensor weight = o.weight;
  if (call.ints.transposed) {
    weight.sizes[0] = o.weight.sizes[1];
    weight.sizes[1] = o.weight.sizes[0];
    weight.strides[0] = o.weight.strides[1];
    weight.strides[1] = o.weight.strides[0];
  }
  multiplyBatches<Precision>(withRowAxis(o.x), weight, withRowAxis(o.y), {vectorOf(o.bias)});
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cpu/matmul.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
