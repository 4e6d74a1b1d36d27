// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone inspect --masks`: which elements of weights are kept, as text.

#ifndef HONE_LIB_DRIVER_MASKS_H
#define HONE_LIB_DRIVER_MASKS_H

#include "Options/Reading.h"

#include "mlir/IR/MLIRContext.h"

namespace hone {

struct MaskOptions {
  bool masks = false;
  std::string weight; // the matrix to draw, or empty: a line for each
  std::string rows = "0:16", columns = "0:64";
  int64_t group = 4;

  void declare(OptionSet &set) {
    constexpr int64_t mostElements = 1 << 16;
    set.add("masks", masks, "Print how many elements of each matrix are kept, or draw a block of one");
    set.add("weight", weight, "NAME", "With --masks: the matrix to draw");
    set.add("rows", rows, "B:E", "With --weight: rows to draw, B:E, E not among them (default: 0:16)");
    set.add("columns", columns, "B:E", "With --weight: columns to draw (default: 0:64)");
    set.add("mask-group", group, "N", "With --masks: neighbouring elements that are counted together (default: 4)")
        .upTo(mostElements);
  }
};

/// Prints a line for each matrix of the model or artefact at `path`, or draws a block of the one that the options name, to
/// standard output.
llvm::LogicalResult inspectMasks(llvm::StringRef path, const MaskOptions &options, const ReadOptions &reading,
                                 mlir::MLIRContext *context);

} // namespace hone

#endif // HONE_LIB_DRIVER_MASKS_H
