// RUN: hone-opt %s --hone-raise-attention --split-input-file | FileCheck %s
// RUN: hone-opt %s --hone-raise-attention --split-input-file --remarks-filter=hone-raise-attention --remark-policy=all 2>&1 | FileCheck %s --check-prefix=REMARK

// A window, and flags of keys: the pattern says the one, a bias of minus infinity the other.
// CHECK-LABEL: @window_and_flags
// CHECK: %[[FLAGS:.*]] = "onnx.Cast"(%arg3)
// CHECK: %[[ROWS:.*]] = "onnx.Where"(%[[FLAGS]],
// CHECK: %[[BIAS:.*]] = "onnx.Unsqueeze"(%[[ROWS]],
// CHECK: hone.attention %arg0, %arg1, %arg2 pattern(#hone.sliding<window = 3>) scale(2.500000e-01) bias(%[[BIAS]])
// REMARK: [Missed] AttentionMask
// REMARK-SAME: hides keys by flags
func.func @window_and_flags(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>, %flags: tensor<2x8xi64>) -> tensor<2x4x8x16xf32> {
  %zero = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %three = "onnx.Constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
  %ax = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %axes = "onnx.Constant"() {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
  %eight = "onnx.Constant"() {value = dense<8> : tensor<i64>} : () -> tensor<i64>
  %col = "onnx.Range"(%zero, %eight, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<8xi64>
  %row = "onnx.Unsqueeze"(%col, %ax) : (tensor<8xi64>, tensor<1xi64>) -> tensor<8x1xi64>
  %causal = "onnx.LessOrEqual"(%col, %row) : (tensor<8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %back = "onnx.Sub"(%row, %three) : (tensor<8x1xi64>, tensor<i64>) -> tensor<8x1xi64>
  %near = "onnx.Greater"(%col, %back) : (tensor<8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %both = "onnx.And"(%causal, %near) : (tensor<8x8xi1>, tensor<8x8xi1>) -> tensor<8x8xi1>
  %keep = "onnx.Cast"(%flags) {to = 9 : i64} : (tensor<2x8xi64>) -> tensor<2x8xi1>
  %keep4 = "onnx.Unsqueeze"(%keep, %axes) : (tensor<2x8xi1>, tensor<2xi64>) -> tensor<2x1x1x8xi1>
  %all = "onnx.And"(%both, %keep4) : (tensor<8x8xi1>, tensor<2x1x1x8xi1>) -> tensor<2x1x8x8xi1>
  %o = "onnx.Attention"(%q, %k, %v, %all) {scale = 0.25 : f32} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x1x8x8xi1>) -> tensor<2x4x8x16xf32>
  return %o : tensor<2x4x8x16xf32>
}

// -----

// Hidden logits are finite and flags may hide all keys of a query, which then sees all: the mask stays as it is.
// CHECK-LABEL: @finite
// CHECK: hone.attention %{{.*}} pattern(#hone.full) scale(1.000000e+00) bias(
// REMARK: [Missed] AttentionMask
// REMARK-SAME: a query without keys sees all of them in this model
func.func @finite(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>, %flags: tensor<2x8xi1>) -> tensor<2x4x8x16xf32> {
  %axes = "onnx.Constant"() {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
  %nil = "onnx.Constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %least = "onnx.Constant"() {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %keep = "onnx.Unsqueeze"(%flags, %axes) : (tensor<2x8xi1>, tensor<2xi64>) -> tensor<2x1x1x8xi1>
  %mask = "onnx.Where"(%keep, %nil, %least) : (tensor<2x1x1x8xi1>, tensor<f32>, tensor<f32>) -> tensor<2x1x1x8xf32>
  %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32>
  %l = "onnx.MatMul"(%q, %kt) : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m = "onnx.Add"(%l, %mask) : (tensor<2x4x8x8xf32>, tensor<2x1x1x8xf32>) -> tensor<2x4x8x8xf32>
  %w = "onnx.Softmax"(%m) {axis = -1 : i64} : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = "onnx.MatMul"(%w, %v) : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %o : tensor<2x4x8x16xf32>
}

// -----

// Every other key: no pattern. The mask is the bias, and the remark says what it computes.
// CHECK-LABEL: @no_pattern
// CHECK: hone.attention %{{.*}} pattern(#hone.full) {{.*}}bias(
// REMARK: [Missed] AttentionMask
// REMARK-SAME: its mask is no pattern: 0 == Mod(i3, 2)
func.func @no_pattern(%q: tensor<1x4x8x16xf32>, %k: tensor<1x4x8x16xf32>, %v: tensor<1x4x8x16xf32>) -> tensor<1x4x8x16xf32> {
  %zero = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %two = "onnx.Constant"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %eight = "onnx.Constant"() {value = dense<8> : tensor<i64>} : () -> tensor<i64>
  %axes = "onnx.Constant"() {value = dense<[0, 1, 2]> : tensor<3xi64>} : () -> tensor<3xi64>
  %col = "onnx.Range"(%zero, %eight, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<8xi64>
  %odd = "onnx.Mod"(%col, %two) : (tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
  %seen = "onnx.Equal"(%odd, %zero) : (tensor<8xi64>, tensor<i64>) -> tensor<8xi1>
  %mask = "onnx.Unsqueeze"(%seen, %axes) : (tensor<8xi1>, tensor<3xi64>) -> tensor<1x1x1x8xi1>
  %o = "onnx.Attention"(%q, %k, %v, %mask) : (tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x1x1x8xi1>) -> tensor<1x4x8x16xf32>
  return %o : tensor<1x4x8x16xf32>
}

// -----

// Masks of a fixed length: a band of diagonals up to the query's own is a window, in whatever numbers; other bands and other
// matrices are no pattern.
// CHECK-LABEL: @constant
// CHECK: hone.attention %{{.*}} pattern(#hone.sliding<window = 2>) scale(1.000000e+00) :
// CHECK: hone.attention %{{.*}} pattern(#hone.causal) scale(1.000000e+00) :
// CHECK: hone.attention %{{.*}} pattern(#hone.full) {{.*}}bias(
// CHECK: hone.attention %{{.*}} pattern(#hone.full) {{.*}}bias(
hone.param @lower : tensor<1x1x4x4xui8> = dense<[[[[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]]]> : tensor<1x1x4x4xui8>
func.func @constant(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>)
    -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) {
  %inf = "onnx.Constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %window = "onnx.Constant"() {value = dense<[[0.0, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000, 0xFF800000], [0xFF800000, 0.0, 0.0, 0xFF800000], [0xFF800000, 0xFF800000, 0.0, 0.0]]> : tensor<4x4xf32>} : () -> tensor<4x4xf32>
  %around = "onnx.Constant"() {value = dense<[[true, true, false, false], [true, true, true, false], [false, true, true, true], [false, false, true, true]]> : tensor<4x4xi1>} : () -> tensor<4x4xi1>
  %hole = "onnx.Constant"() {value = dense<[[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, false, true, true]]> : tensor<4x4xi1>} : () -> tensor<4x4xi1>
  %bytes = hone.get_param @lower : tensor<1x1x4x4xui8>
  %lower = "onnx.Cast"(%bytes) {to = 9 : i64} : (tensor<1x1x4x4xui8>) -> tensor<1x1x4x4xi1>
  %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x4x8xf32>) -> tensor<1x2x8x4xf32>
  %l = "onnx.MatMul"(%q, %kt) : (tensor<1x2x4x8xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x4x4xf32>
  %l0 = "onnx.Add"(%l, %window) : (tensor<1x2x4x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4x4xf32>
  %w0 = "onnx.Softmax"(%l0) {axis = -1 : i64} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %o0 = "onnx.MatMul"(%w0, %v) : (tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  %l1 = "onnx.Where"(%lower, %l, %inf) : (tensor<1x1x4x4xi1>, tensor<1x2x4x4xf32>, tensor<f32>) -> tensor<1x2x4x4xf32>
  %w1 = "onnx.Softmax"(%l1) {axis = -1 : i64} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %o1 = "onnx.MatMul"(%w1, %v) : (tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  %l2 = "onnx.Where"(%around, %l, %inf) : (tensor<4x4xi1>, tensor<1x2x4x4xf32>, tensor<f32>) -> tensor<1x2x4x4xf32>
  %w2 = "onnx.Softmax"(%l2) {axis = -1 : i64} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %o2 = "onnx.MatMul"(%w2, %v) : (tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  %l3 = "onnx.Where"(%hole, %l, %inf) : (tensor<4x4xi1>, tensor<1x2x4x4xf32>, tensor<f32>) -> tensor<1x2x4x4xf32>
  %w3 = "onnx.Softmax"(%l3) {axis = -1 : i64} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %o3 = "onnx.MatMul"(%w3, %v) : (tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  return %o0, %o1, %o2, %o3 : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>
}
