// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What reads the state in a function of tokens, for passes that change where the tokens are.

#ifndef HONE_LIB_TRANSFORMS_SPECULATE_STATEREADERS_H
#define HONE_LIB_TRANSFORMS_SPECULATE_STATEREADERS_H

#include "PositionReaders.h"

#include "hone/Dialect/Hone/HoneOps.h"

namespace hone::speculation {

struct StateReaders {
  llvm::SmallVector<AttentionOp> attentions; // over the state: causal or sliding, without a bias
  llvm::SmallVector<PositionTensor> positions;
};

/// Whether the function takes tokens, and a state last.
bool isOverTokens(mlir::func::FuncOp function);

/// Of a function over tokens; of Positions::OfSequences attentions may have lags. Fails with what `refuse` returns where attention and positions are not all that goes by how many positions are
/// held, or where a slot is replaced as a whole. `what` is what others do not know.
llvm::FailureOr<StateReaders> findStateReaders(mlir::func::FuncOp function, llvm::StringRef what, Positions kind,
                                               Refusal refuse);

} // namespace hone::speculation

#endif // HONE_LIB_TRANSFORMS_SPECULATE_STATEREADERS_H
