// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hone.nm: what is unpacked is what the encoding of the whole matrix keeps, bit for bit, and panels mean the same numbers.

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace hone {
namespace {

using Planes = std::vector<std::vector<char>>;

class NmLayout : public testing::Test {
protected:
  NmLayout() { context.loadDialect<HoneDialect, hrt::HrtDialect>(); }

  mlir::FloatType f32() { return mlir::Float32Type::get(&context); }
  mlir::Attribute typeOf(mlir::FloatType type) { return mlir::TypeAttr::get(type); }

  AffineAttr affine(int64_t bits, int64_t group, bool hasZeros, bool isSigned) {
    return AffineAttr::get(&context, bits, group, mlir::Float16Type::get(&context), hasZeros, isSigned,
                           /*transposed=*/false, /*activations=*/0, /*atLeast=*/false);
  }

  /// What may be kept of a matrix.
  std::vector<mlir::Attribute> elements() {
    std::vector<mlir::Attribute> all{typeOf(f32()), typeOf(mlir::Float16Type::get(&context)),
                                     typeOf(mlir::BFloat16Type::get(&context))};
    for (int64_t bits : {2, 4, 8})
      for (int64_t group : {0, 32})
        for (bool hasZeros : {false, true})
          for (bool isSigned : {false, true})
            all.push_back(affine(bits, group, hasZeros, isSigned));
    return all;
  }

  Planes makePlanes(EncodingInterface encoding, llvm::ArrayRef<int64_t> shape) {
    Planes planes;
    for (const EncodingPlane &plane : encoding.getPlanes(shape, f32()))
      planes.emplace_back(static_cast<size_t>(*getDenseBytes(plane.type)));
    return planes;
  }

  Planes pack(EncodingInterface encoding, llvm::ArrayRef<int64_t> shape, const std::vector<float> &values) {
    Planes planes = makePlanes(encoding, shape);
    llvm::SmallVector<llvm::MutableArrayRef<char>> buffers(planes.begin(), planes.end());
    llvm::ArrayRef<char> dense(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
    auto emit = [&] { return mlir::emitError(mlir::UnknownLoc::get(&context)); };
    isPacked = succeeded(encoding.pack(shape, f32(), dense, buffers, emit));
    return planes;
  }

  bool repack(EncodingInterface encoding, llvm::ArrayRef<int64_t> shape, mlir::Attribute source, const Planes &from,
              Planes &to) {
    to = makePlanes(encoding, shape);
    llvm::SmallVector<llvm::MutableArrayRef<char>> buffers(to.begin(), to.end());
    return encoding.repack(shape, source, llvm::SmallVector<llvm::ArrayRef<char>>(from.begin(), from.end()), buffers);
  }

  std::vector<float> unpack(EncodingInterface encoding, llvm::ArrayRef<int64_t> shape, const Planes &planes) {
    std::vector<float> values(static_cast<size_t>(shape[0] * shape[1]), -7.0f);
    llvm::SmallVector<llvm::ArrayRef<char>> views(planes.begin(), planes.end());
    llvm::MutableArrayRef<char> dense(reinterpret_cast<char *>(values.data()), values.size() * sizeof(float));
    encoding.unpack(shape, f32(), views, dense);
    return values;
  }

  /// Random numbers, of every m at most n not 0, and sometimes fewer.
  std::vector<float> prune(int64_t count, int64_t n, int64_t m) {
    std::normal_distribution<float> normal(0.1f, 1.0f);
    std::vector<float> values(static_cast<size_t>(count), 0);
    for (int64_t first = 0; first < count; first += m) {
      std::vector<int64_t> order(static_cast<size_t>(m));
      std::iota(order.begin(), order.end(), first);
      std::shuffle(order.begin(), order.end(), random);
      int64_t kept = random() % 8 == 0 ? static_cast<int64_t>(random() % n) : n;
      for (int64_t i = 0; i < kept; ++i)
        values[static_cast<size_t>(order[static_cast<size_t>(i)])] = normal(random);
    }
    return values;
  }

  mlir::MLIRContext context;
  std::mt19937 random{17};
  bool isPacked = false;
};

/// Rows and groups.
class Nm : public NmLayout, public testing::WithParamInterface<std::pair<int64_t, int64_t>> {};

TEST_P(Nm, KeepsWhatTheWholeMatrixKeeps) {
  for (auto [n, m] : {std::pair<int64_t, int64_t>(1, 2), {2, 4}, {1, 4}, {3, 8}, {5, 16}}) {
    std::vector<int64_t> shape{GetParam().first, GetParam().second * m};
    std::vector<float> values = prune(shape[0] * shape[1], n, m);
    for (mlir::Attribute of : elements()) {
      NmAttr encoding = NmAttr::get(n, m, of);
      Planes whole = pack(encoding.getWhole(), shape, values), kept = pack(encoding, shape, values), again;
      ASSERT_TRUE(isPacked);
      ASSERT_EQ(unpack(encoding, shape, kept), unpack(encoding.getWhole(), shape, whole));
      ASSERT_TRUE(repack(encoding, shape, encoding.getWhole(), whole, again));
      ASSERT_EQ(kept, again);
      if (of == typeOf(f32())) {
        ASSERT_EQ(unpack(encoding, shape, kept), values);
      }
    }
  }
}

TEST_P(Nm, MeansTheSameInPanels) {
  std::vector<int64_t> shape{GetParam().first, GetParam().second * 4};
  std::vector<float> values = prune(shape[0] * shape[1], 2, 4);
  for (mlir::Attribute of : elements()) {
    NmAttr encoding = NmAttr::get(2, 4, of);
    if (!hrt::PanelsAttr::canPack(encoding))
      continue;
    EncodingInterface panels = hrt::PanelsAttr::get(encoding);
    Planes kept = pack(encoding, shape, values), fromKept, fromWhole;
    ASSERT_TRUE(repack(panels, shape, encoding, kept, fromKept));
    ASSERT_TRUE(repack(panels, shape, encoding.getWhole(), pack(encoding.getWhole(), shape, values), fromWhole));
    ASSERT_EQ(unpack(panels, shape, fromKept), unpack(encoding, shape, kept));
    ASSERT_EQ(fromKept, fromWhole);
    ASSERT_EQ(fromKept, pack(panels, shape, values));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Nm,
                         testing::Values(std::pair(1, 1), std::pair(16, 8), std::pair(17, 9), std::pair(3, 25),
                                         std::pair(0, 5), std::pair(5, 0), std::pair(33, 24), std::pair(130, 2)));

TEST_F(NmLayout, PanelsHaveKernelsForTwoOfFour) {
  EXPECT_TRUE(hrt::PanelsAttr::canPack(NmAttr::get(2, 4, affine(4, 32, true, false))));
  EXPECT_TRUE(hrt::PanelsAttr::canPack(NmAttr::get(2, 4, affine(8, 0, false, true))));
  EXPECT_FALSE(hrt::PanelsAttr::canPack(NmAttr::get(2, 4, affine(8, 0, true, false))));
  EXPECT_FALSE(hrt::PanelsAttr::canPack(NmAttr::get(2, 4, affine(2, 32, false, false))));
  EXPECT_FALSE(hrt::PanelsAttr::canPack(NmAttr::get(1, 4, typeOf(f32()))));
}

TEST_F(NmLayout, KeptElementsLieInTheirOrder) {
  NmAttr encoding = NmAttr::get(2, 4, typeOf(f32()));
  // The second group has one element and its first zero, the third none: a zero of either sign is one.
  Planes planes = pack(encoding, {1, 12}, {0, 5, 0, 6, 0, 0, -0.0f, 7, 0, -0.0f, 0, 0});
  std::vector<float> values(6);
  std::memcpy(values.data(), planes[0].data(), planes[0].size());
  EXPECT_EQ(values, (std::vector<float>{5, 6, 0, 7, 0, 0}));
  EXPECT_EQ(planes[1], (std::vector<char>{static_cast<char>(1 | 3 << 2 | 0 << 4 | 3 << 6), 0 | 1 << 2}));
}

TEST_F(NmLayout, IndicesOfThreeBitsDoNotStraddleBytes) {
  Planes planes = pack(NmAttr::get(3, 8, typeOf(f32())), {1, 8}, {0, 0, 0, 1, 0, 2, 0, 3});
  EXPECT_EQ(planes[1], (std::vector<char>{3 | 5 << 3, 7}));
}

TEST_F(NmLayout, RefusesMoreThanItKeeps) {
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    message = diagnostic.str();
    return mlir::success();
  });
  NmAttr encoding = NmAttr::get(2, 4, typeOf(f32()));
  std::vector<float> values(16, 0);
  values[12] = values[13] = values[15] = 1;
  pack(encoding, {2, 8}, values);
  EXPECT_FALSE(isPacked);
  EXPECT_EQ(message, "expected at most 2 of every 4 inputs not to be 0, but got more in row 1, inputs 4 to 7");
  Planes whole = pack(encoding.getWhole(), {2, 8}, values), to;
  EXPECT_FALSE(repack(encoding, {2, 8}, encoding.getWhole(), whole, to));
  EXPECT_FALSE(repack(encoding, {2, 8}, affine(8, 0, false, false), whole, to)); // other numbers
}

TEST_F(NmLayout, NamesTheFirstMisfitOfManyRows) {
  constexpr int64_t rows = 1000, columns = 8;
  std::vector<float> values(rows * columns, 0);
  auto fill = [&](int64_t row, int64_t group) { std::fill_n(values.begin() + row * columns + group * 4, 3, 1.0f); };
  auto find = [&]() {
    llvm::ArrayRef<char> bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
    return NmAttr::get(2, 4, typeOf(f32())).findMisfit({rows, columns}, {}, bytes);
  };
  EXPECT_EQ(find(), std::nullopt);
  fill(999, 0);
  EXPECT_EQ(find(), std::pair(int64_t{999}, int64_t{0}));
  for (int64_t row = 998; row >= 333; --row)
    fill(row, row % 2);
  EXPECT_EQ(find(), std::pair(int64_t{333}, int64_t{1}));
}

} // namespace
} // namespace hone
