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

    Attention of another kind stays as it is, with a remark: over all keys of an encoder, over trees, with a window as small.
  }];
  let options = [
    Option<"sinks", "sinks", "int64_t", "64", "Keys at the beginning of a sequence that every query sees">,
    Option<"window", "window", "int64_t", "1024", "Keys up to its own that a query sees">,
    Option<"block", "block", "int64_t", "64", "Keys of a block">];
  let statistics = [Statistic<"numAttentions", "num-attentions-sparsified", "Number of attentions over lists of blocks">];
  let dependentDialects = ["::hone::HoneDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // HONE_TRANSFORMS_ATTENTIONPASSES_TD
