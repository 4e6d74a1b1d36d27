// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over keys and values in blocks, or that are rounded into blocks, gives what hone.attention.f32 gives for the same numbers
// in rows.

#include "attention_masks.h"

#include "hone/cpu/packing/quantized_blocks.h"

#include <bit>
#include <cstring>

namespace hone::test {
namespace {

constexpr float kTolerance = 2e-5f;
// Queries and weights that are rounded to bf16 err by up to a 512th: scores of normal numbers by 1.1e-3 on the whole and by four times
// that among thousands, weights by as much, and so do sums of values around 2 with few keys.
constexpr float kPairsTolerance = 1e-2f;
// Queries are rounded to a 32639th of their largest element, and each weight by up to a 64000th of the largest of a step of 256 keys,
// however small the others are: of values around 2, that is 1e-3 in the worst of all cases.
constexpr float kQuantizedTolerance = 2e-3f;

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

/// Codes of 8 or 4 bits in blocks, with room for more positions, which hold zeros, and what they stand for as f32 in rows.
template <typename Layout> class QuantizedTensor {
public:
  QuantizedTensor(std::vector<int64_t> shape, int64_t bits, std::mt19937 &random)
      : rows(shape), layout(bits, shape[3]) {
    int64_t room = (shape[2] + layout.kBlock - 1) / layout.kBlock * layout.positionBytes() * layout.kBlock;
    strides = {shape[1] * room, room, layout.positionBytes(), 1};
    memory.resize(static_cast<size_t>(shape[0] * strides[0]) + 1);
    std::uniform_int_distribution<int32_t> codes(bits == 8 ? -127 : 0, bits == 8 ? 127 : 15);
    std::uniform_real_distribution<float> steps(0.3f, 1.0f), bases(-2, 0);
    for (int64_t head = 0; head < shape[0] * shape[1]; ++head)
      for (int64_t position = 0; position < shape[2]; ++position) {
        uint8_t *from = memory.data() + head * room;
        float step = put(from + layout.ofScale(position), steps(random) * (bits == 8 ? 0.02f : 0.3f));
        float base = bits == 8 ? 0 : put(from + layout.ofBase(position), bases(random));
        for (int64_t d = 0; d < shape[3]; ++d) {
          int32_t code = codes(random);
          from[layout.ofPosition(position) + layout.ofElement(d)] |=
              static_cast<uint8_t>((code & (bits == 8 ? 0xff : 0xf)) << layout.shiftOf(d));
          rows({head / shape[1], head % shape[1], position, d}) = base + step * static_cast<float>(code);
        }
      }
  }

  hone_tensor view() {
    hone_tensor tensor = rows.view();
    tensor.data = memory.data();
    std::ranges::copy(strides, tensor.strides);
    return tensor;
  }

  Tensor rows;

private:
  /// Writes a number as bf16; what it then is, is the result.
  static float put(uint8_t *to, float number) {
    uint32_t word = std::bit_cast<uint32_t>(number) & 0xffff0000;
    std::memcpy(to, reinterpret_cast<const uint8_t *>(&word) + 2, 2);
    return std::bit_cast<float>(word);
  }

  Layout layout;
  std::vector<int64_t> strides;
  std::vector<uint8_t> memory;
};

/// Numbers in rows, and what they are rounded to.
struct FloatTensor {
  Tensor given, rows;

  FloatTensor(const std::vector<int64_t> &shape, std::mt19937 &random, bool isRounded)
      : given(Tensor(shape).randomize(random)), rows(isRounded ? roundToBf16(given) : given) {}
  hone_tensor view() { return given.view(); }
};

struct Case {
  int64_t heads = 4, keyHeads = 2, queries = 1, keys = 40, size = 32, valueSize = 32;
  bool causal = true;
  int64_t window = -1;
  double softcap = 0;
  bool hasBias = false, hasAlibi = false, hasSinks = false;
  std::vector<int64_t> keyBegin = {}, keyEnd = {}, prefix = {};
  MaskCase mask = {};
};

class AttentionBlocksKernel : public KernelTest {
protected:
  template <typename Element, typename Encode, typename Decode>
  void checkFloats(const char *kernel, hone_dtype dtype, Encode encode, Decode decode) {
    auto check = [&](const Case &test) {
      BlockedTensor<Element, cpu::BlockedKeyLayout> key(keyShape(test), dtype, random, encode, decode);
      BlockedTensor<Element, cpu::BlockedValueLayout> value(valueShape(test), dtype, random, encode, decode);
      compare(kernel, test, key, value, dtype == HONE_BF16 && hasPairs() ? kPairsTolerance : kTolerance);
    };
    checkAll(check);
    checkPrompts(check);
  }

  void checkPairs() {
    auto check = [&](const Case &test) {
      bool isRounded = GetParam() == cpu::Isa::Amx;
      FloatTensor key(keyShape(test), random, isRounded), value(valueShape(test), random, isRounded);
      compare("hone.attention.pairs.f32", test, key, value, isRounded ? kPairsTolerance : 0);
    };
    checkAll(check);
    checkPrompts(check);
  }

  void checkQuantized(const char *kernel, int64_t bits) {
    checkAll([&](const Case &test) {
      QuantizedTensor<cpu::QuantizedKeyLayout> key(keyShape(test), bits, random);
      QuantizedTensor<cpu::QuantizedValueLayout> value(valueShape(test), bits, random);
      compare(kernel, test, key, value, kQuantizedTolerance);
    });
  }

private:
  /// Whether queries and weights are rounded to bf16.
  static bool hasPairs() { return GetParam() == cpu::Isa::Avx512Bf16 || GetParam() == cpu::Isa::Amx; }

  static std::vector<int64_t> keyShape(const Case &test) { return {2, test.keyHeads, test.keys, test.size}; }
  static std::vector<int64_t> valueShape(const Case &test) { return {2, test.keyHeads, test.keys, test.valueSize}; }

  template <typename Check> void checkAll(Check check) {
    for (int64_t queries : {1, 2, 7, 33, 70})
      for (int64_t keys : {1, 15, 16, 63, 64, 130, 300})
        for (bool causal : {false, true})
          check({.queries = queries, .keys = keys, .causal = causal});
    for (int64_t size : {1, 2, 19, 48, 64, 80, 128})
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
    for (int64_t queries : {1, 20, 90}) {
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
    checkMasks(check);
  }

  /// Lists of blocks that are a KV micro-block, a part of one or several, trees over few and many keys, and positions.
  template <typename Check> void checkMasks(Check check) {
    for (int64_t queries : {1, 9, 70})
      for (int64_t blockKeys : {1, 16, 64, 128})
        for (int64_t listHeads : {1, 2, 4})
          check({.queries = queries,
                 .keys = 700,
                 .size = 64,
                 .valueSize = 64,
                 .mask = {.blockKeys = blockKeys, .blockQueries = 4, .listHeads = listHeads, .listed = 5}});
    check({.keys = 9000, .hasSinks = true, .mask = {.blockKeys = 64, .listed = 40}});
    for (int64_t queries : {1, 20, 90})
      for (int64_t earlier : {0, 70, 4200})
        check({.queries = queries, .keys = queries + earlier, .causal = false, .mask = {.isTree = true}});
    for (int64_t queries : {1, 20}) {
      check({.queries = queries, .keys = 200, .mask = {.hasPositions = true}});
      check({.queries = queries, .keys = 200, .mask = {.hasLags = true}});
      check({.queries = queries, .keys = 4200, .window = 90, .hasAlibi = true, .mask = {.hasLags = true}});
      check({.queries = queries, .keys = 200, .causal = false, .mask = {.isTree = true, .hasLags = true}});
      check({.queries = queries, .keys = 200, .window = 90, .hasAlibi = true, .mask = {.hasPositions = true}});
      check({.queries = queries,
             .keys = 300,
             .softcap = 3,
             .hasBias = true,
             .mask = {.blockKeys = 16, .listed = 12, .isTree = true, .hasPositions = true}});
    }
  }

  /// So many rows that pairs of tiles multiply them: GQA groups, more keys than all rows see at once, columns and steps that
  /// have no second one, and rows of a tile that see other keys or none. Weights of integers err by as much however small they are,
  /// which of so many outputs a few show by more than their tolerance, and no path of theirs depends on so many rows.
  template <typename Check> void checkPrompts(Check check) {
    for (int64_t size : {64, 96})
      for (int64_t valueSize : {16, 48, 70})
        check({.heads = 3, .keyHeads = 1, .queries = 50, .keys = 1100, .size = size, .valueSize = valueSize});
    for (int64_t valueSize : {64, 128})
      check({.heads = 2, .queries = 600, .keys = 610, .size = 128, .valueSize = valueSize, .window = 530});
    check({.heads = 7, .keyHeads = 1, .queries = 75, .keys = 300, .size = 64, .valueSize = 64, .hasSinks = true});
    check({.heads = 2, .queries = 200, .keys = 200, .size = 80, .valueSize = 80});
    for (bool causal : {false, true})
      check({.queries = 130, .keys = 700, .causal = causal, .keyBegin = {600, 33}, .keyEnd = {690, 640}});
    check({.queries = 130, .keys = 130, .causal = false, .hasBias = true});
    check({.queries = 130, .keys = 130, .keyBegin = {0, 129}, .keyEnd = {7, 130}, .prefix = {40, 100}});
    check(
        {.queries = 130, .keys = 600, .window = 20, .softcap = 3, .hasBias = true, .hasAlibi = true, .hasSinks = true});
    check({.queries = 130,
           .keys = 700,
           .size = 64,
           .valueSize = 64,
           .mask = {.blockKeys = 64, .blockQueries = 64, .listHeads = 2, .listed = 4}});
    check({.queries = 130, .keys = 400, .causal = false, .mask = {.isTree = true}});
  }

  template <typename Key, typename Value>
  void compare(const char *kernel, const Case &test, Key &key, Value &value, float tolerance) {
    Tensor query = Tensor({2, test.heads, test.queries, test.size}).randomize(random);
    Tensor out({2, test.heads, test.queries, test.valueSize}), expected(out.sizes);
    Tensor bias = test.hasBias ? Tensor({2, 1, test.queries, test.keys}).randomize(random) : Tensor::absent();
    for (int64_t j = 0; test.hasBias && j < test.keys; ++j) // a query from which a mask of least floats hides all keys
      bias({1, 0, 0, j}) = std::numeric_limits<float>::lowest();
    Tensor alibi = test.hasAlibi ? Tensor({test.heads}).randomize(random, 0.1f) : Tensor::absent();
    Tensor sinks = test.hasSinks ? Tensor({test.heads}).randomize(random) : Tensor::absent();
    Masks masks(test.mask, 2, test.heads, test.queries, test.keys, random);
    Tensor lse({2, test.heads, test.queries}), expectedLse(lse.sizes), withLse(out.sizes), expectedWithLse(out.sizes);
    auto call = [&](const char *name, hone_tensor keys, hone_tensor values, Tensor &result, hone_tensor lseView) {
      AttentionOperands operands = attentionOf(query.view(), keys, values, result.view());
      operands.bias = bias.view(), operands.alibi = alibi.view(), operands.sinks = sinks.view();
      operands.keyBegin = listOf(test.keyBegin), operands.keyEnd = listOf(test.keyEnd);
      operands.prefix = listOf(test.prefix);
      masks.setOperands(operands);
      operands.lse = lseView;
      run(name, listOperands(operands), {test.causal, test.window, test.mask.blockKeys, test.mask.blockQueries},
          {0.2, test.softcap, 0});
    };
    call("hone.attention.f32", key.rows.view(), value.rows.view(), expected, {});
    call("hone.attention.f32", key.rows.view(), value.rows.view(), expectedWithLse,
         expectedLse.view()); // a sink is added last
    call(kernel, key.view(), value.view(), out, {});
    call(kernel, key.view(), value.view(), withLse, lse.view());
    expectClose(withLse, expectedWithLse, tolerance, kernel);
    expectClose(lse, expectedLse, tolerance, kernel);
    expectClose(out, expected, tolerance, kernel);
  }
};

TEST_P(AttentionBlocksKernel, F32) {
  auto same = [](float value) { return value; };
  checkFloats<float>("hone.attention.blocks.f32", HONE_F32, same, same);
}

TEST_P(AttentionBlocksKernel, F16) {
  checkFloats<_Float16>(
      "hone.attention.blocks.f16", HONE_F16, [](float value) { return static_cast<_Float16>(value); },
      [](_Float16 value) { return static_cast<float>(value); });
}

TEST_P(AttentionBlocksKernel, Bf16) {
  checkFloats<uint16_t>(
      "hone.attention.blocks.bf16", HONE_BF16,
      [](float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); },
      [](uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); });
}

TEST_P(AttentionBlocksKernel, PairsOfF32) { checkPairs(); }

TEST_P(AttentionBlocksKernel, I8) { checkQuantized("hone.attention.blocks.i8", 8); }

TEST_P(AttentionBlocksKernel, U4) { checkQuantized("hone.attention.blocks.u4", 4); }

HONE_INSTANTIATE_LEVELS(AttentionBlocksKernel);

} // namespace
} // namespace hone::test
