//===- HoneAttentionOps.td - attention and the rotation of its queries and keys ------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attention, rope.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_ATTENTION_OPS_TD
#define HONE_ATTENTION_OPS_TD

include "Hone/HoneOpBase.td"

def Hone_AttentionOp : Hone_ComputeOp<"attention", [AttrSizedOperandSegments, honeBlock]> {
  let summary = "scaled dot-product attention over the keys that a pattern shows";
  let description = [{
    *Meaning.* For query `[B, Hq, Sq, D]`, key `[B, Hk, Sk, D]` and value `[B, Hk, Sk, Dv]`: result `[B, Hq, Sq, Dv]`. Query
    head h reads key and value head `g = h / (Hq / Hk)`. Query i is at position `p = Sk - Sq + i`, key j at position j.

    ```
    logit[b, h, i, j]  = cap(scale * sum over d of query[b, h, i, d] * key[b, g, j, d])
                         + alibi[h] * (j - p) + bias[b, h, i, j]           where cap(l) = softcap * tanh(l / softcap)
    visible[b, i, j]   = pattern(p, j, prefix[b])  and  key_begin[b] <= j < key_end[b]
    prob[b, h, i, j]   = exp(logit) / (exp(sinks[h]) + sum over visible j of exp(logit)), 0 where not visible
    result[b, h, i, d] = sum over j of prob[b, h, i, j] * value[b, g, j, d]
    ```

    Terms of absent operands and attributes are left out. A dimension of `bias` that is known to be 1 is repeated; a dynamic
    one equals the logits' at run time. A logit of minus infinity is a key that is not visible. **A query that sees no key
    gives 0.** All is computed in f32 and rounded once, to the elements of query. With `bf16_products` query, key,
    prob (the attention probabilities) and value may be rounded to bf16 before they are multiplied; sums stay f32. With left
    padding of `n` positions, `key_begin` is n; with sequences of different lengths in one batch, `key_end` is the length.

    *Constraints.*

    - C1. key and value have the same elements: those of query, or where these are f32 narrower ones that a cache keeps.
    - C2. query, key and value have the same B; key and value have the same Hk and Sk.
    - C3. query and key have the same D.
    - C4. Hq is a multiple of Hk.
    - C5. Each dimension of bias is 1 or that of the logits `[B, Hq, Sq, Sk]`.
    - C6. alibi and sinks have Hq elements.
    - C7. key_begin, key_end and prefix have B elements.
    - C8. prefix is given iff the pattern reads it.
    - C9. scale is finite; softcap is finite and positive.
    - C10. key and value are both plain, or both in a layout of the state.

    *Example.*
    ```mlir
    func.func @attention(%q: tensor<?x14x?x64xf32>, %k: tensor<?x2x?x64xf32>, %v: tensor<?x2x?x64xf32>, %pad: tensor<?xi64>)
        -> tensor<?x14x?x64xf32> {
      %0 = hone.attention %q, %k, %v pattern(#hone.causal) scale(0.125) key_begin(%pad)
         : (tensor<?x14x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?xi64>) -> tensor<?x14x?x64xf32>
      return %0 : tensor<?x14x?x64xf32>
    }
    ```
  }];
  let arguments = (ins
    Hone_TensorOfRank<4>:$query, Hone_CacheOfRank<4>:$key, Hone_CacheOfRank<4>:$value,
    Optional<Hone_F32TensorOfRank<4>>:$bias, Optional<Hone_F32TensorOfRank<1>>:$alibi,
    Optional<Hone_F32TensorOfRank<1>>:$sinks,
    Optional<Hone_PerSequence>:$key_begin, Optional<Hone_PerSequence>:$key_end, Optional<Hone_PerSequence>:$prefix,
    Hone_PatternAttr:$pattern, F32Attr:$scale, OptionalAttr<F32Attr>:$softcap, UnitAttr:$bf16_products);
  let results = (outs Hone_TensorOfRank<4>:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value `pattern` `(` $pattern `)` `scale` `(` $scale `)` (`softcap` `(` $softcap^ `)`)?
    (`bias` `(` $bias^ `)`)? (`alibi` `(` $alibi^ `)`)? (`sinks` `(` $sinks^ `)`)?
    (`bf16_products` $bf16_products^)? (`key_begin` `(` $key_begin^ `)`)? (`key_end` `(` $key_end^ `)`)? (`prefix` `(` $prefix^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasCanonicalizer = 1;
}

def Hone_RopeOp : Hone_ComputeOp<"rope", [honeGrouped]> {
  let summary = "rotary position embedding";
  let description = [{
    *Meaning.* For x `[B, H, S, D]` and the tables cos and sin `[B or 1, S, R/2]`: the first R elements of each row of x are
    R/2 pairs, and pair i of row s is rotated by the angle whose cosine and sine are `cos[b, s, i]` and `sin[b, s, i]`:
    `(u, w) -> (u cos - w sin, w cos + u sin)`. The pair is `(x[i], x[i + R/2])`, or `(x[2i], x[2i + 1])` where
    `interleaved`. Elements from R on are copied. Computed in f32 and rounded once. A leading dimension of the tables that is
    known to be 1 is repeated; a dynamic one is B. Scaled variants scale the tables.

    *Constraints.*

    - C1. cos and sin have the same shape and elements.
    - C2. The first dimension of the tables is 1 or B, the second is S.
    - C3. The last dimension of the tables is at most D/2.

    *Example.*
    ```mlir
    func.func @rope(%x: tensor<?x2x?x64xf32>, %cos: tensor<1x?x32xf32>, %sin: tensor<1x?x32xf32>) -> tensor<?x2x?x64xf32> {
      %0 = hone.rope %x, %cos, %sin interleaved
         : (tensor<?x2x?x64xf32>, tensor<1x?x32xf32>, tensor<1x?x32xf32>) -> tensor<?x2x?x64xf32>
      return %0 : tensor<?x2x?x64xf32>
    }
    ```
  }];
  let arguments = (ins Hone_TensorOfRank<4>:$x, Hone_TensorOfRank<3>:$cos, Hone_TensorOfRank<3>:$sin, UnitAttr:$interleaved);
  let results = (outs Hone_TensorOfRank<4>:$result);
  let assemblyFormat = [{
    $x `,` $cos `,` $sin (`interleaved` $interleaved^)? attr-dict `:` functional-type(operands, results)
  }];
}

#endif // HONE_ATTENTION_OPS_TD
