//===- GradientPasses.td - gradients and steps of training ---------------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From an entry to its gradients, and from these to a step that changes parameters.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_TRANSFORMS_GRADIENT_PASSES_TD
#define HONE_TRANSFORMS_GRADIENT_PASSES_TD

include "mlir/Pass/PassBase.td"

def Differentiate : Pass<"hone-differentiate", "::mlir::ModuleOp"> {
  let summary = "Make an entry that computes gradients";
  let description = [{
    Makes `@gradients` of a copy of `entry` by reverse mode: the operations of the entry, then their adjoints from the last to the first.
    With the loss `cross-entropy` it takes the input `targets` as well, the token that comes next for each position, and gives `loss` and
    its gradients; without, it takes `NAME.gradient`, the gradient of output NAME, and gives vector-Jacobian products. The
    gradient of P is the output `P.gradient`, of the shape that P has in the model's file.

    Every operation that a gradient goes through is a `DifferentiableOpInterface`. Feed-forward blocks are split into products and named
    operations of linalg generalized first; an operation whose adjoint leaves out what is wanted is decomposed. Another one
    is an error, with its name and location. What adjoints read of the entry's values is kept, and attention gives its lse for
    them; probabilities, divisors of norms and bodies of loops are computed anew.

    With `teacher`, the name of another function of the module, the loss is that of distillation (Hinton et al. 2015):
    (1 - w) · cross entropy + w T² · KL(teacher ‖ entry), where w is `distill-weight`, T the `temperature`, and KL the divergence of the
    probabilities softmax(logits / T). The teacher's body is copied into the entry, with an empty state; its parameters have no gradients.
    The second result is then `cross_entropy`. With `feature-weight` F the loss has F times the mean of ‖S - R‖² / ‖R‖² over hidden states S of the
    entry and R of the teacher in addition (SquareHead of Kurtic et al. 2023). Hidden states are what norms read, of the shape that the last one reads.

    With `most-logits` the last layer, its loss and their adjoints are one loop over chunks of rows (fused linear and cross-entropy, Hsu et
    al., *Liger Kernel*, 2024): no more logits than that, but one row at least, are held at once.

    The entry begins with an empty state, and keeps none: positions count from 0, and attention sees the keys of the call.
  }];
  let options = [
    Option<"entry", "entry", "std::string", /*default=*/"\"\"",
           "the function to differentiate; if none is given forward, or main where there is none">,
    Option<"output", "output", "int64_t", /*default=*/"0", "number of the output that gradients are of, or that the loss is made of">,
    Option<"loss", "loss", "std::string", /*default=*/"\"\"", "cross-entropy, or none: the gradient of the output is an input">,
    Option<"teacher", "teacher", "std::string", /*default=*/"\"\"",
           "with a loss, the function whose logits take part in it, or none">,
    Option<"distillWeight", "distill-weight", "double", /*default=*/"0.5", "with a teacher, the share of the divergence from it: 0 to 1">,
    Option<"temperature", "temperature", "double", /*default=*/"1", "with a teacher, what logits are divided by before">,
    Option<"featureWeight", "feature-weight", "double", /*default=*/"0", "with a teacher, the weight of the error of hidden states; 0: none">,
    Option<"mostLogits", "most-logits", "int64_t", /*default=*/"0", "logits that the loss holds at once, in whole rows; 0: all">,
    ListOption<"of", "of", "std::string",
               "parameters and inputs to give the gradients of; if none is given, all parameters that the output depends on, but for "
               "the frequencies of rotations">
  ];
  let statistics = [Statistic<"numAdjoints", "num-adjoints-built", "Number of operations whose adjoints were built">,
                    Statistic<"numGradients", "num-gradients-returned", "Number of gradients that are returned">];
}

def ExpandGradients : Pass<"hone-expand-gradients", "::mlir::func::FuncOp"> {
  let summary = "Build the adjoints that Gradient of ONNX stands for";
  let description = [{
    Replaces each `onnx.ai.onnx.preview.training.Gradient` by the adjoints of the operations between its xs and y, its last operand, from the last to the first, as `hone-differentiate`
    builds those of an entry. One after another, so that gradients of gradients are those of adjoints.
  }];
  let statistics = [Statistic<"numExpanded", "num-gradients-expanded", "Number of operations that were replaced">];
}

def AddOptimizer : Pass<"hone-add-optimizer", "::mlir::ModuleOp"> {
  let summary = "Make a step of training of an entry that computes gradients";
  let description = [{
    Makes `@train_step` of `@gradients`, which has a loss: it takes `learning_rate` as well, gives `loss` and `gradient_norm`, the norm of
    all gradients, and updates each parameter whose gradient `@gradients` gives. Parameters and moments are slots of the state `@training`: a
    parameter's begins with its value, a moment's as zeros, and a call replaces them all. Parameters without a gradient stay constant. Other
    functions, which read parameters as they were, become private.

    The update of a parameter is one `linalg.generic` that reads and writes it and its moments once. With the rate η, a gradient g of a
    parameter p, and a weight decay λ of parameters of two dimensions or more:

    - `sgd`: p - η (g + λ p);
    - `momentum`: v ← μ v + g + λ p; p - η v;
    - `adamw` (Loshchilov and Hutter 2019): m ← β1 m + (1 - β1) g; v ← β2 v + (1 - β2) g²;
      p (1 - η λ) - η (m / (1 - β1^t)) / (√(v / (1 - β2^t)) + ε);
    - `muon` (Jordan et al. 2024), of matrices [m, n] of hidden layers: v ← μ v + (1 - μ) g; p (1 - η λ) - η 0.2 √max(m, n) O(μ v + (1 - μ) g),
      where O makes the matrix nearly orthogonal by five Newton-Schulz steps of products. Tables of embeddings, the last layer, experts and
      vectors are updated by adamw.

    With `keep-zeros`, elements of parameters of two dimensions or more that are 0 stay 0: a pruned model keeps its mask.

    With `sparse-mode`, the weights `sparse` of products are trained to keep at most `n` of every `m` neighbouring inputs, with a pattern
    that may change. The model reads a projection of such a weight w, computed in each call, and its gradient counts for w as it is
    (a straight-through estimator):

    - `sr-ste` (Hu et al. 2024): S(w) keeps the n of largest magnitude; the gradient has κ (w - S(w)) in addition;
    - `ast` (Huang et al. 2024): the same S; AdamW's m has κ (w - S(w)) in addition where it is used, and v is that of the sum;
    - `cast` (Huang et al. 2025): the model reads w itself, and where S(w) of the former two is 0, AdamW's m is (1 - α) m + α λ sign(w) where it
      is used; v is that of what is used. λ is `mask-decay`;
    - `s-ste` (Hu et al. 2024): S(w) = β sign(w) max(|w| - t, 0), where t is the largest magnitude of the group that is not among the n,
      and β the factor that makes |w - S(w)| smallest for the weight as it begins.

    κ, or α, is the input `mask_decay` of all but the last. The entry `@project` replaces each such w by S(w), once, after the last step.

    With `accumulate`, a number N of batches, `@train_step` takes the mean of the gradients of its batch and of those of N - 1 calls of the entry
    `@accumulate` before it, which gives their `loss` and adds gradients to slots `P.accumulated`; a step leaves these 0.

    With `evaluate`, the entry `@evaluate` gives the loss alone, without a teacher, of parameters as the last step left them, and changes nothing.

    With `max-norm`, gradients of a larger norm are multiplied by max-norm / (norm + 1e-6) first. All gradients are in memory then; with
    `round-gradients` those of parameters of two dimensions or more, but for the last that is known, are rounded to bf16 before the norm is
    computed. A parameter that is not stored as f32 is an error; one that is stored transposed gets the shape that it has in its file.
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", /*default=*/"\"adamw\"", "sgd, momentum, adamw or muon">,
    Option<"weightDecay", "weight-decay", "double", /*default=*/"0", "what of a parameter is taken away, times the learning rate">,
    Option<"maxNorm", "max-norm", "double", /*default=*/"0", "largest norm of all gradients; 0: any">,
    Option<"roundGradients", "round-gradients", "bool", /*default=*/"false", "with a largest norm, whether gradients of matrices are kept in bf16">,
    Option<"keepZeros", "keep-zeros", "bool", /*default=*/"false", "whether elements of matrices that are 0 stay 0">,
    Option<"sparseMode", "sparse-mode", "std::string", /*default=*/"\"\"", "how N:M weights are trained: sr-ste, ast, cast or s-ste; or none">,
    ListOption<"sparse", "sparse", "std::string", "with a sparse mode, the weights that are N:M">,
    Option<"n", "n", "int64_t", /*default=*/"2", "with a sparse mode, elements that are kept of each group">,
    Option<"m", "m", "int64_t", /*default=*/"4", "with a sparse mode, inputs of a group: 2 to 128">,
    Option<"maskDecay", "mask-decay", "double", /*default=*/"0", "of cast: what the update makes of a gradient's mean in the end">,
    Option<"accumulate", "accumulate", "int64_t", /*default=*/"1", "batches whose gradients a step takes the mean of">,
    Option<"evaluate", "evaluate", "bool", /*default=*/"false", "whether to make an entry that computes the loss alone">,
    Option<"momentum", "momentum", "double", /*default=*/"0.9", "of momentum and muon: what is kept of the velocity">,
    Option<"beta1", "beta1", "double", /*default=*/"0.9", "of adamw: what is kept of the mean of gradients">,
    Option<"beta2", "beta2", "double", /*default=*/"0.999", "of adamw: what is kept of the mean of their squares">,
    Option<"epsilon", "epsilon", "double", /*default=*/"1e-8", "of adamw: added to the root of that mean">
  ];
  let statistics = [Statistic<"numUpdates", "num-parameters-updated", "Number of parameters that a step updates">,
                    Statistic<"numProjected", "num-weights-projected", "Number of weights that a step reads a projection of">];
  let dependentDialects = ["::hone::HoneDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def RoundProducts : Pass<"hone-round-products", "::mlir::ModuleOp"> {
  let summary = "Let products of f32 be computed in bf16";
  let description = [{
    Gives `hone.linear`, `hone.matmul`, `hone.attention` and `hone.attention_gradient` over f32 that is computed or stored as such
    `bf16_products`: kernels may round the factors to bf16, and add up in f32. What is between products, parameters and moments stays f32
    (mixed precision; Kalamkar et al., "A Study of BFLOAT16 for Deep Learning Training", 2019). Attention over a state is left as it is.
  }];
  let statistics = [Statistic<"numRounded", "num-products-rounded", "Number of operations that may multiply in bf16">];
  let dependentDialects = ["::hone::HoneDialect"];
}

def IntegrateGradients : Pass<"hone-integrate-gradients", "::mlir::ModuleOp"> {
  let summary = "Make a step that adds up gradients along a path of the weights";
  let description = [{
    Makes `@path_step` of `@gradients`, which has a loss. Each parameter P with a gradient for which the module has a parameter `P.path_end`
    is read as w + position · (e - w), where w is P, e is `P.path_end`, and `position`, an f32, is an input; others stay as they are. A call adds
    share · (e - w) · g to the slot P of the state `@path`, which begins as zeros: with the positions of a quadrature rule and its
    weights as the input `share`, the slots become the integral of the gradient over the path, by element, whose sum is the difference of
    the loss between its ends (the fundamental theorem of calculus; Sundararajan et al. 2017 for inputs).

    The results are `loss`, and `slope`, its derivative by the position, an f64. Other functions become private. A parameter that is not
    stored as f32 is an error; those that are stored transposed get the shape that they have in the file.
  }];
  let statistics = [Statistic<"numIntegrals", "num-integrals", "Number of parameters on the path">];
  let dependentDialects = ["::hone::HoneDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def NameConstants : Pass<"hone-name-constants", "::mlir::ModuleOp"> {
  let summary = "Make parameters of small initializers of floats";
  let description = [{
    An `onnx.Constant` of floats with more than one element that the import made of an initializer of few bytes becomes a `hone.param` of
    the initializer's name, as larger ones are: gains and biases then have gradients. A number alone stays a constant, which other passes
    read, and so do nodes that are constants.
  }];
  let statistics = [Statistic<"numNamed", "num-constants-named", "Number of constants that became parameters">];
  let dependentDialects = ["::hone::HoneDialect"];
}

#endif // HONE_TRANSFORMS_GRADIENT_PASSES_TD
