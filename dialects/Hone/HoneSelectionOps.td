//===- HoneSelectionOps.td - which blocks of keys attention reads --------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// pool_keys, select_blocks.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_SELECTION_OPS_TD
#define HONE_SELECTION_OPS_TD

include "Hone/HoneOpBase.td"

class Hone_SelectionOp<string mnemonic> : Hone_Op<mnemonic, [
    Pure, DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let hasVerifier = 1;
}

def Hone_PoolKeysOp : Hone_SelectionOp<"pool_keys"> {
  let summary = "pooled keys of blocks, in rows that a state can append";
  let description = [{
    *Meaning.* The pooled key of block n is the mean of the keys `n * size … n * size + size - 1`; with key_begin, of those from there on.
    For keys `[B, Hk, Sk, D]` the result `[B, Hk, fresh, W]` with `W = ceil(D / size)` is the last rows of a tensor of Sk rows: the rows of
    block n + 1, one after the other, are the pooled key of block n, filled up with zeros. Rows of block 0 are zeros.

    So a row follows from its own position and keys before it, a state that appends it beside the key holds one vector a block, and the
    pooled key of block n is whole where block n + 1 is.

    *Constraints.*

    - C1. size is positive.
    - C2. The result is `[B, Hk, fresh, W]`, and D is known.
    - C3. key_begin has B elements.

    *Example.*
    ```mlir
    func.func @pool(%k: tensor<?x2x?x128xf32>, %fresh: index) -> tensor<?x2x?x2xf32> {
      %0 = hone.pool_keys %k of %fresh size(64) : (tensor<?x2x?x128xf32>, index) -> tensor<?x2x?x2xf32>
      return %0 : tensor<?x2x?x2xf32>
    }
    ```
  }];
  let arguments = (ins Hone_CacheOfRank<4>:$keys, Index:$fresh, Optional<Hone_PerSequence>:$key_begin, I64Attr:$size);
  let results = (outs Hone_F32TensorOfRank<4>:$result);
  let assemblyFormat = [{
    $keys `of` $fresh (`key_begin` `(` $key_begin^ `)`)? `size` `(` $size `)` attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Elements of a row, for keys of `keySize` elements and blocks of `size` keys.
    static int64_t getWidth(int64_t keySize, int64_t size) { return ::llvm::divideCeilSigned(keySize, size); }
  }];
}

def Hone_SelectBlocksOp : Hone_SelectionOp<"select_blocks"> {
  let summary = "the blocks of keys that matter most to queries";
  let description = [{
    *Meaning.* For query `[B, Hq, Sq, D]` and rows of pooled keys `[B, Hk, Sk, W]` as `hone.pool_keys` gives them, whose pooled key of block n
    and KV head g is `p[b, g, n]`: which of the blocks `begin[b, i] <= n < end[b, i]` query i of KV head g selects.

    ```
    score[b, h, i, n]      = scale * sum over d of query[b, h, i, d] * p[b, h / (Hq / Hk), n, d]
    importance[b, g, i, n] = sum over the query heads h of g of the softmax of score[b, h, i, n] over n
    ```

    The result `[B, Hk, Sq, N]` has the N blocks of greatest importance, the greatest first and of equal ones the earlier, as
    `#hone.blocks` takes them: where there are fewer, the rest is -1. Every block below `end` has a whole pooled key: `(end + 1) * size <= Sk`.
    What is computed is f32.

    *Constraints.*

    - C1. size is positive, and scale is finite.
    - C2. query and pooled have the same B, and Hq is a multiple of Hk.
    - C3. W is `ceil(D / size)`, and D is known.
    - C4. begin and end are `[B or 1, Sq]`. A first dimension that is known to be 1 is repeated; a dynamic one is B.
    - C5. The result is `[B, Hk, Sq, N]`, and N is known.

    *Example.*
    ```mlir
    func.func @select(%q: tensor<?x14x?x64xf32>, %pooled: tensor<?x2x?x1xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>)
        -> tensor<?x2x?x16xi64> {
      %0 = hone.select_blocks %q, %pooled from %begin to %end size(64) scale(0.125)
         : (tensor<?x14x?x64xf32>, tensor<?x2x?x1xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<?x2x?x16xi64>
      return %0 : tensor<?x2x?x16xi64>
    }
    ```
  }];
  let arguments = (ins Hone_TensorOfRank<4>:$query, Hone_F32TensorOfRank<4>:$pooled, TensorRankOf<[I64], [2]>:$begin,
                       TensorRankOf<[I64], [2]>:$end, I64Attr:$size, F32Attr:$scale);
  let results = (outs TensorRankOf<[I64], [4]>:$result);
  let assemblyFormat = [{
    $query `,` $pooled `from` $begin `to` $end `size` `(` $size `)` `scale` `(` $scale `)` attr-dict
    `:` functional-type(operands, results)
  }];
}

#endif // HONE_SELECTION_OPS_TD
