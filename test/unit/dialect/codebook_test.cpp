// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hone.codebook: rows of few centroids come back, others are rounded as methods of compression do it, and panels mean the same.

#include "hone/Compress/Codebook.h"
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
using Shape = std::vector<int64_t>;

class CodebookLayout : public testing::Test {
protected:
  CodebookLayout() { context.loadDialect<HoneDialect, hrt::HrtDialect>(); }

  mlir::FloatType f32() { return mlir::Float32Type::get(&context); }

  std::vector<CodebookAttr> forms() {
    std::vector<CodebookAttr> all;
    for (int64_t bits : {2, 3, 4})
      for (mlir::FloatType values : {f32(), mlir::FloatType(mlir::Float16Type::get(&context)),
                                     mlir::FloatType(mlir::BFloat16Type::get(&context))})
        all.push_back(CodebookAttr::get(&context, bits, values));
    return all;
  }

  Planes makePlanes(EncodingInterface encoding, const Shape &shape) {
    Planes planes;
    for (const EncodingPlane &plane : encoding.getPlanes(shape, f32()))
      planes.emplace_back(static_cast<size_t>(*getDenseBytes(plane.type)));
    return planes;
  }

  /// Planes of `values`, or none where they were refused with `message`.
  Planes pack(EncodingInterface encoding, const Shape &shape, const std::vector<float> &values) {
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
      message = diagnostic.str();
      return mlir::success();
    });
    Planes planes = makePlanes(encoding, shape);
    llvm::SmallVector<llvm::MutableArrayRef<char>> buffers(planes.begin(), planes.end());
    llvm::ArrayRef<char> dense(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
    auto emit = [&] { return mlir::emitError(mlir::UnknownLoc::get(&context)); };
    return succeeded(encoding.pack(shape, f32(), dense, buffers, emit)) ? planes : Planes();
  }

  std::vector<float> unpack(EncodingInterface encoding, const Shape &shape, const Planes &planes) {
    std::vector<float> values(static_cast<size_t>(shape[0] * shape[1]), -7.0f);
    llvm::SmallVector<llvm::ArrayRef<char>> views(planes.begin(), planes.end());
    llvm::MutableArrayRef<char> dense(reinterpret_cast<char *>(values.data()), values.size() * sizeof(float));
    encoding.unpack(shape, f32(), views, dense);
    return values;
  }

  static std::vector<float> random(int64_t count) {
    std::mt19937 generator(11);
    std::normal_distribution<float> normal(0.1f, 1.0f);
    std::vector<float> values(static_cast<size_t>(count));
    for (float &value : values)
      value = normal(generator);
    return values;
  }

  mlir::MLIRContext context;
  std::string message;
};

/// Rows and columns.
class Codebook : public CodebookLayout, public testing::WithParamInterface<std::pair<int64_t, int64_t>> {
protected:
  Shape shape() const { return {GetParam().first, GetParam().second}; }
  int64_t count() const { return GetParam().first * GetParam().second; }
};

TEST_P(Codebook, BringsRowsOfFewCentroidsBack) {
  for (CodebookAttr encoding : forms()) {
    std::vector<float> some = random(encoding.getEntries() * shape()[0]), values = random(count());
    for (int64_t i = 0; i < count(); ++i)
      values[i] =
          encoding.getFormat().round(some[i / shape()[1] * encoding.getEntries() + i * i % 23 % encoding.getEntries()]);
    EXPECT_EQ(unpack(encoding, shape(), pack(encoding, shape(), values)), values);
  }
}

/// Methods that choose indices outside of the dialect round as it does.
TEST_P(Codebook, TakesIndicesOfOthers) {
  std::vector<float> values = random(count()), expected(values.size());
  compress::Weight weight{values, shape()[0], shape()[1]};
  for (CodebookAttr encoding : forms()) {
    auto rounded = compress::roundToCodebook(weight, encoding.getFormat());
    ASSERT_TRUE(rounded.ok()) << rounded.status();
    Planes planes = makePlanes(encoding, shape());
    llvm::SmallVector<llvm::MutableArrayRef<char>> buffers(planes.begin(), planes.end());
    encoding.packIndices(shape(), rounded->indices, rounded->codebook, buffers);
    EXPECT_EQ(planes, pack(encoding, shape(), values));
    compress::writeValues(*rounded, {expected, weight.rows, weight.columns});
    EXPECT_EQ(unpack(encoding, shape(), planes), expected);
  }
}

TEST_P(Codebook, MeansTheSameInPanels) {
  std::vector<float> values = random(count());
  for (CodebookAttr encoding : forms()) {
    ASSERT_EQ(hrt::PanelsAttr::canPack(encoding), encoding.getValues().isBF16());
    if (!hrt::PanelsAttr::canPack(encoding))
      continue;
    Planes planes = pack(encoding, shape(), values);
    EncodingInterface panels = hrt::PanelsAttr::get(mlir::Attribute(encoding));
    Planes packed = makePlanes(panels, shape());
    llvm::SmallVector<llvm::MutableArrayRef<char>> buffers(packed.begin(), packed.end());
    llvm::SmallVector<llvm::ArrayRef<char>> views(planes.begin(), planes.end());
    EXPECT_FALSE(panels.repack(shape(), nullptr, views, buffers));
    ASSERT_TRUE(panels.repack(shape(), encoding, views, buffers));
    EXPECT_EQ(unpack(panels, shape(), packed), unpack(encoding, shape(), planes));
    EXPECT_EQ(packed, pack(panels, shape(), values));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Codebook,
                         testing::Values(std::pair(1, 1), std::pair(16, 64), std::pair(17, 96), std::pair(3, 100),
                                         std::pair(0, 5), std::pair(5, 0), std::pair(64, 7), std::pair(20, 130)));

TEST_F(CodebookLayout, LaysOutIndicesFromTheLowestBits) {
  for (int64_t bits : {3, 4}) {
    CodebookAttr encoding = CodebookAttr::get(&context, bits, f32());
    Planes planes = makePlanes(encoding, {2, 3});
    EXPECT_EQ(planes[0].size(), 4u);
    planes[0] = bits == 4 ? std::vector<char>{'\x21', '\x03', '\x54', '\x06'} // 1, 2, 3 and 4, 5, 6
                          : std::vector<char>{'\xd1', '\0', '\xac', '\x01'};
    std::vector<float> centroids(2 * encoding.getEntries());
    for (size_t i = 0; i < centroids.size(); ++i)
      centroids[i] = static_cast<float>(i) * 0.5f;
    std::memcpy(planes[1].data(), centroids.data(), planes[1].size());
    float second = static_cast<float>(encoding.getEntries()) * 0.5f;
    EXPECT_EQ(unpack(encoding, {2, 3}, planes),
              (std::vector<float>{0.5f, 1, 1.5f, second + 2, second + 2.5f, second + 3}));
  }
}

TEST_F(CodebookLayout, RefusesWhatIsNotFinite) {
  std::vector<float> values = random(4 * 8);
  values[3 * 8 + 2] = std::nanf("");
  EXPECT_TRUE(pack(forms().front(), {4, 8}, values).empty());
  EXPECT_EQ(message,
            "cannot quantize row 3: its elements are not all finite, or too large for the centroids of its codebook");
}

} // namespace
} // namespace hone
