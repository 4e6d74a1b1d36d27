// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of rows with the matrices of their experts, and the order that the rows are in.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_EXPERTPRODUCTS_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_EXPERTPRODUCTS_H

#include "ExpertWeights.h"

namespace hone::raising {

/// Rows `[R, N]`: row r of `x` times the matrix of expert `ids[r]`, plus `bias[ids[r]]` if that is given. Or without ids, `[E, R, N]`: row
/// r of each of `x` `[E, R, K]` times the matrix of that expert, plus its row of `bias` `[E, 1, N]`.
struct ExpertProduct {
  Value x;
  ExpertMatrices weights;
  Value ids, bias;
};

/// Recognises products that are spelled as gathered matrices, as the products of each expert with those of sorted rows that are its, or
/// as those of all rows with all matrices.
std::optional<ExpertProduct> matchExpertProduct(Value rows, SymbolicAnalysis &analysis);

/// Where rows are sorted by expert: `ids` `[R]`, in their own order, are `source[order]`, and `order` has each of 0 … R - 1 once.
struct SortedIds {
  Value source, order;
};

/// How `ids` come from others by sorting; nothing where they do not.
std::optional<SortedIds> matchSortedIds(Value ids, SymbolicAnalysis &analysis);

/// Data and indices of an operator that takes entries of the first dimension, one for each of `[R]` or `[R, 1]`.
std::optional<std::pair<Value, Value>> matchGather(Value value);

/// The tensor whose entries along the first dimension are chosen by `order` `[R]` or `[R, 1]`; null if `value` is none.
Value matchGatheredBy(Value value, Value order);

/// The tensor `[R, …]` that `value` has in its order before it was sorted: entry `order[r]` of the result was entry r. Null if it is none.
Value matchSortedBack(Value value, Value order, SymbolicAnalysis &analysis);

/// `[T, K]` whose row `order[r] / times` is row r of `rows`; null where there is none.
Value matchSortedRows(Value rows, Value order, int64_t times, SymbolicAnalysis &analysis);

/// Whether `op` only changes the dimensions of its operand.
bool isReshape(Operation *op);

/// What is left of `value` without operators that only add or drop dimensions of size 1 or make one dimension of several.
Value skipReshapes(Value value);

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_EXPERTPRODUCTS_H
