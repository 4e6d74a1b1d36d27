// RUN: hone-opt %s --hone-raise-mlp | FileCheck %s -enable-var-scope
// RUN: sed 's/{value = dense<0.000000e+00> : tensor<1xf32>}/{value = dense<1.0> : tensor<1xf32>}/' %s \
// RUN:   | hone-opt --hone-raise-mlp --remarks-filter=hone-raise-mlp 2>&1 | FileCheck %s --check-prefix=LEFT
// RUN: sed 's/dense<-5.000000e-01> : tensor<f32>/dense<-6.0> : tensor<f32>/' %s \
// RUN:   | hone-opt --hone-raise-mlp | FileCheck %s --check-prefix=OTHER

// All rows go through all experts, whose results are multiplied with 0 where a row did not choose one; gate and up are alternate columns,
// with a clamped SwiGLU.
// CHECK: hone.param @gate_up : tensor<24x8xf32> = #hone.stacked<tensor<12x8xf32, #hone.stored<f32, transposed>> = [
// CHECK-LABEL: @block
// CHECK: %[[BEST:.*]]:2 = "onnx.TopK"
// CHECK: %[[WEIGHTS:.*]] = "onnx.Softmax"(%[[BEST]]#0)
// CHECK: hone.moe silu %arg0, experts(%[[BEST]]#1, %[[WEIGHTS]]), {{.*}} fused alternate swiglu(1.702000e+00, 1.000000e+00, 5.000000e-01)
// CHECK-NOT: onnx.ReduceSum

// LEFT: all rows go through all experts, and their weights are no router's
// LEFT-NOT: hone.moe

// The limits of up are not the same in both directions.
// OTHER-NOT: hone.moe
hone.param @gate_up : tensor<2x8x12xf32> = dense<1.0> : tensor<2x8x12xf32>
func.func @block(%x: tensor<?x8xf32> {onnx.dims = ["rows", ""]}) -> tensor<?x8xf32> {
  %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<8x2xf32>} : () -> tensor<8x2xf32>
  %1 = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = "onnx.Constant"() {value = dense<[2, 1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %3 = "onnx.Constant"() {value = dense<[2, -1, 8]> : tensor<3xi64>} : () -> tensor<3xi64>
  %4 = hone.get_param @gate_up : tensor<2x8x12xf32>
  %5 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<2x1x12xf32>} : () -> tensor<2x1x12xf32>
  %6 = "onnx.Constant"() {value = dense<9223372036854775807> : tensor<1xi64>} : () -> tensor<1xi64>
  %7 = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %8 = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %9 = "onnx.Constant"() {value = dense<5.000000e-01> : tensor<f32>} : () -> tensor<f32>
  %10 = "onnx.Constant"() {value = dense<-5.000000e-01> : tensor<f32>} : () -> tensor<f32>
  %11 = "onnx.Constant"() {value = dense<1.702000e+00> : tensor<f32>} : () -> tensor<f32>
  %12 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %13 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<2x6x8xf32>} : () -> tensor<2x6x8xf32>
  %14 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<2x1x8xf32>} : () -> tensor<2x1x8xf32>
  %15 = "onnx.MatMul"(%x, %0) : (tensor<?x8xf32>, tensor<8x2xf32>) -> tensor<?x2xf32>
  %best:2 = "onnx.TopK"(%15, %1) {axis = -1 : i64} : (tensor<?x2xf32>, tensor<1xi64>) -> (tensor<?x1xf32>, tensor<?x1xi64>)
  %weights = "onnx.Softmax"(%best#0) {axis = -1 : i64} : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %18 = "onnx.Shape"(%15) : (tensor<?x2xf32>) -> tensor<2xi64>
  %zeros = "onnx.ConstantOfShape"(%18) {value = dense<0.000000e+00> : tensor<1xf32>} : (tensor<2xi64>) -> tensor<?x2xf32>
  %scores = "onnx.ScatterElements"(%zeros, %best#1, %weights) {axis = 1 : i64} : (tensor<?x2xf32>, tensor<?x1xi64>, tensor<?x1xf32>) -> tensor<?x2xf32>
  %21 = "onnx.Transpose"(%scores) {perm = array<i64: 1, 0>} : (tensor<?x2xf32>) -> tensor<2x?xf32>
  %22 = "onnx.Tile"(%x, %2) : (tensor<?x8xf32>, tensor<2xi64>) -> tensor<?x8xf32>
  %23 = "onnx.Reshape"(%22, %3) : (tensor<?x8xf32>, tensor<3xi64>) -> tensor<2x?x8xf32>
  %24 = "onnx.MatMul"(%23, %4) : (tensor<2x?x8xf32>, tensor<2x8x12xf32>) -> tensor<2x?x12xf32>
  %25 = "onnx.Add"(%24, %5) : (tensor<2x?x12xf32>, tensor<2x1x12xf32>) -> tensor<2x?x12xf32>
  %26 = "onnx.Slice"(%25, %8, %6, %7, %7) : (tensor<2x?x12xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x?x6xf32>
  %27 = "onnx.Slice"(%25, %1, %6, %7, %7) : (tensor<2x?x12xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x?x6xf32>
  %28 = "onnx.NoValue"() : () -> none
  %29 = "onnx.Clip"(%26, %28, %9) : (tensor<2x?x6xf32>, none, tensor<f32>) -> tensor<2x?x6xf32>
  %30 = "onnx.Clip"(%27, %10, %9) : (tensor<2x?x6xf32>, tensor<f32>, tensor<f32>) -> tensor<2x?x6xf32>
  %31 = "onnx.Mul"(%29, %11) : (tensor<2x?x6xf32>, tensor<f32>) -> tensor<2x?x6xf32>
  %32 = "onnx.Sigmoid"(%31) : (tensor<2x?x6xf32>) -> tensor<2x?x6xf32>
  %33 = "onnx.Mul"(%29, %32) : (tensor<2x?x6xf32>, tensor<2x?x6xf32>) -> tensor<2x?x6xf32>
  %34 = "onnx.Add"(%30, %12) : (tensor<2x?x6xf32>, tensor<f32>) -> tensor<2x?x6xf32>
  %35 = "onnx.Mul"(%34, %33) : (tensor<2x?x6xf32>, tensor<2x?x6xf32>) -> tensor<2x?x6xf32>
  %36 = "onnx.MatMul"(%35, %13) : (tensor<2x?x6xf32>, tensor<2x6x8xf32>) -> tensor<2x?x8xf32>
  %37 = "onnx.Add"(%36, %14) : (tensor<2x?x8xf32>, tensor<2x1x8xf32>) -> tensor<2x?x8xf32>
  %38 = "onnx.Unsqueeze"(%21, %7) : (tensor<2x?xf32>, tensor<1xi64>) -> tensor<2x?x1xf32>
  %39 = "onnx.Mul"(%37, %38) : (tensor<2x?x8xf32>, tensor<2x?x1xf32>) -> tensor<2x?x8xf32>
  %40 = "onnx.ReduceSum"(%39, %8) {keepdims = 0 : i64} : (tensor<2x?x8xf32>, tensor<1xi64>) -> tensor<?x8xf32>
  return %40 : tensor<?x8xf32>
}
