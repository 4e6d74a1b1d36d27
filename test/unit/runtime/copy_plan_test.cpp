// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies between views on a GPU: what the planned steps do is what io::copyElements does.

#include "cuda/copy_plan.h"
#include "support.h"

#include <random>

namespace hone::test {
namespace {

using rt::cuda::CopyMeans;
using rt::cuda::CopyStep;
using rt::cuda::planCopy;

/// kernels/strided_copy.cu for all threads of a launch.
void runStep(const CopyStep &step) {
  if (step.width == 0) {
    std::memcpy(step.copy.to, step.copy.from, step.bytes);
    return;
  }
  for (unsigned i = 0; i < step.copy.count; ++i) {
    unsigned rest = i;
    int64_t to = 0, from = 0;
    for (int axis = step.copy.rank - 1; axis >= 0; --axis) {
      to += rest % step.copy.sizes[axis] * step.copy.toStrides[axis];
      from += rest % step.copy.sizes[axis] * step.copy.fromStrides[axis];
      rest /= step.copy.sizes[axis];
    }
    auto width = static_cast<size_t>(step.width);
    char *target = static_cast<char *>(step.copy.to) + to * step.width;
    ASSERT_EQ(reinterpret_cast<uintptr_t>(target) % width, 0u) << "misaligned";
    std::memcpy(target, static_cast<const char *>(step.copy.from) + from * step.width, width);
  }
}

/// A view of the given sizes whose dimensions lie in a random order, with gaps after some.
hone_tensor randomView(std::vector<char> &memory, hone_dtype dtype, const std::vector<int64_t> &sizes,
                       std::mt19937 &random) {
  std::vector<size_t> order(sizes.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  if (random() % 2)
    std::shuffle(order.begin(), order.end(), random);
  hone_tensor view = {nullptr, dtype, static_cast<int32_t>(sizes.size()), {}, {}};
  int64_t stride = random() % 4 == 0 ? 3 : 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    view.sizes[*axis] = sizes[*axis];
    view.strides[*axis] = stride;
    stride *= sizes[*axis] + (random() % 3 == 0 ? static_cast<int64_t>(random() % 5) : 0);
  }
  size_t offset = static_cast<size_t>(io::dtypeBytes(dtype)) * (random() % 3);
  memory.assign(static_cast<size_t>(stride * io::dtypeBytes(dtype)) + offset + 64, 0);
  auto address = reinterpret_cast<uintptr_t>(memory.data());
  view.data = memory.data() + (16 - address % 16) + offset;
  return view;
}

TEST(CopyPlans, DoWhatCopiesDo) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    constexpr hone_dtype dtypes[] = {HONE_U8, HONE_F16, HONE_F32, HONE_F64, HONE_C128};
    hone_dtype dtype = dtypes[random() % std::size(dtypes)];
    std::vector<int64_t> sizes(random() % 5);
    for (int64_t &size : sizes)
      size = static_cast<int64_t>(random() % 7);
    std::vector<char> source, target;
    hone_tensor from = randomView(source, dtype, sizes, random), to = randomView(target, dtype, sizes, random);
    std::ranges::generate(source, [&] { return static_cast<char>(random()); });
    std::vector<char> before = target;
    io::copyElements(from, to);
    std::vector<char> expected = target;
    target = before; // of the same size, so that the view still points into it
    CopyMeans means = round % 2 ? CopyMeans::Any : CopyMeans::Kernels;
    for (const CopyStep &step : planCopy(from, to, means)) {
      ASSERT_TRUE(means == CopyMeans::Any || step.width > 0);
      runStep(step);
    }
    ASSERT_EQ(target, expected) << "round " << round;
  }
}

TEST(CopyPlans, TakeTheWidestAccessesAndTheFewestDimensions) {
  alignas(16) static float memory[4096];
  // [batch, heads, positions, size]: what a projection leaves, and a slot with room for 16 positions.
  hone_tensor fresh = {memory, HONE_F32, 4, {1, 4, 2, 8}, {64, 8, 32, 1}},
              slot = {memory + 512, HONE_F32, 4, {1, 4, 2, 8}, {512, 128, 8, 1}};
  std::vector<CopyStep> steps = planCopy(fresh, slot, CopyMeans::Any);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].width, 16);
  EXPECT_EQ(steps[0].copy.rank, 3);
  EXPECT_EQ(steps[0].copy.count, 16u);
  fresh.sizes[2] = slot.sizes[2] = 1;
  EXPECT_EQ(planCopy(fresh, slot, CopyMeans::Any)[0].copy.rank, 2);
  hone_tensor dense = io::denseView(memory, HONE_F32, std::vector<int64_t>{3, 5});
  EXPECT_EQ(planCopy(dense, io::denseView(memory + 16, HONE_F32, std::vector<int64_t>{3, 5}), CopyMeans::Any)[0].bytes,
            60u);
  fresh.sizes[2] = slot.sizes[2] = 0;
  EXPECT_TRUE(planCopy(fresh, slot, CopyMeans::Any).empty());
}

TEST(CopyPlans, DivideWhatIndicesCannotCount) {
  constexpr int64_t many = int64_t{3} << 30; // never touched
  auto *memory = reinterpret_cast<char *>(uintptr_t{1} << 40);
  hone_tensor from = {memory, HONE_U8, 2, {many, 2}, {3, 1}}, to = {memory + 1, HONE_U8, 2, {many, 2}, {5, 1}};
  int64_t total = 0;
  for (const CopyStep &step : planCopy(from, to, CopyMeans::Any)) {
    EXPECT_EQ(static_cast<char *>(step.copy.to) - (memory + 1), total / 2 * 5);
    EXPECT_EQ(static_cast<const char *>(step.copy.from) - memory, total / 2 * 3);
    total += step.copy.count;
  }
  EXPECT_EQ(total, 2 * many);
}

} // namespace
} // namespace hone::test
