// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes from the onnx dialect to the hone dialect.

#ifndef HONE_CONVERSION_RAISINGPASSES_TD
#define HONE_CONVERSION_RAISINGPASSES_TD

include "mlir/Pass/PassBase.td"

class RaisingPass<string flag> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = ["::hone::HoneDialect", "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def InferOnnxShapes : RaisingPass<"hone-infer-onnx-shapes"> {
  let summary = "Refine the types of onnx values by what their shape arithmetic computes";
  let description = [{
    Sizes are computed as polynomials over the named sizes of the inputs, through the shape arithmetic that exporters write.
    What comes out as a constant is put into the types; values whose rank or element type the file leaves open get one.
  }];
  let statistics = [Statistic<"numRefined", "num-types-refined", "Number of values whose type became more precise">];
}

def MergeCopies : RaisingPass<"hone-merge-copies"> {
  let summary = "Use one value where nodes give the same";
  let description = [{
    An Identity that changes no type is left out, unless its value is an output, and of several DequantizeLinear of the same integers the
    first stays: onnxruntime writes one for each reader. Patterns in which a value occurs twice are then recognised.
  }];
  let statistics = [Statistic<"numMerged", "num-copies-merged", "Number of nodes left out">];
}

def ExpandQuantizedProducts : RaisingPass<"hone-expand-quantized-products"> {
  let summary = "Write products of codes as products of the floats that they stand for";
  let description = [{
    QLinearMatMul, and QGemm and MatMulIntegerToFloat of com.microsoft become products of what DequantizeLinear makes of their operands,
    and a QuantizeLinear of the result where it is codes. Nothing is rounded in another place, and products are recognised as those of
    any other file. A product stays where its scales are no constants, as those of a DynamicQuantizeLinear, where those of the left
    operand differ from row to row, and where codes are an input of the model.
  }];
  let statistics = [Statistic<"numExpanded", "num-products-expanded", "Number of nodes replaced">];
}

def DequantizeMovements : RaisingPass<"hone-dequantize-movements"> {
  let summary = "Move floats where a file moves their codes";
  let description = [{
    What moves the codes that a QuantizeLinear with one scale gives, as Reshape and Transpose, is put between a DequantizeLinear and a
    QuantizeLinear with that scale, which give the same codes.
  }];
  let statistics = [Statistic<"numMoved", "num-movements-dequantized", "Number of nodes replaced">];
}

def FoldDequantized : RaisingPass<"hone-fold-dequantized"> {
  let summary = "Compute DequantizeLinear of constants that are one number or one row";
  let description = [{
    Static quantizers make codes of every constant. Those of one number, whose value patterns ask for, and rows, as biases and weights of
    norms, become the f32 that they stand for. Matrices stay: `hone-raise-linear` makes them encodings.
  }];
  let statistics = [Statistic<"numFolded", "num-rows-folded", "Number of nodes computed">];
}

def DeferRoundings : RaisingPass<"hone-defer-roundings"> {
  let summary = "Set roundings of activations aside while patterns are recognised";
  let description = [{
    A QuantizeLinear whose codes one DequantizeLinear with the same scale and zero point reads only rounds, and limits to a range, what it
    is given. Where nothing else reads that, both are erased, and the rounding becomes an attribute of the operation that gives the value.
    `hone-restore-roundings` puts it back. In between, a value that takes the place of another one takes its rounding over.
  }];
  let statistics = [Statistic<"numDeferred", "num-roundings-deferred", "Number of roundings set aside">];
}

def RestoreRoundings : RaisingPass<"hone-restore-roundings"> {
  let summary = "Put roundings of activations back that are not inside of a recognised block";
  let description = [{
    What an operation still gives is rounded as in the file, so that a pattern that was not recognised is computed as the file says. What
    is inside of an operation of `hone` now, such as the logits and probabilities of attention, is computed in floats; a remark says how
    many roundings that leaves out. Of values that were only moved since they were rounded in the same way, a second rounding would change
    nothing, and is left out too.
  }];
  let statistics = [Statistic<"numRestored", "num-roundings-restored", "Number of roundings put back">,
                    Statistic<"numRepeated", "num-roundings-repeated", "Number of roundings that would change nothing">,
                    Statistic<"numDropped", "num-roundings-dropped", "Number of roundings inside of recognised blocks">];
}

def ExpandEinsum : RaisingPass<"hone-expand-einsum"> {
  let summary = "Write Einsum as products of matrices";
  let description = [{
    Einsum of two or more operands becomes MatMul from left to right, with transpositions and reshapes around it, so that linear layers and
    attention are recognised in it. A weight becomes the right operand with its dimensions merged into a matrix; a bias that has the
    dimensions of its columns is added before they are taken apart again. A node stays, for its lowering, where it takes a diagonal, sums
    a dimension of one operand alone or nothing, repeats a dimension of 1, or would have to merge dimensions of unknown size.
  }];
  let statistics = [Statistic<"numExpanded", "num-einsums-expanded", "Number of nodes replaced">];
}

def ArrangeParams : RaisingPass<"hone-arrange-params"> {
  let summary = "Keep weights in the form of the matrix or row that they are used in";
  let description = [{
    A weight that every reader reshapes to the same matrix or row is kept so: its bytes stay where they are. Where all transpose it
    before, they are moved once, here. One that is also read otherwise stays.
  }];
  let statistics = [Statistic<"numArranged", "num-parameters-arranged", "Number of parameters and constants in another form">];
}

def ExpandFlexAttention : RaisingPass<"hone-expand-flex-attention"> {
  let summary = "Write FlexAttention as the products and the softmax that it is made of";
  let description = [{
    FlexAttention of ai.onnx.preview becomes onnx operations with its subgraphs in their places, so that attention is recognised in
    them as in any other model: without subgraphs, with one that masks or caps the scores or adds a bias to them.

    A node stays, for its lowering, where the numbers of its heads are not known, where its elements are f64, or where it is not known
    that its subgraphs keep the shape of their inputs, which its lowering checks at run time.
  }];
  let statistics = [Statistic<"numExpanded", "num-attentions-expanded", "Number of nodes replaced">];
}

def ExpandMultiHeadAttention : RaisingPass<"hone-expand-multi-head-attention"> {
  let summary = "Write MultiHeadAttention of com.microsoft as the operations that it is made of";
  let description = [{
    The node becomes products and a softmax with its bias, its masks and its cache spelled out, which comes before the state and attention
    are recognised in them. A node stays, for its lowering, where the number or the sizes of its heads are not known, where it is packed,
    and where its logits are used; a remark says which.
  }];
  let statistics = [Statistic<"numExpanded", "num-attentions-expanded", "Number of nodes replaced">];
}

def RaiseState : RaisingPass<"hone-raise-state"> {
  let summary = "Make @forward(tokens, state) of a decoder with past and present tensors";
  let description = [{
    Beside `@main`, which keeps its signature, makes a function of the new tokens and of a `!hone.kv`: each pair of an input
    that is only extended along one axis and of the output that it becomes is a slot of the state. Masks and positions that
    the model takes as inputs are computed from the state's length and padding. What remains of the outputs is the first
    that is no slot.

    A model with an input that has no meaning here keeps `@main` alone; a remark names the input.
  }];
  let statistics = [Statistic<"numSlots", "num-slots-raised", "Number of pairs of past and present that became slots">];
}

def LimitLogits : RaisingPass<"hone-limit-logits"> {
  let summary = "Make logits only for the positions that the caller asks for";
  let description = [{
    Where the first result of `@forward` is a product of the rows of all positions, perhaps scaled, capped or cast, the product
    is made of the last `hone.logits_to_keep` rows alone, and the size of the result gets the name "logits_to_keep".
  }];
  let statistics = [Statistic<"numLimited", "num-logits-limited", "Number of products limited">];
}

def WidenFloats : RaisingPass<"hone-widen-floats"> {
  let summary = "Compute in f32 what a model computes in 16 bits";
  let description = [{
    Where products, convolutions, feed-forward blocks or attention have activations of f16 or bf16, for which no kernel is, every value
    of such elements becomes f32, and is no longer rounded on the way. Weights that products and tables read stay as they are stored,
    and so do slots of the state; inputs and outputs of the file keep their types. Operations that cannot have f32 stand between
    casts.
  }];
  let statistics = [Statistic<"numWidened", "num-functions-widened", "Number of functions widened">];
}

def RaiseNorms : RaisingPass<"hone-raise-norms"> {
  let summary = "Recognise RMS and layer normalisation";
  let statistics = [Statistic<"numNorms", "num-norms-raised", "Number of normalisations raised">];
}

def RaiseRope : RaisingPass<"hone-raise-rope"> {
  let summary = "Recognise rotary position embedding";
  let statistics = [Statistic<"numRopes", "num-ropes-raised", "Number of rotations raised">];
}

def RaiseAttention : RaisingPass<"hone-raise-attention"> {
  let summary = "Recognise attention and what its mask computes";
  let description = [{
    Attention is found at its softmax, or as one of the operators Attention, GroupQueryAttention and MultiHeadAttention. GQA
    is recognised by the elements that the products read, masks by the predicate over query and key index
    that their elements compute. What is no pattern stays an additive bias.
  }];
  let statistics = [Statistic<"numAttentions", "num-attentions-raised", "Number of attentions raised">,
                    Statistic<"numBiases", "num-attentions-with-bias", "Number of attentions that keep an additive bias">];
}

def RaiseLinearAttention : RaisingPass<"hone-raise-linear-attention"> {
  let summary = "Recognise the operators of linear attention";
  let description = [{
    LinearAttention of opset 27 and of com.microsoft, where the sizes of its inputs are known to fit each other. What is not raised is
    lowered as a loop, which checks them when it runs.
  }];
  let statistics = [Statistic<"numLinearAttentions", "num-linear-attentions-raised", "Number of linear attentions raised">];
}

def AbsorbLatents : RaisingPass<"hone-absorb-latents"> {
  let summary = "Let multi-head latent attention (MLA) read its latents";
  let description = [{
    A decoder of DeepSeek's kind caches a latent for each position, and the rotated part of the keys that its heads share. It expands the latents
    of all positions by one product, to a key and a value of each head. Here the part of that weight that makes keys multiplies the queries
    instead, and the part that makes values what attention gives:

    ```
    q . (W_k c) = (W_k^T q) . c        sum of p_j (W_v c_j) = W_v (sum of p_j c_j)
    ```

    All heads then read one key, latent and rotated part, and one value, the latent, and a step of decoding reads the cache and not more. The slot of
    rotated keys has the latents too, as attention reads a key from one place.
  }];
  let statistics = [Statistic<"numAbsorbed", "num-absorbed", "Number of attentions over latents">];
}

def RaiseLinear : RaisingPass<"hone-raise-linear"> {
  let summary = "Recognise products with a weight";
  let statistics = [Statistic<"numLinears", "num-linears-raised", "Number of products raised">];
}

def RaiseMlp : RaisingPass<"hone-raise-mlp"> {
  let summary = "Recognise plain and gated feed-forward blocks";
  let statistics = [Statistic<"numMlps", "num-mlps-raised", "Number of blocks raised">];
}

def SplitGateUp : RaisingPass<"hone-split-gate-up"> {
  let summary = "Split the fused gate_up projection of feed-forward blocks";
  let description = [{
    Files fuse the gate and up projection of a feed-forward block into one product (gate_up), as halves of its outputs. Where only a
    `hone.gated_mlp` would read the halves, each becomes a product with its rows of the weight, `NAME.0` and `NAME.1`, and the
    block is recognised. All products with a weight are split, or none. Weights are split as they are stored, also quantized
    ones; a remark says which are not, and why. Queries, keys and values in one product (fused QKV) stay so: nothing has
    to see them separately.

    This comes after the rewrites of weights, whose statistics and records are those of the weights in the file.
  }];
  let options = [Option<"describes", "describes", "bool", "false",
                        "Give the halves types and no bytes: of a module that is described and not compiled">];
  let statistics = [Statistic<"numSplit", "num-weights-split", "Number of weights split">,
                    Statistic<"numMlps", "num-mlps-raised", "Number of blocks raised">];
}

def RaiseEmbedding : RaisingPass<"hone-raise-embedding"> {
  let summary = "Recognise tables that are read by row";
  let statistics = [Statistic<"numEmbeddings", "num-embeddings-raised", "Number of table reads raised">];
}

def BoundLookups : RaisingPass<"hone-bound-lookups"> {
  let summary = "Say which rows tables have for the elements of inputs, and for how many positions";
  let description = [{
    Changes nothing but attributes of functions (hone/Dialect/Hone/Lookups.h), from which the runtime refuses a call that would
    look up what no table has. Where `hone.embedding` or a Gather looks the elements of an input up, perhaps with a constant
    added, the argument gets `hone.rows`. Where the numbers of rows are positions, the function gets `hone.limits`, and so it does
    where a Slice cuts out a row for each position, and the result is broadcast with something of as many positions. It is
    silent on numbers of rows that it does not understand.
  }];
  let statistics = [Statistic<"numBounded", "num-tables-bounded", "Number of lookups whose bounds are known">];
}

#endif // HONE_CONVERSION_RAISINGPASSES_TD
