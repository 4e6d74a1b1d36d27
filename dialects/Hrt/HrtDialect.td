// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `hrt` dialect: what the machine does.

#ifndef HRT_DIALECT_TD
#define HRT_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Hrt_Dialect : Dialect {
  let name = "hrt";
  let cppNamespace = "::hone::hrt";
  let summary = "what the machine does: buffers, kernels and state of one call";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

#endif // HRT_DIALECT_TD
