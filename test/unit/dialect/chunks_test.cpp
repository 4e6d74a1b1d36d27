// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hrt.chunks: what is unpacked from chunks is what #hone.affine keeps, whatever the shape, and so are its planes repacked.

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <random>

namespace hone {
namespace {

using Planes = std::vector<std::vector<char>>;

class Chunks : public testing::TestWithParam<std::pair<int64_t, int64_t>> {
protected:
  Chunks() : shape{GetParam().first, GetParam().second} {
    context.loadDialect<HoneDialect, hrt::HrtDialect>();
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    values.resize(static_cast<size_t>(shape[0] * shape[1]));
    for (float &value : values)
      value = normal(random);
  }

  mlir::Type f32() { return mlir::Float32Type::get(&context); }

  Planes makePlanes(EncodingInterface encoding) {
    Planes planes;
    for (const EncodingPlane &plane : encoding.getPlanes(shape, f32()))
      planes.emplace_back(*getDenseBytes(plane.type), '\x55');
    return planes;
  }

  Planes pack(EncodingInterface encoding) {
    Planes planes = makePlanes(encoding);
    llvm::SmallVector<llvm::MutableArrayRef<char>> views(planes.begin(), planes.end());
    llvm::ArrayRef<char> dense(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
    EXPECT_TRUE(succeeded(
        encoding.pack(shape, f32(), dense, views, [&] { return mlir::emitError(mlir::UnknownLoc::get(&context)); })));
    return planes;
  }

  std::vector<float> unpack(EncodingInterface encoding, const Planes &planes) {
    std::vector<float> dense(values.size(), -1.0f);
    llvm::SmallVector<llvm::ArrayRef<char>> views(planes.begin(), planes.end());
    encoding.unpack(shape, f32(), views, {reinterpret_cast<char *>(dense.data()), dense.size() * sizeof(float)});
    return dense;
  }

  mlir::MLIRContext context;
  llvm::SmallVector<int64_t> shape;
  std::vector<float> values;
};

TEST_P(Chunks, KeepWhatAffineKeeps) {
  for (int64_t bits : {8, 4})
    for (int64_t group : {0, 32, 64, 128})
      for (bool hasZeros : {false, true}) {
        auto affine =
            AffineAttr::get(&context, bits, group, mlir::Float16Type::get(&context), hasZeros, false, false, 0, false);
        auto chunks = hrt::ChunksAttr::get(affine);
        Planes plain = pack(affine), packed = pack(chunks);
        EXPECT_EQ(unpack(chunks, packed), unpack(affine, plain)) << bits << " bits in groups of " << group;
        Planes repacked = makePlanes(chunks);
        llvm::SmallVector<llvm::ArrayRef<char>> from(plain.begin(), plain.end());
        llvm::SmallVector<llvm::MutableArrayRef<char>> to(repacked.begin(), repacked.end());
        EXPECT_TRUE(chunks.repack(shape, affine, from, to));
        EXPECT_EQ(repacked, packed);
      }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Chunks,
                         testing::Values(std::pair(1, 1), std::pair(16, 128), std::pair(3, 100), std::pair(5, 257),
                                         std::pair(0, 5)));

} // namespace
} // namespace hone
