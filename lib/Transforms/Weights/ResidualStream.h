// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The residual stream that the layers of a transformer read and add to: who holds numbers of it.

#ifndef HONE_LIB_TRANSFORMS_WEIGHTS_RESIDUALSTREAM_H
#define HONE_LIB_TRANSFORMS_WEIGHTS_RESIDUALSTREAM_H

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

namespace hone::residual {

/// What a parameter has to do with a residual stream x [width].
enum class Role {
  Table,  // [V, width]: its rows are x
  Writer, // [width, K] or [width]: what it makes is added to x
  Reader, // [N, width]: it is multiplied with x, or with what a norm makes of it
  Gain,   // [width]: of a norm of x
};

struct Part {
  Role role;
  mlir::StringAttr norm;      // of a reader: the gain of the norm that it reads, or null for the residual stream itself
  bool hasUnitOffset = false; // of a gain: the norm adds 1 to it
  std::vector<float> gain = {};

  bool operator==(const Part &other) const {
    return role == other.role && norm == other.norm && hasUnitOffset == other.hasUnitOffset;
  }
};

/// All that the functions of a module compute from tables of embeddings up to the norms and products that read it.
struct ResidualStream {
  int64_t width = 0;
  llvm::MapVector<mlir::Operation *, Part> parts; // by parameters
  std::string blocker;                            // why x cannot be multiplied with an orthogonal matrix, or empty
};

/// Follows the rows of embeddings through sums to where they are read, in every function. Norms may not subtract the mean, which
/// rotations do not keep; every parameter has to be a plain one of f32 and have one role.
ResidualStream findResidualStream(mlir::ModuleOp module);

} // namespace hone::residual

#endif // HONE_LIB_TRANSFORMS_WEIGHTS_RESIDUALSTREAM_H
