// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hone.affine: numbers are within half a step of what was packed, planes lie as the description says, and panels mean the
// same numbers.

#include "hone/Compress/Rounding.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace hone {
namespace {

using Planes = std::vector<std::vector<char>>;

struct Form {
  int64_t bits, group;
  bool hasZeros, isSigned, transposed, hasHalfScales;
};

std::vector<Form> forms() {
  std::vector<Form> all;
  for (int64_t bits : {2, 3, 4, 5, 6, 8})
    for (int64_t group : {0, 32, 64})
      for (int flags = 0; flags < 16; ++flags)
        if (bits == 8 || !(flags & 4))
          all.push_back({bits, group, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, (flags & 8) != 0});
  return all;
}

class AffineLayout : public testing::Test {
protected:
  AffineLayout() { context.loadDialect<HoneDialect, hrt::HrtDialect>(); }

  mlir::FloatType f32() { return mlir::Float32Type::get(&context); }

  AffineAttr make(const Form &form) {
    mlir::FloatType scales = form.hasHalfScales ? mlir::FloatType(mlir::Float16Type::get(&context)) : f32();
    return AffineAttr::get(&context, form.bits, form.group, scales, form.hasZeros, form.isSigned, form.transposed, 0,
                           /*atLeast=*/false);
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

  std::vector<float> unpack(EncodingInterface encoding, llvm::ArrayRef<int64_t> shape, const Planes &planes) {
    std::vector<float> values(static_cast<size_t>(shape[0] * shape[1]), -7.0f);
    llvm::SmallVector<llvm::ArrayRef<char>> views(planes.begin(), planes.end());
    llvm::MutableArrayRef<char> dense(reinterpret_cast<char *>(values.data()), values.size() * sizeof(float));
    encoding.unpack(shape, f32(), views, dense);
    return values;
  }

  std::vector<float> random(int64_t count) {
    std::mt19937 generator(11);
    std::normal_distribution<float> normal(0.1f, 1.0f);
    std::vector<float> values(static_cast<size_t>(count));
    for (float &value : values)
      value = normal(generator);
    return values;
  }

  mlir::MLIRContext context;
  bool isPacked = false;
};

/// Rows and columns.
class Affine : public AffineLayout, public testing::WithParamInterface<std::pair<int64_t, int64_t>> {};

/// The largest error that rounding to nearest may make in a group: half a step, and one where the zero point is rounded too
/// or the largest element falls between codes because the step was rounded to f16.
float mostError(const Form &form, const float *values, int64_t count) {
  float least = 0, most = 0;
  for (int64_t i = 0; i < count; ++i) {
    least = std::min(least, values[i]);
    most = std::max(most, values[i]);
  }
  auto codes = static_cast<float>(1 << form.bits);
  float step = form.hasZeros ? (most - least) / (codes - 1) : std::max(most, -least) / (codes / 2);
  return step * 1.01f; // the element of the other sign may lie one code outside of the range
}

TEST_P(Affine, RoundsToNearest) {
  auto [rows, columns] = GetParam();
  std::vector<float> values = random(rows * columns);
  for (const Form &form : forms()) {
    AffineAttr encoding = make(form);
    std::vector<float> read = unpack(encoding, {rows, columns}, pack(encoding, {rows, columns}, values));
    ASSERT_TRUE(isPacked);
    int64_t width = form.group ? form.group : columns;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t begin = 0; begin < columns; begin += width) {
        int64_t count = std::min(width, columns - begin), at = row * columns + begin;
        float most = mostError(form, values.data() + at, count);
        for (int64_t i = at; i < at + count; ++i)
          ASSERT_LE(std::abs(read[i] - values[i]), most) << form.bits << " bits, group " << form.group << ", " << i;
      }
  }
}

TEST_P(Affine, MeansTheSameInPanels) {
  auto [rows, columns] = GetParam();
  std::vector<float> values = random(rows * columns);
  for (const Form &form : forms()) {
    AffineAttr encoding = make(form);
    Planes planes = pack(encoding, {rows, columns}, values);
    EncodingInterface panels = hrt::PanelsAttr::get(encoding);
    Planes packed = makePlanes(panels, {rows, columns});
    llvm::SmallVector<llvm::MutableArrayRef<char>> buffers(packed.begin(), packed.end());
    llvm::SmallVector<llvm::ArrayRef<char>> views(planes.begin(), planes.end());
    ASSERT_TRUE(panels.repack({rows, columns}, encoding, views, buffers));
    EXPECT_EQ(unpack(panels, {rows, columns}, packed), unpack(encoding, {rows, columns}, planes));
    EXPECT_EQ(packed, pack(panels, {rows, columns}, values));
  }
}

/// Methods that choose codes outside of the dialect round as it does.
TEST_P(Affine, TakesCodesOfOthers) {
  auto [rows, columns] = GetParam();
  std::vector<float> values = random(rows * columns);
  for (const Form &form : forms()) {
    AffineAttr encoding = make(form);
    auto rounded = compress::roundToNearest({values, rows, columns}, encoding.getFormat());
    ASSERT_TRUE(rounded.ok()) << rounded.status();
    Planes planes = makePlanes(encoding, {rows, columns});
    llvm::SmallVector<llvm::MutableArrayRef<char>> buffers(planes.begin(), planes.end());
    encoding.packCodes({rows, columns}, rounded->codes, rounded->scales, buffers);
    ASSERT_EQ(planes, pack(encoding, {rows, columns}, values)) << form.bits << " bits, group " << form.group;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Affine,
                         testing::Values(std::pair(1, 1), std::pair(16, 64), std::pair(17, 96), std::pair(3, 100),
                                         std::pair(0, 5), std::pair(5, 0), std::pair(64, 7)));

TEST_F(AffineLayout, LaysOutCodesFromTheLowestBits) {
  AffineAttr encoding = make({4, 2, true, false, false, false});
  Planes planes = makePlanes(encoding, {2, 3});
  EXPECT_EQ(planes[0].size(), 4u); // rows filled up to two groups of two
  EXPECT_EQ(planes[1].size(), 16u);
  EXPECT_EQ(planes[2].size(), 2u);
  planes[0] = {'\x21', '\x03', '\x54', '\x06'};
  std::vector<float> scales{1, 10, 100, 1000};
  std::memcpy(planes[1].data(), scales.data(), planes[1].size());
  planes[2] = {'\x10', '\x32'};
  EXPECT_EQ(unpack(encoding, {2, 3}, planes), (std::vector<float>{1, 2, 20, 200, 300, 3000}));
}

TEST_F(AffineLayout, CodesOfThreeBitsGoOnInTheNextByte) {
  AffineAttr encoding = make({3, 8, true, false, false, false});
  Planes planes = makePlanes(encoding, {1, 10});
  EXPECT_EQ(planes[0].size(), 6u); // two groups
  EXPECT_EQ(planes[2].size(), 1u);
  // Codes 1 … 7, 0 | 5, 2, and zero points 0, 3.
  planes[0] = {'\xd1', '\x58', '\x1f', '\x15', '\0', '\0'};
  std::vector<float> scales{1, 10};
  std::memcpy(planes[1].data(), scales.data(), planes[1].size());
  planes[2] = {'\x18'};
  EXPECT_EQ(unpack(encoding, {1, 10}, planes), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 0, 20, -10}));
}

TEST_F(AffineLayout, RefusesWhatHasNoScale) {
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    message = diagnostic.str();
    return mlir::success();
  });
  pack(make({8, 0, false, false, false, true}), {1, 2}, {1.0f, std::nanf("")});
  EXPECT_FALSE(isPacked);
  EXPECT_EQ(message, "cannot quantize row 0: its elements are not all finite, or too large for scales of 'f16'");
  pack(make({8, 0, false, false, false, true}), {2, 1}, {1.0f, 1e9f});
  EXPECT_FALSE(isPacked);
  EXPECT_EQ(message, "cannot quantize row 1: its elements are not all finite, or too large for scales of 'f16'");
  pack(make({8, 0, true, false, false, false}), {1, 2}, {1e-40f, -1e-41f}); // scales that have no finite inverse in f32
  EXPECT_TRUE(isPacked);
}

} // namespace
} // namespace hone
