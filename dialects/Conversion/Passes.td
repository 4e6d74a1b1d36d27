// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that go from one level to the next; the names say from where to where.

#ifndef HONE_CONVERSION_PASSES_TD
#define HONE_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertOnnxToLinalg : Pass<"hone-convert-onnx-to-linalg", "::mlir::ModuleOp"> {
  let summary = "Lower every onnx operation to linalg, tensor, arith and math";
  let description = [{
    Walks each function in order and lowers operator by operator; shape arithmetic on small integer tensors is computed on
    scalars and folds on the way, so that the sizes of what follows are constants or short expressions of the inputs'.
    Operations of the hone dialect stay. Integers lose their sign in types; the operators keep its meaning.

    Operators that have no lowering are all reported, grouped by name with their number, before the pass fails.
  }];
  let dependentDialects = ["::hone::HoneDialect", "::hone::hrt::HrtDialect", "::mlir::arith::ArithDialect",
                           "::mlir::complex::ComplexDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numLowered", "num-operators-lowered", "Number of ONNX operators lowered">];
}


def HoistChecks : Pass<"hone-hoist-checks", "::mlir::ModuleOp"> {
  let summary = "Check sizes before anything of those sizes is computed";
  let description = [{
    `hrt.check` moves up in its block with the arithmetic on sizes that it needs, to where what else it needs is known. A size that a
    check fixes is in the types of what comes after it, and canonicalisation gives those types to what comes before, whose loops run to
    the size that is checked only then.
  }];
  let statistics = [Statistic<"numHoisted", "num-checks-hoisted", "Number of checks that moved">];
}

def FoldBatchNorms : Pass<"hone-fold-batch-norms", "::mlir::ModuleOp"> {
  let summary = "Batch normalisation into the weights of the convolution before it, and sums into its bias";
  let description = [{
    An `onnx.BatchNormalization` with given statistics that alone reads an `onnx.Conv` multiplies and shifts its channels, which rows of the
    weight and the bias can do; an `onnx.Add` of a number for each channel is a bias. Where all of their elements are known, they become
    other parameters, and it goes.
  }];
  let dependentDialects = ["::hone::HoneDialect"];
  let statistics = [Statistic<"numFolded", "num-folded", "Number of operations that went into weights">];
}

def LowerExpansions : Pass<"hone-lower-expansions"> {
  let summary = "Turn expansions into several dynamic sizes into casts with computed strides";
  let description = [{
    Upstream's `-expand-strided-metadata` expands a dimension into at most one dynamic size; a `memref.expand_shape` with more
    in one group becomes a `memref.reinterpret_cast` here.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
  let statistics = [Statistic<"numLowered", "num-expansions-lowered", "Number of expansions that became casts">];
}

def LowerCopies : Pass<"hone-lower-copies"> {
  let summary = "Turn copies between buffers of which one is strided into loops";
  let description = [{
    A `memref.copy` of contiguous buffers becomes one move of memory later on; any other would become a call of a library
    that an artefact does not have, so it becomes a `linalg.generic` here.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
  let statistics = [Statistic<"numLowered", "num-copies-lowered", "Number of copies that became loops">];
}

def LowerLinalg : Pass<"hone-lower-linalg", "::mlir::ModuleOp"> {
  let summary = "Turn operations of linalg on buffers into loops that LLVM vectorizes and several threads share";
  let description = [{
    The innermost loop is the dimension along which most operands are contiguous. A reduction that is innermost keeps its
    result in a value, and its sums may be reordered; any other innermost loop says that its iterations are independent.

    An operation whose parallel iterations write different elements and cannot fail becomes a function of a range of them,
    which `hrt.parallel` runs, unless its sizes are fixed and small.
  }];
  let dependentDialects = ["::hone::hrt::HrtDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"numLowered", "num-operations-lowered", "Number of operations that became loops">,
                    Statistic<"numParallel", "num-operations-parallel", "Number of operations that threads may share">];
}

def LowerMath : Pass<"hone-lower-math"> {
  let summary = "Turn mathematical functions into arithmetic that LLVM vectorizes";
  let description = [{
    exp, exp2, expm1, tanh and erf of f32 become polynomials (upstream's, at most five units in the last place off; results
    below the smallest normal number are 0); powers with an exponent that is a small constant become products and roots; what
    LLVM has no instruction for (division that rounds up or down, bf16) is expanded.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

def FoldClamps : Pass<"hone-fold-clamps", "::mlir::func::FuncOp"> {
  let summary = "Limits of results into the kernels that compute them";
  let description = [{
    Where nothing but an elementwise maximum or minimum with constants (Relu, Clip) reads the result of a kernel that has the floats
    `least` and `most`, these become tighter and the operation goes.
  }];
  let statistics = [Statistic<"numFolded", "num-folded", "Number of elementwise operations that went into kernels">];
}

def FoldResiduals : Pass<"hone-fold-residuals", "::mlir::func::FuncOp"> {
  let summary = "Let the kernels of linear layers and norms add up";
  let description = [{
    The sum of a tensor and the result of a packed linear layer, which nothing else reads, becomes that layer's residual: its
    kernel adds it to sums that are still in registers. The result may have been reshaped, as long as its rows stay whole.

    A sum that is left, and that a norm of the device reads first, becomes that norm's: one kernel writes both.
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numFolded", "num-residuals-folded", "Number of sums that kernels of layers compute">,
                    Statistic<"numNormed", "num-sums-normed", "Number of sums that kernels of norms compute">];
}

def FuseElementwise : Pass<"hone-fuse-elementwise"> {
  let summary = "Compute elementwise operations that follow each other in one loop";
  let description = [{
    An elementwise `linalg.generic` whose result only one other reads becomes part of that one, and reshapes between them move out of
    the way, as long as the body has at most `max-operations` operations: fusing copies bodies, so a chain without a bound would take time
    with the square of its length, here and in LLVM's vectorizer.
  }];
  let options = [Option<"maxOperations", "max-operations", "int64_t", /*default=*/"256",
                        "Operations that the body of a fused operation may have">];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numFused", "num-operations-fused", "Number of operations that became part of others">];
}

def SplitEmpties : Pass<"hone-split-empties"> {
  let summary = "Give every use of an empty tensor one of its own";
  let description = [{
    Bufferization makes one buffer of each `tensor.empty`; results that share one are computed in the same memory, one after
    the other, and nothing can stay a view of the earlier.
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numSplit", "num-empties-split", "Number of empty tensors made">];
}

def FoldTransposes : Pass<"hone-fold-transposes", "::mlir::func::FuncOp"> {
  let summary = "Let kernels read and write transposed buffers through strides";
  let description = [{
    A transposition that keeps the last dimension in its place, and whose result only kernels, the state, and parallel loops whose
    innermost goes along that dimension read, becomes a view of what it reads, if nothing writes that before the last of them. One whose operand is nothing but a kernel's output
    becomes a view that the kernel writes.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
  let statistics = [Statistic<"numFolded", "num-transpositions-folded", "Number of transpositions that became views">];
}

def SplitDeallocations : Pass<"hone-split-deallocations", "::mlir::func::FuncOp"> {
  let summary = "Free buffers that nothing else can be one by one";
  let description = [{
    A buffer of a `bufferization.dealloc` that is allocated in the function, and that neither what is retained nor a buffer from
    elsewhere may be, gets a `bufferization.dealloc` of its own.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
  let statistics = [Statistic<"numSplit", "num-buffers-split", "Number of buffers that are freed alone">];
}

def PlaceOutputs : Pass<"hone-place-outputs", "::mlir::func::FuncOp"> {
  let summary = "Compute outputs where the caller gets them";
  let description = [{
    A buffer of an entry that is copied to an output, and not used after that, becomes the output's memory.
  }];
  let dependentDialects = ["::hone::hrt::HrtDialect"];
  let statistics = [Statistic<"numPlaced", "num-outputs-placed", "Number of outputs that are not copied">];
}

def PlanMemory : Pass<"hone-plan-memory", "::mlir::func::FuncOp"> {
  let summary = "Give the buffers of an entry slots of one arena";
  let description = [{
    Buffers that are allocated and freed in the block of an entry, and whose sizes can be computed where it begins, become
    views of the slots of `hrt.arena`. Buffers that are never needed at once share a slot, which is as large as the largest
    of them. The others are allocated when they are needed; a remark says why.
  }];
  let dependentDialects = ["::hone::hrt::HrtDialect", "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
  let statistics = [Statistic<"numPlanned", "num-buffers-planned", "Number of buffers that got a slot">,
                    Statistic<"numSlots", "num-slots-made", "Number of slots">];
}

def PlaceTensors : Pass<"hone-place-tensors", "::mlir::func::FuncOp"> {
  let summary = "Decide which tensors are the host's and which the device's";
  let description = [{
    In an entry for a device, what is computed over tensors runs on the device, but for small tensors of integers that come from the
    host (shapes, axes, checks of indices), and for what threads cannot share. Inputs, parameters and constants are read where
    they are needed. What is needed on the other side is brought there: by `hrt.upload`, or by `hrt.fetch`, which waits. A remark
    names what is fetched, and what runs on the host.
  }];
  let dependentDialects = ["::hone::hrt::HrtDialect", "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
                           "::mlir::gpu::GPUDialect", "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numDevice", "num-operations-on-device", "Number of operations that run on the device">,
                    Statistic<"numHost", "num-operations-on-host", "Number of operations that run on the host">,
                    Statistic<"numFetched", "num-tensors-fetched", "Number of tensors that the host waits for">,
                    Statistic<"numUploaded", "num-tensors-uploaded", "Number of tensors brought to the device">];
}

def PlaceBuffers : Pass<"hone-place-buffers", "::mlir::func::FuncOp"> {
  let summary = "Give buffers on the device their memory space";
  let description = [{
    What views, loops and operations join lies in one memory: that of the device if it holds anything of the device. Nothing but
    `hrt.fetch` and `hrt.upload` touches both, and nothing that the host reads or writes itself may be the device's; anything else
    is an error of the compiler, which is reported as one.
  }];
  let dependentDialects = ["::hone::hrt::HrtDialect", "::mlir::gpu::GPUDialect"];
  let statistics = [Statistic<"numPlaced", "num-buffers-placed", "Number of buffers on the device">];
}

def ConvertLinalgToGpu : Pass<"hone-convert-linalg-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Turn operations of linalg on the device's memory into kernels";
  let description = [{
    Each becomes a `gpu.func` of the module `@device` and an `hrt.launch`; kernels that are equal but for their name are one.
    Where nothing is summed, a thread takes the next elements of a row, 16 bytes of them where all operands allow that,
    else one. Reductions whose operands are contiguous along the reduced dimension give each position to a warp, whose lanes
    share the terms and exchange sums by shuffles; others give it to a thread.

    Allocation and copies in the device's memory become operations of hrt.
  }];
  let dependentDialects = ["::hone::hrt::HrtDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
  let statistics = [Statistic<"numKernels", "num-kernels-generated", "Number of different kernels">,
                    Statistic<"numLaunches", "num-launches", "Number of launches">,
                    Statistic<"numVectorized", "num-launches-vectorized", "Number of launches that read and write 16 bytes at once">,
                    Statistic<"numWarps", "num-launches-by-warps", "Number of launches whose warps share a position">];
}

def ExpandOnnxFunctions : Pass<"hone-expand-onnx-functions", "::mlir::ModuleOp"> {
  let summary = "Replace onnx operations that have no lowering by the functions their schemas define";
  let description = [{
    ONNX defines many operators as functions of others, some depending on attributes and operand types. An operation that
    `hone-convert-onnx-to-linalg` does not lower is replaced by the body of its function at the opset of the module, and so
    are the operations of that body. One whose function does not cover its attributes or types is an error that says so.
    Operations that have neither are errors before that, as functions refuse what is computed from their results.

    Before models are raised those of com.microsoft are expanded, as what they mean is recognised in the nodes that they are
    functions of.
  }];
  let options = [Option<"domain", "domain", "std::string", "\"\"", "Replace operations of this domain alone; all where empty">];
  let dependentDialects = ["::hone::HoneDialect"];
  let statistics = [Statistic<"numExpanded", "num-functions-expanded", "Number of operations replaced by their functions">];
}

def PackWeights : Pass<"hone-pack-weights", "::mlir::ModuleOp"> {
  let summary = "Lay matrices out as the products of the CPU read them";
  let description = [{
    A parameter `[N, K]` of f32 whose elements are stored as f32, f16 or bf16, in either order, or as a `#hone.affine` that
    `#hrt.panels` takes, and which only products with f32 activations and embeddings read, gets the encoding `#hrt.panels`. Its
    bytes are converted when the artefact is written. A remark says which parameters are packed, and why others are not.
  }];
  let dependentDialects = ["::hone::hrt::HrtDialect"];
  let statistics = [Statistic<"numPacked", "num-weights-packed", "Number of parameters packed">];
}

def BlockState : Pass<"hone-block-state", "::mlir::ModuleOp"> {
  let summary = "Keep keys and values of the state as the CPU's kernels of attention multiply them";
  let description = [{
    A slot `[B, H, S, D]` of f32, f16 or bf16 that grows along S, and that only attention which has a kernel reads, as its keys or
    as its values, gets the encoding `#hrt.key_blocks` or `#hrt.value_blocks`, where both keys and values of such attention come
    from slots. The runtime turns positions into blocks when they are appended, and rounds them where the slot is
    `#hone.quantized_kv`; such a slot that cannot be in blocks is kept as it comes. A remark says which slots are, and why others are not.
  }];
  let dependentDialects = ["::hone::hrt::HrtDialect"];
  let statistics = [Statistic<"numBlocked", "num-slots-blocked", "Number of slots that are kept in blocks">];
}

def ConvertHoneToHrt : Pass<"hone-convert-hone-to-hrt", "::mlir::ModuleOp"> {
  let summary = "Turn functions on tensors into entry points of one call each";
  let description = [{
    Every function with a body becomes `(!hrt.call) -> ()`: arguments are read from the call's inputs, results are written
    to its outputs, parameters are read from the mapped weights, and operations on `!hone.kv` become those on the session's
    state. Parameters get the offsets of their planes' bytes (`hrt.offsets`); those that nothing reads are erased.

    Operations that have a kernel of the target become `hrt.kernel`, the others are decomposed.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "Whose kernels: those of the target cpu or cuda">];
  let dependentDialects = ["::hone::hrt::HrtDialect", "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numKernels", "num-kernels-selected", "Number of operations given to a kernel">,
                    Statistic<"numParameters", "num-parameters-placed", "Number of parameters placed">];
}

def ConvertHrtToLLVM : Pass<"hone-convert-hrt-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Lower bufferized entry points to the LLVM dialect and to the program's table of imports";
  let description = [{
    The last step on the CPU: memref, arith, math, cf and hrt become LLVM; what the program needs of the runtime becomes a
    slot of its import table, which the loader fills; parameters are erased: code refers to their bytes by offset.
    `hone_program` describes imports and entries
    (include/hone/runtime/program.h).
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

//===- onnx to hone -----------------------------------------------------------------------------------------------===//

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
    where a Slice cuts as many rows out as there are positions, and the result is broadcast with something that has that many. It is
    silent on numbers of rows that it does not understand.
  }];
  let statistics = [Statistic<"numBounded", "num-tables-bounded", "Number of lookups whose bounds are known">];
}

#endif // HONE_CONVERSION_PASSES_TD
