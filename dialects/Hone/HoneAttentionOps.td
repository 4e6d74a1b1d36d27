//===- HoneAttentionOps.td - attention and the rotation of its queries and keys ------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attention, attention_gradient, rope.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_ATTENTION_OPS_TD
#define HONE_ATTENTION_OPS_TD

include "Hone/HoneOpBase.td"

def Hone_AttentionOp : Hone_ComputeOp<"attention", [AttrSizedOperandSegments, honeBlock]> {
  let summary = "scaled dot-product attention over the keys that a pattern shows";
  let description = [{
    *Meaning.* For query `[B, Hq, Sq, D]`, key `[B, Hk, Sk, D]` and value `[B, Hk, Sk, Dv]`: result `[B, Hq, Sq, Dv]`. Query
    head h reads key and value head `g = h / (Hq / Hk)`. Sequence b has `n[b] = Sk - lags[b]` keys, all Sk without that operand,
    and query i is the token whose own key is number `n[b] - Sq + i`.

    Key j is at position `k[j] = key_positions[b, j]`, or j without that operand; one at a negative position is dead, and no query
    sees it, so that a cache may have holes or be compacted. Query i is at the position of its own key, `p = k[n[b] - Sq + i]`,
    or at `n[b] - Sq + i` where that is negative. Positions are what causality, windows, prefixes and alibi read; blocks, trees, key_begin,
    key_end and bias go by the number of a key.

    ```
    logit[b, h, i, j]  = cap(scale * sum over d of query[b, h, i, d] * key[b, g, j, d])
                         + alibi[h] * (k[j] - p) + bias[b, h, i, j]        where cap(l) = softcap * tanh(l / softcap)
    visible[b, h, i, j] = pattern(b, h, i, j)  and  key_begin[b] <= j < min(key_end[b], n[b])  and  k[j] >= 0
    prob[b, h, i, j]   = exp(logit) / (exp(sinks[h]) + sum over visible j of exp(logit)), 0 where not visible
    result[b, h, i, d] = sum over j of prob[b, h, i, j] * value[b, g, j, d]
    lse[b, h, i]       = log(sum over visible j of exp(logit))
    ```

    Terms of absent operands and attributes are left out. A dimension of `bias` that is known to be 1 is repeated; a dynamic
    one equals the logits' at run time. A logit of minus infinity is a key that is not visible. **A query that sees no key
    gives 0, and an lse of minus infinity.** All is computed in f32 and rounded once, to the elements of query. With
    `bf16_products` query, key, prob (the attention probabilities) and value may be rounded to bf16 before they are multiplied;
    sums stay f32. With left padding of `n` positions, `key_begin` is n; with sequences that are padded at their right,
    `key_end` is the length. Sequences of a state that have lengths of their own have `lags` (`hone.kv_lag`).

    lse is the second result where it is asked for: natural, f32 and without the sink, as cuDNN has it. Without sinks, attention over
    two disjoint sets of keys merges to that over both: with `l = log(exp(lse0) + exp(lse1))`, the result is
    `exp(lse0 - l) * result0 + exp(lse1 - l) * result1`, and its lse is l.

    With `skip` F, the query of a sequence that sees up to n keys may leave out keys that lie next to each other and have logits all of which are
    more than `log(max(n / F, 8))` below a logit that it keeps. What it leaves out is, together, less than F times the attention
    probability that it keeps. So with `D = F / (1 + F)` each element of the result errs by less than 2 D times the largest magnitude of that
    element among the values that are seen, and lse by less than log(1 + F).

    *Constraints.*

    - C1. key and value have the same elements: those of query, or where these are f32 narrower ones that a cache keeps.
    - C2. query, key and value have the same B; key and value have the same Hk and Sk.
    - C3. query and key have the same D.
    - C4. Hq is a multiple of Hk.
    - C5. Each dimension of bias is 1 or that of the logits `[B, Hq, Sq, Sk]`.
    - C6. alibi and sinks have Hq elements.
    - C7. key_begin, key_end and lags have B elements; key_positions is `[B, Sk]`.
    - C8. The pattern has as many operands as it reads, and those that it can read.
    - C9. scale is finite; softcap is finite and positive.
    - C10. key and value are both plain, or both in a layout of the state.
    - C11. lse is `[B, Hq, Sq]`.
    - C12. skip is finite and positive.

    *Example.*
    ```mlir
    func.func @attention(%q: tensor<?x14x?x64xf32>, %k: tensor<?x2x?x64xf32>, %v: tensor<?x2x?x64xf32>, %pad: tensor<?xi64>)
        -> tensor<?x14x?x64xf32> {
      %0 = hone.attention %q, %k, %v pattern(#hone.causal) scale(0.125) key_begin(%pad)
         : (tensor<?x14x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?xi64>) -> tensor<?x14x?x64xf32>
      return %0 : tensor<?x14x?x64xf32>
    }
    func.func @listed(%q: tensor<1x8x?x64xf32>, %k: tensor<1x2x?x64xf32>, %v: tensor<1x2x?x64xf32>, %lists: tensor<1x2x?x16xi64>)
        -> (tensor<1x8x?x64xf32>, tensor<1x8x?xf32>) {
      %0, %lse = hone.attention %q, %k, %v pattern(#hone.all_of<#hone.causal, #hone.blocks<size = 64>>, %lists) scale(0.125)
         : (tensor<1x8x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x16xi64>)
         -> (tensor<1x8x?x64xf32>, tensor<1x8x?xf32>)
      return %0, %lse : tensor<1x8x?x64xf32>, tensor<1x8x?xf32>
    }
    ```
  }];
  let arguments = (ins
    Hone_TensorOfRank<4>:$query, Hone_CacheOfRank<4>:$key, Hone_CacheOfRank<4>:$value,
    Optional<Hone_F32TensorOfRank<4>>:$bias, Optional<Hone_F32TensorOfRank<1>>:$alibi,
    Optional<Hone_F32TensorOfRank<1>>:$sinks,
    Optional<Hone_PerSequence>:$key_begin, Optional<Hone_PerSequence>:$key_end, Optional<Hone_PerSequence>:$lags,
    Optional<Hone_IndexTensorOfRank<2>>:$key_positions, Variadic<Hone_IndexTensor>:$pattern_operands,
    Hone_PatternAttr:$pattern, F32Attr:$scale, OptionalAttr<F32Attr>:$softcap, OptionalAttr<F32Attr>:$skip,
    UnitAttr:$bf16_products);
  let results = (outs Hone_TensorOfRank<4>:$result, Optional<Hone_F32TensorOfRank<3>>:$lse);
  let assemblyFormat = [{
    $query `,` $key `,` $value `pattern` `(` $pattern (`,` $pattern_operands^)? `)` `scale` `(` $scale `)`
    (`softcap` `(` $softcap^ `)`)? (`skip` `(` $skip^ `)`)? (`bias` `(` $bias^ `)`)? (`alibi` `(` $alibi^ `)`)? (`sinks` `(` $sinks^ `)`)?
    (`bf16_products` $bf16_products^)? (`key_begin` `(` $key_begin^ `)`)? (`key_end` `(` $key_end^ `)`)?
    (`lags` `(` $lags^ `)`)? (`key_positions` `(` $key_positions^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "const ::hone::AttentionParts &":$parts)>];
  let extraClassDeclaration = [{
    /// The dimensions of lse, the second result.
    static ::mlir::FailureOr<::hone::ResultDims> getOtherDims(::mlir::TypeRange operands, unsigned result);
    /// B, Hq, Hk, Sq and Sk as the types know them.
    ::hone::AttentionSizes<int64_t> getSizes();
  }];
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location> location,
        Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      ::mlir::TypeRange operands = adaptor.getOperands().getTypes();
      if (failed(::hone::detail::inferType(getOperationName(), location, operands, getResultDims(operands), 0, types)))
        return ::llvm::failure();
      auto query = ::llvm::cast<::mlir::RankedTensorType>(operands.front());
      types.push_back(query.clone(query.getShape().drop_back(), ::mlir::Float32Type::get(query.getContext())));
      return ::llvm::success();
    }
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return ::hone::detail::areCompatible(inferred.take_front(), actual.take_front()); // lse is optional
    }
    ::llvm::LogicalResult $cppClass::reifyResultShapes(::mlir::OpBuilder &builder,
        ::mlir::ReifiedRankedShapedTypeDims &shapes) {
      ::mlir::TypeRange operands = (*this)->getOperandTypes();
      ::llvm::LogicalResult reified = ::hone::detail::reifyShape(builder, getOperation(), getResultDims(operands), shapes);
      if (failed(reified) || !getLse())
        return reified;
      return ::hone::detail::reifyShape(builder, getOperation(), getOtherDims(operands, 1), shapes);
    }
  }];
  let hasCanonicalizer = 1;
}

def Hone_AttentionGradientOp : Hone_Op<"attention_gradient", [AttrSizedOperandSegments, Pure,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "gradients of the query, key and value of an attention";
  let description = [{
    *Meaning.* For the logits of `hone.attention` with the same operands and attributes, lse `[B, Hq, Sq]`, the logarithm of what the
    exponentials of a row are divided by, gradient `[B, Hq, Sq, Dv]`, that of the result, and subtracted `[B, Hq, Sq]`, the sum over d of
    gradient times result, less the gradient of lse (Dao 2023, "FlashAttention-2", section 3.1):

    ```
    prob[b, h, i, j]           = exp(logit[b, h, i, j] - lse[b, h, i]), 0 where not visible
    slope[b, h, i, j]          = prob * (sum over d of gradient[b, h, i, d] * value[b, g, j, d] - subtracted[b, h, i]) * cap'
    query_gradient[b, h, i, d] = scale * sum over j of slope[b, h, i, j] * key[b, g, j, d]
    key_gradient[b, g, j, d]   = scale * sum over h of g and i of slope[b, h, i, j] * query[b, h, i, d]
    value_gradient[b, g, j, d] = sum over h of g and i of prob[b, h, i, j] * gradient[b, h, i, d]
    ```

    where cap' is `1 - tanh(scale * query * key / softcap)^2`, or 1 without a softcap. A row that sees no key has an lse of minus
    infinity, and gives 0. With `bf16_products` the factors of these sums may be rounded to bf16 before they are multiplied; sums stay f32.

    *Constraints.*

    - C1. Operands and attributes that `hone.attention` has too are as it has them.
    - C2. gradient is `[B, Hq, Sq, Dv]`.
    - C3. lse and subtracted are `[B, Hq, Sq]`.
    - C4. Results have the shapes of query, key and value.

    *Example.*
    ```mlir
    func.func @attention_gradient(%q: tensor<?x8x?x32xf32>, %k: tensor<?x4x?x32xf32>, %v: tensor<?x4x?x32xf32>,
                                  %lse: tensor<?x8x?xf32>, %s: tensor<?x8x?xf32>, %g: tensor<?x8x?x32xf32>)
        -> (tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x32xf32>) {
      %0:3 = hone.attention_gradient %q, %k, %v, %lse, %s, %g pattern(#hone.causal) scale(0.125)
         : (tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x8x?xf32>, tensor<?x8x?xf32>, tensor<?x8x?x32xf32>)
         -> (tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x32xf32>)
      return %0#0, %0#1, %0#2 : tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x32xf32>
    }
    ```
  }];
  let arguments = (ins
    Hone_F32TensorOfRank<4>:$query, Hone_F32TensorOfRank<4>:$key, Hone_F32TensorOfRank<4>:$value,
    Hone_F32TensorOfRank<3>:$lse, Hone_F32TensorOfRank<3>:$subtracted, Hone_F32TensorOfRank<4>:$gradient,
    Optional<Hone_F32TensorOfRank<4>>:$bias, Optional<Hone_F32TensorOfRank<1>>:$alibi,
    Optional<Hone_PerSequence>:$key_begin, Optional<Hone_PerSequence>:$key_end, Optional<Hone_PerSequence>:$lags,
    Optional<Hone_IndexTensorOfRank<2>>:$key_positions, Variadic<Hone_IndexTensor>:$pattern_operands,
    Hone_PatternAttr:$pattern, F32Attr:$scale, OptionalAttr<F32Attr>:$softcap, UnitAttr:$bf16_products);
  let results = (outs Hone_F32TensorOfRank<4>:$query_gradient, Hone_F32TensorOfRank<4>:$key_gradient,
                      Hone_F32TensorOfRank<4>:$value_gradient);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $lse `,` $subtracted `,` $gradient
    `pattern` `(` $pattern (`,` $pattern_operands^)? `)` `scale` `(` $scale `)` (`softcap` `(` $softcap^ `)`)?
    (`bias` `(` $bias^ `)`)? (`alibi` `(` $alibi^ `)`)? (`bf16_products` $bf16_products^)?
    (`key_begin` `(` $key_begin^ `)`)? (`key_end` `(` $key_end^ `)`)?
    (`lags` `(` $lags^ `)`)? (`key_positions` `(` $key_positions^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// B, Hq, Hk, Sq and Sk as the types know them.
    ::hone::AttentionSizes<int64_t> getSizes();
  }];
  let hasVerifier = 1;
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
