// RUN: hone-opt %s --hone-fold-batch-norms | FileCheck %s

// scale / sqrt(variance + epsilon) is 2 and 3: weights 1, 2 and 3, 4 become 2, 4 and 9, 12, biases (5 - 1) * 2 + 1 = 9 and (6 - 2) * 3 - 1 = 11.
// CHECK-DAG: hone.param @w.normalized : tensor<2x2x1xf32> = dense_resource<
// CHECK-DAG: hone.param @convolution.normalized : tensor<2xf32> = dense_resource<
// CHECK-LABEL: @folded
// CHECK-DAG: %[[W:.*]] = hone.get_param @w.normalized
// CHECK-DAG: %[[B:.*]] = hone.get_param @convolution.normalized
// CHECK: "onnx.Conv"(%arg0, %[[W]], %[[B]]) {group = 1 : i64}
// CHECK-NOT: onnx.BatchNormalization
module attributes {onnx.opsets = {ai.onnx = 17 : i64}} {
hone.param @w : tensor<2x2x1xf32> = dense<[[[1.0], [2.0]], [[3.0], [4.0]]]> : tensor<2x2x1xf32>
func.func @folded(%x: tensor<1x2x4xf32>) -> tensor<1x2x4xf32> {
  %w = hone.get_param @w : tensor<2x2x1xf32>
  %b = "onnx.Constant"() {value = dense<[5.0, 6.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %scale = "onnx.Constant"() {value = dense<[4.0, 6.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %shift = "onnx.Constant"() {value = dense<[1.0, -1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %mean = "onnx.Constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %variance = "onnx.Constant"() {value = dense<3.5> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "onnx.Conv"(%x, %w, %b) {group = 1 : i64} : (tensor<1x2x4xf32>, tensor<2x2x1xf32>, tensor<2xf32>) -> tensor<1x2x4xf32>
  %1 = "onnx.BatchNormalization"(%0, %scale, %shift, %mean, %variance) {epsilon = 0.5 : f32} : (tensor<1x2x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x4xf32>
  return %1 : tensor<1x2x4xf32>
}

// A bias as a sum, with a normalisation after it.
// CHECK-LABEL: @summed
// CHECK-NOT: onnx.Add
// CHECK-NOT: onnx.BatchNormalization
// CHECK: return
func.func @summed(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %w = "onnx.Constant"() {value = dense<[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]> : tensor<2x2x1x1xf32>} : () -> tensor<2x2x1x1xf32>
  %b = "onnx.Constant"() {value = dense<[[[5.0]], [[6.0]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %one = "onnx.Constant"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "onnx.Conv"(%x, %w) {group = 1 : i64} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %1 = "onnx.Add"(%b, %0) : (tensor<2x1x1xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %2 = "onnx.BatchNormalization"(%1, %one, %one, %one, %one) : (tensor<1x2x4x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32>
  return %2 : tensor<1x2x4x4xf32>
}

// A number for each column is no bias.
// CHECK-LABEL: @columns
// CHECK: onnx.Add
func.func @columns(%x: tensor<1x2x4x2xf32>) -> tensor<1x2x4x2xf32> {
  %w = "onnx.Constant"() {value = dense<1.0> : tensor<2x2x1x1xf32>} : () -> tensor<2x2x1x1xf32>
  %b = "onnx.Constant"() {value = dense<1.0> : tensor<1x1x2xf32>} : () -> tensor<1x1x2xf32>
  %0 = "onnx.Conv"(%x, %w) {group = 1 : i64} : (tensor<1x2x4x2xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x2xf32>
  %1 = "onnx.Add"(%0, %b) : (tensor<1x2x4x2xf32>, tensor<1x1x2xf32>) -> tensor<1x2x4x2xf32>
  return %1 : tensor<1x2x4x2xf32>
}

// ((x * w + b - 2) * [3, 4]) / 2, and 1 less that: all in the weight, 1, 2, 3, 4, and the bias.
// CHECK-LABEL: @arithmetic
// CHECK: "onnx.Conv"
// CHECK-NEXT: return
func.func @arithmetic(%x: tensor<?x2x4xf32>) -> tensor<?x2x4xf32> {
  %w = hone.get_param @w : tensor<2x2x1xf32>
  %b = "onnx.Constant"() {value = dense<[5.0, 6.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %one = "onnx.Constant"() {value = dense<1.0> : tensor<1x1xf32>} : () -> tensor<1x1xf32>
  %two = "onnx.Constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %factors = "onnx.Constant"() {value = dense<[[[3.0], [4.0]]]> : tensor<1x2x1xf32>} : () -> tensor<1x2x1xf32>
  %0 = "onnx.Conv"(%x, %w, %b) {group = 1 : i64} : (tensor<?x2x4xf32>, tensor<2x2x1xf32>, tensor<2xf32>) -> tensor<?x2x4xf32>
  %1 = "onnx.Sub"(%0, %two) : (tensor<?x2x4xf32>, tensor<f32>) -> tensor<?x2x4xf32>
  %2 = "onnx.Mul"(%factors, %1) : (tensor<1x2x1xf32>, tensor<?x2x4xf32>) -> tensor<?x2x4xf32>
  %3 = "onnx.Div"(%2, %two) : (tensor<?x2x4xf32>, tensor<f32>) -> tensor<?x2x4xf32>
  %4 = "onnx.Sub"(%one, %3) : (tensor<1x1xf32>, tensor<?x2x4xf32>) -> tensor<?x2x4xf32>
  return %4 : tensor<?x2x4xf32>
}

// Numbers in another shape.
// CHECK-LABEL: @reshaped
// CHECK: "onnx.Conv"
// CHECK-NEXT: return
func.func @reshaped(%x: tensor<1x2x4xf32>) -> tensor<1x2x4xf32> {
  %w = hone.get_param @w : tensor<2x2x1xf32>
  %n = "onnx.Constant"() {value = dense<[5.0, 6.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %shape = "onnx.Constant"() {value = dense<[1, 2, 1]> : tensor<3xi64>} : () -> tensor<3xi64>
  %b = "onnx.Reshape"(%n, %shape) : (tensor<2xf32>, tensor<3xi64>) -> tensor<1x2x1xf32>
  %0 = "onnx.Conv"(%x, %w) {group = 1 : i64} : (tensor<1x2x4xf32>, tensor<2x2x1xf32>) -> tensor<1x2x4xf32>
  %1 = "onnx.Add"(%0, %b) : (tensor<1x2x4xf32>, tensor<1x2x1xf32>) -> tensor<1x2x4xf32>
  return %1 : tensor<1x2x4xf32>
}

// A number divided by what is convolved, and a division by 0.
// CHECK-LABEL: @quotients
// CHECK-COUNT-2: onnx.Div
func.func @quotients(%x: tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>) {
  %w = hone.get_param @w : tensor<2x2x1xf32>
  %zero = "onnx.Constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "onnx.Conv"(%x, %w) {group = 1 : i64} : (tensor<1x2x4xf32>, tensor<2x2x1xf32>) -> tensor<1x2x4xf32>
  %1 = "onnx.Div"(%zero, %0) : (tensor<f32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %2 = "onnx.Conv"(%x, %w) {group = 1 : i64} : (tensor<1x2x4xf32>, tensor<2x2x1xf32>) -> tensor<1x2x4xf32>
  %3 = "onnx.Div"(%2, %zero) : (tensor<1x2x4xf32>, tensor<f32>) -> tensor<1x2x4xf32>
  return %1, %3 : tensor<1x2x4xf32>, tensor<1x2x4xf32>
}

// Others read what is normalised, or what it is normalised with is not known.
// CHECK-LABEL: @kept
// CHECK-COUNT-2: onnx.BatchNormalization
func.func @kept(%x: tensor<1x2x4xf32>, %scale: tensor<2xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) {
  %w = hone.get_param @w : tensor<2x2x1xf32>
  %one = "onnx.Constant"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "onnx.Conv"(%x, %w) {group = 1 : i64} : (tensor<1x2x4xf32>, tensor<2x2x1xf32>) -> tensor<1x2x4xf32>
  %1 = "onnx.BatchNormalization"(%0, %one, %one, %one, %one) : (tensor<1x2x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x4xf32>
  %2 = "onnx.Conv"(%x, %w) {group = 1 : i64} : (tensor<1x2x4xf32>, tensor<2x2x1xf32>) -> tensor<1x2x4xf32>
  %3 = "onnx.BatchNormalization"(%2, %scale, %one, %one, %one) : (tensor<1x2x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x4xf32>
  return %0, %1, %3 : tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>
}
}
// 9, 11 and 2, 4, 9, 12 as f32, after the alignment.
// CHECK-LABEL: dialect_resources
// CHECK-DAG: "0x{{[0-9]+}}0000104100003041"
// CHECK-DAG: "0x{{[0-9]+}}00000040000080400000104100004041"
// -1.5, -3, -6, -8 and 1 - (5 - 2) * 3 / 2, 1 - (6 - 2) * 4 / 2 of the arithmetic.
// CHECK-DAG: "0x{{[0-9]+}}0000C0BF000040C00000C0C0000000C1"
// CHECK-DAG: "0x{{[0-9]+}}000060C00000E0C0"
