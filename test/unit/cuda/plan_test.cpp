// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans and index arithmetic of device kernels, on the host.

#include "cuda/kernels/attention/exact.h"
#include "cuda/kernels/attention/flash.h"
#include "cuda/kernels/attention/hopper_flash.h"
#include "cuda/kernels/experts/experts.h"
#include "cuda/kernels/linear/few_rows.h"
#include "cuda/kernels/linear/hopper_rows.h"
#include "cuda/kernels/linear/hopper_sparse_rows.h"
#include "cuda/kernels/linear/many_rows.h"
#include "cuda/kernels/linear/sparse_metadata.h"
#include "cuda/kernels/linear/sparse_rows.h"
#include "cuda/kernels/row_view.h"
#include "parity.h"

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

/// Every output and row is some block's, none needs more than a launch may have, and warps are no more than chunks are worth.
TEST(FewRowsPlanTest, CoversAndFits) {
  for (int64_t rows : {1, 8, 9, 16, 1000})
    for (int64_t outputs : {1, 16, 17, 896, 4096, 14336, 151936})
      for (int64_t chunks : {0, 1, 3, 8, 32, 112, 448})
        for (bool converts : {false, true})
          for (int32_t multiprocessors : {1, 108, 132}) {
            FewRowsPlan plan = planFewRows(rows, outputs, chunks, converts, multiprocessors);
            EXPECT_GE(plan.blocks * plan.rowTiles * 16, outputs);
            EXPECT_LT((plan.blocks - 1) * plan.rowTiles * 16, outputs);
            EXPECT_GE(plan.columnTiles * 8, std::min<int64_t>(rows, 16));
            EXPECT_TRUE(plan.columnTiles == 1 || plan.rowTiles == 2) << "there is no function for it";
            EXPECT_LE(plan.slices, std::max<int64_t>(chunks, 4));
            EXPECT_LE(plan.slices, mostSlices(plan.rowTiles));
            EXPECT_LE(fewRowsSharedBytes(plan), 48 * 1024);
          }
}

/// The shapes that memory's speed is measured by: as many bytes on their way as an H200 needs, 29 KiB a multiprocessor.
TEST(FewRowsPlanTest, KeepsMemoryBusy) {
  for (int64_t outputs : {4096, 14336})
    for (int64_t chunkInputs : {32, 64, 128}) {
      FewRowsPlan plan = planFewRows(1, outputs, (outputs == 4096 ? 14336 : 4096) / chunkInputs, false, 132);
      double warps = std::min(16.0, double(plan.blocks * plan.slices) / 132); // with at most 128 registers a lane
      EXPECT_GE(warps * (chunkInputs == 32 ? 4096 : 3072), 29.0 * 1024);
    }
}

TEST(ExactRowsPlanTest, CoversAndFits) {
  for (int64_t rows : {1, 2, 4, 5, 16, 1000})
    for (int64_t outputs : {1, 31, 896, 4096, 151936})
      for (int64_t inputs : {0, 1, 128, 896, 14336})
        for (int32_t multiprocessors : {1, 132}) {
          ExactRowsPlan plan = planExactRows(rows, outputs, inputs, multiprocessors);
          EXPECT_EQ(plan.groups * plan.slices, 8);
          EXPECT_GE(plan.blocks * plan.groups * kExactOutputs, outputs);
          EXPECT_GE(plan.rowsAtOnce, std::min<int64_t>(rows, 5));
          EXPECT_TRUE(plan.slices == 1 || plan.slices * kExactInputs <= inputs);
          EXPECT_LE(exactRowsSharedBytes(plan), 48 * 1024);
        }
}

TEST(FewRowsPlanTest, BlocksShareInputsWhereOutputsAreFew) {
  EXPECT_EQ(planRowSplits(34, 100, 132), 1);
  EXPECT_EQ(planRowSplits(33, 100, 132), 4);
  EXPECT_EQ(planRowSplits(8, 28, 132), 3);
  EXPECT_EQ(planRowSplits(1, 7, 132), 1);
  EXPECT_EQ(planRowSplits(1, 0, 1), 1);
}

/// However pairs choose, there are as many tiles as they make; the bound is met where one expert has what is left over.
TEST(ExpertPlanTest, TilesAreEnough) {
  for (int64_t experts : {1, 2, 3, 5})
    for (int64_t pairs : {0, 1, 2, 7, 8, 9, 40})
      for (int64_t tileRows : {1, 4, 8, 16}) {
        int64_t most = 0;
        std::vector<int64_t> counts(static_cast<size_t>(experts), 0);
        auto place = [&](auto self, size_t expert, int64_t left) -> void {
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
        place(place, 0, pairs);
        EXPECT_EQ(expertTiles(pairs, experts, tileRows), most) << pairs << " " << experts << " " << tileRows;
      }
}

TEST(ExpertPlanTest, CoversAndFits) {
  for (int64_t rows : {1, 5, 8, 9, 500})
    for (int64_t choices : {1, 2, 8})
      for (int64_t experts : {1, 8, 128, 8192})
        for (int64_t outputs : {1, 16, 17, 768, 4096}) {
          int64_t pairs = rows * choices;
          FewRowsPlan plan = planExpertRows(rows, pairs, experts, outputs, 32, true, 132);
          EXPECT_GE(plan.blocks * plan.rowTiles * 16, outputs);
          EXPECT_TRUE(plan.columnTiles == 1 || plan.rowTiles == 2) << "there is no function for it";
          EXPECT_LE(plan.slices, kExpertSlices);
          ExactRowsPlan exact = planExactExperts(rows, pairs, experts, outputs, 4096, 132);
          EXPECT_GE(exact.blocks * exact.groups * kExactOutputs, outputs);
          EXPECT_EQ(exact.groups * exact.slices, kExpertSlices);
          EXPECT_LE(expertTiles(32 * experts, experts, 8), 65535);
        }
}

/// Every tile of inputs is one block's, blocks fit on the device at once, and none has little to do.
TEST(ManyRowsPlanTest, SplitsCoverAndFit) {
  for (int64_t tiles : {1, 7, 65, 66, 67, 1000})
    for (int64_t depth : {0, 8, 256, 504, 520, 896, 4864, 14336})
      for (int32_t multiprocessors : {1, 108, 132}) {
        SplitPlan plan = planSplits(tiles, depth, multiprocessors);
        int64_t steps = divideUp(depth, kTileDepth);
        EXPECT_GE(int64_t{plan.splits} * plan.steps, steps);
        if (plan.splits == 1)
          continue;
        EXPECT_LT(int64_t{plan.splits - 1} * plan.steps, steps);
        EXPECT_GE(plan.steps, 8);
        EXPECT_LE(tiles * plan.splits, multiprocessors);
      }
  EXPECT_EQ(planSplits(7, 4864, 132).splits, 17);
  EXPECT_EQ(planSplits(67, 14336, 132).splits, 1);
}

TEST(ManyRowsPlanTest, EveryTileHasOneBlock) {
  for (int64_t rowTiles : {1, 2, 8, 9, 17})
    for (int64_t outputTiles : {1, 3, 32}) {
      std::set<std::pair<int64_t, int64_t>> places;
      for (int64_t block = 0; block < rowTiles * outputTiles; ++block) {
        TilePlace place = tileOfBlock(block, rowTiles, outputTiles);
        EXPECT_TRUE(place.row >= 0 && place.row < rowTiles && place.output >= 0 && place.output < outputTiles);
        EXPECT_TRUE(places.insert({place.row, place.output}).second);
      }
    }
}

/// Shared memory has 32 banks of 4 bytes: the eight rows of a matrix of ldmatrix, 16 bytes each, must lie in all of them.
TEST(ManyRowsPlanTest, MatricesAreReadFromEveryBank) {
  std::set<int32_t> places;
  for (int32_t part = 0; part < 4; ++part)
    for (int32_t first = 0; first < 128; first += 8) {
      std::set<int32_t> banks;
      for (int32_t row = first; row < first + 8; ++row) {
        banks.insert(swizzledByte(row, part) % 128 / 16);
        EXPECT_TRUE(places.insert(swizzledByte(row, part)).second);
      }
      EXPECT_EQ(banks.size(), 8u);
    }
  EXPECT_EQ(*places.rbegin(), 128 * 64 - 16);
}

TEST(ManyRowsPlanTest, SumsHaveTheirOwnPlaces) {
  std::set<int32_t> places;
  for (int32_t row = 0; row < 128; ++row)
    for (int32_t output = 0; output < kTileOutputs; ++output) {
      places.insert(sumPlace(row, output));
      if (output % 2 == 0) // pairs are stored at once
        EXPECT_EQ(sumPlace(row, output) + 1, sumPlace(row, output + 1));
    }
  EXPECT_EQ(places.size(), 128u * kTileOutputs);
  EXPECT_EQ(*places.rbegin(), 128 * kTileOutputs - 1);
}

/// 99 KiB is the most that a block of the smallest supported chips, sm_86 and sm_89, may ask for.
TEST(ManyRowsPlanTest, FitsIntoSharedMemory) {
  for (int32_t tileRows : {64, 128})
    for (int32_t x : {1, 2})
      for (int32_t weight : {1, 2})
        EXPECT_LE(manyRowsSharedBytes(tileRows, x, weight), 99 * 1024);
}

TEST(ManyRowsPlanTest, SlabsAreWholeTiles) {
  EXPECT_EQ(outputsOfSlab(50, 1024), 50);
  EXPECT_EQ(outputsOfSlab(151936, 8192), 8192);
  EXPECT_EQ(outputsOfSlab(151936, 8200) % kTileOutputs, 0);
  EXPECT_EQ(outputsOfSlab(151936, int64_t{1} << 30), kTileOutputs);
  EXPECT_EQ(outputsOfSlab(300, 0), 300);
}

TEST(SparseRowsPlanTest, FitsIntoSharedMemory) {
  for (int32_t tileRows : {64, 128})
    for (int32_t x : {1, 2})
      for (int32_t weight : {1, 2})
        EXPECT_LE(sparseSharedBytes(tileRows, x, weight), 99 * 1024);
  EXPECT_LE(2 * (sparseSharedBytes(128, 1, 1) + 1024), 164 * 1024) << "two blocks a multiprocessor of sm_80";
}

/// The places that two of four inputs may have, as 4 bits each.
constexpr uint32_t kPlaces[] = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110};

/// Lane 4 g + t of the two that are named has, for columns 16 t … of outputs g and g + 8, 16 bits each (PTX ISA, figures of the
/// metadata of mma.sp.m16n8k32).
TEST(SparseMetadataTest, LanesHaveHalvesOfTwoOutputs) {
  std::mt19937 random(3);
  uint32_t words[16] = {};
  for (uint32_t &word : words)
    for (int group = 0; group < 8; ++group)
      word = word << 4 | kPlaces[random() % 6];
  for (int32_t lane = 0; lane < 32; ++lane) {
    int32_t g = lane / 4, t = lane % 2;
    uint32_t metadata = metadataOf(words[g], words[g + 8], lane);
    for (int32_t row = 0; row < 2; ++row)
      for (int32_t group = 0; group < 4; ++group)
        EXPECT_EQ(metadata >> (16 * row + 4 * group) & 15, words[g + 8 * row] >> (16 * t + 4 * group) & 15);
  }
}

/// What __byte_perm gives: bytes of `a` are numbers 0 to 3, and of `b` 4 to 7.
uint32_t permuted(uint32_t a, uint32_t b, uint32_t select) {
  uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i)
    result |= static_cast<uint32_t>(bytes >> 8 * (select >> 4 * i & 7) & 255) << 8 * i;
  return result;
}

TEST(SparseMetadataTest, KeptNumbersComeToTheirInputs) {
  for (uint32_t places : kPlaces)
    for (uint32_t others : kPlaces) {
      uint32_t both = places | others << 4, first = places & 3, second = places >> 2, kept = 0x22221111;
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
        uint32_t pair = both >> input / 4 * 4 & 15, level = 1 + input / 4 * 2;
        EXPECT_EQ(nibbles >> 4 * input & 15, input % 4 == (pair & 3) ? level : input % 4 == pair >> 2 ? level + 1 : 7u);
      }
    }
}

TEST(AttentionPlanTest, VisibleKeysAreThoseOfThePredicate) {
  for (int64_t keys : {1, 7, 12})
    for (bool causal : {false, true})
      for (int64_t window : {-1, 0, 1, 5})
        for (int64_t begin : {0, 3, 20})
          for (int64_t end : {0, 5, 12})
            for (int64_t prefix : {0, 4})
              for (int64_t position = 0; position < keys; ++position) {
                KeyRange range = visibleKeys(position, keys, causal, window, begin, end, prefix);
                for (int64_t j = 0; j < keys; ++j) {
                  bool expected = begin <= j && j < end && (!causal || j <= position || j < prefix) &&
                                  (window < 0 || j > position - window);
                  EXPECT_EQ(range.begin <= j && j < range.end, expected);
                }
              }
}

TEST(AttentionPlanTest, SplitsCoverTheKeys) {
  for (int64_t blocks : {1, 8, 132, 100000})
    for (int64_t keys : {0, 1, 255, 256, 1000, 65536, 1000000}) {
      int32_t splits = splitsOf(blocks, keys, 132, 3);
      EXPECT_GE(splits, 1);
      EXPECT_GE(keysOfSplit(keys, splits, kFlashKeys) * splits, keys);
      EXPECT_EQ(keysOfSplit(keys, splits, kFlashKeys) % kFlashKeys, 0);
      if (blocks >= 400)
        EXPECT_EQ(splits, 1) << "rows alone fill the device";
      if (blocks == 8 && keys == 65536)
        EXPECT_GE(splits * blocks, 3 * 132) << "one token over a long cache must fill the device";
    }
}

/// Every tile of every head is one block's; of the heads of a section the last tiles come first.
TEST(HopperPlanTest, BlocksCoverAllAndBeginWithTheLongest) {
  for (int64_t heads : {1, 6, 32, 65})
    for (int64_t headsOfKey : {1, 3})
      for (int64_t queries : {64, 128, 129, 1000, 8192})
        for (int64_t keys : {64, 8192, 131072}) {
          HopperPlan plan = planHopper(heads, headsOfKey, queries, keys, 128);
          EXPECT_GE(int64_t{plan.tiles} * kHopperRows, queries);
          EXPECT_LT(int64_t{plan.tiles - 1} * kHopperRows, queries);
          EXPECT_TRUE(plan.sectionHeads == heads || plan.sectionHeads % headsOfKey == 0);
          std::set<std::pair<int32_t, int32_t>> units;
          for (uint32_t block = 0; block < plan.blocks(); ++block) {
            HopperUnit unit = unitOf(plan, block), before = unitOf(plan, block == 0 ? 0 : block - 1);
            EXPECT_TRUE(unit.tile >= 0 && unit.tile < plan.tiles && unit.head >= 0 && unit.head < heads);
            EXPECT_TRUE(units.insert({unit.tile, unit.head}).second);
            EXPECT_TRUE(unit.tile <= before.tile || unit.head / plan.sectionHeads > before.head / plan.sectionHeads);
          }
          EXPECT_EQ(static_cast<int64_t>(units.size()), heads * plan.tiles);
        }
}

TEST(HopperPlanTest, SectionsStayInTheCache) {
  EXPECT_EQ(planHopper(32, 1, 8192, 8192, 128).sectionHeads, 8);
  EXPECT_EQ(planHopper(32, 4, 8192, 8192, 128).sectionHeads, 32);
  EXPECT_EQ(planHopper(32, 4, 8192, int64_t{1} << 20, 128).sectionHeads, 4);
}

TEST(HopperPlanTest, SharedMemoryFits) {
  for (int32_t size : {64, 128}) {
    HopperLayout layout = hopperLayout(size);
    EXPECT_LE(layout.bytes, 227 * 1024);
    EXPECT_EQ(layout.keys % 1024, 0);
    EXPECT_EQ(layout.values % 1024, 0);
    EXPECT_EQ(layout.barriers % 8, 0);
  }
}

/// Tiles hold all keys of a range and none of them in vain; without a mask they have no other keys.
TEST(HopperPlanTest, TilesAreThoseOfTheKeys) {
  for (int64_t begin : {0, 1, 127, 128, 300})
    for (int64_t end : {0, 1, 128, 129, 256, 511, 512}) {
      HopperTiles tiles = tilesOf({begin, end});
      if (end <= begin) {
        EXPECT_EQ(tiles.count, 0);
        continue;
      }
      EXPECT_EQ(tiles.first, begin / kHopperKeys);
      EXPECT_EQ(tiles.first + tiles.count - 1, (end - 1) / kHopperKeys);
      for (int32_t tile = tiles.first; tile < tiles.first + tiles.count; ++tile)
        EXPECT_EQ(needsMask(tile, begin, end),
                  int64_t{tile} * kHopperKeys < begin || int64_t{tile + 1} * kHopperKeys > end);
    }
}

TEST(HopperBlocksTest, PairsAreWhole) {
  EXPECT_FALSE(arePaired(1) || arePaired(15));
  EXPECT_TRUE(arePaired(2) && arePaired(16) && arePaired(17));
  EXPECT_EQ(blocksToLaunch(1000, false, 133), 133u);
  EXPECT_EQ(blocksToLaunch(1000, true, 133), 132u);
  EXPECT_EQ(blocksToLaunch(6, true, 132), 6u);
  EXPECT_EQ(blocksToLaunch(6, false, 132), 6u);
  EXPECT_EQ(blocksToLaunch(6, true, 1), 2u);
}

TEST(HopperSumsTest, PlacesAreAllAndLanesHaveTheirBanks) {
  std::set<int32_t> places;
  for (int32_t row = 0; row < kPieceSide; ++row)
    for (int32_t output = 0; output < kPieceSide; ++output)
      places.insert(piecePlace(row, output));
  EXPECT_EQ(static_cast<int32_t>(places.size()), kPieceSide * kPieceSide);
  EXPECT_EQ(*places.rbegin(), kPieceSide * kPieceSide - 1);
  for (int32_t row = 0; row < kPieceSide; row += 8)
    for (int32_t half : {0, 1}) {
      // 16 lanes write pairs: rows g, outputs 2 t and 2 t + 1; or 32 lanes numbers: rows 2 t, outputs g.
      std::set<int32_t> pairs, numbers;
      for (int32_t lane = 0; lane < 32; ++lane) {
        if (lane < 16)
          pairs.insert(piecePlace(row + 4 * half + lane / 4, lane % 4 * 2) % 32);
        numbers.insert(piecePlace(row + lane % 4 * 2 + half, lane / 4) % 32);
      }
      EXPECT_EQ(pairs.size(), 16u);
      EXPECT_EQ(numbers.size(), 32u);
    }
}

TEST(HopperSparseRowsPlanTest, StepsArePairs) {
  EXPECT_LE(kHopperSparseBytes, 227 * 1024);
  // Boxes begin where a swizzle does.
  EXPECT_TRUE(kHopperSparseWeightBytes % 1024 == 0 && kHopperSparseStageBytes % 1024 == 0);
  for (int64_t depth : {32, 64, 96, 128, 160, 4096}) {
    EXPECT_EQ(hopperSparseSteps(depth) % 2, 0);
    EXPECT_GE(int64_t{hopperSparseSteps(depth)} * kHopperSparseDepth, depth);
    EXPECT_LT(int64_t{hopperSparseSteps(depth) - 2} * kHopperSparseDepth, depth);
  }
}

/// Each plane's inputs come once for every product that it is in, and shared memory suffices.
TEST(HopperRowsPlanTest, StepsAreAllProducts) {
  EXPECT_LE(kHopperRowsBytes, 227 * 1024);
  for (int64_t depth : {8, 64, 72, 4096})
    for (int32_t products : {1, 2, 3}) {
      std::set<std::tuple<int32_t, int32_t, int32_t>> steps;
      for (int32_t i = 0; i < hopperSteps(depth, products); ++i) {
        HopperStep step = hopperStep(i, depth);
        EXPECT_TRUE(step.input % kHopperDepth == 0 && step.input < depth && step.xPlane + step.weightPlane < 2);
        EXPECT_TRUE(steps.insert({step.input, step.xPlane, step.weightPlane}).second);
      }
      EXPECT_EQ(static_cast<int64_t>(steps.size()), divideUp(depth, kHopperDepth) * products);
    }
}

TEST(AttentionPlanTest, FlashFits) {
  for (int32_t size : {64, 128})
    for (int32_t rowWarps : {1, 4})
      for (int32_t queryPlanes : {1, 2}) {
        EXPECT_LE(flashSharedBytes(size, rowWarps, 1, queryPlanes), 99 * 1024); // sm_86 and sm_89
        EXPECT_LE(flashSharedBytes(size, rowWarps, 2, 2), 99 * 1024);
      }
  EXPECT_LE(3 * (flashSharedBytes(128, 1, 1, 2) + 1024), 228 * 1024) << "three blocks a multiprocessor of sm_90";
  EXPECT_EQ(flashSize(129, 64), 0);
  EXPECT_EQ(flashSize(65, 64), 128);
  EXPECT_EQ(planFlash(128, 128, 1, 8).rowWarps, 1);
  EXPECT_EQ(planFlash(128, 128, 512, 4).tiles, 32);
}

TEST(AttentionPlanTest, MatricesAreReadFromEveryBank) {
  for (int32_t size : {64, 128}) {
    std::set<int32_t> places;
    for (int32_t part = 0; part < size / 8; ++part)
      for (int32_t first = 0; first < kFlashKeys; first += 8) {
        std::set<int32_t> banks;
        for (int32_t row = first; row < first + 8; ++row) {
          banks.insert(flashByte(size, row, part) % 128 / 16);
          EXPECT_TRUE(places.insert(flashByte(size, row, part)).second);
        }
        EXPECT_EQ(banks.size(), 8u);
      }
    EXPECT_EQ(static_cast<int32_t>(places.size()) * 16, flashTileBytes(size, 1));
  }
}

} // namespace
} // namespace hone::cuda
