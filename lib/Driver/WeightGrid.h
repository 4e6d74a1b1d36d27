// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The matrices of a model by layer and projection, as tables of HTML whose cells are coloured.

#ifndef HONE_LIB_DRIVER_WEIGHTGRID_H
#define HONE_LIB_DRIVER_WEIGHTGRID_H

#include "CompressionRecord.h"

namespace hone {

/// Where a matrix stands in a model: 3 and self_attn.q_proj.
struct WeightPlace {
  int64_t layer;
  std::string projection;
};

/// The place that `name`, of a weight or of a node, tells: its first part that is a number is the layer, and what follows, without the
/// operation, the projection. Nothing where no part is one.
std::optional<WeightPlace> parsePlace(llvm::StringRef name);

/// A grid of errors and one of bits, with a row for each layer and a column for each projection, and a table of the matrices that are in
/// no layer. A cell's title has the matrix's name and figures.
std::string drawGrids(const CompressionRecord &record);

} // namespace hone

#endif // HONE_LIB_DRIVER_WEIGHTGRID_H
