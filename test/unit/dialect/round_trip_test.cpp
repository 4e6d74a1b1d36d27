// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every encoding gives back the numbers that it has, bit for bit, at every size: empty, ragged and whole groups, bytes and panels;
// and so do the panels that kernels read.

#include "hone/Compress/Outliers.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <random>

namespace hone {
namespace {

using Planes = std::vector<std::vector<char>>;

/// Rows and columns.
class RoundTrip : public testing::TestWithParam<std::tuple<int64_t, int64_t>> {
protected:
  RoundTrip() { context.loadDialect<HoneDialect, hrt::HrtDialect>(); }

  int64_t rows() const { return std::get<0>(GetParam()); }
  int64_t columns() const { return std::get<1>(GetParam()); }
  mlir::FloatType f32() { return mlir::Float32Type::get(&context); }
  mlir::FloatType f16() { return mlir::Float16Type::get(&context); }
  mlir::FloatType bf16() { return mlir::BFloat16Type::get(&context); }

  std::vector<AffineAttr> affines() {
    std::vector<AffineAttr> all;
    for (int64_t bits : {2, 3, 4, 5, 6, 8})
      for (int64_t group : {0, 32, 64, 128})
        for (int flags = 0; flags < 8; ++flags)
          all.push_back(AffineAttr::get(&context, bits, group, flags & 1 ? f16() : f32(), (flags & 2) != 0,
                                        (flags & 4) != 0, /*transposed=*/false, 0, /*atLeast=*/false));
    return all;
  }

  /// Small whole numbers, which every float has; of each row at most so many different ones.
  std::vector<float> drawFew(int64_t different = 8) {
    std::vector<float> values(rows() * columns());
    for (size_t i = 0; i < values.size(); ++i)
      values[i] =
          static_cast<float>(static_cast<int64_t>(random() % different) - static_cast<int64_t>(i / columns() % 3));
    return values;
  }

  /// Numbers that are codes of the scale that pack fits: each group reaches the end of its range, with steps that are powers of two.
  std::vector<float> drawCodes(AffineAttr affine) {
    std::vector<float> values(rows() * columns());
    int64_t width = affine.getGroup() ? affine.getGroup() : std::max<int64_t>(columns(), 1),
            highest = 1 << affine.getBits();
    for (int64_t row = 0; row < rows(); ++row)
      for (int64_t begin = 0; begin < columns(); begin += width) {
        int64_t count = std::min(width, columns() - begin);
        float step = std::ldexp(1.0f, -1 - static_cast<int>((row + begin) % 3));
        int64_t zero = affine.getHasZeros() ? (count > 1 ? static_cast<int64_t>(random() % highest) : 0) : highest / 2;
        float *group = values.data() + row * columns() + begin;
        for (int64_t i = 0; i < count; ++i)
          group[i] = step * static_cast<float>(static_cast<int64_t>(random() % highest) - zero);
        group[0] = step * static_cast<float>(affine.getHasZeros() && count == 1 ? highest - 1 : -zero);
        if (affine.getHasZeros() && count > 1)
          group[1] = step * static_cast<float>(highest - 1 - zero);
      }
    return values;
  }

  /// Keeps n of every m of each row; the first ones of each group of codes, which say its scale.
  void keep(std::vector<float> &values, int64_t n, int64_t m) {
    for (size_t first = 0; first < values.size(); first += m)
      for (int64_t i = 0, from = first % columns() % 32 == 0 ? 0 : static_cast<int64_t>(random() % (m - n + 1)); i < m;
           ++i)
        if (i < from || i >= from + n)
          values[first + i] = 0;
  }

  std::optional<std::vector<float>> readBack(EncodingInterface encoding, const std::vector<float> &values) {
    std::vector<int64_t> shape{rows(), columns()};
    Planes planes;
    for (const EncodingPlane &plane : encoding.getPlanes(shape, f32()))
      planes.emplace_back(static_cast<size_t>(*getDenseBytes(plane.type)));
    llvm::SmallVector<llvm::MutableArrayRef<char>> buffers(planes.begin(), planes.end());
    llvm::ArrayRef<char> dense(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
    if (failed(encoding.pack(shape, f32(), dense, buffers,
                             [&] { return mlir::emitError(mlir::UnknownLoc::get(&context)); })))
      return std::nullopt;
    std::vector<float> read(values.size(), -7.0f);
    llvm::SmallVector<llvm::ArrayRef<char>> views(planes.begin(), planes.end());
    encoding.unpack(shape, f32(), views, {reinterpret_cast<char *>(read.data()), read.size() * sizeof(float)});
    return read;
  }

  static std::string print(mlir::Attribute attribute) {
    std::string text;
    llvm::raw_string_ostream(text) << attribute;
    return text;
  }

  /// `values` come back from `encoding`, and from its panels where kernels read such.
  void expectSame(mlir::Attribute encoding, const std::vector<float> &values) {
    ASSERT_EQ(readBack(mlir::cast<EncodingInterface>(encoding), values), values) << print(encoding);
    if (!hrt::PanelsAttr::canPack(encoding))
      return;
    auto stored = mlir::dyn_cast<StoredAttr>(encoding);
    auto panels =
        stored ? hrt::PanelsAttr::get(mlir::cast<mlir::FloatType>(stored.getType())) : hrt::PanelsAttr::get(encoding);
    ASSERT_EQ(readBack(panels, values), values) << print(panels);
  }

  /// As many outliers as fit a quarter of the panels, or none.
  DenseSparseAttr besideOutliers(mlir::Attribute base) {
    int64_t slots = compress::countSparsePanels(rows()) * columns() / 4;
    return slots == 0 ? DenseSparseAttr() : DenseSparseAttr::get(base, slots * compress::kSparseRows);
  }

  mlir::MLIRContext context;
  std::mt19937 random{23};
};

TEST_P(RoundTrip, Floats) {
  std::vector<float> values = drawFew();
  for (mlir::FloatType type : {f32(), f16(), bf16()})
    for (bool transposed : {false, true})
      ASSERT_NO_FATAL_FAILURE(expectSame(StoredAttr::get(type, transposed), values));
}

TEST_P(RoundTrip, Codes) {
  for (AffineAttr affine : affines())
    ASSERT_NO_FATAL_FAILURE(expectSame(affine, drawCodes(affine)));
}

TEST_P(RoundTrip, Codebooks) {
  for (int64_t bits : {2, 3, 4}) {
    std::vector<float> values = drawFew(int64_t(1) << std::min<int64_t>(bits, 3));
    for (mlir::FloatType type : {f32(), f16(), bf16()})
      ASSERT_NO_FATAL_FAILURE(expectSame(CodebookAttr::get(&context, bits, type), values));
  }
}

TEST_P(RoundTrip, SomeOfEveryFew) {
  for (auto [n, m] : {std::pair<int64_t, int64_t>(2, 4), {1, 4}, {1, 2}, {4, 8}, {8, 16}}) {
    if (columns() % m != 0)
      continue;
    std::vector<float> values = drawFew();
    keep(values, n, m);
    for (mlir::FloatType type : {f32(), f16(), bf16()})
      ASSERT_NO_FATAL_FAILURE(expectSame(NmAttr::get(n, m, mlir::TypeAttr::get(type)), values));
    for (AffineAttr affine : affines()) {
      if (!NmAttr::canKeep(affine) || (n < 2 && affine.getHasZeros()))
        continue;
      values = drawCodes(affine);
      keep(values, n, m);
      ASSERT_NO_FATAL_FAILURE(expectSame(NmAttr::get(n, m, affine), values));
    }
  }
}

/// Outliers are larger than all else, so that they are what is detached, and what stays is what it was.
TEST_P(RoundTrip, CodesBesideOutliers) {
  for (AffineAttr affine : affines()) {
    DenseSparseAttr encoding = besideOutliers(affine);
    if (!encoding)
      return;
    std::vector<float> values = drawCodes(affine), whole = values;
    compress::Weight weight{whole, rows(), columns()};
    std::vector<float> sizes(values.size());
    for (size_t i = 0; i < sizes.size(); ++i)
      sizes[i] = static_cast<float>(i % 32 > 1) * static_cast<float>(1 + random() % 100);
    // As many of each row as pack detaches: it takes the largest of sixteen rows at once.
    compress::Weight drawn{sizes, rows(), columns()};
    compress::Outliers marks = compress::markLargest(drawn, encoding.getOutliers() / compress::kSparseRows);
    for (size_t i = 0; i < values.size(); ++i)
      if (marks[i])
        whole[i] = 512.0f + static_cast<float>(random() % 512);
    compress::Outliers again = compress::markLargest(weight, encoding.getOutliers() / compress::kSparseRows);
    std::optional<std::vector<float>> read = readBack(encoding, whole);
    ASSERT_TRUE(read) << print(encoding);
    for (size_t i = 0; i < values.size(); ++i) // the detached support, bit for bit
      if (again[i]) {
        ASSERT_EQ((*read)[i], static_cast<float>(static_cast<_Float16>(whole[i]))) << print(encoding) << ", " << i;
      }
    if (hrt::PanelsAttr::canPack(encoding)) {
      ASSERT_EQ(readBack(hrt::PanelsAttr::get(encoding), whole), read) << print(encoding);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, RoundTrip,
                         testing::Combine(testing::Values(0, 1, 16, 33),
                                          testing::Values(0, 1, 3, 8, 31, 32, 64, 100, 144)));

} // namespace
} // namespace hone
