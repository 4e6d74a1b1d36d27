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

#endif // HONE_CONVERSION_PASSES_TD
