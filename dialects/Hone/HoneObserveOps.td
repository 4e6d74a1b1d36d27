//===- HoneObserveOps.td - what a program shows while it runs ------------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// observe: a service of the runtime (include/hone/runtime/program.h).
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_OBSERVE_OPS_TD
#define HONE_OBSERVE_OPS_TD

include "Hone/HoneOpBase.td"

def Hone_ObserveOp : Hone_Op<"observe", [MemoryEffects<[MemWrite]>]> {
  let summary = "rows of a tensor, shown to whoever runs the program";
  let description = [{
    *Meaning.* Each time it is reached, the observer of the running call gets the rows of values `[…, K]` under the number
    `site`. Where a call has no observer, nothing happens. Operations with the same `site` show rows of the same kind, which an
    observer counts together.

    *Constraints.*

    - C1. values has at least one dimension.

    *Example.*
    ```mlir
    func.func @observe(%x: tensor<?x?x896xf32>) {
      hone.observe %x site 3 : tensor<?x?x896xf32>
      return
    }
    ```
  }];
  let arguments = (ins Hone_Tensor:$values, ConfinedAttr<I64Attr, [IntNonNegative]>:$site);
  let assemblyFormat = "$values `site` $site attr-dict `:` type($values)";
  let hasVerifier = 1;
}

#endif // HONE_OBSERVE_OPS_TD
