// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows sorted by the expert that they chose, and back. Every order follows from the choices, so that sums are the same
// for every number of threads.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_EXPERT_ROWS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_EXPERT_ROWS_H

#include "../parallel_for.h"
#include "hone/kernels/arguments.h"
#include "outliers.h"

namespace {

/// Some panels of an operand of a packed weight, of which each has its own.
inline hone_tensor panelsOf(hone_tensor plane, int64_t panel, int64_t panels) {
  if (plane.rank == 0 || isAbsent(plane))
    return plane;
  plane.data = static_cast<uint8_t *>(plane.data) + panel * panelBytesOf(plane);
  plane.sizes[0] = panels;
  return plane;
}

/// Some panels of a weight. Each plane has panels of its own but those of outliers, which come first: their starts count
/// the slots of the whole weight.
template <typename Format>
void selectPanels(const hone_tensor *planes, int64_t panel, int64_t panels, hone_tensor *some) {
  size_t plane = 0;
  if constexpr (hone::kernels::kHasOutliers<Format>) {
    for (; plane < kOutlierPlanes; ++plane)
      some[plane] = planes[plane];
    some[0].data = static_cast<int32_t *>(planes[0].data) + panel;
    some[0].sizes[0] = panels + 1;
  }
  for (; plane < Format::kPlanes; ++plane)
    some[plane] = panelsOf(planes[plane], panel, panels);
}

/// Sixteen columns of a row from column `first` on, of which `left` are there.
inline void writeColumns(Row to, int64_t first, Vector values, int64_t left) {
  if (to.stride == 1)
    return storeColumns(to.data + first, values, left);
  float columns[kLanes];
  store(columns, values);
  for (int64_t i = 0; i < smaller(left, kLanes); ++i)
    to[first + i] = columns[i];
}

/// Products of a row with an expert's matrix, and its bias.
class ExpertRow {
public:
  /// `bias` has no data where it is absent.
  ExpertRow(const float *sums, Row bias) : sums(sums), bias(bias) {}

  /// The same from column `first` on.
  ExpertRow from(int64_t first) const {
    ExpertRow row = *this;
    row.sums += first;
    if (row.bias.data)
      row.bias.data += first * row.bias.stride;
    return row;
  }

  /// Columns i · step, (i + 1) · step, … of which `left` are there.
  Vector read(int64_t i, int64_t step, int64_t left) const {
    if (step == 1 && left >= kLanes && (!bias.data || bias.stride == 1)) {
      Vector values = load(sums + i);
      return bias.data ? values + load(bias.data + i) : values;
    }
    float values[kLanes] = {};
    for (int64_t j = 0; j < smaller(left, kLanes); ++j) {
      int64_t column = (i + j) * step;
      values[j] = sums[column] + (bias.data ? bias[column] : 0.0f);
    }
    return load(values);
  }

private:
  const float *sums;
  Row bias;
};

/// Which expert each choice of each row is. Choices of an expert follow each other, in their order: each has a place.
class Routing {
public:
  /// `ids` [..., choices] are i32 or i64; those outside of [0, experts) choose none.
  Routing(const hone_tensor &ids, int64_t experts)
      : perRow(ids.sizes[ids.rank - 1]), experts(experts), firsts(experts + 2), places(countRows(ids) * perRow),
        origins(countRows(ids) * perRow), chosen(countRows(ids) * perRow) {
    int64_t all = countRows(ids) * perRow, *ends = firsts.data();
    for (int64_t e = 0; e < experts + 2; ++e)
      ends[e] = 0;
    for (int64_t i = 0; i < all; ++i) {
      int64_t id = idOf(ids, i);
      bool exists = id >= 0 && id < experts;
      places.data()[i] = exists ? id : -1;
      ends[exists ? id + 2 : 0] += exists;
    }
    for (int64_t e = 2; e < experts + 2; ++e)
      ends[e] += ends[e - 1];
    for (int64_t i = 0; i < all; ++i)
      if (int64_t id = places.data()[i]; id >= 0) {
        int64_t place = ends[id + 1]++;
        places.data()[i] = place;
        origins.data()[place] = i;
        chosen.data()[place] = id;
      }
  }

  int64_t expertCount() const { return experts; }
  /// How many choices a row has.
  int64_t choices() const { return perRow; }
  /// How many places there are, the first one of an expert and how many it has, and the expert of one.
  int64_t count() const { return first(experts); }
  int64_t first(int64_t expert) const { return firsts.data()[expert]; }
  int64_t rowsOf(int64_t expert) const { return first(expert + 1) - first(expert); }
  int64_t expert(int64_t place) const { return chosen.data()[place]; }
  /// The place of a choice, or -1 where it is none.
  int64_t place(int64_t choice) const { return places.data()[choice]; }

  /// A dense row for each place: that of x which `each` choices share.
  void gather(const hone_tensor &x, int64_t each, float *to) const {
    int64_t size = x.sizes[x.rank - 1];
    parallelFor(count(), count() * size > 1 << 15, [&](int64_t place) {
      withKnownStrides(
          [=](Row from) {
            for (int64_t i = 0; i < size; ++i)
              to[place * size + i] = from[i];
          },
          rowOf(x, origins.data()[place] / each));
    });
  }

private:
  int64_t idOf(const hone_tensor &ids, int64_t choice) const {
    int64_t at = rowOffset(ids, choice / perRow) + choice % perRow * ids.strides[ids.rank - 1];
    return ids.dtype == HONE_I32 ? static_cast<const int32_t *>(ids.data)[at]
                                 : static_cast<const int64_t *>(ids.data)[at];
  }

  int64_t perRow, experts;
  Scratch<int64_t> firsts, places, origins, chosen;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_EXPERT_ROWS_H
