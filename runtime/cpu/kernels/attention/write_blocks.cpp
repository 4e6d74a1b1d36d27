// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fresh keys and values on their way into blocks (hone/cpu/packing/cache_blocks.h), rounded to the elements of the cache.

#include "../entry.h"

#include "../parallel_for.h"
#include "../rows.h"
#include "../transpose.h"
#include "hone/cpu/packing/cache_blocks.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

constexpr int64_t kRunPositions = 32; // whole blocks of every layout, and streams that the hardware follows at once

typedef uint16_t Shorts __attribute__((ext_vector_type(16)));

/// Elements of a cache, to the nearest and of two to the even one.
struct F32Elements {
  using Bits = uint32_t;
  using Lanes = Words;
  static constexpr int64_t word = cacheWordElements(HONE_F32);
  static Lanes encode(Vector x) { return loadAs<Words>(&x); }
};

struct F16Elements {
  using Bits = uint16_t;
  using Lanes = Shorts;
  static constexpr int64_t word = cacheWordElements(HONE_F16);
  static Lanes encode(Vector x) {
    typedef _Float16 Halves __attribute__((ext_vector_type(16)));
    auto halves = __builtin_convertvector(x, Halves);
    return loadAs<Shorts>(&halves);
  }
};

struct Bf16Elements {
  using Bits = uint16_t;
  using Lanes = Shorts;
  static constexpr int64_t word = cacheWordElements(HONE_BF16);
  static Lanes encode(Vector x) {
    Words bits = loadAs<Words>(&x), upper = bits >> 16;
    Words rounded = (bits + 0x7fff + (upper & 1)) >> 16;
    return __builtin_convertvector(x == x ? rounded : upper | 0x40, Shorts); // NaN stays one
  }
};

/// Elements d … d + 15 of a row of `size`; what is after it is 0.
inline Vector loadSome(Row row, int64_t d, int64_t size) {
  if (row.stride == 1 && d + kLanes <= size)
    return load(row.data + d);
  float some[kLanes] = {};
  for (int64_t i = 0; d + i < size && i < kLanes; ++i)
    some[i] = row[d + i];
  return load(some);
}

/// The rows of a head, and the memory of its blocks.
template <typename Elements> struct Head {
  float *data;
  int64_t positionStride, elementStride, size;
  typename Elements::Bits *memory;

  Vector at(int64_t s, int64_t d) const { return loadSome({data + s * positionStride, elementStride}, d, size); }
};

template <typename ELEMENTS> struct KeyWriter {
  using Elements = ELEMENTS;
  using Layout = BlockedKeyLayout;
  static constexpr int64_t positions = kCacheLanes; // that a whole block has

  /// Sixteen rows from `s` on become the block at `position`: its words are their columns.
  static void writeBlock(const Head<Elements> &head, const Layout &layout, int64_t s, int64_t position) {
    auto *to = head.memory + layout.ofPosition(position);
    for (int64_t d = 0; d < layout.width; d += Elements::word * kLanes) {
      Vector rows[kLanes];
      for (int64_t i = 0; i < kLanes; ++i)
        rows[i] = wordsOf(head, s + i, d);
      transpose(rows);
      for (int64_t i = 0; i < kLanes && d + i * Elements::word < layout.width; ++i)
        storeWords(to + layout.ofElement(d + i * Elements::word), rows[i]);
    }
  }

private:
  /// Sixteen words of a row: pairs of bf16, else floats, which are rounded when they are stored.
  static Vector wordsOf(const Head<Elements> &head, int64_t s, int64_t d) {
    if constexpr (Elements::word == 1) {
      return head.at(s, d);
    } else {
      typename Elements::Lanes halves[2] = {Elements::encode(head.at(s, d)), Elements::encode(head.at(s, d + kLanes))};
      return loadAs<Vector>(halves);
    }
  }

  static void storeWords(typename Elements::Bits *to, Vector words) {
    if constexpr (Elements::word == 1) {
      auto lanes = Elements::encode(words);
      __builtin_memcpy(to, &lanes, sizeof lanes);
    } else {
      __builtin_memcpy(to, &words, sizeof words);
    }
  }
};

template <typename ELEMENTS> struct ValueWriter {
  using Elements = ELEMENTS;
  using Layout = BlockedValueLayout;
  static constexpr int64_t positions = kCacheLanes * Elements::word;

  static void writeBlock(const Head<Elements> &head, const Layout &layout, int64_t s, int64_t position) {
    for (int64_t i = 0; i < kCacheLanes; ++i) {
      auto *to = head.memory + layout.ofPosition(position + i);
      for (int64_t d = 0; d < layout.width; d += kLanes)
        storeWords(to + layout.ofElement(d), head, s + i, d);
    }
  }

private:
  /// Sixteen words: elements of a position, and where a word has two also those of the position sixteen after it.
  static void storeWords(typename Elements::Bits *to, const Head<Elements> &head, int64_t s, int64_t d) {
    auto lanes = Elements::encode(head.at(s, d));
    if constexpr (Elements::word == 1) {
      __builtin_memcpy(to, &lanes, sizeof lanes);
    } else {
      Words low = __builtin_convertvector(lanes, Words);
      Words high = __builtin_convertvector(Elements::encode(head.at(s + kCacheLanes, d)), Words);
      Words words = low | high << 16;
      __builtin_memcpy(to, &words, sizeof words);
    }
  }
};

template <typename Elements, typename Layout>
void writePosition(const Head<Elements> &head, const Layout &layout, int64_t s, int64_t position) {
  auto *to = head.memory + layout.ofPosition(position);
  for (int64_t d = 0; d < head.size; d += kLanes) {
    auto lanes = Elements::encode(head.at(s, d));
    for (int64_t i = 0; i < kLanes && d + i < head.size; ++i)
      to[layout.ofElement(d + i)] = lanes[i];
  }
}

/// The rows of one sequence and head of `fresh`, and where `cache` has it. Rows of heads are counted sequence after
/// sequence.
template <typename Elements> Head<Elements> headOf(const hone_tensor &fresh, const hone_tensor &cache, int64_t row) {
  int64_t sequence = row / fresh.sizes[1], number = row % fresh.sizes[1];
  return {floats(fresh) + sequence * fresh.strides[0] + number * fresh.strides[1], fresh.strides[2], fresh.strides[3],
          fresh.sizes[3],
          static_cast<typename Elements::Bits *>(cache.data) + sequence * cache.strides[0] + number * cache.strides[1]};
}

template <typename Blocks> void run(const kernels::Call<kernels::WriteBlocks, kernels::NoWeight> &call) {
  using Elements = typename Blocks::Elements;
  const hone_tensor &fresh = call.operands.fresh, &cache = call.operands.cache;
  if (isAbsent(fresh))
    return;
  int64_t first = call.ints.first, count = fresh.sizes[2], size = fresh.sizes[3];
  typename Blocks::Layout layout(Elements::word, size);
  // A task is what goes into one run of positions of a head. Heads follow each other, as their rows mostly do in
  // memory: so the hardware prefetches what comes next, and stays in the same pages.
  int64_t firstRun = first / kRunPositions, runs = (first + count - 1) / kRunPositions - firstRun + 1;
  int64_t rows = fresh.sizes[0] * fresh.sizes[1], tasks = rows * runs;
  parallelFor(tasks, countRows(fresh) * size > 4096, [&](int64_t task) {
    int64_t row = task % rows, run = firstRun + task / rows;
    auto head = headOf<Elements>(fresh, cache, row);
    int64_t position = larger(first, run * kRunPositions);
    int64_t end = smaller(first + count, (run + 1) * kRunPositions);
    while (position < end)
      if (position % Blocks::positions == 0 && position + Blocks::positions <= end) {
        Blocks::writeBlock(head, layout, position - first, position);
        position += Blocks::positions;
      } else {
        writePosition(head, layout, position - first, position);
        ++position;
      }
  });
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cpu/write_blocks.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
