// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans and index arithmetic of device kernels, on the host.

#include "cuda/kernels/attention/attention_fma.h"
#include "cuda/kernels/attention/flash.h"
#include "cuda/kernels/attention/hopper_flash.h"
#include "cuda/kernels/experts/experts.h"
#include "cuda/kernels/linear/gemm.h"
#include "cuda/kernels/linear/gemv.h"
#include "cuda/kernels/linear/hopper_gemm.h"
#include "cuda/kernels/linear/hopper_sparse_gemm.h"
#include "cuda/kernels/linear/sparse_gemm.h"
#include "cuda/kernels/linear/sparse_metadata.h"
#include "cuda/kernels/row_view.h"
#include "parity.h"

#include <array>
#include <set>

namespace hone::cuda {
namespace {

using test::Layout;
using test::Tensor;

TEST(RowViewTest, OffsetsAreThoseOfTheTensor) {
  for (const std::vector<int64_t> &shape :
       {std::vector<int64_t>{7}, {3, 5}, {2, 3, 5}, {2, 1, 3, 4}, {2, 3, 4, 5}, {1, 1, 1}, {2, 3, 4, 1}})
    for (Layout layout : {Layout::Dense, Layout::Swapped, Layout::Gaps, Layout::Aligned}) {
      Tensor tensor(shape, HONE_F16, layout);
      hone_tensor given = tensor.view(tensor.memory.data());
      RowView view = rowsOf(given);
      int64_t row = 0, rows = countRows(given);
      EXPECT_EQ(rows * view.count, tensor.count());
      tensor.forEach([&](const std::vector<int64_t> &index) {
        int64_t expected = 0;
        for (size_t axis = 0; axis < index.size(); ++axis)
          expected += index[axis] * tensor.strides[axis];
        EXPECT_EQ(view.offset(row / view.count) + row % view.count * view.inner, expected);
        ++row;
      });
    }
}

TEST(RowViewTest, VectorsAreAligned) {
  alignas(16) static char memory[4096];
  EXPECT_TRUE(rowsOf(Tensor({4, 8}, HONE_F16).view(memory)).isVector);
  EXPECT_TRUE(rowsOf(Tensor({4, 5}, HONE_F16, Layout::Aligned).view(memory)).isVector);
  EXPECT_FALSE(rowsOf(Tensor({4, 5}, HONE_F16).view(memory)).isVector);
  EXPECT_FALSE(rowsOf(Tensor({4, 8}, HONE_F16).view(memory + 2)).isVector);
  EXPECT_FALSE(rowsOf(Tensor({4, 8}, HONE_F16, Layout::Swapped).view(memory)).isVector);
  EXPECT_EQ(rowsOf(Tensor::absent().view(memory)).data, nullptr);
}

/// Every output and row belongs to a block, no limit of a launch is exceeded, and there are no more warps than
/// chunks.
TEST(GemvPlanTest, CoversAndFits) {
  for (int64_t rows : {1, 8, 9, 16, 1000})
    for (int64_t outputs : {1, 16, 17, 896, 4096, 14336, 151936})
      for (int64_t chunks : {0, 1, 3, 8, 32, 112, 448})
        for (int32_t warps : {kDenseWarps, kQuantizedWarps})
          for (int32_t multiprocessors : {1, 108, 132}) {
            GemvPlan plan = planGemv(rows, outputs, chunks, warps, multiprocessors);
            EXPECT_GE(plan.blocks * plan.rowTiles * 16, outputs);
            EXPECT_LT((plan.blocks - 1) * plan.rowTiles * 16, outputs);
            EXPECT_GE(plan.columnTiles * 8, std::min<int64_t>(rows, 16));
            EXPECT_TRUE(plan.columnTiles == 1 || plan.rowTiles == 2) << "there is no kernel for it";
            EXPECT_LE(plan.slices, std::max<int64_t>(chunks, 4));
            EXPECT_LE(plan.slices, mostSlices(plan.rowTiles));
            EXPECT_LE(gemvSharedBytes(plan), 48 * 1024);
          }
}

/// The shapes of the bandwidth figures: as many bytes in flight as an H200 needs, 29 KiB an SM, and one wave of blocks
/// where there are few enough.
TEST(GemvPlanTest, KeepsMemoryBusy) {
  for (int64_t outputs : {4096, 14336})
    for (int64_t chunkInputs : {32, 64, 128}) {
      int32_t most = chunkInputs == 32 ? kDenseWarps : kQuantizedWarps;
      GemvPlan plan = planGemv(1, outputs, (outputs == 4096 ? 14336 : 4096) / chunkInputs, most, 132);
      double warps = std::min(double(most), double(plan.blocks * plan.slices) / 132);
      EXPECT_GE(warps * (chunkInputs == 32 ? 4096 : 3072), 29.0 * 1024);
      EXPECT_TRUE(plan.slices == 4 || plan.blocks * plan.slices <= int64_t{most} * 132);
    }
}

TEST(GemvFmaPlanTest, CoversAndFits) {
  for (int64_t rows : {1, 2, 4, 5, 16, 1000})
    for (int64_t outputs : {1, 31, 896, 4096, 151936})
      for (int64_t inputs : {0, 1, 128, 896, 14336})
        for (int32_t multiprocessors : {1, 132}) {
          GemvFmaPlan plan = planGemvFma(rows, outputs, inputs, multiprocessors);
          EXPECT_EQ(plan.groups * plan.slices, 8);
          EXPECT_GE(plan.blocks * plan.groups * kGemvFmaOutputs, outputs);
          EXPECT_GE(plan.rowsAtOnce, std::min<int64_t>(rows, 5));
          EXPECT_TRUE(plan.slices == 1 || plan.slices * kGemvFmaInputs <= inputs);
          EXPECT_LE(gemvFmaSharedBytes(plan), 48 * 1024);
        }
}

/// Siblings and gated layers have kernels for the tiles of their plans, and shared memory and warps within limits.
TEST(GemvPlanTest, SeveralLayersFit) {
  for (int64_t rows : {1, 8, 9, 32})
    for (int64_t outputs : {1, 16, 17, 1152, 6144, 14336, 151936})
      for (int64_t chunks : {0, 1, 3, 28, 448})
        for (int32_t warps : {kDenseWarps, kQuantizedWarps})
          for (int32_t multiprocessors : {1, 132}) {
            GemvPlan siblings = planSiblingGemv(rows, divideUp(outputs, 16), chunks, warps, multiprocessors);
            EXPECT_EQ(siblings.rowTiles, rows > 8 ? 2 : 1);
            EXPECT_EQ(siblings.columnTiles, rows > 8 ? 2 : 1);
            EXPECT_LE(siblings.slices, kSiblingSlices);
            GemvPlan gated = planGatedGemv(rows, outputs, chunks, warps, multiprocessors);
            EXPECT_EQ(gated.rowTiles, 2);
            EXPECT_EQ(gated.columnTiles, rows > 8 ? 2 : 1);
            EXPECT_EQ(gated.blocks, divideUp(outputs, 16));
            EXPECT_LE(gated.slices, mostSlices(2));
            EXPECT_GE(gated.slices, 2);
            EXPECT_LE(std::max(gemvSharedBytes(siblings), gemvSharedBytes(gated)), 48 * 1024);
            GemvFmaPlan fma = planGatedGemvFma(rows, outputs, chunks * 32, multiprocessors);
            EXPECT_EQ(fma.groups * fma.slices, 8);
            EXPECT_EQ(fma.groups % 2, 0);
            EXPECT_GE(fma.blocks * fma.groups / 2 * kGemvFmaOutputs, outputs);
          }
}

/// The layers of decoders of 0.5B and 8B run in one wave of blocks: 24 warps of kernels of floats are on an SM at once,
/// with one tile of siblings or two of a gated layer.
TEST(GemvPlanTest, SeveralLayersAreOneWave) {
  for (auto [outputs, width, inputs] : {std::array<int64_t, 3>{1152, 4864, 896}, {6144, 14336, 4096}}) {
    GemvPlan siblings = planSiblingGemv(1, outputs / 16, inputs / 32, kDenseWarps, 132);
    EXPECT_LE(siblings.blocks * siblings.slices, 24 * 132);
    GemvPlan gated = planGatedGemv(1, width, inputs / 32, kDenseWarps, 132);
    EXPECT_LE(gated.blocks * gated.slices, 24 * 132);
  }
}

/// Blocks of siblings are those of one layer after the other; a layer without outputs has none.
TEST(LinearLayersTest, BlocksHaveOneLayer) {
  LinearLayers layers = {};
  std::ranges::copy(std::array{3, 3, 5}, layers.ends);
  std::vector<std::pair<int32_t, int32_t>> found;
  for (int32_t block = 0; block < 5; ++block)
    found.emplace_back(layers.layerOf(block), layers.blockOf(block));
  EXPECT_EQ(found, (std::vector<std::pair<int32_t, int32_t>>{{0, 0}, {0, 1}, {0, 2}, {2, 0}, {2, 1}}));
}

TEST(GemvPlanTest, SplitKWhereOutputsAreFew) {
  EXPECT_EQ(planGemvSplitK(34, 100, 132), 1);
  EXPECT_EQ(planGemvSplitK(33, 100, 132), 4);
  EXPECT_EQ(planGemvSplitK(8, 28, 132), 3);
  EXPECT_EQ(planGemvSplitK(1, 7, 132), 1);
  EXPECT_EQ(planGemvSplitK(1, 0, 1), 1);
}

/// There are enough tiles for every routing; the bound is reached where one expert has the rest.
TEST(ExpertPlanTest, TilesAreEnough) {
  for (int64_t experts : {1, 2, 3, 5})
    for (int64_t pairs : {0, 1, 2, 7, 8, 9, 40})
      for (int64_t tileRows : {1, 4, 8, 16}) {
        int64_t most = 0;
        std::vector<int64_t> counts(static_cast<size_t>(experts), 0);
        auto assign = [&](auto self, size_t expert, int64_t left) -> void {
          if (expert + 1 == counts.size()) {
            counts[expert] = left;
            int64_t tiles = 0;
            for (int64_t count : counts)
              tiles += divideUp(count, tileRows);
            most = std::max(most, tiles);
            return;
          }
          for (int64_t count = 0; count <= left; ++count) {
            counts[expert] = count;
            self(self, expert + 1, left - count);
          }
        };
        assign(assign, 0, pairs);
        EXPECT_EQ(expertTiles(pairs, experts, tileRows), most) << pairs << " " << experts << " " << tileRows;
      }
}

TEST(ExpertPlanTest, CoversAndFits) {
  for (int64_t rows : {1, 5, 8, 9, 500})
    for (int64_t choices : {1, 2, 8})
      for (int64_t experts : {1, 8, 128, 8192})
        for (int64_t outputs : {1, 16, 17, 768, 4096}) {
          int64_t pairs = rows * choices;
          GemvPlan plan = planGroupedGemv(rows, pairs, experts, outputs, 32, kDenseWarps, 132);
          EXPECT_GE(plan.blocks * plan.rowTiles * 16, outputs);
          EXPECT_TRUE(plan.columnTiles == 1 || plan.rowTiles == 2) << "there is no kernel for it";
          EXPECT_LE(plan.slices, kExpertSlices);
          GemvFmaPlan exact = planGroupedGemvFma(rows, pairs, experts, outputs, 4096, 132);
          EXPECT_GE(exact.blocks * exact.groups * kGemvFmaOutputs, outputs);
          EXPECT_EQ(exact.groups * exact.slices, kExpertSlices);
          EXPECT_LE(expertTiles(32 * experts, experts, 8), 65535);
        }
}

/// Every tile of inputs belongs to one block, blocks fit on the device at once, and each has enough steps.
TEST(GemmPlanTest, SplitsCoverAndFit) {
  for (int64_t tiles : {1, 7, 65, 66, 67, 1000})
    for (int64_t depth : {0, 8, 256, 504, 520, 896, 4864, 14336})
      for (int32_t multiprocessors : {1, 108, 132}) {
        SplitKPlan plan = planSplitK(tiles, depth, multiprocessors);
        int64_t steps = divideUp(depth, kTileDepth);
        EXPECT_GE(int64_t{plan.splits} * plan.steps, steps);
        if (plan.splits == 1)
          continue;
        EXPECT_LT(int64_t{plan.splits - 1} * plan.steps, steps);
        EXPECT_GE(plan.steps, 8);
        EXPECT_LE(tiles * plan.splits, multiprocessors);
      }
  EXPECT_EQ(planSplitK(7, 4864, 132).splits, 17);
  EXPECT_EQ(planSplitK(67, 14336, 132).splits, 1);
}

TEST(GemmPlanTest, EveryTileHasOneBlock) {
  for (int64_t rowTiles : {1, 2, 8, 9, 17})
    for (int64_t outputTiles : {1, 3, 32}) {
      std::set<std::pair<int64_t, int64_t>> indices;
      for (int64_t block = 0; block < rowTiles * outputTiles; ++block) {
        TileIndex tile = tileOfBlock(block, rowTiles, outputTiles);
        EXPECT_TRUE(tile.row >= 0 && tile.row < rowTiles && tile.output >= 0 && tile.output < outputTiles);
        EXPECT_TRUE(indices.insert({tile.row, tile.output}).second);
      }
    }
}

/// Shared memory has 32 banks of 4 bytes: the eight 16-byte rows of a matrix of ldmatrix must cover all of them.
TEST(GemmPlanTest, LdmatrixHasNoBankConflicts) {
  std::set<int32_t> indices;
  for (int32_t part = 0; part < 4; ++part)
    for (int32_t first = 0; first < 128; first += 8) {
      std::set<int32_t> banks;
      for (int32_t row = first; row < first + 8; ++row) {
        banks.insert(swizzledByte(row, part) % 128 / 16);
        EXPECT_TRUE(indices.insert(swizzledByte(row, part)).second);
      }
      EXPECT_EQ(banks.size(), 8u);
    }
  EXPECT_EQ(*indices.rbegin(), 128 * 64 - 16);
}

TEST(GemmPlanTest, SumsHaveUniqueIndices) {
  std::set<int32_t> indices;
  for (int32_t row = 0; row < 128; ++row)
    for (int32_t output = 0; output < kTileOutputs; ++output) {
      indices.insert(sumIndex(row, output));
      if (output % 2 == 0) // pairs are stored at once
        EXPECT_EQ(sumIndex(row, output) + 1, sumIndex(row, output + 1));
    }
  EXPECT_EQ(indices.size(), 128u * kTileOutputs);
  EXPECT_EQ(*indices.rbegin(), 128 * kTileOutputs - 1);
}

/// 99 KiB is the limit of a block on the smallest supported chips, sm_86 and sm_89.
TEST(GemmPlanTest, FitsIntoSharedMemory) {
  for (int32_t tileRows : {64, 128})
    for (int32_t x : {1, 2})
      for (int32_t weight : {1, 2})
        EXPECT_LE(gemmSharedBytes(tileRows, x, weight), 99 * 1024);
}

TEST(GemmPlanTest, SlabsAreWholeTiles) {
  EXPECT_EQ(outputsOfSlab(50, 1024), 50);
  EXPECT_EQ(outputsOfSlab(151936, 8192), 8192);
  EXPECT_EQ(outputsOfSlab(151936, 8200) % kTileOutputs, 0);
  EXPECT_EQ(outputsOfSlab(151936, int64_t{1} << 30), kTileOutputs);
  EXPECT_EQ(outputsOfSlab(300, 0), 300);
}

TEST(SparseGemmPlanTest, FitsIntoSharedMemory) {
  for (int32_t tileRows : {64, 128})
    for (int32_t x : {1, 2})
      for (int32_t weight : {1, 2})
        EXPECT_LE(sparseSharedBytes(tileRows, x, weight), 99 * 1024);
  EXPECT_LE(2 * (sparseSharedBytes(128, 1, 1) + 1024), 164 * 1024) << "two blocks an SM of sm_80";
}

/// The indices that two of four inputs may have, as 4 bits each.
constexpr uint32_t kIndexPairs[] = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110};

/// Of the two selected lanes, lane 4 g + t has 16 bits each for columns 16 t … of outputs g and g + 8 (PTX ISA,
/// metadata of mma.sp.m16n8k32).
TEST(SparseMetadataTest, LanesCombineHalvesOfTwoOutputs) {
  std::mt19937 random(3);
  uint32_t words[16] = {};
  for (uint32_t &word : words)
    for (int group = 0; group < 8; ++group)
      word = word << 4 | kIndexPairs[random() % 6];
  for (int32_t lane = 0; lane < 32; ++lane) {
    int32_t g = lane / 4, t = lane % 2;
    uint32_t metadata = metadataOf(words[g], words[g + 8], lane);
    for (int32_t row = 0; row < 2; ++row)
      for (int32_t group = 0; group < 4; ++group)
        EXPECT_EQ(metadata >> (16 * row + 4 * group) & 15, words[g + 8 * row] >> (16 * t + 4 * group) & 15);
  }
}

/// __byte_perm on the host: bytes of `a` are selectors 0 to 3, of `b` 4 to 7.
uint32_t permuted(uint32_t a, uint32_t b, uint32_t select) {
  uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i)
    result |= static_cast<uint32_t>(bytes >> 8 * (select >> 4 * i & 7) & 255) << 8 * i;
  return result;
}

TEST(SparseMetadataTest, KeptElementsExpandToTheirInputs) {
  for (uint32_t indices : kIndexPairs)
    for (uint32_t others : kIndexPairs) {
      uint32_t both = indices | others << 4, first = indices & 3, second = indices >> 2, kept = 0x22221111;
      uint32_t select = selectHalves(both), pairs[] = {permuted(kept, 0, select), permuted(kept, 0, select >> 16)};
      for (uint32_t input = 0; input < 4; ++input) {
        EXPECT_EQ(pairs[input / 2] >> 16 * (input % 2) & 0xffff, input == first    ? 0x1111u
                                                                 : input == second ? 0x2222u
                                                                                   : 0u);
        EXPECT_EQ(permuted(0x44332211, 99, selectBytes(both, 0)) >> 8 * input & 255, input == first    ? 0x11u
                                                                                     : input == second ? 0x22u
                                                                                                       : 99u);
        EXPECT_EQ(permuted(0x44332211, 99, selectBytes(both, 2)) >> 8 * input & 255, input == first    ? 0x33u
                                                                                     : input == second ? 0x44u
                                                                                                       : 99u);
      }
      uint32_t nibbles = placeNibbles(0xffff4321, both, 7);
      for (uint32_t input = 0; input < 8; ++input) {
        uint32_t pair = both >> input / 4 * 4 & 15, code = 1 + input / 4 * 2;
        EXPECT_EQ(nibbles >> 4 * input & 15, input % 4 == (pair & 3) ? code : input % 4 == pair >> 2 ? code + 1 : 7u);
      }
    }
}

TEST(AttentionPlanTest, SplitsCoverTheKeys) {
  for (int64_t blocks : {1, 8, 132, 100000})
    for (int64_t keys : {0, 1, 255, 256, 1000, 65536, 1000000}) {
      int32_t splits = kvSplits(blocks, keys, 132, 3, 256);
      EXPECT_GE(splits, 1);
      EXPECT_GE(keysPerSplit(keys, splits, kFlashKeys) * splits, keys);
      EXPECT_EQ(keysPerSplit(keys, splits, kFlashKeys) % kFlashKeys, 0);
      if (blocks >= 400)
        EXPECT_EQ(splits, 1) << "rows alone fill the device";
      if (blocks == 8 && keys == 65536)
        EXPECT_GE(splits * blocks, 3 * 132) << "one token over a long cache must fill the device";
    }
}

/// Every tile of every head belongs to one block; within a section the last tiles come first.
TEST(HopperFlashPlanTest, BlocksCoverAllAndBeginWithTheLongest) {
  for (int64_t heads : {1, 6, 32, 65})
    for (int64_t headsPerKvHead : {1, 3})
      for (int64_t queries : {64, 128, 129, 1000, 8192})
        for (int64_t keys : {64, 8192, 131072}) {
          HopperFlashPlan plan = planHopperFlash(heads, headsPerKvHead, queries, keys, 128);
          EXPECT_GE(int64_t{plan.tiles} * kHopperFlashQueries, queries);
          EXPECT_LT(int64_t{plan.tiles - 1} * kHopperFlashQueries, queries);
          EXPECT_TRUE(plan.sectionHeads == heads || plan.sectionHeads % headsPerKvHead == 0);
          std::set<std::pair<int32_t, int32_t>> tiles;
          for (uint32_t block = 0; block < plan.blocks(); ++block) {
            HopperFlashTile tile = flashTileOf(plan, block), before = flashTileOf(plan, block == 0 ? 0 : block - 1);
            EXPECT_TRUE(tile.tile >= 0 && tile.tile < plan.tiles && tile.head >= 0 && tile.head < heads);
            EXPECT_TRUE(tiles.insert({tile.tile, tile.head}).second);
            EXPECT_TRUE(tile.tile <= before.tile || tile.head / plan.sectionHeads > before.head / plan.sectionHeads);
          }
          EXPECT_EQ(static_cast<int64_t>(tiles.size()), heads * plan.tiles);
        }
}

TEST(HopperFlashPlanTest, SectionsStayInTheCache) {
  EXPECT_EQ(planHopperFlash(32, 1, 8192, 8192, 128).sectionHeads, 8);
  EXPECT_EQ(planHopperFlash(32, 4, 8192, 8192, 128).sectionHeads, 32);
  EXPECT_EQ(planHopperFlash(32, 4, 8192, int64_t{1} << 20, 128).sectionHeads, 4);
}

TEST(HopperFlashPlanTest, SharedMemoryFits) {
  for (int32_t size : {64, 128}) {
    HopperFlashLayout layout = hopperFlashLayout(size);
    EXPECT_LE(layout.bytes, 227 * 1024);
    EXPECT_EQ(layout.keys % 1024, 0);
    EXPECT_EQ(layout.values % 1024, 0);
    EXPECT_EQ(layout.barriers % 8, 0);
  }
}

/// Tiles cover the keys of a range and no tile is without one; an unmasked tile has no other keys.
TEST(HopperFlashPlanTest, TilesAreThoseOfTheKeys) {
  for (int64_t begin : {0, 1, 127, 128, 300})
    for (int64_t end : {0, 1, 128, 129, 256, 511, 512}) {
      KeyTiles tiles = keyTilesOf({begin, end});
      if (end <= begin) {
        EXPECT_EQ(tiles.count, 0);
        continue;
      }
      EXPECT_EQ(tiles.first, begin / kHopperFlashKeys);
      EXPECT_EQ(tiles.first + tiles.count - 1, (end - 1) / kHopperFlashKeys);
      for (int32_t tile = tiles.first; tile < tiles.first + tiles.count; ++tile)
        EXPECT_EQ(needsMask(tile, begin, end),
                  int64_t{tile} * kHopperFlashKeys < begin || int64_t{tile + 1} * kHopperFlashKeys > end);
    }
}

TEST(HopperClustersTest, ClustersAreWhole) {
  EXPECT_FALSE(usesClusters(1) || usesClusters(15));
  EXPECT_TRUE(usesClusters(2) && usesClusters(16) && usesClusters(17));
  EXPECT_EQ(persistentBlocks(1000, false, 133), 133u);
  EXPECT_EQ(persistentBlocks(1000, true, 133), 132u);
  EXPECT_EQ(persistentBlocks(6, true, 132), 6u);
  EXPECT_EQ(persistentBlocks(6, false, 132), 6u);
  EXPECT_EQ(persistentBlocks(6, true, 1), 2u);
}

TEST(HopperEpilogueTest, IndicesAreUniqueWithoutBankConflicts) {
  std::set<int32_t> indices;
  for (int32_t row = 0; row < kStagingSide; ++row)
    for (int32_t output = 0; output < kStagingSide; ++output)
      indices.insert(stagingIndex(row, output));
  EXPECT_EQ(static_cast<int32_t>(indices.size()), kStagingSide * kStagingSide);
  EXPECT_EQ(*indices.rbegin(), kStagingSide * kStagingSide - 1);
  for (int32_t row = 0; row < kStagingSide; row += 8)
    for (int32_t half : {0, 1}) {
      // 16 lanes write pairs: rows g, outputs 2 t and 2 t + 1; or 32 lanes elements: rows 2 t, outputs g.
      std::set<int32_t> pairs, elements;
      for (int32_t lane = 0; lane < 32; ++lane) {
        if (lane < 16)
          pairs.insert(stagingIndex(row + 4 * half + lane / 4, lane % 4 * 2) % 32);
        elements.insert(stagingIndex(row + lane % 4 * 2 + half, lane / 4) % 32);
      }
      EXPECT_EQ(pairs.size(), 16u);
      EXPECT_EQ(elements.size(), 32u);
    }
}

TEST(HopperSparseGemmPlanTest, StepsArePairs) {
  EXPECT_LE(kHopperSparseBytes, 227 * 1024);
  // TMA boxes begin at a multiple of the swizzle's period.
  EXPECT_TRUE(kHopperSparseWeightBytes % 1024 == 0 && kHopperSparseStageBytes % 1024 == 0);
  for (int64_t depth : {32, 64, 96, 128, 160, 4096}) {
    EXPECT_EQ(hopperSparseSteps(depth) % 2, 0);
    EXPECT_GE(int64_t{hopperSparseSteps(depth)} * kHopperSparseDepth, depth);
    EXPECT_LT(int64_t{hopperSparseSteps(depth) - 2} * kHopperSparseDepth, depth);
  }
}

/// Every step of every product of planes is there once, and shared memory suffices.
TEST(HopperGemmPlanTest, StepsAreAllProducts) {
  EXPECT_LE(kHopperGemmBytes, 227 * 1024);
  for (int64_t depth : {8, 64, 72, 4096})
    for (int32_t products : {1, 2, 3}) {
      std::set<std::tuple<int32_t, int32_t, int32_t>> steps;
      for (int32_t i = 0; i < hopperGemmSteps(depth, products); ++i) {
        HopperGemmStep step = hopperGemmStep(i, depth);
        EXPECT_TRUE(step.input % kHopperGemmDepth == 0 && step.input < depth && step.xPlane + step.weightPlane < 2);
        EXPECT_TRUE(steps.insert({step.input, step.xPlane, step.weightPlane}).second);
      }
      EXPECT_EQ(static_cast<int64_t>(steps.size()), divideUp(depth, kHopperGemmDepth) * products);
    }
}

TEST(AttentionPlanTest, FlashFits) {
  for (int32_t size : {64, 128})
    for (int32_t rowWarps : {1, 4})
      for (int32_t queryPlanes : {1, 2}) {
        EXPECT_LE(flashSharedBytes(size, rowWarps, 1, queryPlanes), 99 * 1024); // sm_86 and sm_89
        EXPECT_LE(flashSharedBytes(size, rowWarps, 2, 2), 99 * 1024);
      }
  EXPECT_LE(3 * (flashSharedBytes(128, 1, 1, 2) + 1024), 228 * 1024) << "three blocks an SM of sm_90";
  EXPECT_EQ(flashSize(129, 64), 0);
  EXPECT_EQ(flashSize(65, 64), 128);
  EXPECT_EQ(planFlash(128, 128, 1, 8).rowWarps, 1);
  EXPECT_EQ(planFlash(128, 128, 512, 4).tiles, 32);
}

TEST(AttentionPlanTest, LdmatrixHasNoBankConflicts) {
  for (int32_t size : {64, 128}) {
    std::set<int32_t> indices;
    for (int32_t part = 0; part < size / 8; ++part)
      for (int32_t first = 0; first < kFlashKeys; first += 8) {
        std::set<int32_t> banks;
        for (int32_t row = first; row < first + 8; ++row) {
          banks.insert(flashByte(size, row, part) % 128 / 16);
          EXPECT_TRUE(indices.insert(flashByte(size, row, part)).second);
        }
        EXPECT_EQ(banks.size(), 8u);
      }
    EXPECT_EQ(static_cast<int32_t>(indices.size()) * 16, flashTileBytes(size, 1));
  }
}

} // namespace
} // namespace hone::cuda
