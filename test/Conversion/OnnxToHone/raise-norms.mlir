// RUN: hone-opt %s --hone-raise-norms --split-input-file | FileCheck %s
// RUN: hone-opt %s --hone-raise-norms --split-input-file --remarks-filter=hone-raise-norms --remark-policy=all 2>&1 | FileCheck %s --check-prefix=REMARK

// x * reciprocal(sqrt(mean(x^2) + eps)), times the weight from the left.
// CHECK-LABEL: @reciprocal_root
// CHECK: hone.rms_norm %arg0, %arg1 epsilon(9.99999997E-7) : (tensor<?x?x8xf32>, tensor<8xf32>) -> tensor<?x?x8xf32>
// CHECK-NOT: onnx
func.func @reciprocal_root(%x: tensor<?x?x8xf32>, %w: tensor<8xf32>) -> tensor<?x?x8xf32> {
  %two = "onnx.Constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %eps = "onnx.Constant"() {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %axes = "onnx.Constant"() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = "onnx.Pow"(%x, %two) : (tensor<?x?x8xf32>, tensor<f32>) -> tensor<?x?x8xf32>
  %1 = "onnx.ReduceMean"(%0, %axes) {keepdims = 1 : i64} : (tensor<?x?x8xf32>, tensor<1xi64>) -> tensor<?x?x1xf32>
  %2 = "onnx.Add"(%1, %eps) : (tensor<?x?x1xf32>, tensor<f32>) -> tensor<?x?x1xf32>
  %3 = "onnx.Sqrt"(%2) : (tensor<?x?x1xf32>) -> tensor<?x?x1xf32>
  %4 = "onnx.Reciprocal"(%3) : (tensor<?x?x1xf32>) -> tensor<?x?x1xf32>
  %5 = "onnx.Mul"(%x, %4) : (tensor<?x?x8xf32>, tensor<?x?x1xf32>) -> tensor<?x?x8xf32>
  %6 = "onnx.Mul"(%w, %5) : (tensor<8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %6 : tensor<?x?x8xf32>
}

// -----

// x / sqrt(mean(x * x) + eps), times 1 + weight.
// CHECK-LABEL: @unit_offset
// CHECK: hone.rms_norm %arg0, %arg1 epsilon(9.99999997E-7) unit_offset
func.func @unit_offset(%x: tensor<?x8xf32>, %w: tensor<8xf32>) -> tensor<?x8xf32> {
  %one = "onnx.Constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %eps = "onnx.Constant"() {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %axes = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = "onnx.Mul"(%x, %x) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = "onnx.ReduceMean"(%0, %axes) : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<?x1xf32>
  %2 = "onnx.Add"(%1, %eps) : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %3 = "onnx.Sqrt"(%2) : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %4 = "onnx.Div"(%x, %3) : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %5 = "onnx.Add"(%w, %one) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %6 = "onnx.Mul"(%4, %5) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %6 : tensor<?x8xf32>
}

// -----

// The mean is taken off first: layer norm, with its bias.
// CHECK-LABEL: @centred
// CHECK: hone.layer_norm %arg0, %{{.*}} bias(%{{.*}}) epsilon(9.99999974E-6)
// CHECK-NOT: onnx.Sub
hone.param @bias : tensor<8xf32> = dense<0.5> : tensor<8xf32>
func.func @centred(%x: tensor<?x8xf32>, %w: tensor<8xf32>) -> tensor<?x8xf32> {
  %b = hone.get_param @bias : tensor<8xf32>
  %two = "onnx.Constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %eps = "onnx.Constant"() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %axes = "onnx.Constant"() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %mean = "onnx.ReduceMean"(%x, %axes) : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<?x1xf32>
  %d = "onnx.Sub"(%x, %mean) : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %0 = "onnx.Pow"(%d, %two) : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %1 = "onnx.ReduceMean"(%0, %axes) : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<?x1xf32>
  %2 = "onnx.Add"(%1, %eps) : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %3 = "onnx.Sqrt"(%2) : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %4 = "onnx.Div"(%d, %3) : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %5 = "onnx.Mul"(%4, %w) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %6 = "onnx.Add"(%5, %b) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %6 : tensor<?x8xf32>
}

// -----

// The fourth result of the skip form is the sum.
// CHECK-LABEL: @skip
// CHECK: %[[SUM:.*]] = "onnx.Add"(%arg0, %arg1)
// CHECK: %[[NORM:.*]] = hone.rms_norm %[[SUM]], %arg2 epsilon(9.99999997E-7)
// CHECK: return %[[NORM]], %[[SUM]]
func.func @skip(%x: tensor<?x?x8xf32>, %y: tensor<?x?x8xf32>, %w: tensor<8xf32>) -> (tensor<?x?x8xf32>, tensor<?x?x8xf32>) {
  %0:4 = "onnx.com.microsoft.SkipSimplifiedLayerNormalization"(%x, %y, %w) {epsilon = 1.0e-6 : f32}
    : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<8xf32>) -> (tensor<?x?x8xf32>, none, none, tensor<?x?x8xf32>)
  return %0#0, %0#3 : tensor<?x?x8xf32>, tensor<?x?x8xf32>
}

// -----

// CHECK-LABEL: @simplified
// CHECK: hone.rms_norm %arg0, %arg1 epsilon(9.99999997E-7)
func.func @simplified(%x: tensor<?x?x8xf32>, %w: tensor<8xf32>) -> tensor<?x?x8xf32> {
  %0 = "onnx.com.microsoft.SimplifiedLayerNormalization"(%x, %w) {axis = -1 : i64, epsilon = 1.0e-6 : f32} : (tensor<?x?x8xf32>, tensor<8xf32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

// -----

// A mean over another dimension is no norm of rows.
// CHECK-LABEL: @other_axis
// CHECK-NOT: hone.
// CHECK: onnx.ReduceMean
// CHECK-NOT: hone.
func.func @other_axis(%x: tensor<?x8x8xf32>, %w: tensor<8xf32>) -> tensor<?x8x8xf32> {
  %eps = "onnx.Constant"() {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %axes = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = "onnx.Mul"(%x, %x) : (tensor<?x8x8xf32>, tensor<?x8x8xf32>) -> tensor<?x8x8xf32>
  %1 = "onnx.ReduceMean"(%0, %axes) : (tensor<?x8x8xf32>, tensor<1xi64>) -> tensor<?x1x8xf32>
  %2 = "onnx.Add"(%1, %eps) : (tensor<?x1x8xf32>, tensor<f32>) -> tensor<?x1x8xf32>
  %3 = "onnx.Sqrt"(%2) : (tensor<?x1x8xf32>) -> tensor<?x1x8xf32>
  %4 = "onnx.Div"(%x, %3) : (tensor<?x8x8xf32>, tensor<?x1x8xf32>) -> tensor<?x8x8xf32>
  %5 = "onnx.Mul"(%4, %w) : (tensor<?x8x8xf32>, tensor<8xf32>) -> tensor<?x8x8xf32>
  return %5 : tensor<?x8x8xf32>
}

// -----

// The root of another tensor than the one that is divided.
// CHECK-LABEL: @other_tensor
// CHECK-NOT: hone.
// CHECK: return
func.func @other_tensor(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %w: tensor<8xf32>) -> tensor<?x8xf32> {
  %eps = "onnx.Constant"() {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %axes = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = "onnx.Mul"(%y, %y) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = "onnx.ReduceMean"(%0, %axes) : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<?x1xf32>
  %2 = "onnx.Add"(%1, %eps) : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %3 = "onnx.Sqrt"(%2) : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %4 = "onnx.Div"(%x, %3) : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %5 = "onnx.Mul"(%4, %w) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %5 : tensor<?x8xf32>
}

// -----

// The saved mean is used: the operator stays, and a remark says so.
// CHECK-LABEL: @mean_is_used
// CHECK: onnx.LayerNormalization
// REMARK: [Missed] LayerNormalization
// REMARK-SAME: its mean is used
func.func @mean_is_used(%x: tensor<?x8xf32>, %w: tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x1xf32>) {
  %0:2 = "onnx.LayerNormalization"(%x, %w) : (tensor<?x8xf32>, tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x1xf32>)
  return %0#0, %0#1 : tensor<?x8xf32>, tensor<?x1xf32>
}
