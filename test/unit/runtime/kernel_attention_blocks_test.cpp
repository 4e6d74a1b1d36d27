// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over keys and values in blocks gives what hone.attention.f32 gives for the same numbers in rows.

#include "kernel_tensor.h"

#include "cpu/packing/cache_blocks.h"

#include <bit>

namespace hone::test {
namespace {

constexpr float kTolerance = 2e-5f;

/// Numbers of a type in blocks, with room for more positions, which hold zeros, and the same numbers as f32 in rows.
template <typename Element, typename Layout> class BlockedTensor {
public:
  template <typename Encode, typename Decode>
  BlockedTensor(std::vector<int64_t> shape, hone_dtype dtype, std::mt19937 &random, Encode encode, Decode decode)
      : rows(shape), dtype(dtype), layout(cpu::cacheWordElements(dtype), shape[3]) {
    int64_t room = (shape[2] + cpu::kCacheBlockPositions - 1) / cpu::kCacheBlockPositions * cpu::kCacheBlockPositions;
    strides = {shape[1] * room * layout.width, room * layout.width, layout.width, 1};
    memory.resize(static_cast<size_t>(shape[0] * strides[0]) + 1);
    std::normal_distribution<float> normal;
    rows.forEach([&](const std::vector<int64_t> &index) {
      Element element = encode(normal(random));
      int64_t at =
          index[0] * strides[0] + index[1] * strides[1] + layout.ofPosition(index[2]) + layout.ofElement(index[3]);
      memory[static_cast<size_t>(at)] = element;
      rows(index) = decode(element);
    });
  }

  hone_tensor view() {
    hone_tensor tensor = rows.view();
    tensor.data = memory.data();
    tensor.dtype = dtype;
    std::ranges::copy(strides, tensor.strides);
    return tensor;
  }

  Tensor rows;

private:
  hone_dtype dtype;
  Layout layout;
  std::vector<int64_t> strides;
  std::vector<Element> memory;
};

struct Case {
  int64_t heads = 4, keyHeads = 2, queries = 1, keys = 40, size = 32, valueSize = 32;
  bool causal = true;
  int64_t window = -1;
  double softcap = 0;
  bool hasBias = false, hasAlibi = false, hasSinks = false;
  std::vector<int64_t> keyBegin = {}, keyEnd = {}, prefix = {};
};

class AttentionBlocksKernel : public KernelTest {
protected:
  template <typename Element, typename Encode, typename Decode>
  void checkAll(const char *kernel, hone_dtype dtype, Encode encode, Decode decode) {
    auto check = [&](const Case &test) { compare<Element>(kernel, dtype, test, encode, decode); };
    for (int64_t queries : {1, 2, 7, 33, 70})
      for (int64_t keys : {1, 15, 16, 63, 64, 130, 300})
        for (bool causal : {false, true})
          check({.queries = queries, .keys = keys, .causal = causal});
    for (int64_t size : {1, 2, 19, 48, 64, 80})
      for (int64_t valueSize : {1, 21, 48, 96})
        check({.keyHeads = 1, .queries = 3, .keys = 150, .size = size, .valueSize = valueSize});
    for (int64_t keyHeads : {1, 2, 3, 6})
      check({.heads = 6, .keyHeads = keyHeads, .queries = 5, .keys = 90});
    for (int64_t queries : {1, 9, 40})
      for (int64_t window : {1, 5, 64, 1000})
        check({.queries = queries, .keys = 400, .window = window});
    for (int64_t keys : {4100, 9000})
      for (int64_t queries : {1, 9}) {
        check({.heads = 2, .queries = queries, .keys = keys});
        check({.heads = 2, .keyHeads = 1, .queries = queries, .keys = keys, .window = 3000, .hasSinks = true});
      }
    for (int64_t queries : {1, 20}) {
      check({.queries = queries, .keys = 150, .softcap = 2});
      check({.queries = queries, .keys = 150, .hasAlibi = true, .hasSinks = true});
      check({.queries = queries, .keys = 150, .hasBias = true});
      check({.queries = queries,
             .keys = 150,
             .window = 100,
             .softcap = 3,
             .hasBias = true,
             .hasAlibi = true,
             .hasSinks = true});
    }
    check({.queries = 30, .keys = 80, .keyBegin = {0, 79}});
    check({.queries = 30, .keys = 80, .causal = false, .keyEnd = {3, 0}});
    check({.queries = 30, .keys = 80, .keyBegin = {60, 0}, .keyEnd = {50, 70}});
    check({.queries = 80, .keys = 80, .window = 8, .prefix = {30, 50}});
    check({.keys = 9000, .keyBegin = {4090, 8999}});
    check({.queries = 3, .keys = 0});
    check({.queries = 0, .keys = 5});
  }

private:
  template <typename Element, typename Encode, typename Decode>
  void compare(const char *kernel, hone_dtype dtype, const Case &test, Encode encode, Decode decode) {
    BlockedTensor<Element, cpu::BlockedKeyLayout> key({2, test.keyHeads, test.keys, test.size}, dtype, random, encode,
                                                      decode);
    BlockedTensor<Element, cpu::BlockedValueLayout> value({2, test.keyHeads, test.keys, test.valueSize}, dtype, random,
                                                          encode, decode);
    Tensor query = Tensor({2, test.heads, test.queries, test.size}).randomize(random), none = Tensor::absent();
    Tensor out({2, test.heads, test.queries, test.valueSize}), expected(out.sizes);
    Tensor bias = test.hasBias ? Tensor({2, 1, test.queries, test.keys}).randomize(random) : Tensor::absent();
    for (int64_t j = 0; test.hasBias && j < test.keys; ++j) // a query from which a mask of least floats hides all keys
      bias({1, 0, 0, j}) = std::numeric_limits<float>::lowest();
    Tensor alibi = test.hasAlibi ? Tensor({test.heads}).randomize(random, 0.1f) : Tensor::absent();
    Tensor sinks = test.hasSinks ? Tensor({test.heads}).randomize(random) : Tensor::absent();
    auto call = [&](const char *name, hone_tensor keys, hone_tensor values, Tensor &result) {
      run(name,
          {query.view(), keys, values, bias.view(), alibi.view(), sinks.view(), listOf(test.keyBegin),
           listOf(test.keyEnd), listOf(test.prefix), result.view()},
          {test.causal, test.window}, {0.2, test.softcap});
    };
    call("hone.attention.f32", key.rows.view(), value.rows.view(), expected);
    call(kernel, key.view(), value.view(), out);
    expectClose(out, expected, kTolerance, kernel);
  }
};

TEST_P(AttentionBlocksKernel, F32) {
  auto same = [](float value) { return value; };
  checkAll<float>("hone.attention.blocks.f32", HONE_F32, same, same);
}

TEST_P(AttentionBlocksKernel, F16) {
  checkAll<_Float16>(
      "hone.attention.blocks.f16", HONE_F16, [](float value) { return static_cast<_Float16>(value); },
      [](_Float16 value) { return static_cast<float>(value); });
}

TEST_P(AttentionBlocksKernel, Bf16) {
  checkAll<uint16_t>(
      "hone.attention.blocks.bf16", HONE_BF16,
      [](float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); },
      [](uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); });
}

HONE_INSTANTIATE_LEVELS(AttentionBlocksKernel);

} // namespace
} // namespace hone::test
