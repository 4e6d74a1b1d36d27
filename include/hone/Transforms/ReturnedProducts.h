// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last layers of a model, which are the most sensitive to what becomes of their weights.

#ifndef HONE_TRANSFORMS_RETURNEDPRODUCTS_H
#define HONE_TRANSFORMS_RETURNEDPRODUCTS_H

#include "hone/Dialect/Hone/HoneOps.h"

namespace hone {

/// Whether a product with the weight that `reads` read is what a function returns, as it is or in another type. Lookups are no
/// products.
bool isReturnedProduct(llvm::ArrayRef<GetParamOp> reads);

} // namespace hone

#endif // HONE_TRANSFORMS_RETURNEDPRODUCTS_H
