// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that go from one level to the next; the names say from where to where.

#ifndef HONE_CONVERSION_PASSES_TD
#define HONE_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"
include "Conversion/RaisingPasses.td"

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

def MoveTransposes : Pass<"hone-move-transposes", "::mlir::ModuleOp"> {
  let summary = "Compute between transpositions in the order of dimensions that needs fewest of them";
  let description = [{
    Models that were channels-last transpose before and after each convolution. Nodes of ONNX whose meaning does not depend on the order of
    dimensions (elementwise ones, Concat, Pad, Resize, Slice, Split, Softmax, reductions), and that read each other's results, are computed
    over dimensions permuted as those of a transposition before or after them, where fewer elements are transposed then: the
    transpositions at their operands and results go, and others come where something else makes the operands or reads the results.
    Transpositions of transpositions become one.
  }];
  let dependentDialects = ["::hone::HoneDialect"];
  let statistics = [Statistic<"numMoved", "num-moved", "Number of connected groups of nodes that were moved">];
}

def FoldBatchNorms : Pass<"hone-fold-batch-norms", "::mlir::ModuleOp"> {
  let summary = "Batch normalisation into the weights of the convolution before it, and other factors and summands of channels";
  let description = [{
    An `onnx.BatchNormalization` with given statistics that alone reads an `onnx.Conv` multiplies and shifts its channels, which rows of the
    weight and the bias can do; so do Add, Sub, Mul and Div with a number, or one for each channel. Where all of their elements are known,
    they become other parameters, and it goes.
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
    Dimensions of one element become no loop, and those that lie next to each other in all operands one. The innermost
    loop is the dimension along which most operands are contiguous; what does not change along it is read before it. A
    reduction that is innermost keeps its result in a value, and its sums may be reordered; any other innermost loop says
    that its iterations are independent.

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
    below the smallest normal number are 0), log and log1p as well (at most two units off); powers with an exponent that
    is a small constant become products and roots; what
    LLVM has no instruction for (division that rounds up or down, bf16) is expanded.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

def FoldClamps : Pass<"hone-fold-clamps", "::mlir::func::FuncOp"> {
  let summary = "Limits and activations of results into the kernels that compute them";
  let description = [{
    Where nothing but an elementwise maximum or minimum with constants (Relu, Clip) reads the result of a kernel that has the floats
    `least` and `most`, these become tighter and the operation goes. So does silu, gelu or hard swish, with a factor and a summand
    after it, where the kernel has the integer `activation` and no limits yet.
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
    with the square of its length, here and in LLVM's vectorizer. What costs more than a load and would be computed again for each row of
    its reader stays apart.
  }];
  let options = [Option<"maxOperations", "max-operations", "int64_t", /*default=*/"256",
                        "Operations that the body of a fused operation may have">];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numFused", "num-operations-fused", "Number of operations that became part of others">];
}

def Rematerialize : Pass<"hone-rematerialize", "::mlir::func::FuncOp"> {
  let summary = "Compute cheap values of the forward pass anew for the backward pass";
  let description = [{
    Norms, transpositions and parallel `linalg.generic` whose result is read again `far` operations or more after the read before
    are computed a second time there, so that memory need not hold the result in between (recomputation, activation checkpointing).
    That is done where memory holds at the later read whatever the operation reads: constants, inputs, and what is read there or
    later in any case. No value is held for longer than before.
  }];
  let options = [Option<"far", "far", "unsigned", /*default=*/"64",
                        "operations between two reads from which on the later one is of the backward pass">];
  let statistics = [Statistic<"numRematerialized", "num-rematerialized", "Number of operations computed twice">];
}

def SplitEmpties : Pass<"hone-split-empties"> {
  let summary = "Give every use of an empty tensor one of its own";
  let description = [{
    Bufferization makes one buffer of each `tensor.empty`; results that share one are computed in the same memory, one after
    the other, and nothing can stay a view of the earlier. The same holds for a `linalg.fill` that several results begin
    with.
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

def PlaceSlices : Pass<"hone-place-slices", "::mlir::func::FuncOp"> {
  let summary = "Compute the parts of a concatenation where they belong";
  let description = [{
    A buffer that is copied to a part of another one, which is put together of disjoint parts and read after that, becomes a view of
    the part, if all that uses it takes strides.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
  let statistics = [Statistic<"numPlaced", "num-slices-placed", "Number of parts that are not copied">];
}

def ChooseLayouts : Pass<"hone-choose-layouts", "::mlir::func::FuncOp"> {
  let summary = "Keep feature maps between convolutions with their channels last";
  let description = [{
    A buffer `[N, C, spatial...]` of at least 16 channels that kernels of convolutions and poolings read or write becomes a view of one
    with the channels last. Buffers that a loop, a copy or a residual has together are a group, and stay as they are where one of them has
    to: where anything but kernels with windows, loops, copies and transpositions uses it, or a loop goes over a buffer that cannot change,
    as inputs and outputs of the program.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
  let statistics = [Statistic<"numMoved", "num-layouts-changed", "Number of buffers with their channels last">];
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
    of them. The others are allocated when they are needed; a remark says why. `batch` and `size` are what sizes of inputs that
    are not known are likely to be: they decide which buffers share a slot, and any sizes are right.
  }];
  let dependentDialects = ["::hone::hrt::HrtDialect", "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
  let options = [Option<"batch", "batch", "int64_t", /*default=*/"1", "likely first size of inputs of two dimensions or more">,
                 Option<"size", "size", "int64_t", /*default=*/"128", "other likely sizes of inputs: those of a short prompt or a small image">];
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

#endif // HONE_CONVERSION_PASSES_TD
