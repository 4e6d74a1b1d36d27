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
    the state beside the keys (`hone.pool_keys`). With `bounds` they are the blocks that may have the largest logits: the state has the
    largest and the smallest of each element of a block's keys (Quest: Tang et al., 2024). Sliding attention stays as it is then, and so does one whose state several entries extend.
    Biases and alibi are not counted.

    With `share`, the queries of a prompt share a list for each block of them, with the blocks that hold this share of their attention together
    with sinks and window, by sums over antidiagonals (`hone.select_antidiagonals`, XAttention: Xu et al., 2025). A call with 64 tokens or
    fewer, as decoding and verification have, sees all keys. What is selected follows from all queries of a block, so that it matters
    which tokens of a prompt are fed together. Sequences with lengths of their own stay dense.

    With `means`, the same blocks are chosen by mean queries and mean keys (`hone.select_means`, SpargeAttention: Zhang et al., 2025): those with
    `share` of the attention (top-p), at least the share `least` of all blocks (top-k), and all whose keys are not as similar to each other as
    `similarity` says. Two blocks of queries share a list. With the file `thresholds`, which `hone calibrate --attention-error` writes, each KV head
    has its own.

    With `blocks` and `share` or `means`, prompts read the latter, and calls with 64 tokens or fewer, as decoding and verification have, the former.

    Attention of another kind stays as it is, with a remark: over all keys of an encoder, over trees, with a window as small.
  }];
  let options = [
    Option<"sinks", "sinks", "int64_t", "64", "Keys at the beginning of a sequence that every query sees">,
    Option<"window", "window", "int64_t", "1024", "Keys up to its own that a query sees">,
    Option<"block", "block", "int64_t", "64", "Keys of a block">,
    Option<"blocks", "blocks", "int64_t", "0", "Blocks between sinks and window that a query selects">,
    Option<"bounds", "bounds", "bool", "false", "Select by bounds of the elements of keys, and not by their means">,
    Option<"share", "share", "double", "0", "Attention that prompts see, of all; 0: this selects nothing">,
    Option<"means", "means", "bool", "false", "Select for prompts by mean queries and mean keys">,
    Option<"least", "least", "double", "0", "With means, blocks that prompts see at least, of all">,
    Option<"similarity", "similarity", "double", "0.1", "With means, mean cosine of the keys of a block that may be left out">,
    Option<"thresholds", "thresholds", "std::string", [{""}], "With means, a file with share, least and similarity of each KV head">];
  let statistics = [Statistic<"numAttentions", "num-attentions-sparsified", "Number of attentions over lists of blocks">];
  let dependentDialects = ["::hone::HoneDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def MeasureSelection : Pass<"hone-measure-selection", "::mlir::ModuleOp"> {
  let summary = "Add entries that measure what attention over selected blocks loses";
  let description = [{
    For each causal attention of @forward whose queries the state keeps (hone-retain-keys), over the state after a prompt:

    - `@attention_outputs` gives `output.S`, what attention gives over all keys, where S is the slot that has its keys;
    - `@selection_errors` takes that, and `thresholds.S`, `[1, Hk, 3]`, as `hone.select_means` has them. It gives, for each KV head, sums over all its
      query heads, queries and elements: `difference.S`, of the magnitudes of what attention over selected blocks gives minus `output.S`, and
      `magnitude.S`, of the magnitudes of `output.S`; and `blocks.S`, the length of all lists. `lists.S` are these, as `#hone.blocks` has them.

    Blocks are selected as hone-sparsify-attention does it with `means` and these sinks, window and block.

    Fails where there is no such attention.
  }];
  let options = [
    Option<"sinks", "sinks", "int64_t", "64", "Keys at the beginning of a sequence that every query sees">,
    Option<"window", "window", "int64_t", "1024", "Keys up to its own that a query sees">,
    Option<"block", "block", "int64_t", "64", "Keys of a block">];
  let dependentDialects = ["::hone::HoneDialect", "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def SkipSoftmax : Pass<"hone-skip-softmax", "::mlir::ModuleOp"> {
  let summary = "Let attention leave out keys far below the running maximum";
  let description = [{
    Sets `skip` of every attention (`hone.attention`). While a kernel passes by the keys of a query, which come in steps, a step is left out
    where all of its logits lie so far below the largest logit before it that it cannot matter: its exponentials are not computed, and
    its values are neither read nor multiplied if no other query that is computed together needs them (BLASST, arXiv 2512.12087).
    Nothing is calibrated, and nothing selected beforehand. How far follows from the number n of keys that the query sees, `log(n / factor)`, so
    that a query loses less than `factor / (1 + factor)` of its attention probability, whatever the model and the text are; for most
    it is far less. What a query skips follows from its own logits alone.

    Kernels of AMX over floats, and those of other targets, leave nothing out.
  }];
  let options = [Option<"factor", "factor", "double", "1", "Attention probability that is left out at most, over what is kept">];
  let statistics = [Statistic<"numAttentions", "num-attentions-filtered", "Number of attentions that may leave out keys">];
  let dependentDialects = ["::hone::HoneDialect"];
}

def RetainKeys : Pass<"hone-retain-keys", "::mlir::ModuleOp"> {
  let summary = "Let the state keep a bounded number of keys and values a layer";
  let description = [{
    Says of each attention of @forward over the state how many positions its slots may hold (`kRetentionAttrName`), and makes what a session
    needs to choose those that stay: a slot for the queries of the last tokens, appended by @forward, and the entry @importance. For each
    causal attention, with the R queries that its slot holds, for the last R of the Sk keys, @importance gives `[B, Hk, max(Sk - 1, 0)]`:

    ```
    mass[b, g, j] = sum over the query heads h of g and queries i that see key j of
                    exp(cap(scale * sum over d of query[b, h, i, d] * key[b, g, j, d]) - lse[b, h, i])
    ```

    that is the attention probabilities of key j, without the share of a sink logit. It reads the cache in whatever layout it is kept.

    Positions stay true: keys are kept after their rotation, `hone.kv_length` counts the evicted positions too, and queries and keys are
    compared by their order from the end. Sliding attention keeps the last keys of its window and has no scores.

    Policies: `snapkv` keeps the keys with the most mass of the last queries (SnapKV: Li et al., 2024), per KV head; `h2o` those with the most
    mass of all queries (H2O: Zhang et al., 2023), per KV head; `prefix` likewise, the same for all heads of a layer (PrefixKV: Wang et al.,
    2024). The first `sinks` and the last `recent` keys always stay. With the file `importance` layers have budgets of their own, `budget` on
    average, so that all keep the same share of the attention that was measured.

    Fails where something other than attention reads slots, where attention is neither causal nor sliding, and where it has operands that go
    by the number of a key: a bias, alibi, key_end, lags or positions of keys.
  }];
  let options = [
    Option<"policy", "policy", "std::string", "\"snapkv\"", "snapkv, h2o or prefix">,
    Option<"budget", "budget", "int64_t", "0", "Keys that a layer may hold">,
    Option<"importance", "importance", "std::string", "\"\"", "File with the importance of keys, for a budget of each layer">,
    Option<"sinks", "sinks", "int64_t", "4", "First keys of a text that always stay">,
    Option<"recent", "recent", "int64_t", "32", "Last keys that always stay">];
  let statistics = [Statistic<"numLayers", "num-layers-bounded", "Number of attentions whose keys are bounded">];
  let dependentDialects = ["::hone::HoneDialect", "::hone::hrt::HrtDialect", "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // HONE_TRANSFORMS_ATTENTIONPASSES_TD
