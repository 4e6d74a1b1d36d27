// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hone.dense_sparse: outliers are the largest elements in f16, the rest is what the base makes of it, and panels mean the same.

#include "hone/Compress/Outliers.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/io/addresses.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace hone {
namespace {

using Planes = std::vector<std::vector<char>>;

struct Form {
  int64_t bits, group;
  bool hasZeros, isSigned;
};

const Form kForms[] = {{4, 0, false, false}, {4, 32, true, false},  {4, 64, false, true},
                       {8, 0, true, true},   {8, 64, false, false}, {2, 32, true, false}};

/// Rows, columns and outliers.
struct Size {
  int64_t rows, columns, outliers;
};

class DenseSparse : public testing::TestWithParam<Size> {
protected:
  DenseSparse() { context.loadDialect<HoneDialect, hrt::HrtDialect>(); }

  mlir::FloatType f32() { return mlir::Float32Type::get(&context); }
  std::vector<int64_t> shape() const { return {GetParam().rows, GetParam().columns}; }

  DenseSparseAttr make(const Form &form) {
    return DenseSparseAttr::get(AffineAttr::get(&context, form.bits, form.group, f32(), form.hasZeros, form.isSigned,
                                                /*transposed=*/false, 0, /*atLeast=*/false),
                                GetParam().outliers);
  }

  Planes makePlanes(EncodingInterface encoding) {
    Planes planes;
    for (const EncodingPlane &plane : encoding.getPlanes(shape(), f32()))
      planes.emplace_back(static_cast<size_t>(*getDenseBytes(plane.type)));
    return planes;
  }

  /// Planes of `values`, or none where they were refused with `message`.
  Planes pack(EncodingInterface encoding, const std::vector<float> &values) {
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
      message = diagnostic.str();
      return mlir::success();
    });
    Planes planes = makePlanes(encoding);
    llvm::SmallVector<llvm::MutableArrayRef<char>> buffers(planes.begin(), planes.end());
    llvm::ArrayRef<char> dense(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
    auto emit = [&] { return mlir::emitError(mlir::UnknownLoc::get(&context)); };
    return succeeded(encoding.pack(shape(), f32(), dense, buffers, emit)) ? planes : Planes();
  }

  std::vector<float> unpack(EncodingInterface encoding, const Planes &planes) {
    std::vector<float> values(static_cast<size_t>(GetParam().rows * GetParam().columns), -7.0f);
    llvm::SmallVector<llvm::ArrayRef<char>> views(planes.begin(), planes.end());
    llvm::MutableArrayRef<char> dense(reinterpret_cast<char *>(values.data()), values.size() * sizeof(float));
    encoding.unpack(shape(), f32(), views, dense);
    return values;
  }

  std::vector<float> random() {
    std::mt19937 generator(11);
    std::normal_distribution<float> normal(0.1f, 1.0f);
    std::vector<float> values(static_cast<size_t>(GetParam().rows * GetParam().columns));
    for (float &value : values)
      value = normal(generator);
    return values;
  }

  mlir::MLIRContext context;
  std::string message;
};

TEST_P(DenseSparse, KeepsTheLargestAsOutliers) {
  std::vector<float> values = random(), rest = values;
  compress::Weight weight{rest, GetParam().rows, GetParam().columns};
  compress::Outliers marks = compress::markLargest(weight, GetParam().outliers / compress::kSparseRows);
  ASSERT_TRUE(compress::detach(weight, marks).ok());
  for (const Form &form : kForms) {
    DenseSparseAttr encoding = make(form);
    std::vector<float> read = unpack(encoding, pack(encoding, values));
    std::vector<float> base = unpack(encoding.getBase(), pack(encoding.getBase(), rest));
    for (size_t i = 0; i < values.size(); ++i)
      if (marks[i]) {
        EXPECT_EQ(read[i], static_cast<float>(static_cast<_Float16>(values[i]))) << i;
        EXPECT_EQ(base[i], 0) << i;
      } else {
        EXPECT_EQ(read[i], base[i]) << i;
      }
  }
}

TEST_P(DenseSparse, MeansTheSameInPanels) {
  std::vector<float> values = random();
  for (const Form &form : kForms) {
    DenseSparseAttr encoding = make(form);
    if (!hrt::PanelsAttr::canPack(encoding))
      continue;
    Planes planes = pack(encoding, values);
    EncodingInterface panels = hrt::PanelsAttr::get(encoding);
    Planes packed = makePlanes(panels);
    llvm::SmallVector<llvm::MutableArrayRef<char>> buffers(packed.begin(), packed.end());
    llvm::SmallVector<llvm::ArrayRef<char>> views(planes.begin(), planes.end());
    EXPECT_FALSE(panels.repack(shape(), encoding.getBase(), views, buffers));
    ASSERT_TRUE(panels.repack(shape(), encoding, views, buffers));
    EXPECT_EQ(unpack(panels, packed), unpack(encoding, planes));
    EXPECT_EQ(packed, pack(panels, values));
  }
}

/// Outliers of codebooks, which need not have a 0, are what is missing.
TEST_P(DenseSparse, AddsWhatCodebooksLack) {
  std::vector<float> values = random(), rest = values;
  compress::Weight weight{rest, GetParam().rows, GetParam().columns};
  compress::Outliers marks = compress::markLargest(weight, GetParam().outliers / compress::kSparseRows);
  ASSERT_TRUE(compress::detach(weight, marks).ok());
  for (int64_t bits : {2, 3, 4}) {
    auto codebook = CodebookAttr::get(&context, bits, mlir::BFloat16Type::get(&context));
    DenseSparseAttr encoding = DenseSparseAttr::get(codebook, GetParam().outliers);
    Planes planes = pack(encoding, values);
    std::vector<float> read = unpack(encoding, planes), base = unpack(codebook, pack(codebook, rest));
    for (size_t i = 0; i < values.size(); ++i)
      if (marks[i])
        EXPECT_EQ(read[i], base[i] + static_cast<float>(static_cast<_Float16>(values[i] - base[i]))) << i;
      else
        EXPECT_EQ(read[i], base[i]) << i;
    EncodingInterface panels = hrt::PanelsAttr::get(mlir::Attribute(encoding));
    EXPECT_EQ(unpack(panels, pack(panels, values)), read);
  }
}

TEST_P(DenseSparse, SaysWhichElementsAreAddresses) {
  DenseSparseAttr encoding = make(kForms[0]);
  for (EncodingInterface of : {EncodingInterface(encoding), EncodingInterface(hrt::PanelsAttr::get(encoding))}) {
    std::vector<std::string> names;
    for (auto [plane, bytes] : llvm::zip_equal(of.getPlanes(shape(), f32()), pack(of, random()))) {
      if (!plane.addresses)
        continue;
      names.push_back(plane.name.str());
      auto isRight = [&, &plane = plane, &bytes = bytes] {
        std::span<const uint8_t> span(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
        return io::checkAddresses(plane.addresses->rule, plane.addresses->bound, span, names.back()).ok();
      };
      EXPECT_TRUE(isRight()) << names.back();
      bytes.back() = '\xff'; // below 0, or more columns than there are
      EXPECT_FALSE(isRight()) << names.back();
    }
    EXPECT_EQ(names, (std::vector<std::string>{"starts", "columns"}));
  }
}

TEST_P(DenseSparse, RefusesWhatF16LacksANumberFor) {
  for (float value : {1e6f, std::nanf("")}) {
    std::vector<float> values = random();
    values.back() = value;
    EXPECT_TRUE(pack(make(kForms[0]), values).empty());
    EXPECT_EQ(message.rfind("cannot keep an element of row " + std::to_string(GetParam().rows - 1) + " in f16", 0), 0u)
        << message;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, DenseSparse,
                         testing::Values(Size{1, 1, 16}, Size{16, 64, 80}, Size{17, 96, 320}, Size{3, 100, 99 * 16},
                                         Size{64, 7, 448}, Size{5, 300, 16}));

} // namespace
} // namespace hone
