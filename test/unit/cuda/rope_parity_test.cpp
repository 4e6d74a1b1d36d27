// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rotary embedding, appends to the state and embedding on the device against plain loops in double precision.

#include "parity.h"

namespace hone::test {
namespace {

constexpr int32_t kTypes[] = {HONE_F32, HONE_F16, HONE_BF16};
constexpr Layout kLayouts[] = {Layout::Dense, Layout::Swapped, Layout::Gaps};

/// Cosines and sines of so many sequences, positions and pairs; none where there are no pairs.
struct Tables {
  Tensor cosine, sine;
  bool interleaved;

  int64_t half() const { return cosine.sizes[2]; }

  /// Element `index` of x [B, H, S, D], rotated.
  double rotated(const Tensor &x, const std::vector<int64_t> &index) const {
    if (index[3] >= 2 * half())
      return x.at(index);
    int64_t pair = interleaved ? index[3] / 2 : index[3] % half();
    bool isSecond = interleaved ? index[3] % 2 : index[3] >= half();
    std::vector<int64_t> other = index, table = {cosine.sizes[0] == 1 ? 0 : index[0], index[2], pair};
    other[3] = interleaved ? index[3] ^ 1 : (index[3] + half()) % (2 * half());
    return x.at(index) * cosine.at(table) + (isSecond ? 1 : -1) * x.at(other) * sine.at(table);
  }
};

class RopeParity : public ParityTest {
protected:
  Tables tablesOf(std::vector<int64_t> shape, bool interleaved, int32_t type, Layout layout) {
    Tensor cosine(shape, type, layout), sine(shape, type, layout);
    cosine.randomize(random), sine.randomize(random);
    return {cosine, sine, interleaved};
  }

  /// y is x rotated, or x where there are no tables.
  void compare(const Tensor &x, const Tensor &y, const Tables *tables) {
    bool failed = false;
    x.forEach([&](const std::vector<int64_t> &index) {
      if (failed)
        return;
      double expected = tables ? tables->rotated(x, index) : x.at(index);
      failed = !(std::abs(y.at(index) - expected) <= 1e-6 + roundingOf(y.dtype) * std::abs(expected));
      EXPECT_FALSE(failed) << kernel() << " of " << x.sizes[3] << ": expected " << expected << ", but got "
                           << y.at(index);
    });
  }
};

class RopeAloneParity : public RopeParity {
protected:
  void check(std::vector<int64_t> shape, int64_t half, int64_t tables, bool interleaved, int32_t type, Layout layout) {
    Tensor x(shape, type, layout), y(shape, type, layout);
    x.randomize(random);
    Tables rotation = tablesOf({tables, shape[2], half}, interleaved, type, layout);
    run({&x, &rotation.cosine, &rotation.sine, &y}, 1, {interleaved});
    compare(x, y, &rotation);
  }
};

TEST_P(RopeAloneParity, RotatesPairs) {
  for (bool interleaved : {false, true})
    for (int32_t type : kTypes)
      for (Layout layout : kLayouts)
        check({2, 3, 5, 24}, 12, type == HONE_F16 ? 1 : 2, interleaved, type, layout);
}

TEST_P(RopeAloneParity, RotatesFourPairsAtATime) {
  for (bool interleaved : {false, true})
    for (int32_t type : kTypes)
      for (int64_t half : {4, 16, 32})
        check({2, 3, 5, 64}, half, type == HONE_F16 ? 1 : 2, interleaved, type, Layout::Dense);
}

TEST_P(RopeAloneParity, RotatesAPart) {
  for (int64_t half : {0, 1, 16})
    check({1, 2, 3, 37}, half, 1, half == 1, HONE_F32, Layout::Dense);
  check({1, 1, 1, 200}, 100, 1, false, HONE_F32, Layout::Dense);
  check({2, 0, 3, 8}, 4, 1, false, HONE_F32, Layout::Dense);
}

INSTANTIATE_TEST_SUITE_P(Rope, RopeAloneParity, testing::Values("cuda.rope.f32"));

/// Rows are written to a part of a larger tensor of the state's type, whose other positions stay unchanged.
class AppendParity : public RopeParity {
protected:
  struct Case {
    int64_t batch, queryHeads, heads, positions, count, valueCount, half;
    int32_t type, stateType;
    Layout layout;
    bool interleaved;
    std::vector<int64_t> lags = {};
  };

  void check(const Case &c) {
    bool rotates = kernel() == "cuda.rope_append.f32";
    Tensor query({c.batch, c.queryHeads, c.positions, c.count}, c.type, c.layout), rotated = query;
    Tensor key({c.batch, c.heads, c.positions, c.count}, c.type, c.layout);
    Tensor value({c.batch, c.heads, c.positions, c.valueCount}, c.type, c.layout);
    Tensor newKey = roomOf(key, c.stateType), newValue = roomOf(value, c.stateType);
    query.randomize(random), key.randomize(random), value.randomize(random);
    Tables tables = tablesOf({1, c.positions, c.half}, c.interleaved, c.type, c.layout);
    Tensor lags = c.lags.empty() ? Tensor::absent() : Tensor({c.batch}, HONE_I64);
    for (size_t b = 0; b < c.lags.size(); ++b) {
      lags.set({static_cast<int64_t>(b)}, static_cast<double>(c.lags[b]));
      for (Tensor *room : {&newKey, &newValue})
        room->starts.push_back(-c.lags[b] * room->strides[2]);
    }
    if (rotates)
      run({&query, &key, &value, &tables.cosine, &tables.sine, &lags, &rotated, &newKey, &newValue}, 3,
          {c.interleaved});
    else
      run({&key, &value, &lags, &newKey, &newValue}, 2, {});
    if (rotates)
      compare(query, rotated, &tables);
    compare(key, newKey, rotates ? &tables : nullptr);
    compare(value, newValue, nullptr);
  }

private:
  /// As many positions as `fresh` has, in a buffer that has room for 11 more.
  static Tensor roomOf(const Tensor &fresh, int32_t type) {
    std::vector<int64_t> sizes = fresh.sizes;
    sizes[2] += 11;
    Tensor room(sizes, type);
    room.sizes = fresh.sizes;
    return room;
  }
};

TEST_P(AppendParity, WritesIntoTheState) {
  for (int32_t type : kTypes)
    for (int32_t stateType : kTypes)
      for (bool interleaved : {false, true})
        check({2, 6, 2, 3, 64, 64, 32, type, stateType, Layout::Dense, interleaved});
  for (Layout layout : kLayouts)
    check({1, 4, 2, 5, 24, 40, 12, HONE_F32, HONE_BF16, layout, false});
}

TEST_P(AppendParity, TakesOddAndEmptyShapes) {
  check({1, 3, 1, 1, 37, 5, 16, HONE_F32, HONE_F32, Layout::Dense, false});
  check({1, 14, 2, 1, 64, 64, 32, HONE_BF16, HONE_BF16, Layout::Dense, false});
  check({3, 2, 2, 7, 6, 1, 1, HONE_F16, HONE_F32, Layout::Gaps, true});
  check({1, 2, 1, 0, 8, 8, 4, HONE_F32, HONE_F32, Layout::Dense, false});
  check({0, 2, 1, 4, 8, 8, 4, HONE_F32, HONE_F32, Layout::Dense, false});
}

/// Negative lags, as a tensor's memory begins with its first position: sequences are then after that of the first one.
TEST_P(AppendParity, SequencesHaveTheirOwnEnds) {
  for (int32_t stateType : kTypes) {
    check({3, 4, 2, 3, 64, 64, 32, HONE_F32, stateType, Layout::Dense, false, {0, -4, -11}});
    check({2, 2, 1, 1, 37, 5, 16, HONE_F32, stateType, Layout::Dense, false, {-7, 0}});
  }
}

INSTANTIATE_TEST_SUITE_P(Append, AppendParity, testing::Values("cuda.append.f32", "cuda.rope_append.f32"));

class EmbeddingParity : public ParityTest {
protected:
  /// Ids from both ends of the table, and some that it does not have.
  Tensor idsOf(std::vector<int64_t> shape, int64_t rows, int32_t type, Layout layout) {
    Tensor ids(shape, type, layout);
    std::uniform_int_distribution<int64_t> id(-rows - 1, rows);
    ids.forEach([&](const std::vector<int64_t> &index) { ids.set(index, static_cast<double>(id(random))); });
    return ids;
  }

  /// `element` gives element k of a row of the table.
  template <typename Element> void compare(const Tensor &ids, int64_t rows, const Tensor &y, Element element) {
    bool failed = false;
    y.forEach([&](const std::vector<int64_t> &index) {
      if (failed)
        return;
      auto id = static_cast<int64_t>(ids.at({index.begin(), index.end() - 1}));
      id += id < 0 ? rows : 0;
      double expected = id >= 0 && id < rows ? element(id, index.back()) : NAN, actual = y.at(index);
      failed = std::isnan(expected)
                   ? !std::isnan(actual)
                   : !(std::abs(actual - expected) <= (1e-7 + roundingOf(y.dtype)) * std::abs(expected));
      EXPECT_FALSE(failed) << kernel() << " row " << id << " of " << rows << ": expected " << expected << ", but got "
                           << actual;
    });
  }
};

class PlainEmbeddingParity : public EmbeddingParity {};

TEST_P(PlainEmbeddingParity, TakesRows) {
  for (int32_t type : kTypes)
    for (int32_t resultType : kTypes)
      for (Layout layout : kLayouts)
        for (int64_t count : {1, 7, 64}) {
          Tensor table({9, count}, type, layout), ids = idsOf({2, 3}, 9, count == 7 ? HONE_I32 : HONE_I64, layout);
          Tensor y({2, 3, count}, resultType, layout);
          table.randomize(random);
          run({&ids, &table, &y}, 1, {});
          compare(ids, 9, y, [&](int64_t row, int64_t k) { return table.at({row, k}); });
        }
}

TEST_P(PlainEmbeddingParity, TakesScalarsAndNothing) {
  Tensor table({3, 8});
  table.randomize(random);
  for (std::vector<int64_t> shape : {std::vector<int64_t>{}, {0}, {1, 1}}) {
    Tensor ids = idsOf(shape, 3, HONE_I64, Layout::Dense);
    shape.push_back(8);
    Tensor y(shape);
    run({&ids, &table, &y}, 1, {});
    compare(ids, 3, y, [&](int64_t row, int64_t k) { return table.at({row, k}); });
  }
}

INSTANTIATE_TEST_SUITE_P(Embedding, PlainEmbeddingParity, testing::Values("cuda.embedding.f32"));

class QuantizedEmbeddingParity : public EmbeddingParity {
protected:
  /// Packs values of `bits` bits.
  static void put(Tensor &plane, int64_t row, int64_t index, int64_t bits, int64_t code) {
    for (int64_t bit = 0; bit < bits; ++bit)
      plane.memory[static_cast<size_t>(row * plane.sizes[1] + (index * bits + bit) / 8)] |=
          static_cast<uint8_t>((code >> bit & 1) << (index * bits + bit) % 8);
  }

  static Tensor planeOf(int64_t rows, int64_t codes, int64_t bits) {
    Tensor plane({rows, (codes * bits + 7) / 8}, HONE_U8);
    std::ranges::fill(plane.memory, uint8_t{0});
    return plane;
  }

  void check(int64_t bits, int64_t group, int64_t count, bool isSigned, bool hasZeros, int32_t scaleType,
             int32_t type) {
    constexpr int64_t kRows = 5;
    int64_t groups = group > 0 ? (count + group - 1) / group : 1, kept = group > 0 ? groups * group : count;
    Tensor values = planeOf(kRows, kept, bits), zeros = planeOf(kRows, groups, bits),
           scales({kRows, groups}, scaleType), ids = idsOf({7}, kRows, HONE_I64, Layout::Dense), y({7, count}, type);
    std::vector<double> expected(static_cast<size_t>(kRows * count));
    int64_t lowest = isSigned ? -(1 << (bits - 1)) : 0, middle = isSigned ? 0 : 1 << (bits - 1);
    std::uniform_int_distribution<int64_t> code(lowest, lowest + (1 << bits) - 1);
    std::uniform_real_distribution<double> scale(0.01, 0.02);
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t k = 0, zero = middle; k < count; ++k) {
        if (group > 0 ? k % group == 0 : k == 0) {
          int64_t g = group > 0 ? k / group : 0;
          scales.set({row, g}, scale(random));
          if (hasZeros)
            put(zeros, row, g, bits, zero = code(random));
        }
        int64_t l = code(random);
        put(values, row, k, bits, l);
        expected[static_cast<size_t>(row * count + k)] =
            static_cast<double>(l - zero) * scales.at({row, group > 0 ? k / group : 0});
      }
    Tensor absent = Tensor::absent();
    run({&ids, &values, &scales, hasZeros ? &zeros : &absent, &y}, 1, {bits, group, isSigned});
    compare(ids, kRows, y, [&](int64_t row, int64_t k) { return expected[static_cast<size_t>(row * count + k)]; });
  }
};

TEST_P(QuantizedEmbeddingParity, UnpacksRows) {
  for (int64_t bits : {2, 3, 4, 5, 6, 8})
    for (bool isSigned : {false, true})
      for (bool hasZeros : {false, true}) {
        check(bits, 32, 96, isSigned, hasZeros, HONE_F16, HONE_F32);
        check(bits, 8, 21, isSigned, hasZeros, HONE_F32, HONE_BF16);
        check(bits, 0, 13, isSigned, hasZeros, HONE_F32, HONE_F16);
      }
}

INSTANTIATE_TEST_SUITE_P(Embedding, QuantizedEmbeddingParity, testing::Values("cuda.embedding.affine"));

} // namespace
} // namespace hone::test
