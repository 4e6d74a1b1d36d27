// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of attention, and caches of keys and values of each that grow by a position at a time.

#ifndef HONE_TEST_UNIT_RUNTIME_GROWING_CACHE_H
#define HONE_TEST_UNIT_RUNTIME_GROWING_CACHE_H

#include "kernel_tensor.h"

#include "hone/cpu/packing/cache_blocks.h"
#include "hone/cpu/packing/quantized_blocks.h"

#include <array>
#include <bit>
#include <cstring>

namespace hone::test {

enum class Form { Rows, Blocks, Quantized };

/// A kernel and how the keys and values that it takes lie.
struct Kind {
  const char *kernel;
  hone_dtype dtype;
  Form form;
  int64_t bits = 0; // of quantized elements
};

inline const Kind kKinds[] = {
    {"hone.attention.f32", HONE_F32, Form::Rows},
    {"hone.attention.f16", HONE_F16, Form::Rows},
    {"hone.attention.bf16", HONE_BF16, Form::Rows},
    {"hone.attention.pairs.f32", HONE_F32, Form::Rows},
    {"hone.attention.blocks.f32", HONE_F32, Form::Blocks},
    {"hone.attention.blocks.f16", HONE_F16, Form::Blocks},
    {"hone.attention.blocks.bf16", HONE_BF16, Form::Blocks},
    {"hone.attention.blocks.i8", HONE_I8, Form::Quantized, 8},
    {"hone.attention.blocks.u4", HONE_I8, Form::Quantized, 4},
};

/// Keys or values of several sequences, which grow by a position at a time; what follows the last one is zeros.
class GrowingCache {
public:
  GrowingCache(const Kind &kind, bool isOfKeys, int64_t batch, int64_t heads, int64_t capacity, int64_t size)
      : kind(kind), isOfKeys(isOfKeys), batch(batch), heads(heads), size(size),
        elementBytes(kind.form == Form::Quantized ? 1 : io::dtypeBytes(kind.dtype)) {
    int64_t block = cpu::kCacheBlockPositions, room = (capacity + block - 1) / block * block;
    width = withLayout([](const auto &layout) { return widthOf(layout); });
    headElements = room * width;
    memory.resize(static_cast<size_t>(batch * heads * headElements * elementBytes));
  }

  /// Draws position `position` of every sequence and head.
  void append(int64_t position, std::mt19937 &random) {
    withLayout([&](const auto &layout) {
      for (int64_t head = 0; head < batch * heads; ++head)
        write(layout, memory.data() + head * headElements * elementBytes, position, random);
      return 0;
    });
  }

  /// Makes every element of position `position` of every sequence and head `number`, which is bf16.
  void fill(int64_t position, float number) {
    withLayout([&](const auto &layout) {
      for (int64_t head = 0; head < batch * heads; ++head)
        fill(layout, memory.data() + head * headElements * elementBytes, position, number);
      return 0;
    });
  }

  /// Makes position `position` what position `source` of another cache is, or zeros where there is none.
  void take(int64_t position, const GrowingCache *other = nullptr, int64_t source = 0) {
    withLayout([&](const auto &layout) {
      for (int64_t head = 0; head < batch * heads; ++head) {
        auto move = [&](int64_t to, int64_t from, int64_t bytes) {
          uint8_t *place = memory.data() + head * headElements * elementBytes + to * elementBytes;
          if (other)
            std::memcpy(place, other->memory.data() + head * headElements * elementBytes + from * elementBytes, bytes);
          else
            std::memset(place, 0, bytes);
        };
        for (int64_t d = 0; d < size; ++d)
          move(layout.ofPosition(position) + layout.ofElement(d), layout.ofPosition(source) + layout.ofElement(d),
               elementBytes);
        if constexpr (requires { layout.positionBytes(); }) {
          move(layout.ofScale(position), layout.ofScale(source), 2);
          if (kind.bits == 4)
            move(layout.ofBase(position), layout.ofBase(source), 2);
        }
      }
      return 0;
    });
  }

  /// The first `count` positions of `sequences` sequences from `first` on.
  hone_tensor view(int64_t first, int64_t sequences, int64_t count) {
    hone_tensor tensor = {};
    tensor.data = memory.data() + first * heads * headElements * elementBytes;
    tensor.dtype = kind.dtype;
    tensor.rank = 4;
    std::ranges::copy(std::array{sequences, heads, count, size}, tensor.sizes);
    std::ranges::copy(std::array{heads * headElements, headElements, width, int64_t{1}}, tensor.strides);
    return tensor;
  }

private:
  struct RowLayout {
    int64_t width;
    int64_t ofPosition(int64_t position) const { return position * width; }
    static int64_t ofElement(int64_t d) { return d; }
  };

  template <typename Layout> static int64_t widthOf(const Layout &layout) {
    if constexpr (requires { layout.positionBytes(); })
      return layout.positionBytes();
    else
      return layout.width;
  }

  template <typename Body> int64_t withLayout(const Body &body) const {
    if (kind.form == Form::Rows)
      return body(RowLayout{size});
    if (kind.form == Form::Blocks)
      return isOfKeys ? body(cpu::BlockedKeyLayout(cpu::cacheWordElements(kind.dtype), size))
                      : body(cpu::BlockedValueLayout(cpu::cacheWordElements(kind.dtype), size));
    return isOfKeys ? body(cpu::QuantizedKeyLayout(kind.bits, size)) : body(cpu::QuantizedValueLayout(kind.bits, size));
  }

  template <typename Layout>
  void write(const Layout &layout, uint8_t *head, int64_t position, std::mt19937 &random) const {
    std::normal_distribution<float> normal;
    for (int64_t d = 0; d < size; ++d) {
      int64_t at = layout.ofPosition(position) + layout.ofElement(d);
      if constexpr (requires { layout.positionBytes(); })
        head[at] |= static_cast<uint8_t>((random() & (kind.bits == 8 ? 0xff : 0xf)) << layout.shiftOf(d));
      else
        writeFloat(normal(random), head + at * elementBytes);
    }
    if constexpr (requires { layout.positionBytes(); }) { // scales of a few magnitudes
      writeBf16(std::abs(normal(random)) * (kind.bits == 8 ? 0.02f : 0.3f), head + layout.ofScale(position));
      if (kind.bits == 4)
        writeBf16(normal(random) - 2, head + layout.ofBase(position));
    }
  }

  template <typename Layout> void fill(const Layout &layout, uint8_t *head, int64_t position, float number) const {
    for (int64_t d = 0; d < size; ++d) {
      int64_t at = layout.ofPosition(position) + layout.ofElement(d);
      if constexpr (requires { layout.positionBytes(); })
        head[at] |= static_cast<uint8_t>(kind.bits != 8 ? 0 : number < 0 ? -1 : 1); // a code, or the base alone
      else
        writeFloat(number, head + at * elementBytes);
    }
    if constexpr (requires { layout.positionBytes(); })
      writeBf16(kind.bits == 8 ? std::abs(number) : number,
                head + (kind.bits == 8 ? layout.ofScale(position) : layout.ofBase(position)));
  }

  void writeFloat(float number, uint8_t *to) const {
    auto half = static_cast<_Float16>(number);
    if (kind.dtype == HONE_BF16)
      writeBf16(number, to);
    else if (kind.dtype == HONE_F16)
      std::memcpy(to, &half, sizeof half);
    else
      std::memcpy(to, &number, sizeof number);
  }

  static void writeBf16(float number, uint8_t *to) {
    auto upper = static_cast<uint16_t>(std::bit_cast<uint32_t>(number) >> 16);
    std::memcpy(to, &upper, sizeof upper);
  }

  Kind kind;
  bool isOfKeys;
  int64_t batch, heads, size, elementBytes, width = 0, headElements = 0;
  std::vector<uint8_t> memory;
};

} // namespace hone::test

#endif // HONE_TEST_UNIT_RUNTIME_GROWING_CACHE_H
