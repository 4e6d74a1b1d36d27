// RUN: hone-opt %s --hone-raise-attention --split-input-file | FileCheck %s

// The scale lies on both operands as its root; the mask is a comparison of positions; GQA shares keys through Expand.
// CHECK-LABEL: @causal_grouped
// CHECK: hone.attention %arg0, %arg1, %arg2 pattern(#hone.causal) scale(2.500000e-01)
// CHECK-SAME: (tensor<?x4x?x16xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>) -> tensor<?x4x?x16xf32>
// CHECK-NOT: onnx
func.func @causal_grouped(%q: tensor<?x4x?x16xf32> {onnx.dims = ["b", "", "s", ""]}, %k: tensor<?x2x?x16xf32> {onnx.dims = ["b", "", "p + s", ""]},
                          %v: tensor<?x2x?x16xf32> {onnx.dims = ["b", "", "p + s", ""]}) -> tensor<?x4x?x16xf32> {
  %zero = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %two = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %ax = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %shape = "onnx.Constant"() {value = dense<[1, 1, 2, 1, 1]> : tensor<5xi64>} : () -> tensor<5xi64>
  %qs = "onnx.Shape"(%q) : (tensor<?x4x?x16xf32>) -> tensor<4xi64>
  %ks = "onnx.Shape"(%k) : (tensor<?x2x?x16xf32>) -> tensor<4xi64>
  %two0 = "onnx.Constant"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %s = "onnx.Gather"(%qs, %two0) : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
  %t = "onnx.Gather"(%ks, %two0) : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
  %p = "onnx.Sub"(%t, %s) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %rows = "onnx.Range"(%p, %t, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %row = "onnx.Unsqueeze"(%rows, %ax) : (tensor<?xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %col = "onnx.Range"(%zero, %t, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %seen = "onnx.LessOrEqual"(%col, %row) : (tensor<?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %nil = "onnx.Constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %least = "onnx.Constant"() {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %mask = "onnx.Where"(%seen, %nil, %least) : (tensor<?x?xi1>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32>
  %k5 = "onnx.Unsqueeze"(%k, %two) : (tensor<?x2x?x16xf32>, tensor<1xi64>) -> tensor<?x2x1x?x16xf32>
  %ke = "onnx.Expand"(%k5, %shape) : (tensor<?x2x1x?x16xf32>, tensor<5xi64>) -> tensor<?x2x2x?x16xf32>
  %v5 = "onnx.Unsqueeze"(%v, %two) : (tensor<?x2x?x16xf32>, tensor<1xi64>) -> tensor<?x2x1x?x16xf32>
  %ve = "onnx.Expand"(%v5, %shape) : (tensor<?x2x1x?x16xf32>, tensor<5xi64>) -> tensor<?x2x2x?x16xf32>
  %b = "onnx.Shape"(%k) {start = 0 : i64, end = 1 : i64} : (tensor<?x2x?x16xf32>) -> tensor<1xi64>
  %zero1 = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %t1 = "onnx.Unsqueeze"(%t, %zero1) : (tensor<i64>, tensor<1xi64>) -> tensor<1xi64>
  %h1 = "onnx.Constant"() {value = dense<4> : tensor<1xi64>} : () -> tensor<1xi64>
  %d1 = "onnx.Constant"() {value = dense<16> : tensor<1xi64>} : () -> tensor<1xi64>
  %s4 = "onnx.Concat"(%b, %h1, %t1, %d1) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4xi64>
  %kr = "onnx.Reshape"(%ke, %s4) : (tensor<?x2x2x?x16xf32>, tensor<4xi64>) -> tensor<?x4x?x16xf32>
  %vr = "onnx.Reshape"(%ve, %s4) : (tensor<?x2x2x?x16xf32>, tensor<4xi64>) -> tensor<?x4x?x16xf32>
  %kt = "onnx.Transpose"(%kr) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x4x?x16xf32>) -> tensor<?x4x16x?xf32>
  %root = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %qr = "onnx.Mul"(%q, %root) : (tensor<?x4x?x16xf32>, tensor<f32>) -> tensor<?x4x?x16xf32>
  %kk = "onnx.Mul"(%kt, %root) : (tensor<?x4x16x?xf32>, tensor<f32>) -> tensor<?x4x16x?xf32>
  %l = "onnx.MatMul"(%qr, %kk) : (tensor<?x4x?x16xf32>, tensor<?x4x16x?xf32>) -> tensor<?x4x?x?xf32>
  %m = "onnx.Add"(%l, %mask) : (tensor<?x4x?x?xf32>, tensor<?x?xf32>) -> tensor<?x4x?x?xf32>
  %w = "onnx.Softmax"(%m) {axis = -1 : i64} : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %o = "onnx.MatMul"(%w, %vr) : (tensor<?x4x?x?xf32>, tensor<?x4x?x16xf32>) -> tensor<?x4x?x16xf32>
  return %o : tensor<?x4x?x16xf32>
}

// -----

// The cap stands between the scale and the mask; without a mask every key is seen.
// CHECK-LABEL: @softcap
// CHECK: hone.attention %arg0, %arg1, %arg2 pattern(#hone.full) scale(1.250000e-01) softcap(5.000000e+01)
func.func @softcap(%q: tensor<?x4x?x16xf32>, %k: tensor<?x4x?x16xf32> {onnx.dims = ["b", "", "t", ""]}, %v: tensor<?x4x?x16xf32> {onnx.dims = ["b", "", "t", ""]})
    -> tensor<?x4x?x16xf32> {
  %scale = "onnx.Constant"() {value = dense<0.125> : tensor<f32>} : () -> tensor<f32>
  %cap = "onnx.Constant"() {value = dense<50.0> : tensor<f32>} : () -> tensor<f32>
  %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x4x?x16xf32>) -> tensor<?x4x16x?xf32>
  %l = "onnx.MatMul"(%q, %kt) : (tensor<?x4x?x16xf32>, tensor<?x4x16x?xf32>) -> tensor<?x4x?x?xf32>
  %0 = "onnx.Mul"(%l, %scale) : (tensor<?x4x?x?xf32>, tensor<f32>) -> tensor<?x4x?x?xf32>
  %1 = "onnx.Div"(%0, %cap) : (tensor<?x4x?x?xf32>, tensor<f32>) -> tensor<?x4x?x?xf32>
  %2 = "onnx.Tanh"(%1) : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %3 = "onnx.Mul"(%2, %cap) : (tensor<?x4x?x?xf32>, tensor<f32>) -> tensor<?x4x?x?xf32>
  %w = "onnx.Softmax"(%3) {axis = -1 : i64} : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %o = "onnx.MatMul"(%w, %v) : (tensor<?x4x?x?xf32>, tensor<?x4x?x16xf32>) -> tensor<?x4x?x16xf32>
  return %o : tensor<?x4x?x16xf32>
}

// -----

// A tensor that nothing is known of is a bias.
// CHECK-LABEL: @bias
// CHECK: hone.attention %arg0, %arg1, %arg2 pattern(#hone.full) scale(1.000000e+00) bias(%arg3)
func.func @bias(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>, %bias: tensor<1x4x8x8xf32>) -> tensor<2x4x8x16xf32> {
  %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32>
  %l = "onnx.MatMul"(%q, %kt) : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m = "onnx.Add"(%bias, %l) : (tensor<1x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %w = "onnx.Softmax"(%m) {axis = -1 : i64} : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = "onnx.MatMul"(%w, %v) : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %o : tensor<2x4x8x16xf32>
}

// -----

// Attention of opset 23: a boolean mask that is true where the key is at most as far as the query.
// CHECK-LABEL: @operator
// CHECK: hone.attention %arg0, %arg1, %arg2 pattern(#hone.causal) scale(2.500000e-01)
// CHECK-NOT: onnx
func.func @operator(%q: tensor<1x4x8x16xf32>, %k: tensor<1x4x8x16xf32>, %v: tensor<1x4x8x16xf32>) -> tensor<1x4x8x16xf32> {
  %zero = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %ax = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %eight = "onnx.Constant"() {value = dense<8> : tensor<i64>} : () -> tensor<i64>
  %col = "onnx.Range"(%zero, %eight, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<8xi64>
  %row = "onnx.Unsqueeze"(%col, %ax) : (tensor<8xi64>, tensor<1xi64>) -> tensor<8x1xi64>
  %hidden = "onnx.Greater"(%col, %row) : (tensor<8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %seen = "onnx.Not"(%hidden) : (tensor<8x8xi1>) -> tensor<8x8xi1>
  %o = "onnx.Attention"(%q, %k, %v, %seen) {scale = 0.25 : f32} : (tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<8x8xi1>) -> tensor<1x4x8x16xf32>
  return %o : tensor<1x4x8x16xf32>
}

// -----

// Windows of opset 25: one that reaches no later key slides, another one is no pattern and stays.
// CHECK-LABEL: @windows
// CHECK: hone.attention %arg0, %arg1, %arg2 pattern(#hone.sliding<window = 3>)
// CHECK: hone.attention %arg0, %arg1, %arg2 pattern(#hone.sliding<window = 2>)
// CHECK: onnx.Attention{{.*}}left_window_size = 1 : i64, right_window_size = 2 : i64
// CHECK: onnx.Attention{{.*}}right_window_size = 2 : i64
// CHECK: hone.attention %arg0, %arg1, %arg2 pattern(#hone.causal)
func.func @windows(%q: tensor<1x4x8x16xf32>, %k: tensor<1x4x8x16xf32>, %v: tensor<1x4x8x16xf32>)
    -> (tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>) {
  %0 = "onnx.Attention"(%q, %k, %v) {is_causal = 1 : i64, left_window_size = 2 : i64} : (tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>) -> tensor<1x4x8x16xf32>
  %1 = "onnx.Attention"(%q, %k, %v) {left_window_size = 1 : i64, right_window_size = 0 : i64} : (tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>) -> tensor<1x4x8x16xf32>
  %2 = "onnx.Attention"(%q, %k, %v) {left_window_size = 1 : i64, right_window_size = 2 : i64} : (tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>) -> tensor<1x4x8x16xf32>
  %3 = "onnx.Attention"(%q, %k, %v) {right_window_size = 2 : i64} : (tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>) -> tensor<1x4x8x16xf32>
  %4 = "onnx.Attention"(%q, %k, %v) {is_causal = 1 : i64, right_window_size = 2 : i64} : (tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>) -> tensor<1x4x8x16xf32>
  return %0, %1, %2, %3, %4 : tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>
}

// -----

// Weights that are used twice, and logits multiplied by a tensor, are not raised.
// CHECK-LABEL: @weights_are_used
// CHECK-NOT: hone.attention
// CHECK: onnx.Softmax
func.func @weights_are_used(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x16x8xf32>, %v: tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x8xf32>) {
  %l = "onnx.MatMul"(%q, %k) : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %w = "onnx.Softmax"(%l) {axis = -1 : i64} : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = "onnx.MatMul"(%w, %v) : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %o, %w : tensor<2x4x8x16xf32>, tensor<2x4x8x8xf32>
}

// CHECK-LABEL: @scaled_by_tensor
// CHECK-NOT: hone.attention
// CHECK: onnx.Softmax
func.func @scaled_by_tensor(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>, %t: tensor<4x1x1xf32>) -> tensor<2x4x8x16xf32> {
  %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32>
  %l = "onnx.MatMul"(%q, %kt) : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m = "onnx.Mul"(%l, %t) : (tensor<2x4x8x8xf32>, tensor<4x1x1xf32>) -> tensor<2x4x8x8xf32>
  %w = "onnx.Softmax"(%m) {axis = -1 : i64} : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = "onnx.MatMul"(%w, %v) : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %o : tensor<2x4x8x16xf32>
}

// -----

// A bias whose batch may be 1 at run time is repeated to that of the logits.
// CHECK-LABEL: @open_bias
// CHECK: %[[BIAS:.*]] = "onnx.Expand"(%arg2, %{{.*}}) : {{.*}} -> tensor<?x1x?x?xf32>
// CHECK: hone.attention %arg0, %arg1, %arg1 pattern(#hone.full) scale(1.250000e-01) bias(%[[BIAS]])
func.func @open_bias(%q: tensor<?x4x?x16xf32> {onnx.dims = ["b", "", "s", ""]}, %k: tensor<?x4x?x16xf32> {onnx.dims = ["b", "", "t", ""]},
                     %m: tensor<?x1x?x?xf32> {onnx.dims = ["c", "", "s", "t"]}) -> tensor<?x4x?x16xf32> {
  %scale = "onnx.Constant"() {value = dense<0.125> : tensor<f32>} : () -> tensor<f32>
  %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x4x?x16xf32>) -> tensor<?x4x16x?xf32>
  %l = "onnx.MatMul"(%q, %kt) : (tensor<?x4x?x16xf32>, tensor<?x4x16x?xf32>) -> tensor<?x4x?x?xf32>
  %s = "onnx.Mul"(%l, %scale) : (tensor<?x4x?x?xf32>, tensor<f32>) -> tensor<?x4x?x?xf32>
  %a = "onnx.Add"(%s, %m) : (tensor<?x4x?x?xf32>, tensor<?x1x?x?xf32>) -> tensor<?x4x?x?xf32>
  %p = "onnx.Softmax"(%a) {axis = -1 : i64} : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %o = "onnx.MatMul"(%p, %k) : (tensor<?x4x?x?xf32>, tensor<?x4x?x16xf32>) -> tensor<?x4x?x16xf32>
  return %o : tensor<?x4x?x16xf32>
}
