//===- HoneNormOps.td - normalisation of the last dimension --------------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// rms_norm, layer_norm.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_NORM_OPS_TD
#define HONE_NORM_OPS_TD

include "Hone/HoneOpBase.td"

def Hone_RmsNormOp : Hone_ComputeOp<"rms_norm", [honeGrouped, DeclareOpInterfaceMethods<Hone_NormOpInterface, ["dropUnitOffset"]>]> {
  let summary = "each row divided by its root mean square, and weighted";
  let description = [{
    *Meaning.* For x `[…, N]` and weight `[N]`: `result[…, n] = x[…, n] / sqrt(mean over n of x[…, n]^2 + epsilon) * weight[n]`,
    with `1 + weight[n]` in place of `weight[n]` where `unit_offset`. Computed in f32 and rounded once.

    *Constraints.*

    - C1. x has at least one dimension.
    - C2. The weight has N elements.
    - C3. epsilon is finite and not negative.

    *Example.*
    ```mlir
    func.func @rms_norm(%x: tensor<?x?x896xf32>, %w: tensor<896xf32>) -> tensor<?x?x896xf32> {
      %0 = hone.rms_norm %x, %w epsilon(1.0e-6) unit_offset
         : (tensor<?x?x896xf32>, tensor<896xf32>) -> tensor<?x?x896xf32>
      return %0 : tensor<?x?x896xf32>
    }
    ```
  }];
  let arguments = (ins Hone_Tensor:$x, Hone_TensorOfRank<1>:$weight, F32Attr:$epsilon, UnitAttr:$unit_offset);
  let results = (outs Hone_Tensor:$result);
  let assemblyFormat = [{
    $x `,` $weight `epsilon` `(` $epsilon `)` (`unit_offset` $unit_offset^)?
    attr-dict `:` functional-type(operands, results)
  }];
}

def Hone_LayerNormOp : Hone_ComputeOp<"layer_norm", [honeGrouped, DeclareOpInterfaceMethods<Hone_NormOpInterface>]> {
  let summary = "each row shifted to mean 0, divided by its standard deviation, weighted, with bias";
  let description = [{
    *Meaning.* For x `[…, N]`, weight `[N]` and bias `[N]`, with m and v the mean and the variance (divisor N) of the row:
    `result[…, n] = (x[…, n] - m) / sqrt(v + epsilon) * weight[n] + bias[n]`. Computed in f32, the variance from the shifted
    row, and rounded once.

    *Constraints.*

    - C1. x has at least one dimension.
    - C2. The weight and the bias have N elements.
    - C3. epsilon is finite and not negative.

    *Example.*
    ```mlir
    func.func @layer_norm(%x: tensor<?x768xf32>, %w: tensor<768xf32>, %b: tensor<768xf32>) -> tensor<?x768xf32> {
      %0 = hone.layer_norm %x, %w bias(%b) epsilon(1.0e-5)
         : (tensor<?x768xf32>, tensor<768xf32>, tensor<768xf32>) -> tensor<?x768xf32>
      return %0 : tensor<?x768xf32>
    }
    ```
  }];
  let arguments = (ins Hone_Tensor:$x, Hone_TensorOfRank<1>:$weight, Optional<Hone_TensorOfRank<1>>:$bias, F32Attr:$epsilon);
  let results = (outs Hone_Tensor:$result);
  let assemblyFormat = [{
    $x `,` $weight (`bias` `(` $bias^ `)`)? `epsilon` `(` $epsilon `)` attr-dict `:` functional-type(operands, results)
  }];
}

#endif // HONE_NORM_OPS_TD
