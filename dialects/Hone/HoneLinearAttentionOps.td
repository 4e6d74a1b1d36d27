//===- HoneLinearAttentionOps.td - attention with a state of fixed size --------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// linear_attention.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_LINEAR_ATTENTION_OPS_TD
#define HONE_LINEAR_ATTENTION_OPS_TD

include "Hone/HoneOpBase.td"

def Hone_LinearAttentionOp : Hone_ComputeOp<"linear_attention", [AttrSizedOperandSegments]> {
  let summary = "tokens that write to a matrix and read from it, in turn";
  let description = [{
    *Meaning.* For query `[B, T, Hq, Dk]`, key `[B, T, Hk, Dk]`, value `[B, T, Hk, Dv]`, decay `[B, T, Hk, 1 or Dk]`, beta `[B, T, 1 or Hk]` and
    state `[B, Hk, Dk, Dv]`: a matrix S for each sequence and KV head, which begins as the state, or as zeros. For each token in turn,
    with the keys as columns,

    ```
    S      = exp(decay) * S                  each row by its own factor, or all by one
    u      = beta * (value - S^T key)        the delta rule; value where there is no beta
    S      = S + key u^T
    result = scale * S^T query               for each query head h of KV head h / (Hq / Hk)
    ```

    `result` is `[B, T, Hq, Dv]`, and `next` the S after the last token: a call on some tokens and one on the others that begins with its
    `next` are one call on all. Computed in f32; result is rounded once.

    | rule | decay | beta |
    | --- | --- | --- |
    | linear (Katharopoulos et al., 2020) | | |
    | RetNet (Sun et al., 2023), Mamba-2 (Dao and Gu, 2024) | 1 | |
    | GLA (Yang et al., 2023) | Dk | |
    | DeltaNet (Schlag et al., 2021) | | yes |
    | Gated DeltaNet (Yang et al., 2024) | 1 | yes |
    | KDA (Kimi Linear, 2025) | Dk | yes |

    A beta for each element of keys and of values, which keeps the update symmetric, is the delta rule with a beta of 1 on keys and
    values times its square roots.

    *Constraints.*

    - C1. key has B sequences of T tokens and Dk elements a head, and Hq is a multiple of Hk.
    - C2. value has B sequences of T tokens and Hk heads.
    - C3. The last dimension of decay is known: 1, or Dk.
    - C4. The last dimension of beta is known: 1, or Hk.
    - C5. state is `[B, Hk, Dk, Dv]`.
    - C6. query, key, value, decay and beta have the same elements.
    - C7. scale is finite.

    *Example.*
    ```mlir
    func.func @gated_delta(%q: tensor<?x?x16x128xf32>, %k: tensor<?x?x8x128xf32>, %v: tensor<?x?x8x256xf32>,
                           %g: tensor<?x?x8x1xf32>, %b: tensor<?x?x8xf32>, %s: tensor<?x8x128x256xf32>)
        -> (tensor<?x?x16x256xf32>, tensor<?x8x128x256xf32>) {
      %0, %next = hone.linear_attention %q, %k, %v decay(%g) beta(%b) state(%s) scale(0.08838835)
         : (tensor<?x?x16x128xf32>, tensor<?x?x8x128xf32>, tensor<?x?x8x256xf32>, tensor<?x?x8x1xf32>, tensor<?x?x8xf32>,
            tensor<?x8x128x256xf32>) -> (tensor<?x?x16x256xf32>, tensor<?x8x128x256xf32>)
      return %0, %next : tensor<?x?x16x256xf32>, tensor<?x8x128x256xf32>
    }
    ```
  }];
  let arguments = (ins Hone_TensorOfRank<4>:$query, Hone_TensorOfRank<4>:$key, Hone_TensorOfRank<4>:$value,
                       Optional<Hone_TensorOfRank<4>>:$decay, Optional<Hone_TensorOfRank<3>>:$beta,
                       Optional<Hone_F32TensorOfRank<4>>:$state, F32Attr:$scale);
  let results = (outs Hone_TensorOfRank<4>:$result, Hone_F32TensorOfRank<4>:$next);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`decay` `(` $decay^ `)`)? (`beta` `(` $beta^ `)`)? (`state` `(` $state^ `)`)? `scale` `(` $scale `)`
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The dimensions of next, the second result.
    static ::mlir::FailureOr<::hone::ResultDims> getOtherDims(::mlir::TypeRange operands, unsigned result);
  }];
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *context, std::optional<::mlir::Location> location,
        Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      ::mlir::TypeRange operands = adaptor.getOperands().getTypes();
      if (failed(::hone::detail::inferType(getOperationName(), location, operands, getResultDims(operands), 0, types)) ||
          failed(::hone::detail::inferType(getOperationName(), location, operands, getOtherDims(operands, 1), 0, types)))
        return ::llvm::failure();
      types.back() = ::llvm::cast<::mlir::RankedTensorType>(types.back()).clone(::mlir::Float32Type::get(context));
      return ::llvm::success();
    }
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return ::hone::detail::areCompatible(inferred, actual);
    }
    ::llvm::LogicalResult $cppClass::reifyResultShapes(::mlir::OpBuilder &builder,
        ::mlir::ReifiedRankedShapedTypeDims &shapes) {
      ::mlir::TypeRange operands = (*this)->getOperandTypes();
      if (failed(::hone::detail::reifyShape(builder, getOperation(), getResultDims(operands), shapes)))
        return ::llvm::failure();
      return ::hone::detail::reifyShape(builder, getOperation(), getOtherDims(operands, 1), shapes);
    }
  }];
}

#endif // HONE_LINEAR_ATTENTION_OPS_TD
