//===- HoneLossOps.td - what training makes small ------------------------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cross_entropy, kl_divergence.
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

def Hone_KlDivergenceOp : Hone_ComputeOp<"kl_divergence"> {
  let summary = "mean KL divergence of rows of logits from those of a reference";
  let description = [{
    *Meaning.* For logits and reference `[…, V]` of M rows, and a temperature T:

    ```
    q = softmax(logits / T),  p = softmax(reference / T)    along the last dimension
    result = sum over … and v of p[…, v] · (log p[…, v] - log q[…, v]) / M
    ```

    It is computed in f32, and without overflow. With the logits of a student and of its teacher it is the loss of distillation (Hinton et
    al. 2015), whose gradient falls as 1 / T². No rows give NaN.

    *Constraints.*

    - C1. logits have at least one dimension.
    - C2. reference has the dimensions of logits.
    - C3. The temperature is finite and above 0.

    *Example.*
    ```mlir
    func.func @kl_divergence(%logits: tensor<?x?x256xf32>, %reference: tensor<?x?x256xf32>) -> tensor<f32> {
      %0 = hone.kl_divergence %logits, %reference {temperature = 2.0 : f32} : (tensor<?x?x256xf32>, tensor<?x?x256xf32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    ```
  }];
  let arguments = (ins Hone_F32Tensor:$logits, Hone_F32Tensor:$reference, F32Attr:$temperature);
  let results = (outs Hone_F32TensorOfRank<0>:$result);
  let assemblyFormat = "$logits `,` $reference attr-dict `:` functional-type(operands, results)";
}

#endif // HONE_LOSS_OPS_TD
