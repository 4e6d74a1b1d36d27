//===- HoneProductOps.td - products of matrices, and rows of one ---------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// linear, matmul, embedding.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_PRODUCT_OPS_TD
#define HONE_PRODUCT_OPS_TD

include "Hone/HoneOpBase.td"

def Hone_LinearOp : Hone_ComputeOp<"linear", [honeWeighted, honeGrouped]> {
  let summary = "product with a weight, one row an output, and bias";
  let description = [{
    *Meaning.* For x `[…, K]`, weight `[N, K]` and bias `[N]`: result `[…, N]` with
    `result[…, n] = sum over k of x[…, k] * weight[n, k] + bias[n]`, in f32, rounded once to the elements of x. A weight that
    a file keeps as `[K, N]` has the encoding `#hone.stored<…, transposed>`. With `bf16_products` x and weight may be rounded to
    bf16 before they are multiplied; sums stay f32.

    *Constraints.*

    - C1. x has at least one dimension.
    - C2. The last dimension of x is K.
    - C3. The bias has N elements.
    - C4. The weight's elements are those of x.

    *Example.*
    ```mlir
    func.func @linear(%x: tensor<?x?x896xf32>, %w: tensor<128x896xf32, #hone.stored<bf16>>, %b: tensor<128xf32>)
        -> tensor<?x?x128xf32> {
      %0 = hone.linear %x, %w bias(%b)
         : (tensor<?x?x896xf32>, tensor<128x896xf32, #hone.stored<bf16>>, tensor<128xf32>) -> tensor<?x?x128xf32>
      return %0 : tensor<?x?x128xf32>
    }
    ```
  }];
  let arguments = (ins Hone_Tensor:$x, Hone_WeightOfRank<2>:$weight, Optional<Hone_TensorOfRank<1>>:$bias, UnitAttr:$bf16_products);
  let results = (outs Hone_Tensor:$result);
  let assemblyFormat = [{
    $x `,` $weight (`bias` `(` $bias^ `)`)? (`bf16_products` $bf16_products^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Hone_MatmulOp : Hone_ComputeOp<"matmul"> {
  let summary = "product of two batches of matrices";
  let description = [{
    *Meaning.* For a `[…, M, K]` and b `[…, K, N]`: result `[…, M, N]` with
    `result[…, m, n] = sum over k of a[…, m, k] * b[…, k, n]`, in f32, rounded once. The leading dimensions are aligned from
    the right; one that is absent or known to be 1 is repeated. A dynamic leading dimension is not repeated: it equals the
    other operand's at run time. With `bf16_products` a and b may be rounded to bf16 before they are multiplied; sums stay f32.
    With an addend `[…, M, N]` the result is the addend plus the product (accumulation, the β of GEMM); kernels write it where the
    addend lies.

    *Constraints.*

    - C1. a and b have at least two dimensions.
    - C2. The last dimension of a is the last but one of b.
    - C3. Leading dimensions are equal, or one of the two is absent or 1.
    - C4. a and b have the same elements.
    - C5. The addend has the shape and the elements of the result.

    *Example.*
    ```mlir
    func.func @matmul(%a: tensor<?x8x4xf32>, %b: tensor<4x2xf32>) -> tensor<?x8x2xf32> {
      %0 = hone.matmul %a, %b : (tensor<?x8x4xf32>, tensor<4x2xf32>) -> tensor<?x8x2xf32>
      return %0 : tensor<?x8x2xf32>
    }
    ```
  }];
  let arguments = (ins Hone_Tensor:$a, Hone_Tensor:$b, Optional<Hone_Tensor>:$addend, UnitAttr:$bf16_products);
  let results = (outs Hone_Tensor:$result);
  let assemblyFormat = [{
    $a `,` $b (`addend` `(` $addend^ `)`)? (`bf16_products` $bf16_products^)? attr-dict `:` functional-type(operands, results)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b), [{ build($_builder, $_state, a, b, ::mlir::Value()); }]>
  ];
}

def Hone_EmbeddingOp : Hone_ComputeOp<"embedding", [honeWeighted], /*elementOperand=*/1> {
  let summary = "rows of a table";
  let description = [{
    *Meaning.* For ids `[…]` and table `[V, N]`: result `[…, N]` with `result[…, n] = table[ids[…], n]`. A negative id
    counts from the end: -1 is the last row. An id outside `[-V, V)` gives a row of NaN; a target that can fail the call
    may do that instead.

    *Constraints.*

    - C1. The table has at least one row.

    *Example.*
    ```mlir
    func.func @embedding(%ids: tensor<?x?xi64>, %t: tensor<512x64xf32>) -> tensor<?x?x64xf32> {
      %0 = hone.embedding %ids, %t : (tensor<?x?xi64>, tensor<512x64xf32>) -> tensor<?x?x64xf32>
      return %0 : tensor<?x?x64xf32>
    }
    ```
  }];
  let arguments = (ins Hone_IndexTensor:$ids, Hone_WeightOfRank<2>:$table);
  let results = (outs Hone_Tensor:$result);
  let assemblyFormat = "$ids `,` $table attr-dict `:` functional-type(operands, results)";
}

#endif // HONE_PRODUCT_OPS_TD
