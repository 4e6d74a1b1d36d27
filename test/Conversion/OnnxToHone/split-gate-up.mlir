// RUN: hone-opt %s --hone-split-gate-up --split-input-file --remarks-filter="hone-split-gate-up" 2>%t | FileCheck %s -enable-var-scope
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t
// RUN: hone-opt %s --hone-split-gate-up=describes=true --split-input-file | FileCheck %s --check-prefix=DESCRIBED

// A fused gate_up projection becomes two products; a weight that lies as [K, N] is cut by its columns, a bias too.
// REMARK: [Passed] Gate
// REMARK: [Passed] Gate

// CHECK-DAG: hone.param @both.0 : tensor<2x3xf32, #hone.stored<f32, transposed>> = dense<{{\[\[}}1.000000e+00, 2.000000e+00], [5.000000e+00, 6.000000e+00], [9.000000e+00, 1.000000e+01]]>
// CHECK-DAG: hone.param @both.1 : tensor<2x3xf32, #hone.stored<f32, transposed>> = dense<{{\[\[}}3.000000e+00, 4.000000e+00], [7.000000e+00, 8.000000e+00], [1.100000e+01, 1.200000e+01]]>
// CHECK-NOT: hone.param @both :
// DESCRIBED-DAG: hone.param @both.0 : tensor<2x3xf32, #hone.stored<f32, transposed>> = #hone.external<"(none)", 0, 24>
// DESCRIBED-DAG: hone.param @both.1 : tensor<2x3xf32, #hone.stored<f32, transposed>> = #hone.external<"(none)", 0, 24>
// DESCRIBED-LABEL: @fused
// DESCRIBED: hone.gated_mlp silu
// CHECK-LABEL: @fused
// CHECK-DAG: %[[GATE:.*]] = hone.get_param @both.0
// CHECK-DAG: %[[UP:.*]] = hone.get_param @both.1
// CHECK-DAG: %[[GATE_BIAS:.*]] = "onnx.Constant"() {value = dense<[1.000000e+00, 2.000000e+00]>
// CHECK-DAG: %[[UP_BIAS:.*]] = "onnx.Constant"() {value = dense<[3.000000e+00, 4.000000e+00]>
// CHECK: hone.gated_mlp silu %arg0, gate(%[[GATE]], %[[GATE_BIAS]]), up(%[[UP]], %[[UP_BIAS]]), down(%arg1)
// CHECK-NOT: hone.linear
hone.param @both : tensor<4x3xf32, #hone.stored<f32, transposed>> = dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]]> : tensor<3x4xf32>
func.func @fused(%x: tensor<?x3xf32>, %down: tensor<3x2xf32>) -> tensor<?x3xf32> {
  %w = hone.get_param @both : tensor<4x3xf32, #hone.stored<f32, transposed>>
  %bias = "onnx.Constant"() {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = hone.linear %x, %w bias(%bias) : (tensor<?x3xf32>, tensor<4x3xf32, #hone.stored<f32, transposed>>, tensor<4xf32>) -> tensor<?x4xf32>
  %half:2 = "onnx.Split"(%0) {axis = -1 : i64, num_outputs = 2 : i64} : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>)
  %1 = "onnx.Sigmoid"(%half#0) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %2 = "onnx.Mul"(%half#0, %1) : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %3 = "onnx.Mul"(%half#1, %2) : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %4 = hone.linear %3, %down : (tensor<?x2xf32>, tensor<3x2xf32>) -> tensor<?x3xf32>
  return %4 : tensor<?x3xf32>
}

// -----

// Slices, the gate last; rows of a file stay in it.
// CHECK-DAG: hone.param @rows.0 : tensor<2x3xf32> = #hone.external<"w.bin", 8, 24>
// CHECK-DAG: hone.param @rows.1 : tensor<2x3xf32> = #hone.external<"w.bin", 32, 24>
// CHECK-LABEL: @slices
// CHECK: hone.gated_mlp relu %arg0, gate(%{{.*}}), up(%{{.*}}), down(%arg1)
hone.param @rows : tensor<4x3xf32> = #hone.external<"w.bin", 8, 48>
func.func @slices(%x: tensor<?x3xf32>, %down: tensor<3x2xf32>) -> tensor<?x3xf32> {
  %w = hone.get_param @rows : tensor<4x3xf32>
  %zero = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %two = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %end = "onnx.Constant"() {value = dense<9223372036854775807> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = hone.linear %x, %w : (tensor<?x3xf32>, tensor<4x3xf32>) -> tensor<?x4xf32>
  %up = "onnx.Slice"(%0, %zero, %two, %one) : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2xf32>
  %gate = "onnx.Slice"(%0, %two, %end, %one, %one) : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2xf32>
  %1 = "onnx.Relu"(%gate) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %2 = "onnx.Mul"(%1, %up) : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %3 = hone.linear %2, %down : (tensor<?x2xf32>, tensor<3x2xf32>) -> tensor<?x3xf32>
  return %3 : tensor<?x3xf32>
}

// -----

// Slices whose bounds are computed of the size of what they cut.
// CHECK-LABEL: @computed_bounds
// CHECK: hone.gated_mlp relu %arg0, gate(%{{.*}}), up(%{{.*}}), down(%arg1)
// CHECK-NOT: hone.linear
hone.param @both : tensor<4x3xf32> = dense<1.0> : tensor<4x3xf32>
func.func @computed_bounds(%x: tensor<?x3xf32>, %down: tensor<3x2xf32>) -> tensor<?x3xf32> {
  %w = hone.get_param @both : tensor<4x3xf32>
  %zero = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %two = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = hone.linear %x, %w : (tensor<?x3xf32>, tensor<4x3xf32>) -> tensor<?x4xf32>
  %shape = "onnx.Shape"(%0) : (tensor<?x4xf32>) -> tensor<2xi64>
  %size = "onnx.Gather"(%shape, %one) {axis = 0 : i64} : (tensor<2xi64>, tensor<1xi64>) -> tensor<1xi64>
  %middle = "onnx.Div"(%size, %two) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %up = "onnx.Slice"(%0, %zero, %middle, %one) : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2xf32>
  %gate = "onnx.Slice"(%0, %middle, %size, %one) : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2xf32>
  %1 = "onnx.Relu"(%gate) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %2 = "onnx.Mul"(%1, %up) : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %3 = hone.linear %2, %down : (tensor<?x2xf32>, tensor<3x2xf32>) -> tensor<?x3xf32>
  return %3 : tensor<?x3xf32>
}

// -----

// Something else has to know the size: the product stays, and so it stays whole.
// CHECK-LABEL: @size_returned
// CHECK: hone.get_param @both :
// CHECK-NOT: hone.gated_mlp
// CHECK: return
hone.param @both : tensor<4x3xf32> = dense<1.0> : tensor<4x3xf32>
func.func @size_returned(%x: tensor<?x3xf32>, %down: tensor<3x2xf32>) -> (tensor<?x3xf32>, tensor<1xi64>) {
  %w = hone.get_param @both : tensor<4x3xf32>
  %zero = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %two = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = hone.linear %x, %w : (tensor<?x3xf32>, tensor<4x3xf32>) -> tensor<?x4xf32>
  %shape = "onnx.Shape"(%0) : (tensor<?x4xf32>) -> tensor<2xi64>
  %size = "onnx.Gather"(%shape, %one) {axis = 0 : i64} : (tensor<2xi64>, tensor<1xi64>) -> tensor<1xi64>
  %middle = "onnx.Div"(%size, %two) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %up = "onnx.Slice"(%0, %zero, %middle, %one) : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2xf32>
  %gate = "onnx.Slice"(%0, %middle, %size, %one) : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2xf32>
  %1 = "onnx.Relu"(%gate) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %2 = "onnx.Mul"(%1, %up) : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %3 = hone.linear %2, %down : (tensor<?x2xf32>, tensor<3x2xf32>) -> tensor<?x3xf32>
  return %3, %size : tensor<?x3xf32>, tensor<1xi64>
}

// -----

// Parts that do not gate each other stay in one product.
// CHECK-LABEL: @no_gate
// CHECK: hone.get_param @both :
// CHECK: onnx.Split
hone.param @both : tensor<4x3xf32> = dense<1.0> : tensor<4x3xf32>
func.func @no_gate(%x: tensor<?x3xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>) {
  %w = hone.get_param @both : tensor<4x3xf32>
  %0 = hone.linear %x, %w : (tensor<?x3xf32>, tensor<4x3xf32>) -> tensor<?x4xf32>
  %half:2 = "onnx.Split"(%0) {axis = -1 : i64, num_outputs = 2 : i64} : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>)
  return %half#0, %half#1 : tensor<?x2xf32>, tensor<?x2xf32>
}

// -----

// The weight is also read as a whole: it is not stored twice.
// CHECK-LABEL: @also_whole
// CHECK: hone.get_param @both :
// CHECK-NOT: hone.gated_mlp
// REMARK: [Missed] Gate
// REMARK-SAME: stays in one product: something reads both halves as one
hone.param @both : tensor<4x3xf32> = dense<1.0> : tensor<4x3xf32>
func.func @also_whole(%x: tensor<?x3xf32>, %down: tensor<3x2xf32>) -> (tensor<?x3xf32>, tensor<?x4xf32>) {
  %w = hone.get_param @both : tensor<4x3xf32>
  %0 = hone.linear %x, %w : (tensor<?x3xf32>, tensor<4x3xf32>) -> tensor<?x4xf32>
  %other = hone.linear %x, %w : (tensor<?x3xf32>, tensor<4x3xf32>) -> tensor<?x4xf32>
  %half:2 = "onnx.Split"(%0) {axis = -1 : i64, num_outputs = 2 : i64} : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>)
  %1 = "onnx.Relu"(%half#0) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %2 = "onnx.Mul"(%1, %half#1) : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %3 = hone.linear %2, %down : (tensor<?x2xf32>, tensor<3x2xf32>) -> tensor<?x3xf32>
  return %3, %other : tensor<?x3xf32>, tensor<?x4xf32>
}
