// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hrt.panels: what is unpacked from panels is what #hone.stored of the same type keeps, whatever the shape.

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <random>

namespace hone {
namespace {

class Panels : public testing::TestWithParam<std::pair<int64_t, int64_t>> {
protected:
  Panels() { context.loadDialect<HoneDialect, hrt::HrtDialect>(); }

  /// `values` packed and unpacked again.
  std::vector<float> throughPlane(EncodingInterface encoding, llvm::ArrayRef<int64_t> shape,
                                  std::vector<float> values) {
    mlir::Type f32 = mlir::Float32Type::get(&context);
    std::vector<char> plane(*getDenseBytes(encoding.getPlanes(shape, f32)[0].type));
    llvm::MutableArrayRef<char> planeBytes(plane);
    llvm::ArrayRef<char> planeView(plane);
    llvm::MutableArrayRef<char> bytes(reinterpret_cast<char *>(values.data()), values.size() * sizeof(float));
    EXPECT_TRUE(succeeded(encoding.pack(shape, f32, bytes, planeBytes,
                                        [&] { return mlir::emitError(mlir::UnknownLoc::get(&context)); })));
    std::fill(values.begin(), values.end(), -1.0f);
    encoding.unpack(shape, f32, planeView, bytes);
    return values;
  }

  mlir::MLIRContext context;
};

TEST_P(Panels, KeepWhatStoredKeeps) {
  auto [rows, columns] = GetParam();
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (float &value : values)
    value = normal(random);
  std::vector<mlir::FloatType> types{mlir::Float32Type::get(&context), mlir::Float16Type::get(&context),
                                     mlir::BFloat16Type::get(&context)};
  for (mlir::FloatType type : types)
    EXPECT_EQ(throughPlane(hrt::PanelsAttr::get(type), {rows, columns}, values),
              throughPlane(StoredAttr::get(type), {rows, columns}, values));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Panels,
                         testing::Values(std::pair(1, 1), std::pair(16, 32), std::pair(17, 33), std::pair(3, 100),
                                         std::pair(0, 5), std::pair(5, 0), std::pair(64, 7)));

} // namespace
} // namespace hone
