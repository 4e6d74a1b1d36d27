//===- HoneMlpOps.td - feed-forward blocks -------------------------------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gated_mlp, mlp, moe.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_MLP_OPS_TD
#define HONE_MLP_OPS_TD

include "Hone/HoneOpBase.td"

def Hone_GatedMlpOp : Hone_ComputeOp<"gated_mlp", [AttrSizedOperandSegments, honeWeighted, honeBlock]> {
  let summary = "feed-forward block whose hidden row is gated";
  let description = [{
    *Meaning.* For x `[…, K]`, gate and up `[I, K]`, down `[N, I]` and biases of the rows of each: result `[…, N]` with

    ```
    hidden[…, i] = activation(sum over k of x[…, k] * gate[i, k] + gate_bias[i]) * (sum over k of x[…, k] * up[i, k] + up_bias[i])
    result[…, n] = sum over i of hidden[…, i] * down[n, i] + down_bias[n]
    ```

    in f32; hidden is rounded to the elements of x before the second product, and the result is rounded once.

    *Constraints.*

    - C1. x has at least one dimension, and its last is K.
    - C2. gate and up have the same shape.
    - C3. The last dimension of down is I.
    - C4. gate_bias and up_bias have I elements, down_bias has N.
    - C5. The weights' elements are those of x.

    *Example.*
    ```mlir
    func.func @gated_mlp(%x: tensor<?x?x64xf32>, %g: tensor<96x64xf32>, %u: tensor<96x64xf32>, %d: tensor<64x96xf32>)
        -> tensor<?x?x64xf32> {
      %0 = hone.gated_mlp silu %x, gate(%g), up(%u), down(%d)
         : (tensor<?x?x64xf32>, tensor<96x64xf32>, tensor<96x64xf32>, tensor<64x96xf32>) -> tensor<?x?x64xf32>
      return %0 : tensor<?x?x64xf32>
    }
    ```
  }];
  let arguments = (ins Hone_Tensor:$x,
    Hone_WeightOfRank<2>:$gate, Hone_WeightOfRank<2>:$up, Hone_WeightOfRank<2>:$down,
    Optional<Hone_TensorOfRank<1>>:$gate_bias, Optional<Hone_TensorOfRank<1>>:$up_bias,
    Optional<Hone_TensorOfRank<1>>:$down_bias, Hone_ActivationAttr:$activation);
  let results = (outs Hone_Tensor:$result);
  let assemblyFormat = [{
    $activation $x `,` `gate` `(` $gate (`,` $gate_bias^)? `)` `,` `up` `(` $up (`,` $up_bias^)? `)` `,`
    `down` `(` $down (`,` $down_bias^)? `)` attr-dict `:` functional-type(operands, results)
  }];
}

def Hone_MlpOp : Hone_ComputeOp<"mlp", [AttrSizedOperandSegments, honeWeighted, honeBlock]> {
  let summary = "feed-forward block with one hidden layer";
  let description = [{
    *Meaning.* For x `[…, K]`, up `[I, K]`, down `[N, I]` and biases of the rows of each: result `[…, N]` with

    ```
    hidden[…, i] = activation(sum over k of x[…, k] * up[i, k] + up_bias[i])
    result[…, n] = sum over i of hidden[…, i] * down[n, i] + down_bias[n]
    ```

    in f32; hidden is rounded to the elements of x before the second product, and the result is rounded once.

    *Constraints.*

    - C1. x has at least one dimension, and its last is K.
    - C2. The last dimension of down is I.
    - C3. up_bias has I elements, down_bias has N.
    - C4. The weights' elements are those of x.

    *Example.*
    ```mlir
    func.func @mlp(%x: tensor<?x64xf32>, %u: tensor<96x64xf32>, %d: tensor<64x96xf32>, %b: tensor<64xf32>) -> tensor<?x64xf32> {
      %0 = hone.mlp gelu_tanh %x, up(%u), down(%d, %b)
         : (tensor<?x64xf32>, tensor<96x64xf32>, tensor<64x96xf32>, tensor<64xf32>) -> tensor<?x64xf32>
      return %0 : tensor<?x64xf32>
    }
    ```
  }];
  let arguments = (ins Hone_Tensor:$x, Hone_WeightOfRank<2>:$up, Hone_WeightOfRank<2>:$down,
    Optional<Hone_TensorOfRank<1>>:$up_bias, Optional<Hone_TensorOfRank<1>>:$down_bias,
    Hone_ActivationAttr:$activation);
  let results = (outs Hone_Tensor:$result);
  let assemblyFormat = [{
    $activation $x `,` `up` `(` $up (`,` $up_bias^)? `)` `,` `down` `(` $down (`,` $down_bias^)? `)`
    attr-dict `:` functional-type(operands, results)
  }];
}

def Hone_MoeOp : Hone_ComputeOp<"moe", [AttrSizedOperandSegments, honeWeighted]> {
  let summary = "feed-forward block of a few of many experts, chosen a row";
  let description = [{
    *Meaning.* For x `[…, K]`, expert_ids and expert_weights `[…, T]`: result `[…, K]` is the sum over t of
    `expert_weights[…, t]` times the block of expert `expert_ids[…, t]` applied to the row of x, before its last rounding. An
    expert id outside `[0, E)` adds nothing. The router that makes ids and weights is ordinary code before this operation.

    The matrices of experts lie one below the other, so that what stores a matrix stores all experts: down is `[E · K, I]`, and
    rows e · K … (e + 1) · K - 1 are expert e's. The block of an expert is

    - `hone.mlp` with up `[E · I, K]`;
    - `hone.gated_mlp` with up and gate `[E · I, K]`;
    - `hone.gated_mlp` with up `[E · 2 I, K]` and `fused`, of which 2 I rows are an expert's. With `halves` the first I of
      them are its gate, with `alternate` those of even number; the others are its up, in order. So are elements of its bias.

    Biases are `[E, rows of an expert]`. With `swiglu(alpha, offset, limit)`, the clamped SwiGLU of gpt-oss, for the sums g of
    the gate and u of up, with their biases:

    ```
    hidden = min(g, limit) / (1 + exp(-alpha * min(g, limit))) * (max(-limit, min(u, limit)) + offset)
    ```

    *Constraints.*

    - C1. x has at least one dimension, and its last is K.
    - C2. expert_ids and expert_weights have the same shape, and the leading dimensions of x.
    - C3. The weights have static shapes, and gate has the shape of up.
    - C4. There is at least one expert: the rows of down are a multiple of K, and those of up as many as E experts have.
    - C5. Biases have a row an expert and an element an output; gate_bias is given only with gate.
    - C6. The weights' elements are those of x.
    - C7. `fused` is given only without gate.
    - C8. alpha, offset and limit are given together, only with silu and a gate or fused; alpha and offset are finite, limit is
      positive and may be infinite.

    *Example.*
    ```mlir
    func.func @moe(%x: tensor<?x64xf32>, %ids: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<1536x64xf32>,
                   %d: tensor<512x96xf32>) -> tensor<?x64xf32> {
      %0 = hone.moe silu %x, experts(%ids, %p), up(%u), down(%d) fused halves
         : (tensor<?x64xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<1536x64xf32>, tensor<512x96xf32>) -> tensor<?x64xf32>
      return %0 : tensor<?x64xf32>
    }
    ```
  }];
  let arguments = (ins Hone_Tensor:$x, Hone_IndexTensor:$expert_ids, Hone_Tensor:$expert_weights,
    Hone_WeightOfRank<2>:$up, Hone_WeightOfRank<2>:$down, Optional<Hone_WeightOfRank<2>>:$gate,
    Optional<Hone_TensorOfRank<2>>:$up_bias, Optional<Hone_TensorOfRank<2>>:$down_bias,
    Optional<Hone_TensorOfRank<2>>:$gate_bias, Hone_ActivationAttr:$activation, OptionalAttr<Hone_FusedRowsAttr>:$fused,
    OptionalAttr<F32Attr>:$alpha, OptionalAttr<F32Attr>:$offset, OptionalAttr<F32Attr>:$limit);
  let results = (outs Hone_Tensor:$result);
  let assemblyFormat = [{
    $activation $x `,` `experts` `(` $expert_ids `,` $expert_weights `)` `,` `up` `(` $up (`,` $up_bias^)? `)` `,`
    `down` `(` $down (`,` $down_bias^)? `)` (`gate` `(` $gate^ `)`)? (`gate_bias` `(` $gate_bias^ `)`)? (`fused` $fused^)?
    (`swiglu` `(` $alpha^ `,` $offset `,` $limit `)`)? attr-dict `:` functional-type(operands, results)
  }];
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "const ::hone::ExpertRouting &":$routing,
                                 "const ::hone::ExpertLayers &":$layers)>];
  let extraClassDeclaration = [{
    /// alpha, offset and limit.
    std::optional<::hone::Swiglu> getSwiglu();

    /// How many experts there are, and outputs that the block of each has between its layers.
    int64_t getExpertCount() { return getDown().getType().getDimSize(0) / getUp().getType().getDimSize(1); }
    int64_t getHiddenSize() { return getDown().getType().getDimSize(1); }
  }];
}

#endif // HONE_MLP_OPS_TD
