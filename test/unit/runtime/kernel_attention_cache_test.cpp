// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over keys and values of 16 bits gives what hone.attention.f32 gives for the numbers that they stand for.

#include "attention_masks.h"

#include <bit>

namespace hone::test {
namespace {

constexpr float kTolerance = 2e-5f;

/// Elements of a type, dense or with the axes of heads and positions swapped, and the same numbers as f32.
template <typename Element> class CacheTensor {
public:
  template <typename Encode, typename Decode>
  CacheTensor(std::vector<int64_t> shape, bool isSwapped, hone_dtype dtype, std::mt19937 &random, Encode encode,
              Decode decode)
      : decoded(shape), dtype(dtype) {
    strides = {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
    if (isSwapped)
      strides = {strides[0], shape[3], shape[1] * shape[3], 1};
    memory.resize(static_cast<size_t>(shape[0] * strides[0]) + 1);
    std::normal_distribution<float> normal;
    decoded.forEach([&](const std::vector<int64_t> &index) {
      Element element = encode(normal(random));
      memory[static_cast<size_t>(std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0}))] =
          element;
      decoded(index) = decode(element);
    });
  }

  hone_tensor view() {
    hone_tensor tensor = decoded.view();
    tensor.data = memory.data();
    tensor.dtype = dtype;
    std::ranges::copy(strides, tensor.strides);
    return tensor;
  }

  Tensor decoded;

private:
  hone_dtype dtype;
  std::vector<int64_t> strides;
  std::vector<Element> memory;
};

struct Case {
  int64_t heads = 4, keyHeads = 2, queries = 1, keys = 40, size = 32, valueSize = 32, window = -1;
  double softcap = 0;
  bool hasBias = false, hasAlibiAndSinks = false;
  MaskCase mask = {};
};

class AttentionCacheKernel : public KernelTest {
protected:
  template <typename Element, typename Encode, typename Decode>
  void check(const char *kernel, hone_dtype dtype, Encode encode, Decode decode) {
    for (bool isSwapped : {false, true})
      for (const Case &test :
           {Case{}, Case{.queries = 5, .keys = 70}, Case{.queries = 40, .keys = 130},
            Case{.keyHeads = 1, .keys = 65, .size = 19, .valueSize = 21}, Case{.keys = 0},
            Case{.queries = 2, .keys = 4200, .size = 16, .valueSize = 16},
            Case{.queries = 3, .keys = 4200, .size = 64, .valueSize = 96},
            Case{.keyHeads = 1, .queries = 5, .keys = 300, .window = 100, .softcap = 2},
            Case{.queries = 70, .keys = 200, .window = 30, .hasAlibiAndSinks = true},
            Case{.queries = 3, .keys = 150, .hasBias = true, .hasAlibiAndSinks = true},
            Case{.queries = 40, .keys = 300, .mask = {.blockKeys = 16, .listHeads = 4, .listed = 8}},
            Case{.keys = 4300, .size = 64, .valueSize = 96, .mask = {.blockKeys = 64, .listed = 20}},
            Case{.queries = 40, .keys = 200, .size = 64, .valueSize = 64, .mask = {.isTree = true}},
            Case{.queries = 70, .keys = 200, .window = 90, .hasAlibiAndSinks = true, .mask = {.hasPositions = true}}}) {
        CacheTensor<Element> key({2, test.keyHeads, test.keys, test.size}, isSwapped, dtype, random, encode, decode);
        CacheTensor<Element> value({2, test.keyHeads, test.keys, test.valueSize}, isSwapped, dtype, random, encode,
                                   decode);
        compare(kernel, test, key, value);
      }
  }

  template <typename Element>
  void compare(const char *kernel, const Case &test, CacheTensor<Element> &key, CacheTensor<Element> &value) {
    Tensor query = Tensor({2, test.heads, test.queries, test.size}).randomize(random);
    Tensor out({2, test.heads, test.queries, test.valueSize}), expected(out.sizes);
    Tensor bias = test.hasBias ? Tensor({2, 1, test.queries, test.keys}).randomize(random) : Tensor::absent();
    Tensor alibi = test.hasAlibiAndSinks ? Tensor({test.heads}).randomize(random, 0.1f) : Tensor::absent();
    Tensor sinks = test.hasAlibiAndSinks ? Tensor({test.heads}).randomize(random) : Tensor::absent();
    Masks masks(test.mask, 2, test.heads, test.queries, test.keys, random);
    Tensor lse({2, test.heads, test.queries}), expectedLse(lse.sizes), withLse(out.sizes), expectedWithLse(out.sizes);
    auto call = [&](const char *name, hone_tensor keys, hone_tensor values, Tensor &result, hone_tensor lseView) {
      AttentionOperands operands = attentionOf(query.view(), keys, values, result.view());
      operands.bias = bias.view(), operands.alibi = alibi.view(), operands.sinks = sinks.view();
      masks.setOperands(operands);
      operands.lse = lseView;
      run(name, listOperands(operands), {1, test.window, test.mask.blockKeys, test.mask.blockQueries},
          {0.2, test.softcap, 0});
    };
    call("hone.attention.f32", key.decoded.view(), value.decoded.view(), expected, {});
    call("hone.attention.f32", key.decoded.view(), value.decoded.view(), expectedWithLse,
         expectedLse.view()); // a sink is added last
    call(kernel, key.view(), value.view(), out, {});
    call(kernel, key.view(), value.view(), withLse, lse.view());
    expectClose(withLse, expectedWithLse, kTolerance, kernel);
    expectClose(lse, expectedLse, kTolerance, kernel);
    expectClose(out, expected, kTolerance, kernel);
  }
};

TEST_P(AttentionCacheKernel, F16) {
  check<_Float16>(
      "hone.attention.f16", HONE_F16, [](float value) { return static_cast<_Float16>(value); },
      [](_Float16 value) { return static_cast<float>(value); });
}

TEST_P(AttentionCacheKernel, Bf16) {
  check<uint16_t>(
      "hone.attention.bf16", HONE_BF16,
      [](float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); },
      [](uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); });
}

HONE_INSTANTIATE_LEVELS(AttentionCacheKernel);

} // namespace
} // namespace hone::test
