// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plain encodings: what is packed is the tensor rounded, element by element as LLVM's APFloat rounds, and in place.

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/HoneTypes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/APFloat.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

namespace hone {
namespace {

class Stored : public testing::Test {
protected:
  Stored() { context.loadDialect<HoneDialect>(); }

  mlir::FloatType f32() { return mlir::Float32Type::get(&context); }
  mlir::FloatType f16() { return mlir::Float16Type::get(&context); }
  mlir::FloatType bf16() { return mlir::BFloat16Type::get(&context); }

  /// The plane that `values` become.
  template <typename T>
  std::vector<T> pack(StoredAttr encoding, llvm::ArrayRef<int64_t> shape, const std::vector<float> &values) {
    std::vector<T> plane(values.size());
    llvm::MutableArrayRef<char> bytes(reinterpret_cast<char *>(plane.data()), plane.size() * sizeof(T));
    EXPECT_TRUE(succeeded(encoding.pack(shape, f32(), asBytes(values), bytes,
                                        [&] { return mlir::emitError(mlir::UnknownLoc::get(&context)); })));
    return plane;
  }

  template <typename T>
  std::vector<float> unpack(StoredAttr encoding, llvm::ArrayRef<int64_t> shape, const std::vector<T> &plane) {
    std::vector<float> values(plane.size());
    llvm::MutableArrayRef<char> bytes(reinterpret_cast<char *>(values.data()), values.size() * sizeof(float));
    encoding.unpack(shape, f32(), asBytes(plane), bytes);
    return values;
  }

  template <typename T>
  static llvm::ArrayRef<char> asBytes(const std::vector<T> &values) {
    return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
  }

  mlir::MLIRContext context;
};

/// Floats of any bits, and those around which rounding goes wrong.
std::vector<float> hardFloats() {
  std::vector<float> values = {0.0f,
                               -0.0f,
                               1.0f,
                               std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::denorm_min(),
                               65504.0f, // the greatest f16
                               65519.996f,
                               65520.0f, // the least that f16 rounds to infinity
                               0x1p-24f, // the least f16
                               0x1p-25f, // half of it, a tie to zero
                               0x1.000002p-25f,
                               0x1.01p0f, // ties of bf16
                               0x1.03p0f,
                               0x1.ffp127f};
  std::mt19937 generator(7);
  for (int i = 0; i < 20000; ++i)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(generator())));
  return values;
}

uint16_t roundedBits(float value, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(value);
  bool losesInfo = false;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
}

TEST_F(Stored, RoundsAsApFloat) {
  std::vector<float> values = hardFloats();
  std::vector<int64_t> shape{static_cast<int64_t>(values.size())};
  std::vector<uint16_t> halves = pack<uint16_t>(StoredAttr::get(f16()), shape, values);
  std::vector<uint16_t> brains = pack<uint16_t>(StoredAttr::get(bf16()), shape, values);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(halves[i], roundedBits(values[i], llvm::APFloat::IEEEhalf())) << values[i];
    EXPECT_EQ(brains[i], roundedBits(values[i], llvm::APFloat::BFloat())) << values[i];
  }
}

TEST_F(Stored, UnpackingIsExact) {
  std::vector<uint16_t> every(1 << 16);
  std::iota(every.begin(), every.end(), uint16_t(0));
  std::vector<int64_t> shape{1 << 16};
  for (mlir::FloatType type : {f16(), bf16()}) {
    std::vector<float> values = unpack(StoredAttr::get(type), shape, every);
    for (size_t i = 0; i < every.size(); ++i) {
      llvm::APFloat expected(type.getFloatSemantics(), llvm::APInt(16, every[i]));
      if (expected.isNaN())
        EXPECT_TRUE(values[i] != values[i]);
      else
        EXPECT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(expected.convertToFloat())) << i;
    }
  }
}

TEST_F(Stored, TransposedSwapsTheLastTwoDimensions) {
  std::vector<int64_t> shape{2, 2, 3};
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 0.0f);
  auto encoding = StoredAttr::get(f32(), /*transposed=*/true);
  std::vector<float> plane = pack<float>(encoding, shape, values);
  EXPECT_EQ(plane, (std::vector<float>{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}));
  EXPECT_EQ(unpack(encoding, shape, plane), values);
  EXPECT_EQ(encoding.getPlanes(shape, f32())[0].type, mlir::RankedTensorType::get({2, 3, 2}, f32()));
}

TEST_F(Stored, EmptyTensorsPack) {
  auto encoding = StoredAttr::get(bf16(), /*transposed=*/true);
  EXPECT_TRUE(pack<uint16_t>(encoding, {3, 0}, {}).empty());
  EXPECT_TRUE(pack<uint16_t>(encoding, {0, 3}, {}).empty());
}

TEST_F(Stored, BytesOfTypes) {
  auto bytesOf = [&](llvm::ArrayRef<int64_t> shape, mlir::Type elements, mlir::Attribute encoding = {}) {
    return getStorageBytes(mlir::RankedTensorType::get(shape, elements, encoding));
  };
  mlir::Builder builder(&context);
  EXPECT_EQ(bytesOf({4, 8}, f32()), 128);
  EXPECT_EQ(bytesOf({4, 8}, f32(), StoredAttr::get(bf16())), 64);
  EXPECT_EQ(bytesOf({3}, builder.getI1Type()), 3);
  EXPECT_EQ(bytesOf({3}, mlir::ComplexType::get(f32())), 24);
  EXPECT_EQ(bytesOf({}, builder.getI64Type()), 8);
  EXPECT_EQ(bytesOf({mlir::ShapedType::kDynamic}, f32()), std::nullopt);
  EXPECT_EQ(bytesOf({int64_t(1) << 62, 4}, f32()), std::nullopt);
  EXPECT_EQ(bytesOf({3}, builder.getIndexType()), std::nullopt);
}

TEST_F(Stored, SuffixesNameTheKernel) {
  EXPECT_EQ(StoredAttr::get(f32()).getKernelSuffix(), "f32");
  EXPECT_EQ(StoredAttr::get(bf16(), true).getKernelSuffix(), "bf16_t");
}

} // namespace
} // namespace hone
