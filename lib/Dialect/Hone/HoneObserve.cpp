//===- HoneObserve.cpp - verifier of observe ----------------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Verify.h"

#include "hone/Dialect/Hone/HoneOps.h"

using namespace mlir;
using namespace hone;

LogicalResult ObserveOp::verify() {
  return verifyRank(*this, "values", getValues(), 1); // observe C1
}
