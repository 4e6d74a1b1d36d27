// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that write keys and values into blocks against the layouts, and rounding against that of the compiler.

#include "hone/cpu/packing/cache_blocks.h"
#include "kernel_tensor.h"

#include <bit>
#include <cstring>

namespace hone::test {
namespace {

constexpr uint8_t kUntouched = 0xa5;

uint32_t roundTo(hone_dtype dtype, float x) {
  auto word = std::bit_cast<uint32_t>(x);
  if (dtype == HONE_F16)
    return std::bit_cast<uint16_t>(static_cast<_Float16>(x));
  if (dtype == HONE_F32)
    return word;
  uint32_t upper = word >> 16, rest = word & 0xffff;
  return upper + (rest > 0x8000 || (rest == 0x8000 && upper % 2 == 1));
}

class WriteBlocks : public KernelTest {
protected:
  template <typename BlockLayout>
  void expectWritten(const std::string &name, hone_dtype dtype, int64_t first, int64_t count, int64_t size,
                     Layout layout) {
    Tensor fresh = Tensor({2, 3, count, size}, layout).randomize(random);
    BlockLayout blocks(cpu::cacheWordElements(dtype), size);
    int64_t bytes = io::dtypeBytes(dtype), capacity = 128, head = capacity * blocks.width;
    std::vector<uint8_t> memory(static_cast<size_t>(2 * 3 * head * bytes), kUntouched);
    hone_tensor cache = {memory.data(), dtype, 4, {2, 3, capacity, blocks.width}, {3 * head, head, blocks.width, 1}};
    run(name, {fresh.view(), cache}, {first});

    std::vector<uint8_t> isWritten(memory.size() / static_cast<size_t>(bytes));
    fresh.forEach([&](const std::vector<int64_t> &i) {
      int64_t place = (i[0] * 3 + i[1]) * head + blocks.ofPosition(first + i[2]) + blocks.ofElement(i[3]);
      uint32_t bits = 0;
      std::memcpy(&bits, memory.data() + place * bytes, static_cast<size_t>(bytes));
      ASSERT_EQ(bits, roundTo(dtype, fresh.at(i))) << name << " position " << first + i[2] << " element " << i[3];
      isWritten[static_cast<size_t>(place)] = 1;
    });
    // The rest is as it was, or what fills positions that were written up: zeros.
    for (int64_t p = 0; p < capacity; ++p)
      for (int64_t d = 0; d < blocks.width; ++d) {
        auto place = static_cast<size_t>(blocks.ofPosition(p) + blocks.ofElement(d));
        bool mayBeZero = d >= size && first <= p && p < first + count;
        for (size_t byte = place * static_cast<size_t>(bytes);
             !isWritten[place] && byte < (place + 1) * static_cast<size_t>(bytes); ++byte)
          ASSERT_TRUE(memory[byte] == kUntouched || (mayBeZero && memory[byte] == 0)) << name << " position " << p;
      }
  }
};

TEST_P(WriteBlocks, PositionsAreWhereTheLayoutSays) {
  for (auto [dtype, type] : {std::pair(HONE_F32, "f32"), std::pair(HONE_F16, "f16"), std::pair(HONE_BF16, "bf16")})
    for (auto [first, count] :
         {std::pair<int64_t, int64_t>(0, 1), {0, 0}, {15, 2}, {0, 16}, {16, 32}, {5, 90}, {64, 64}, {127, 1}})
      for (int64_t size : {1, 15, 16, 17, 33, 64, 80})
        for (Layout layout : {Layout::Dense, Layout::Gaps}) {
          expectWritten<cpu::BlockedKeyLayout>(std::string("hone.write_keys.") + type, dtype, first, count, size,
                                               layout);
          expectWritten<cpu::BlockedValueLayout>(std::string("hone.write_values.") + type, dtype, first, count, size,
                                                 layout);
        }
}

HONE_INSTANTIATE_LEVELS(WriteBlocks);

} // namespace
} // namespace hone::test
