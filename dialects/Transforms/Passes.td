// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes over the hone dialect: rewrites of it, and its meaning in linalg.

#ifndef HONE_TRANSFORMS_PASSES_TD
#define HONE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"
include "Transforms/AttentionPasses.td"

def Decompose : Pass<"hone-decompose"> {
  let summary = "Rewrite hone operations into linalg, tensor, arith and math";
  let description = [{
    Replaces each operation by the computation that defines it: every constraint of its description holds for what comes
    out, sums of f16 and bf16 are made in f32, and results are rounded where the description says so. Operations of
    parameters, of a session's state and of an observer have no parts and stay.

    A kernel is right if it agrees with this; an operation that has no kernel for a target runs as this.
  }];
  let options = [
    ListOption<"ops", "ops", "std::string",
               "operations to decompose, by name without 'hone.'; all that can be if none is given">
  ];
  let statistics = [Statistic<"numDecomposed", "num-ops-decomposed", "Number of operations decomposed">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def SplitMlps : Pass<"hone-split-mlps"> {
  let summary = "Split feed-forward blocks into products and the elementwise part between them";
  let description = [{
    `hone.gated_mlp` and `hone.mlp` become `hone.linear` operations, which may have kernels, and the activation as a
    `linalg.generic`. Blocks of elements narrower than 32 bits stay, since their products are not rounded; so do blocks with
    weights in another encoding than `#hone.stored`, whose kernels take the activation along.
  }];
  let statistics = [Statistic<"numSplit", "num-blocks-split", "Number of feed-forward blocks split">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ConvertWeights : Pass<"hone-convert-weights", "::mlir::ModuleOp"> {
  let summary = "Store matrices of f32 in 16 bits";
  let description = [{
    A parameter that is a matrix of f32, and that only products and embeddings read, is stored as `type`
    (`#hone.stored`), each element rounded to nearest, ties to even. Products still are of f32, with the rounded weights. A
    remark says which parameters are converted, and why others are not.
  }];
  let options = [Option<"type", "type", "std::string", /*default=*/"\"bf16\"", "the type of the stored elements: bf16 or f16">];
  let statistics = [Statistic<"numConverted", "num-weights-converted", "Number of parameters converted">];
  let dependentDialects = ["::hone::HoneDialect"];
}

def NarrowScales : Pass<"hone-narrow-scales", "::mlir::ModuleOp"> {
  let summary = "Store scales of f32 in f16 where that changes nothing, or less than rounded activations do";
  let description = [{
    The scales of a weight of products that came quantized, `#hone.affine` with scales of f32, become f16, rounded to nearest, ties to even:
    half of their bytes, which in groups of 32 are a tenth of a weight of 4 bits. All of them have to be f16 already, or products have to
    be allowed to round activations to 8 bits (`activations`): a scale then changes by at most 2^-11 of itself, an activation by up to
    2^-8 of the largest of its group. Scales that are no normal f16 stay as they are, and so do those of a weight that a kernel reads
    together with one whose scales stay.
  }];
  let options = [Option<"exact", "exact", "bool", /*default=*/"false", "only where no scale changes: for targets that round no activations">];
  let statistics = [Statistic<"numNarrowed", "num-scales-narrowed", "Number of parameters whose scales became f16">];
  let dependentDialects = ["::hone::HoneDialect"];
}

def PruneNm : Pass<"hone-prune-nm", "::mlir::ModuleOp"> {
  let summary = "Keep n of every m neighbouring inputs of weights";
  let description = [{
    Of every `m` neighbouring inputs of each row of a weight, `n` elements are kept and the others become 0. How the weight is
    stored stays as it is (`hone-sparsify-weights` changes that). Which elements are kept, and what becomes of them, is the choice of `method`:

    - `magnitude`: those of largest magnitude;
    - `wanda`: those of largest |w| · |x|, with |x| the root of the mean square of the input;
    - `sparsegpt`: column after column, those whose loss costs the outputs least, with error compensation in the following columns.

    With `transposable` the transpose of a weight is pruned to 2:4 as well, for training that multiplies with both: of the 90
    masks of a block of 4 x 4 with two in every row and column, each block keeps what has the largest sum.

    The last two read `statistics`, a file that `hone calibrate` wrote of this model; with it, remarks say how much the outputs
    of each layer have changed, as the root of the mean square of the change, relative to that of the outputs.

    Pruned are matrices of f32 that only products read. A remark says which are not, and why: a number of inputs that is no
    multiple of `m`, an embedding that reads them too, products whose result a function returns, inputs of which nothing was
    measured. With `outputs` such products and embeddings are no reason: an embedding then reads a copy of the parameter as it was,
    `NAME.embedding`. An element that is not finite is an error.
  }];
  let options = [
    Option<"n", "n", "int64_t", /*default=*/"2", "elements that are kept of each group">,
    Option<"m", "m", "int64_t", /*default=*/"4", "inputs of a group: 2 to 128">,
    Option<"method", "method", "std::string", /*default=*/"\"magnitude\"", "magnitude, wanda or sparsegpt">,
    Option<"statistics", "statistics", "std::string", /*default=*/"\"\"", "file that hone calibrate wrote">,
    Option<"outputs", "outputs", "bool", /*default=*/"false",
           "also prune weights whose products a function returns: the last layer of a language model">,
    Option<"transposable", "transposable", "bool", /*default=*/"false",
           "2 of 4 in rows and in columns of blocks of 4 x 4 at once; by magnitude or wanda">
  ];
  let statistics = [Statistic<"numPruned", "num-weights-pruned", "Number of parameters pruned">];
  let dependentDialects = ["::hone::HoneDialect"];
}

def PruneStructured : Pass<"hone-prune-structured", "::mlir::ModuleOp"> {
  let summary = "Remove hidden channels and attention heads, the same number in every layer";
  let description = [{
    Removes hidden channels of feed-forward blocks (`hone.gated_mlp`, `hone.mlp`) and GQA groups of attention (a KV head
    with the query heads that share it), so that a share `sparsity` of the elements of all parameters goes. Shapes
    change: rows of the products before, with their biases, columns of the product that follows, heads of `hone.attention`, slots of
    the state and what functions take and give of them. Every layer keeps the same number, channels a multiple of `multiple`;
    groups go first, as many as are nearest to their part, and channels make up the rest. Of a mixture (`hone.moe`) each expert
    keeps as many channels, and its own; experts that no row of the calibration chose keep theirs by magnitude.

    Which ones go is the choice of `method`:

    - `magnitude`: those of the smallest product of the squared norms of their rows and columns;
    - `energy`: those of the smallest share in the outputs, the sum of |w_k|^2 E[x_k^2] over the columns w_k of the next
      product;
    - `obs`: those that cost the outputs least with error compensation in the columns that stay, by least squares.

    The last two read `statistics`, a file that `hone calibrate` wrote of this model; with it, remarks say how much the outputs of
    the products that follow have changed. Parameters whose columns go keep in `hone.inputs` which ones stay, so that the statistics
    serve later passes too.

    Prunable groups are followed through the graph. Where something reads them that cannot be cut, all layers keep theirs, and remarks say
    which layer is in the way, and why. It is an error if what can go is less than `sparsity`.
  }];
  let options = [
    Option<"sparsity", "sparsity", "double", /*default=*/"0.25", "share of the elements of all parameters that goes, in [0, 1)">,
    Option<"channels", "channels", "bool", /*default=*/"true", "remove hidden channels">,
    Option<"heads", "heads", "bool", /*default=*/"true", "remove GQA groups">,
    Option<"multiple", "multiple", "int64_t", /*default=*/"32", "what the number of channels that stay is a multiple of">,
    Option<"method", "method", "std::string", /*default=*/"\"magnitude\"", "magnitude, energy or obs">,
    Option<"statistics", "statistics", "std::string", /*default=*/"\"\"", "file that hone calibrate wrote">
  ];
  let statistics = [Statistic<"numChannels", "num-channels-removed", "Number of hidden channels removed">,
                    Statistic<"numHeads", "num-head-groups-removed", "Number of GQA groups removed">];
  let dependentDialects = ["::hone::HoneDialect"];
}

def PruneLayers : Pass<"hone-prune-layers", "::mlir::ModuleOp"> {
  let summary = "Remove whole layers";
  let description = [{
    Removes layers, attention and feed-forward block, so that about a share `sparsity` of the elements of all parameters goes: the
    residual stream bypasses them, and slots of the state, pasts and presents of a removed layer go with it. Slots that stay are numbered anew.

    Those go whose branches add least to the residual stream, relative to it: the mean square of what a layer's branches add, by the
    Hessians in `statistics`, a file that `hone calibrate` wrote of this model, over the mean squares of what was added before.

    A layer is an attention and a feed-forward block that end in sums with the residual stream, and whose keys and values nothing else
    reads. Remarks say of each layer its relative influence, and of those that cannot go why. It is an error if too few can.
  }];
  let options = [
    Option<"sparsity", "sparsity", "double", /*default=*/"0.25", "share of the elements of all parameters that goes, in [0, 1)">,
    Option<"statistics", "statistics", "std::string", /*default=*/"\"\"", "file that hone calibrate wrote">
  ];
  let statistics = [Statistic<"numLayers", "num-layers-removed", "Number of layers removed">];
  let dependentDialects = ["::hone::HoneDialect"];
}

def QuantizeWeights : Pass<"hone-quantize-weights", "::mlir::ModuleOp"> {
  let summary = "Store matrices of f32 as integers of few bits";
  let description = [{
    A parameter that is a matrix of f32, and that only products and embeddings read, is stored as `#hone.affine` with f16
    scales. Products with it round their activations to integers of `activations` bits, or leave them as they are. A remark
    says which parameters are quantized, and why others are not.

    The method `rtn` rounds each element to the nearest code of its group. `gptq` rounds one input after the other, with
    error compensation in what is left of the row, by the Hessians in `statistics`, a file that `hone calibrate` wrote of
    this model. Scales are those of the elements when it reaches their group, or of the weight as it was with
    `static-groups`. With `act-order` inputs come in the order of their mean squares, largest first; groups then are static.
    Weights whose products a function returns, such as the last layer of a language model, are the most sensitive; with
    `output-bits` they have codes of as many bits, of 8 with one scale a row. A weight that an embedding reads too has those of others.

    `squeezellm` and `squeezellm-gptq` store `#hone.codebook` of `bits` 2, 3 or 4 instead: the centroids of a row are those with the least
    sum of its squared errors, each as important as the mean square of its input, or as the file `sensitivities` says, and
    `squeezellm-gptq` goes on as `gptq` does, with centroids for codes. `group`, `asymmetric`, `activations` and `scales` do not count then,
    but for weights that `output-bits` gives 8 or 2 bits, which are stored as `rtn` or `gptq` would.

    Elements that are 0 stay 0. Weights that an embedding reads, and inputs of which nothing was measured, are rounded to
    nearest. After the sweep, `refinements` times, every scale and then every code becomes the best for all others.

    With `scales=mse` a group has the scale that loses least of it instead of the one that reaches its largest element: least by
    the squares of the errors, each as important as it costs the outputs in the sweep of `gptq`, as the mean square of its
    input with `rtn`, or as all others where nothing was measured and for an embedding.

    A parameter with the attribute `hone.encoding`, a `#hone.affine` or `#hone.dense_sparse`, is stored as that says.

    With `outliers`, a share such as `0.45%` of each matrix is kept in f16 beside the integers, as `#hone.dense_sparse`; weights
    that have more bits by `output-bits` keep none. Those are, by `outlier-method`, the elements of largest magnitude; the most sensitive ones, by the numbers that the file
    `sensitivities` gives for each, a tensor of f32 a weight, or by w² times the mean square of the input; or those without
    which their groups lose least (`spqr`, not of codebooks). Where there are no such numbers, `sensitivity` takes the largest. With `gptq`
    an outlier is what the sweep has made of it: it takes the compensation of the errors of the inputs before it. `refinements` choose it
    again, as they do codes.

    With statistics, remarks say how much the outputs of each layer have changed, as the root of the mean square of the
    change, relative to that of the outputs; activations count as they are.
  }];
  let options = [
    Option<"bits", "bits", "int64_t", /*default=*/"8", "bits of a code: 2, 3, 4, 5, 6 or 8">,
    Option<"group", "group", "int64_t", /*default=*/"64", "group size: inputs that share a scale; 0 for all of a row">,
    Option<"asymmetric", "asymmetric", "bool", /*default=*/"false", "store a zero point for each group">,
    Option<"activations", "activations", "int64_t", /*default=*/"8",
           "bits that products round activations to: 8, or 0 for none">,
    Option<"method", "method", "std::string", /*default=*/"\"rtn\"", "rtn, gptq, squeezellm or squeezellm-gptq">,
    Option<"statistics", "statistics", "std::string", /*default=*/"\"\"", "file that hone calibrate wrote">,
    Option<"actOrder", "act-order", "bool", /*default=*/"false", "round inputs by descending mean square">,
    Option<"staticGroups", "static-groups", "bool", /*default=*/"false", "choose scales before anything is rounded">,
    Option<"scales", "scales", "std::string", /*default=*/"\"absmax\"", "what scales are fitted to: absmax or mse">,
    Option<"outputBits", "output-bits", "int64_t", /*default=*/"0",
           "bits of a code of weights whose products a function returns, and no embedding reads; 0: as of others">,
    Option<"refinements", "refinements", "int64_t", /*default=*/"0",
           "how often all scales, or centroids of codebooks, and codes are chosen again after the sweep of gptq">,
    Option<"outliers", "outliers", "std::string", /*default=*/"\"\"", "share of elements to keep in f16, such as 0.45%">,
    Option<"expertOutliers", "expert-outliers", "bool", /*default=*/"true", "whether kernels of experts read outliers">,
    Option<"outlierMethod", "outlier-method", "std::string", /*default=*/"\"spqr\"", "magnitude, sensitivity or spqr">,
    Option<"sensitivities", "sensitivities", "std::string", /*default=*/"\"\"",
           "safetensors file with the sensitivity of each element">,
    Option<"outlierShares", "outlier-shares", "std::string", /*default=*/"\"\"",
           "such a file, by which outliers are distributed over weights">
  ];
  let statistics = [Statistic<"numQuantized", "num-weights-quantized", "Number of parameters quantized">,
                    Statistic<"numOutliers", "num-outliers", "Number of elements kept in f16">];
  let dependentDialects = ["::hone::HoneDialect"];
}

def ScaleChannels : Pass<"hone-scale-channels", "::mlir::ModuleOp"> {
  let summary = "Move scales of channels between weights and what computes their inputs";
  let description = [{
    Where only products read the result of a norm, its weight (and bias) is divided by a scale for each channel, and the columns of
    the products' weights are multiplied with it; likewise between the rows of `up` and the columns of `down` in a
    `hone.gated_mlp`. What the model computes stays the same but for the rounding of f32; rounding the weights to integers of
    `bits` and `group` afterwards loses less. The scales are H_jj^(a/2) / m_j^b, where H_jj is the mean square of channel j in
    `statistics`, a file that `hone calibrate` wrote of this model, and m_j the root of the mean square of the weights' columns,
    with the a and b in quarters from 0 to 1 for which rounding to nearest costs the outputs least.

    A weight's scales are kept in its attribute `hone.channel_scales`: passes after this one that read the statistics take them
    into account. Functions that read the same weights are scaled together. Remarks say how much of the error rounding to nearest would leave, and where and why nothing is scaled: other
    readers, parameters that several operations read, inputs that nothing measured, scales that gain less than a hundredth.
  }];
  let options = [
    Option<"bits", "bits", "int64_t", /*default=*/"4", "bits of a code: 2, 3, 4, 5, 6 or 8">,
    Option<"group", "group", "int64_t", /*default=*/"64", "group size: inputs that share a scale; 0 for all of a row">,
    Option<"asymmetric", "asymmetric", "bool", /*default=*/"false", "zero points for each group">,
    Option<"statistics", "statistics", "std::string", /*default=*/"\"\"", "file that hone calibrate wrote">
  ];
  let statistics = [Statistic<"numScaled", "num-inputs-scaled", "Number of inputs whose channels are scaled">];
  let dependentDialects = ["::hone::HoneDialect", "::mlir::arith::ArithDialect"];
}

def RotateResidualStream : Pass<"hone-rotate-residual-stream", "::mlir::ModuleOp"> {
  let summary = "Multiply what layers read and add to with an orthogonal matrix";
  let description = [{
    The rows x of embeddings, and all that layers add to them, become x Q with the randomized Hadamard matrix Q of
    `hone/Compress/Rotation.h` and `seed`. Tables of embeddings and weights of products that read x are multiplied with Q, those that
    write it, with their biases, with Q^T from the left; the gain of each `hone.rms_norm` of x moves into the columns of what reads
    its result first, since |x Q| = |x|. What the model computes stays the same but for the rounding of f32. No channel of an
    input is larger than others then, which is what rounding to a few codes suffers from (Ashkboos et al., "QuaRot", 2024; Liu
    et al., "SpinQuant", 2024).

    The weights that read x keep how it was rotated in `hone.input_rotation`: passes after this one that read statistics of the
    model take it into account. Zeros do not survive: prune afterwards.

    All of the residual stream is rotated or none of it. A remark says what is in the way: norms that subtract a mean, something else that reads
    x or adds to it, a parameter with two parts (a table that is also the last layer, whose norm has a gain), a gain that is 0.
  }];
  let options = [Option<"seed", "seed", "int64_t", /*default=*/"0", "number that the signs of Q come from">];
  let statistics = [Statistic<"numRotated", "num-parameters-rotated", "Number of parameters changed">];
  let dependentDialects = ["::hone::HoneDialect"];
}

def RotateInputs : Pass<"hone-rotate-inputs", "::mlir::ModuleOp"> {
  let summary = "Multiply inputs of products with Hadamard matrices while the model runs";
  let description = [{
    Products whose inputs x no norm computes, and that `hone-rotate-residual-stream` does not reach for that: what attention and activations make.
    Each 2^k neighbours of x, the most that divide its channels up to `block`, are multiplied with the Hadamard matrix over its root, by one
    product with a constant of 2^k by 2^k elements, and the columns of the weights with the same. What the model computes stays the
    same but for the rounding of f32 (Ashkboos et al., "QuaRot", 2024, section 4). `hone-split-mlps` comes before it, so that there is
    such an input inside of a feed-forward block.

    The weights keep how their inputs were rotated in `hone.input_rotation`: passes after this one that read statistics of the
    model take it into account. Zeros do not survive: prune afterwards. Remarks name the weights that stay as they are: those whose inputs are
    rotated already or come from a norm, that something else reads, or whose inputs are no multiple of 2.
  }];
  let options = [Option<"block", "block", "int64_t", /*default=*/"64", "neighbours that are multiplied with one matrix, at most: a power of two from 2 to 256">];
  let statistics = [Statistic<"numRotated", "num-parameters-rotated", "Number of parameters changed">];
  let dependentDialects = ["::hone::HoneDialect", "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def PermuteChannels : Pass<"hone-permute-channels", "::mlir::ModuleOp"> {
  let summary = "Order channels so that N:M pruning keeps more";
  let description = [{
    `hone-prune-nm` keeps the largest of neighbours. Which channels are neighbours is free between the products of feed-forward blocks,
    where rows of `gate` and `up` change their order with columns of `down`, and in the residual stream that layers read and add to, where
    columns of what reads it change it with rows of what writes it, tables of embeddings and gains of norms
    (`hone-rotate-residual-stream` says what can be in the way). What the model computes stays the same but for the order of sums. Each order is
    found by swaps of channels between groups that let `n` of `m` keep more of the sum of w_j^2 H_jj, relative to that of each
    weight, over the rows of all weights that are pruned; up to 1024 of them are looked at. H_jj is the mean square of input j in
    `statistics`, a file that `hone calibrate` wrote of this model, or 1 where that was not measured.

    Weights keep the order of their inputs in `hone.inputs`: passes after this one that read the statistics take it into account.
    Remarks say how much of the sum stays with the order and without, or why an order stays.
  }];
  let options = [
    Option<"n", "n", "int64_t", /*default=*/"2", "elements that are kept of each group">,
    Option<"m", "m", "int64_t", /*default=*/"4", "inputs of a group: 2 to 16">,
    Option<"statistics", "statistics", "std::string", /*default=*/"\"\"", "file that hone calibrate wrote">
  ];
  let statistics = [Statistic<"numPermuted", "num-orders-changed", "Number of inputs whose channels have another order">];
  let dependentDialects = ["::hone::HoneDialect"];
}

def SparsifyWeights : Pass<"hone-sparsify-weights", "::mlir::ModuleOp"> {
  let summary = "Store two of every four inputs of the weights whose others are 0";
  let description = [{
    A parameter that is a matrix of f32, plain, `#hone.stored` or `#hone.affine`, that products read, and of which at most two of
    every four neighbouring inputs of each row are not 0, is stored as `#hone.nm<2:4, of = …>` of the same elements. Whether it
    is such a matrix its bytes say: it does not matter who pruned it. A remark says what a parameter took before and takes now,
    or why it stays as it is: the first elements that do not fit, or that no kernel reads it so.

    With an ISA in `target` (`include/hone/cpu/isa.def`) it stays as it is also where products without zeros are not
    faster: where the geometric mean over all `rows` of their time, as a share of that with zeros, is 1 or more. The shares are
    measured ones (`lib/Transforms/Weights/SparseCosts.def`), and the remark says what they are. A `target` can be a GPU's chip, too;
    then shares are estimated (`lib/Transforms/Weights/CudaCosts.cpp`) and not measured.
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"\"",
           "ISA or chip that products have to be faster on: avx2, avx_vnni, avx512, avx512_vnni, avx512_bf16, amx, sm_90 and so on; none: "
           "however fast they are">,
    ListOption<"rows", "rows", "int64_t",
               "numbers of rows that products have (default: 1 where the model keeps a state, else 512)">
  ];
  let statistics = [Statistic<"numSparsified", "num-weights-sparsified", "Number of parameters stored by their kept inputs">];
  let dependentDialects = ["::hone::HoneDialect", "::hone::hrt::HrtDialect"];
}

def ChooseWidths : Pass<"hone-choose-widths", "::mlir::ModuleOp"> {
  let summary = "Choose how many bits each matrix gets, for a model of so many bytes";
  let description = [{
    Every parameter that `hone-quantize-weights` can store as integers gets the attribute `hone.encoding`, a `#hone.affine` or
    `#hone.dense_sparse` that this pass then uses in place of its own: one for which all parameters that are read take no more than `bits-per-weight` bits
    for each of their elements, with the least sum of losses. The loss of a weight is the mean square of how much its products
    change when it is rounded, relative to that of the products: by the Hessians in `statistics`, a file that
    `hone calibrate` wrote of this model, or of inputs that were not measured, as if they were independent and alike. With
    `error-compensation` errors count as those that are left in `gptq`. Where the file says what errors of weights
    cost the model, losses are multiplied by that, and are nats a token. The choice is exact (`hone/Compress/Allocation.h`).

    Forms are those of `bits` with one of `groups`, and 8 bits with one scale a row too. Up to 4 bits are there without outliers, and
    beside 0.25, 0.5, 1 and 2 % of them. A target that is too small is an error.
  }];
  let options = [
    Option<"bitsPerWeight", "bits-per-weight", "double", /*default=*/"4", "bits for each element of a parameter">,
    ListOption<"bits", "bits", "int64_t", "bits of a code that a weight may get: 2 to 8 (default: 2, 3, 4, 5, 6, 8)">,
    ListOption<"groups", "groups", "int64_t", "group sizes: inputs that may share a scale (default: 32, 64, 128)">,
    Option<"asymmetric", "asymmetric", "bool", /*default=*/"false", "store a zero point for each group">,
    Option<"activations", "activations", "int64_t", /*default=*/"8",
           "bits that products round activations to: 8, or 0 for none">,
    Option<"errorCompensation", "error-compensation", "bool", /*default=*/"false", "compensate errors as gptq does">,
    Option<"expertOutliers", "expert-outliers", "bool", /*default=*/"true", "whether kernels of experts read outliers">,
    Option<"statistics", "statistics", "std::string", /*default=*/"\"\"", "file that hone calibrate wrote">
  ];
  let statistics = [Statistic<"numChosen", "num-widths-chosen", "Number of parameters that got a form">];
  let dependentDialects = ["::hone::HoneDialect"];
}

def ConvertState : Pass<"hone-convert-state", "::mlir::ModuleOp"> {
  let summary = "Keep the keys and values of sessions in 16 bits or fewer";
  let description = [{
    A slot of the session's state that holds f32, and that only attention reads as keys or values, holds `type` instead: fresh
    positions are rounded to nearest, ties to even, before they are appended, or to the integers of `#hone.quantized_kv` as they are.
    Attention still computes in f32. A remark says which slots are converted, and why others are not.

    Where `type` is bf16, attention over f32 that is not kept, that of an encoder for one, gets `bf16_products`, and a remark says for how
    many that is: its products are as exact as those over a state.
  }];
  let options = [Option<"type", "type", "std::string", /*default=*/"\"bf16\"",
                        "the type of the kept elements: bf16, f16, int8 or int4">];
  let statistics = [Statistic<"numConverted", "num-slots-converted", "Number of slots converted">,
                    Statistic<"numRounded", "num-attentions-rounded", "Number of attentions that may multiply in bf16">];
  let dependentDialects = ["::hone::HoneDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ObserveInputs : Pass<"hone-observe-inputs", "::mlir::ModuleOp"> {
  let summary = "Show the inputs of linear layers to whoever runs the program";
  let description = [{
    In the function `entry`, every tensor that `hone.linear` multiplies with a parameter gets a `hone.observe` where it is
    computed. Feed-forward blocks are split into their products first; those of f16 and bf16 round the products then.

    Experts (`hone.moe`) become products of each with all rows, of which those that did not choose it are zeros: every expert has
    sites of its own.

    Layers that share an input share a site, and so do the inputs of layers that share a parameter. Sites are numbered in the
    order of their first layers. A remark says for each layer at which site its input is observed. The inputs of products with
    weights that are computed are not observed; a remark says so.
  }];
  let options = [Option<"entry", "entry", "std::string", /*default=*/"\"forward\"", "name of the function to observe">];
  let statistics = [Statistic<"numObserved", "num-inputs-observed", "Number of tensors observed">,
                    Statistic<"numSkipped", "num-layers-skipped", "Number of layers whose inputs are not observed">];
  let dependentDialects = ["::hone::HoneDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def Speculate : Pass<"hone-speculate", "::mlir::ModuleOp"> {
  let summary = "Make an entry that verifies a tree of draft tokens in one call";
  let description = [{
    Makes `@verify` of `@forward`, in the same module and over the same state. Beside what `@forward` takes it has the input
    `ancestors`, i64 `[sequence]`: bit j of element i is set iff token j of the call is token i or an ancestor of it. The tokens of a
    call, at most 64, are a tree in topological order, or several; all sequences of a batch have the same. A token is at the
    position after its parent's, and sees the state, its ancestors and itself. A chain has the lowest i + 1 bits set in element i: then
    `@verify` is `@forward`. After `hone-separate-sequences`, ancestors are i64 `[batch, sequence]`: each sequence has a tree of its own, and
    goes by the positions that it holds itself.

    - Each `hone.attention` over the state sees what it saw and `#hone.tree` shows. One that counts from positions, with a sliding window or
      alibi, gets `key_positions`.
    - What is computed from the positions of the tokens, tables of rotations and rows of learned embeddings, is computed from those in
      the tree: an integer tensor whose element is `kv_length + i + …`, i the number of the token, loses as many positions as
      earlier tokens of the call are not ancestors.

    It is an error, with a remark that says why, where that is not all that there is to change: a slot is replaced as a whole
    or read by something other than attention, an attention over the state is neither causal nor sliding or has a bias, something else
    is computed from how many positions are held.
  }];
  let statistics = [Statistic<"numAttentions", "num-attentions-branched", "Number of attentions that see a tree">,
                    Statistic<"numPositions", "num-positions-branched", "Number of tensors of positions that go by a tree">];
  let dependentDialects = ["::hone::HoneDialect", "::hone::hrt::HrtDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def SeparateSequences : Pass<"hone-separate-sequences", "::mlir::ModuleOp"> {
  let summary = "Let the sequences of a batch hold different numbers of positions";
  let description = [{
    Rewrites `@forward` so that each sequence goes by the positions that it holds itself (`hone.kv_lag`), and a session may keep other
    tokens of a call of each.

    - Each `hone.attention` over the state gets `lags`.
    - The positions of tokens, an integer tensor `[batch, …]` whose element is `kv_length + i + …`, i the number of the token, lose the
      lag of the sequence.

    It is an error, with a remark that says why, where that is not all that there is to change: a slot is replaced as a whole or read by
    something other than attention, an attention over the state is neither causal nor sliding or has a bias, positions are
    computed for all sequences alike.
  }];
  let statistics = [
    Statistic<"numAttentions", "num-attentions-separated", "Number of attentions that go by the length of each sequence">,
    Statistic<"numPositions", "num-positions-separated", "Number of tensors of positions that do">];
  let dependentDialects = ["::hone::HoneDialect", "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

include "Transforms/GradientPasses.td"

def ShardLayers : Pass<"hone-shard-layers", "::mlir::ModuleOp"> {
  let summary = "Split layers over several processes, each of which has a part of the weights";
  let description = [{
    Tensor parallelism (Shoeybi et al. 2019, "Megatron-LM"): each of `ranks` processes computes with its part of the heads of
    attention, by GQA groups, of the hidden channels of feed-forward blocks, and of the rows of products that the
    model returns. Weights before are split by rows, weights after by columns; what these add up, `shard.all_reduce` adds up
    over the ranks, and biases are added then. The module gets the grid `@ranks` of the upstream dialect `shard`, and parameters
    of which ranks have parts `hone.shards`. State is split with the heads that it belongs to. Arguments and results of
    functions stay whole: `shard.all_slice` and `shard.all_gather` are beside them. All else is the same on all ranks, and the
    module is the program of each.

    A product that shares its weight with an embedding gets a copy of it first. A layer that cannot be split stays whole on
    each rank, with a remark; it is an error if none can. Parts of integers with a scale a group are whole groups.
  }];
  let options = [Option<"ranks", "ranks", "int64_t", /*default=*/"2", "processes that the model is split over">];
  let statistics = [Statistic<"numLayers", "num-layers-sharded", "Number of layers that ranks share">,
                    Statistic<"numParams", "num-params-sharded", "Number of parameters of which ranks have parts">];
  let dependentDialects = ["::hone::HoneDialect", "::mlir::shard::ShardDialect"];
}

#endif // HONE_TRANSFORMS_PASSES_TD
