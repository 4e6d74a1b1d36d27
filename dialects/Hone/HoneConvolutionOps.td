//===- HoneConvolutionOps.td - convolutions and poolings --------------------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// convolution, pool.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_CONVOLUTION_OPS_TD
#define HONE_CONVOLUTION_OPS_TD

include "Hone/HoneOpBase.td"

/// An operation over windows of the spatial dimensions of x, `[N, C, x...]`, whose sizes are given where the result's type leaves them
/// open.
class Hone_WindowOp<string mnemonic, list<Trait> traits = []> : Hone_Op<mnemonic, traits # [
    Pure, DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let results = (outs Hone_F32Tensor:$result);
  let hasVerifier = 1;
}

def Hone_ConvolutionOp : Hone_WindowOp<"convolution", [AttrSizedOperandSegments]> {
  let summary = "convolution with a weight, and bias";
  let description = [{
    *Meaning.* For x `[N, G * C, x...]`, weight `[G * M, K]` and bias `[G * M]`, where G is `groups` and K is `C * kernel...`:
    result `[N, G * M, sizes...]` with

    ```
    result[n, g * M + m, o...] = bias[g * M + m] + sum over c and k... of
        x[n, g * C + c, (o * stride + k * dilation - low)...] * weight[g * M + m, (c, k...)]
    ```

    Elements outside of x are 0, so that `low` is the padding before x, and the padding after it follows from `sizes`. All numbers are
    f32. With `exact` sums of integers that f32 has exactly are exact; otherwise they may be computed by other products.

    *Constraints.*

    - C1. x and the result have as many spatial dimensions as `kernel`, `strides`, `dilations` and `low` have numbers, at least one.
    - C2. The numbers of `kernel`, `strides` and `dilations` are positive, and so is `groups`.
    - C3. The sizes of the weight are known; the channels of x are `groups * C`, and K is `C * kernel...`.
    - C4. The rows of the weight are a multiple of `groups`, and as many as the result has channels and the bias elements.
    - C5. There is a value in `sizes` for each spatial dimension of the result that its type leaves open.

    *Example.*
    ```mlir
    func.func @convolution(%x: tensor<?x3x?x224xf32>, %w: tensor<64x147xf32>, %b: tensor<64xf32>, %rows: index)
        -> tensor<?x64x?x112xf32> {
      %0 = hone.convolution %x, %w bias(%b) sizes(%rows) kernel [7, 7] strides [2, 2] dilations [1, 1] low [3, 3] groups 1
         : (tensor<?x3x?x224xf32>, tensor<64x147xf32>, tensor<64xf32>, index) -> tensor<?x64x?x112xf32>
      return %0 : tensor<?x64x?x112xf32>
    }
    ```
  }];
  let arguments = (ins Hone_F32Tensor:$x, Hone_TensorOf<F32, [2], honeWeightEncoding, "2D tensor of f32, plain or with a weight encoding">:$weight,
                       Optional<Hone_F32TensorOfRank<1>>:$bias, Variadic<Index>:$sizes, DenseI64ArrayAttr:$kernel,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, I64Attr:$groups, UnitAttr:$exact);
  let assemblyFormat = [{
    $x `,` $weight (`bias` `(` $bias^ `)`)? (`sizes` `(` $sizes^ `)`)? `kernel` $kernel `strides` $strides `dilations` $dilations
    `low` $low `groups` $groups (`exact` $exact^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Hone_PoolOp : Hone_WindowOp<"pool"> {
  let summary = "the greatest element of each window, or the sum of its elements";
  let description = [{
    *Meaning.* For x `[N, C, x...]`: result `[N, C, sizes...]` with

    ```
    result[n, c, o...] = max or sum over k... of x[n, c, (o * stride + k * dilation - low)...]
    ```

    over the elements of x alone: a window that has none gives minus infinity or 0. Where one is NaN, so is the result. All numbers are f32.

    *Constraints.*

    - C1. x and the result have as many spatial dimensions as `kernel`, `strides`, `dilations` and `low` have numbers, at least one.
    - C2. The numbers of `kernel`, `strides` and `dilations` are positive.
    - C3. The result has the batch and the channels of x.
    - C4. There is a value in `sizes` for each spatial dimension of the result that its type leaves open.

    *Example.*
    ```mlir
    func.func @pool(%x: tensor<?x64x112x112xf32>) -> tensor<?x64x56x56xf32> {
      %0 = hone.pool max %x kernel [3, 3] strides [2, 2] dilations [1, 1] low [1, 1]
         : (tensor<?x64x112x112xf32>) -> tensor<?x64x56x56xf32>
      return %0 : tensor<?x64x56x56xf32>
    }
    ```
  }];
  let arguments = (ins Hone_PoolKindAttr:$kind, Hone_F32Tensor:$x, Variadic<Index>:$sizes, DenseI64ArrayAttr:$kernel,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low);
  let assemblyFormat = [{
    $kind $x (`sizes` `(` $sizes^ `)`)? `kernel` $kernel `strides` $strides `dilations` $dilations `low` $low attr-dict
    `:` functional-type(operands, results)
  }];
}

#endif // HONE_CONVOLUTION_OPS_TD
