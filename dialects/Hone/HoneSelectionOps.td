//===- HoneSelectionOps.td - which blocks of keys attention reads --------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// pool_keys, select_blocks, select_antidiagonals, select_means.
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

    With `bounds` the vector of a block has the largest of each element of the same keys in place of the mean, and then the smallest of
    each, so that W is `ceil(2 D / size)`; both are 0 where there is no key.

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
  let arguments = (ins Hone_CacheOfRank<4>:$keys, Index:$fresh, Optional<Hone_PerSequence>:$key_begin, I64Attr:$size,
                       UnitAttr:$bounds);
  let results = (outs Hone_F32TensorOfRank<4>:$result);
  let assemblyFormat = [{
    $keys `of` $fresh (`key_begin` `(` $key_begin^ `)`)? `size` `(` $size `)` (`bounds` $bounds^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Elements of a row, for keys of `keySize` elements and blocks of `size` keys, with their mean or their bounds.
    static int64_t getWidth(int64_t keySize, int64_t size, bool hasBounds) {
      return ::llvm::divideCeilSigned(hasBounds ? 2 * keySize : keySize, size);
    }
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

    With `bounds`, pooled has those of the keys, and a score is the largest that a key within the bounds can have (Quest: Tang et al., 2024):

    ```
    score[b, h, i, n] = sum over d of max(scale * query[b, h, i, d] * largest[b, g, n, d], scale * query[b, h, i, d] * smallest[b, g, n, d])
    ```

    The result `[B, Hk, Sq, N]` has the N blocks of greatest importance, the greatest first and of equal ones the earlier, as
    `#hone.blocks` takes them: where there are fewer, the rest is -1. Every block below `end` has a whole pooled key: `(end + 1) * size <= Sk`.
    What is computed is f32.

    *Constraints.*

    - C1. size is positive, and scale is finite.
    - C2. query and pooled have the same B, and Hq is a multiple of Hk.
    - C3. W is `ceil(D / size)`, or `ceil(2 D / size)` with bounds, and D is known.
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
                       TensorRankOf<[I64], [2]>:$end, I64Attr:$size, F32Attr:$scale, UnitAttr:$bounds);
  let results = (outs TensorRankOf<[I64], [4]>:$result);
  let assemblyFormat = [{
    $query `,` $pooled `from` $begin `to` $end `size` `(` $size `)` `scale` `(` $scale `)` (`bounds` $bounds^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def Hone_SelectAntidiagonalsOp : Hone_SelectionOp<"select_antidiagonals"> {
  let summary = "the blocks of keys that hold most of the attention of a block of queries";
  let description = [{
    *Meaning.* For query `[B, Hq, Sq, D]` and keys `[B, Hk, Sk, D]`, where the own key of query i is number `Sk - Sq + i`: the blocks of `size`
    keys that each block of `queries` queries needs beside those that it sees anyway, by sums over antidiagonals (XAttention: Xu et al., 2025).
    Queries and keys form groups of `stride` neighbours; what the last group lacks counts 0, and so do keys before key_begin.

    ```
    score[b, h, m, j]      = scale / stride * sum over s < stride and d of
                             query[b, h, m * stride + stride - 1 - s, d] * keys[b, h / (Hq / Hk), j * stride + s, d]
    importance[b, g, I, n] = sum over the query heads h of g, groups m of block I and j of block n of the softmax of score[b, h, m, j] over the
                             groups j of keys with j * stride <= Sk - Sq + m * stride + stride - 1 and, with key_begin,
                             (j + 1) * stride > key_begin[b]; 0 where there is none
    ```

    The result `[B, Hk, ceil(Sq / queries), ceil(Sk / size)]` has, of the blocks `begin[b, I] <= n < end[b, I]`, those of greatest importance, the
    greatest first and of equal ones the earlier, until they and all blocks before `begin` and from `end` on have `share` of the sum of importance
    over all blocks; the other places are -1. Groups say nothing of single queries: for 64 queries or fewer it has all of them, in their order.
    What is computed is f32.

    *Constraints.*

    - C1. stride is positive, size and queries are positive multiples of it, scale is finite, and share is above 0 and at most 1.
    - C2. query and keys have the same B and the same D, and Hq is a multiple of Hk.
    - C3. begin and end are `[B or 1, ceil(Sq / queries)]`. A first dimension that is known to be 1 is repeated; a dynamic one is B.
    - C4. The result is `[B, Hk, ceil(Sq / queries), ceil(Sk / size)]`.
    - C5. key_begin has B elements.

    *Example.*
    ```mlir
    func.func @select(%q: tensor<?x14x?x64xf32>, %k: tensor<?x2x?x64xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>)
        -> tensor<?x2x?x?xi64> {
      %0 = hone.select_antidiagonals %q, %k from %begin to %end size(64) queries(64) stride(16) scale(0.125) share(0.9)
         : (tensor<?x14x?x64xf32>, tensor<?x2x?x64xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<?x2x?x?xi64>
      return %0 : tensor<?x2x?x?xi64>
    }
    ```
  }];
  let arguments = (ins Hone_TensorOfRank<4>:$query, Hone_CacheOfRank<4>:$keys, TensorRankOf<[I64], [2]>:$begin,
                       TensorRankOf<[I64], [2]>:$end, Optional<Hone_PerSequence>:$key_begin, I64Attr:$size,
                       I64Attr:$queries, I64Attr:$stride, F32Attr:$scale,
                       F32Attr:$share);
  let results = (outs TensorRankOf<[I64], [4]>:$result);
  let assemblyFormat = [{
    $query `,` $keys `from` $begin `to` $end (`key_begin` `(` $key_begin^ `)`)? `size` `(` $size `)` `queries` `(` $queries `)` `stride` `(` $stride `)`
    `scale` `(` $scale `)` `share` `(` $share `)` attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Queries of which all blocks are listed.
    static constexpr int64_t kFewQueries = 64;
  }];
}

def Hone_SelectMeansOp : Hone_SelectionOp<"select_means"> {
  let summary = "the blocks of keys that a block of queries needs by mean queries and mean keys";
  let description = [{
    *Meaning.* For query `[B, Hq, Sq, D]` and keys `[B, Hk, Sk, D]`, where the own key of query i is number `Sk - Sq + i`: the blocks of `size`
    keys that each block of `queries` queries needs beside those that it sees anyway (SpargeAttention: Zhang et al., 2025). A block counts as its
    mean where its vectors are similar to each other, and is listed where they are not.

    ```
    centred[b, g, j]      = keys[b, g, j] - mean over the keys j with j >= key_begin[b] of keys[b, g, j]
    p[b, h, I], c[b, g, n] = means of the queries of block I, and of the centred keys of block n with j >= key_begin[b]
    similarity            = of a block of vectors x: the square of the norm of the mean of x / ||x||, where a vector of zeros counts zeros
    score[b, h, I, n]     = scale * sum over d of p[b, h, I, d] * c[b, h / (Hq / Hk), n, d]
    importance[b, g, I, n] = sum over the query heads h of g of the softmax of score[b, h, I, n] over the blocks n that are similar and visible
    ```

    A block is visible that has a key from key_begin on and up to that of the last query of block I, and similar where its similarity is at least
    `thresholds[g, 2]`. The result `[B, Hk, ceil(Sq / queries), ceil(Sk / size)]` has, of the blocks `begin[b, I] <= n < end[b, I]`, first those that are
    not similar, in their order. Then come those of greatest importance, the greatest first and of equal ones the earlier, until all listed blocks and
    all before `begin` and from `end` on together

    - have the share `thresholds[g, 1]` of the sum of importance over all blocks (top-p), and
    - are the share `thresholds[g, 0]` of the visible blocks (top-k; both: SpargeAttention2, arXiv 2602.13515).

    The other places are -1. A share of 1 is all blocks. Where block I of one of the query heads of g is not similar, and for 64 queries or fewer, it has
    all of them, in their order. What is computed is f32.

    *Constraints.*

    - C1. size and queries are positive, and scale is finite.
    - C2. query and keys have the same B and the same D, and Hq is a multiple of Hk.
    - C3. begin and end are `[B or 1, ceil(Sq / queries)]`. A first dimension that is known to be 1 is repeated; a dynamic one is B.
    - C4. The result is `[B, Hk, ceil(Sq / queries), ceil(Sk / size)]`.
    - C5. key_begin has B elements.
    - C6. thresholds is `[Hk or 1, 3]`. One row is that of all KV heads.

    *Example.*
    ```mlir
    func.func @select(%q: tensor<?x14x?x64xf32>, %k: tensor<?x2x?x64xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>)
        -> tensor<?x2x?x?xi64> {
      %thresholds = arith.constant dense<[[0.03, 0.9, 0.1]]> : tensor<1x3xf32>
      %0 = hone.select_means %q, %k by %thresholds from %begin to %end size(64) queries(128) scale(0.125)
         : (tensor<?x14x?x64xf32>, tensor<?x2x?x64xf32>, tensor<1x3xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<?x2x?x?xi64>
      return %0 : tensor<?x2x?x?xi64>
    }
    ```
  }];
  let arguments = (ins Hone_TensorOfRank<4>:$query, Hone_CacheOfRank<4>:$keys, Hone_F32TensorOfRank<2>:$thresholds,
                       TensorRankOf<[I64], [2]>:$begin, TensorRankOf<[I64], [2]>:$end,
                       Optional<Hone_PerSequence>:$key_begin, I64Attr:$size, I64Attr:$queries, F32Attr:$scale);
  let results = (outs TensorRankOf<[I64], [4]>:$result);
  let assemblyFormat = [{
    $query `,` $keys `by` $thresholds `from` $begin `to` $end (`key_begin` `(` $key_begin^ `)`)? `size` `(` $size `)` `queries` `(` $queries `)`
    `scale` `(` $scale `)` attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Queries of which all blocks are listed.
    static constexpr int64_t kFewQueries = 64;
    /// Columns of thresholds.
    static constexpr int64_t kThresholds = 3;
  }];
}

#endif // HONE_SELECTION_OPS_TD
