// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rewrites of attention, which Passes.td includes.

#ifndef HONE_TRANSFORMS_ATTENTIONPASSES_TD
#define HONE_TRANSFORMS_ATTENTIONPASSES_TD

include "mlir/Pass/PassBase.td"

def SparsifyAttention : Pass<"hone-sparsify-attention", "::mlir::ModuleOp"> {
  let summary = "Let queries see some blocks of keys alone";
  let description = [{
    Causal and sliding attention sees the keys of its pattern that are in a list of blocks (`#hone.blocks`), which is computed before it: the
    blocks that hold the first `sinks` keys of the sequence, whose probabilities are large whatever they say (attention sinks, StreamingLLM:
    Xiao et al., 2023), and those that hold the `window` last ones up to the query's own. Kernels read the keys and values of
    listed blocks alone, so that the cost of a token does not grow with the text. The state keeps all keys.

    A window is rounded up to whole blocks by the position of the query: what a query sees does not depend on what is computed beside it.

    With `blocks`, each query sees that many blocks more, of those between sinks and window: the ones whose mean key gets the most
    attention, by the sum of the softmaxes of the query heads that share a KV head (`hone.select_blocks`). The mean keys are a slot of
    the state beside the keys (`hone.pool_keys`). Sliding attention stays as it is then, and so does one whose state several entries extend.
    Biases and alibi are not counted.

    Attention of another kind stays as it is, with a remark: over all keys of an encoder, over trees, with a window as small.
  }];
  let options = [
    Option<"sinks", "sinks", "int64_t", "64", "Keys at the beginning of a sequence that every query sees">,
    Option<"window", "window", "int64_t", "1024", "Keys up to its own that a query sees">,
    Option<"block", "block", "int64_t", "64", "Keys of a block">,
    Option<"blocks", "blocks", "int64_t", "0", "Blocks between sinks and window that a query selects">];
  let statistics = [Statistic<"numAttentions", "num-attentions-sparsified", "Number of attentions over lists of blocks">];
  let dependentDialects = ["::hone::HoneDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // HONE_TRANSFORMS_ATTENTIONPASSES_TD
