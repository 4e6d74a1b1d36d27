// RUN: hone-opt %s --hone-raise-mlp | FileCheck %s -enable-var-scope
// RUN: sed 's/dense<1.702000e+00>/dense<1.0>/' %s | hone-opt --hone-raise-mlp | FileCheck %s --check-prefix=ALPHA
// RUN: sed 's/dense<0> : tensor<1xi64>/dense<1> : tensor<1xi64>/' %s | hone-opt --hone-raise-mlp | FileCheck %s --check-prefix=LEFT

// Rows times gathered matrices, which are transposed, with biases and the clamped SwiGLU of alternate columns.
// CHECK: hone.param @gate_up : tensor<24x8xf32> = #hone.stacked<tensor<12x8xf32, #hone.stored<f32, transposed>> = [
// CHECK-LABEL: @block
// CHECK: hone.moe silu %arg0, {{.*}} fused alternate swiglu(1.702000e+00, 1.000000e+00, 5.000000e-01)
// ALPHA: fused alternate swiglu(1.000000e+00, 1.000000e+00, 5.000000e-01)

// Gate and up are the same columns.
// LEFT-NOT: hone.moe
hone.param @gate_up : tensor<2x8x12xf32> = dense<1.0> : tensor<2x8x12xf32>
func.func @block(%x: tensor<?x8xf32> {onnx.dims = ["rows", ""]}) -> tensor<?x8xf32> {
  %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<8x2xf32>} : () -> tensor<8x2xf32>
  %1 = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = "onnx.Constant"() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %3 = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %4 = "onnx.Constant"() {value = dense<[1, 2, 1]> : tensor<3xi64>} : () -> tensor<3xi64>
  %5 = "onnx.Constant"() {value = dense<[-1, 8]> : tensor<2xi64>} : () -> tensor<2xi64>
  %6 = hone.get_param @gate_up : tensor<2x8x12xf32>
  %7 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<2x12xf32>} : () -> tensor<2x12xf32>
  %8 = "onnx.Constant"() {value = dense<9223372036854775807> : tensor<1xi64>} : () -> tensor<1xi64>
  %9 = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %10 = "onnx.Constant"() {value = dense<5.000000e-01> : tensor<f32>} : () -> tensor<f32>
  %11 = "onnx.Constant"() {value = dense<-5.000000e-01> : tensor<f32>} : () -> tensor<f32>
  %12 = "onnx.Constant"() {value = dense<1.702000e+00> : tensor<f32>} : () -> tensor<f32>
  %13 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %14 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<2x6x8xf32>} : () -> tensor<2x6x8xf32>
  %15 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<2x8xf32>} : () -> tensor<2x8xf32>
  %16 = "onnx.Constant"() {value = dense<[-1, 2, 8]> : tensor<3xi64>} : () -> tensor<3xi64>
  %17 = "onnx.MatMul"(%x, %0) : (tensor<?x8xf32>, tensor<8x2xf32>) -> tensor<?x2xf32>
  %18:2 = "onnx.TopK"(%17, %1) {axis = -1 : i64} : (tensor<?x2xf32>, tensor<1xi64>) -> (tensor<?x2xf32>, tensor<?x2xi64>)
  %19 = "onnx.Softmax"(%18#0) {axis = -1 : i64} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %20 = "onnx.Reshape"(%18#1, %2) : (tensor<?x2xi64>, tensor<1xi64>) -> tensor<?xi64>
  %21 = "onnx.Unsqueeze"(%20, %2) : (tensor<?xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %22 = "onnx.Unsqueeze"(%x, %3) : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<?x1x8xf32>
  %23 = "onnx.Expand"(%22, %4) : (tensor<?x1x8xf32>, tensor<3xi64>) -> tensor<?x2x8xf32>
  %24 = "onnx.Reshape"(%23, %5) : (tensor<?x2x8xf32>, tensor<2xi64>) -> tensor<?x8xf32>
  %25 = "onnx.Unsqueeze"(%24, %3) : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<?x1x8xf32>
  %26 = "onnx.GatherND"(%6, %21) : (tensor<2x8x12xf32>, tensor<?x1xi64>) -> tensor<?x8x12xf32>
  %27 = "onnx.MatMul"(%25, %26) : (tensor<?x1x8xf32>, tensor<?x8x12xf32>) -> tensor<?x1x12xf32>
  %28 = "onnx.Squeeze"(%27, %3) : (tensor<?x1x12xf32>, tensor<1xi64>) -> tensor<?x12xf32>
  %29 = "onnx.GatherND"(%7, %21) : (tensor<2x12xf32>, tensor<?x1xi64>) -> tensor<?x12xf32>
  %30 = "onnx.Add"(%28, %29) : (tensor<?x12xf32>, tensor<?x12xf32>) -> tensor<?x12xf32>
  %31 = "onnx.Slice"(%30, %9, %8, %3, %1) : (tensor<?x12xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x6xf32>
  %32 = "onnx.Slice"(%30, %3, %8, %3, %1) : (tensor<?x12xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x6xf32>
  %33 = "onnx.NoValue"() : () -> none
  %34 = "onnx.Clip"(%31, %33, %10) : (tensor<?x6xf32>, none, tensor<f32>) -> tensor<?x6xf32>
  %35 = "onnx.Clip"(%32, %11, %10) : (tensor<?x6xf32>, tensor<f32>, tensor<f32>) -> tensor<?x6xf32>
  %36 = "onnx.Mul"(%34, %12) : (tensor<?x6xf32>, tensor<f32>) -> tensor<?x6xf32>
  %37 = "onnx.Sigmoid"(%36) : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %38 = "onnx.Mul"(%34, %37) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %39 = "onnx.Add"(%35, %13) : (tensor<?x6xf32>, tensor<f32>) -> tensor<?x6xf32>
  %40 = "onnx.Mul"(%39, %38) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %41 = "onnx.Unsqueeze"(%40, %3) : (tensor<?x6xf32>, tensor<1xi64>) -> tensor<?x1x6xf32>
  %42 = "onnx.GatherND"(%14, %21) : (tensor<2x6x8xf32>, tensor<?x1xi64>) -> tensor<?x6x8xf32>
  %43 = "onnx.MatMul"(%41, %42) : (tensor<?x1x6xf32>, tensor<?x6x8xf32>) -> tensor<?x1x8xf32>
  %44 = "onnx.Squeeze"(%43, %3) : (tensor<?x1x8xf32>, tensor<1xi64>) -> tensor<?x8xf32>
  %45 = "onnx.GatherND"(%15, %21) : (tensor<2x8xf32>, tensor<?x1xi64>) -> tensor<?x8xf32>
  %46 = "onnx.Add"(%44, %45) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %47 = "onnx.Reshape"(%19, %2) : (tensor<?x2xf32>, tensor<1xi64>) -> tensor<?xf32>
  %48 = "onnx.Unsqueeze"(%47, %2) : (tensor<?xf32>, tensor<1xi64>) -> tensor<?x1xf32>
  %49 = "onnx.Mul"(%46, %48) : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %50 = "onnx.Reshape"(%49, %16) : (tensor<?x8xf32>, tensor<3xi64>) -> tensor<?x2x8xf32>
  %51 = "onnx.ReduceSum"(%50, %3) {keepdims = 0 : i64} : (tensor<?x2x8xf32>, tensor<1xi64>) -> tensor<?x8xf32>
  return %51 : tensor<?x8xf32>
}
