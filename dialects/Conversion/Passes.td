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
  let dependentDialects = ["::hone::HoneDialect", "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
                           "::mlir::complex::ComplexDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numLowered", "num-operators-lowered", "Number of ONNX operators lowered">];
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

def ExpandOnnxFunctions : Pass<"hone-expand-onnx-functions", "::mlir::ModuleOp"> {
  let summary = "Replace onnx operations that have no lowering by the functions their schemas define";
  let description = [{
    ONNX defines many operators as functions of others, some depending on attributes and operand types. An operation that
    `hone-convert-onnx-to-linalg` does not lower is replaced by the body of its function at the opset of the module, and so
    are the operations of that body. Operations without a function stay, for the lowering to report.
  }];
  let dependentDialects = ["::hone::HoneDialect"];
  let statistics = [Statistic<"numExpanded", "num-functions-expanded", "Number of operations replaced by their functions">];
}

def ConvertHoneToHrt : Pass<"hone-convert-hone-to-hrt", "::mlir::ModuleOp"> {
  let summary = "Turn functions on tensors into entry points of one call each, for the CPU";
  let description = [{
    Every function with a body becomes `(!hrt.call) -> ()`: arguments are read from the call's inputs, results are written
    to its outputs, parameters are read from the mapped weights, and operations on `!hone.kv` become those on the session's
    state. Parameters get the offset of their bytes (`hrt.offset`); those that nothing reads are erased.

    Operations that have a kernel become `hrt.kernel`; the others must have been decomposed.
  }];
  let dependentDialects = ["::hone::hrt::HrtDialect", "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
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
