//===- HoneLossOps.td - what training makes small ------------------------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cross_entropy.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_LOSS_OPS_TD
#define HONE_LOSS_OPS_TD

include "Hone/HoneOpBase.td"

def Hone_CrossEntropyOp : Hone_ComputeOp<"cross_entropy"> {
  let summary = "mean negative logarithm of the probabilities that rows of logits give their targets";
  let description = [{
    *Meaning.* For logits `[…, V]` and targets `[…]`, of which there are M:

    ```
    lse[…] = log(sum over v of exp(logits[…, v]))
    result = sum over … of (lse[…] - logits[…, targets[…]]) / M
    ```

    It is computed in f32, and without overflow. With the logits of a language model and the tokens that come next it is the logarithm of the
    perplexity. A target outside `[0, V)` gives NaN, and so do no rows.

    *Constraints.*

    - C1. logits have at least one dimension.
    - C2. targets have the leading dimensions of logits.

    *Example.*
    ```mlir
    func.func @cross_entropy(%logits: tensor<?x?x256xf32>, %next: tensor<?x?xi64>) -> tensor<f32> {
      %0 = hone.cross_entropy %logits, %next : (tensor<?x?x256xf32>, tensor<?x?xi64>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    ```
  }];
  let arguments = (ins Hone_F32Tensor:$logits, Hone_IndexTensor:$targets);
  let results = (outs Hone_F32TensorOfRank<0>:$result);
  let assemblyFormat = "$logits `,` $targets attr-dict `:` functional-type(operands, results)";
}

#endif // HONE_LOSS_OPS_TD
