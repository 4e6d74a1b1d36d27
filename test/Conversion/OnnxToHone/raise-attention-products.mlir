// Attention whose logits and probabilities are moved, selected by arithmetic, or masked after the softmax.
//
// RUN: hone-opt %s --hone-raise-attention --split-input-file | FileCheck %s -enable-var-scope
// RUN: hone-opt %s --hone-raise-attention --split-input-file --remarks-filter=hone-raise-attention 2>&1 | FileCheck %s --check-prefix=REMARK

// The product has batch and heads in one dimension, and the keys first.
// CHECK-LABEL: @moved
// CHECK: %[[R:.*]] = hone.attention %arg0, %arg1, %arg2 pattern(#hone.full) scale(5.000000e-01)
// CHECK-NEXT: return %[[R]]
func.func @moved(%q: tensor<2x4x5x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>) -> tensor<2x4x5x16xf32> {
  %flat = "onnx.Constant"() {value = dense<[8, -1, 16]> : tensor<3xi64>} : () -> tensor<3xi64>
  %wide = "onnx.Constant"() {value = dense<[2, 4, 8, 5, 1]> : tensor<5xi64>} : () -> tensor<5xi64>
  %rows = "onnx.Constant"() {value = dense<[8, 5, 8]> : tensor<3xi64>} : () -> tensor<3xi64>
  %split = "onnx.Constant"() {value = dense<[2, 4, 5, 1, 16]> : tensor<5xi64>} : () -> tensor<5xi64>
  %four = "onnx.Constant"() {value = dense<4> : tensor<1xi64>} : () -> tensor<1xi64>
  %three = "onnx.Constant"() {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
  %half = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %q3 = "onnx.Reshape"(%q, %flat) : (tensor<2x4x5x16xf32>, tensor<3xi64>) -> tensor<8x5x16xf32>
  %k3 = "onnx.Reshape"(%k, %flat) : (tensor<2x4x8x16xf32>, tensor<3xi64>) -> tensor<8x8x16xf32>
  %v3 = "onnx.Reshape"(%v, %flat) : (tensor<2x4x8x16xf32>, tensor<3xi64>) -> tensor<8x8x16xf32>
  %qt = "onnx.Transpose"(%q3) {perm = array<i64: 0, 2, 1>} : (tensor<8x5x16xf32>) -> tensor<8x16x5xf32>
  %p = "onnx.MatMul"(%k3, %qt) : (tensor<8x8x16xf32>, tensor<8x16x5xf32>) -> tensor<8x8x5xf32>
  %p5 = "onnx.Reshape"(%p, %wide) : (tensor<8x8x5xf32>, tensor<5xi64>) -> tensor<2x4x8x5x1xf32>
  %p4 = "onnx.Squeeze"(%p5, %four) : (tensor<2x4x8x5x1xf32>, tensor<1xi64>) -> tensor<2x4x8x5xf32>
  %l = "onnx.Transpose"(%p4) {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x4x8x5xf32>) -> tensor<2x4x5x8xf32>
  %s = "onnx.Mul"(%l, %half) : (tensor<2x4x5x8xf32>, tensor<f32>) -> tensor<2x4x5x8xf32>
  %w = "onnx.Softmax"(%s) {axis = -1 : i64} : (tensor<2x4x5x8xf32>) -> tensor<2x4x5x8xf32>
  %w5 = "onnx.Unsqueeze"(%w, %three) : (tensor<2x4x5x8xf32>, tensor<1xi64>) -> tensor<2x4x5x1x8xf32>
  %w3 = "onnx.Reshape"(%w5, %rows) : (tensor<2x4x5x1x8xf32>, tensor<3xi64>) -> tensor<8x5x8xf32>
  %o3 = "onnx.MatMul"(%w3, %v3) : (tensor<8x5x8xf32>, tensor<8x8x16xf32>) -> tensor<8x5x16xf32>
  %o5 = "onnx.Reshape"(%o3, %split) : (tensor<8x5x16xf32>, tensor<5xi64>) -> tensor<2x4x5x1x16xf32>
  %o = "onnx.Squeeze"(%o5, %three) : (tensor<2x4x5x1x16xf32>, tensor<1xi64>) -> tensor<2x4x5x16xf32>
  return %o : tensor<2x4x5x16xf32>
}

// -----

// A selection as sums and products of the mask, which is a constant; with one that hides other keys it is none.
// CHECK-LABEL: @arithmetic
// CHECK: hone.attention %arg0, %arg1, %arg2 pattern(#hone.causal) scale(1.000000e+00) :
// CHECK: onnx.Softmax
// REMARK: [Missed] Attention
// REMARK-SAME: the logits are multiplied by something that is no constant
func.func @arithmetic(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>, %flags: tensor<1x2x3x3xi1>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) {
  %mask = "onnx.Constant"() {value = dense<[[[[true, false, false], [true, true, false], [true, true, true]]]]> : tensor<1x1x3x3xi1>} : () -> tensor<1x1x3x3xi1>
  %least = "onnx.Constant"() {value = dense<-2.0e+38> : tensor<f32>} : () -> tensor<f32>
  %not = "onnx.Not"(%mask) : (tensor<1x1x3x3xi1>) -> tensor<1x1x3x3xi1>
  %off = "onnx.Cast"(%not) {to = 1 : i64} : (tensor<1x1x3x3xi1>) -> tensor<1x1x3x3xf32>
  %on = "onnx.Cast"(%mask) {to = 1 : i64} : (tensor<1x1x3x3xi1>) -> tensor<1x1x3x3xf32>
  %other = "onnx.Cast"(%flags) {to = 1 : i64} : (tensor<1x2x3x3xi1>) -> tensor<1x2x3x3xf32>
  %hide = "onnx.Mul"(%least, %off) : (tensor<f32>, tensor<1x1x3x3xf32>) -> tensor<1x1x3x3xf32>
  %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x3x4xf32>) -> tensor<1x2x4x3xf32>
  %l = "onnx.MatMul"(%q, %kt) : (tensor<1x2x3x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x3x3xf32>
  %keep = "onnx.Mul"(%on, %l) : (tensor<1x1x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %s = "onnx.Add"(%keep, %hide) : (tensor<1x2x3x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x2x3x3xf32>
  %w = "onnx.Softmax"(%s) {axis = -1 : i64} : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %o = "onnx.MatMul"(%w, %v) : (tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %keep2 = "onnx.Mul"(%other, %l) : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %s2 = "onnx.Add"(%keep2, %hide) : (tensor<1x2x3x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x2x3x3xf32>
  %w2 = "onnx.Softmax"(%s2) {axis = -1 : i64} : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %o2 = "onnx.MatMul"(%w2, %v) : (tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  return %o, %o2 : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>
}

// -----

// Masked after the softmax and divided by the sum that is left: as jax2onnx has it, and shorter, with any flags.
// CHECK-LABEL: @masked_after
// CHECK: hone.attention %arg0, %arg1, %arg2 pattern(#hone.causal) scale(1.000000e+00) :
// CHECK: %[[BIAS:.*]] = "onnx.Where"(%arg3,
// CHECK: hone.attention %arg0, %arg1, %arg2 pattern(#hone.full) scale(1.000000e+00) bias(%[[BIAS]])
func.func @masked_after(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>, %flags: tensor<1x2x3x3xi1>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) {
  %shape = "onnx.Constant"() {value = dense<[1, 1, 3, 3]> : tensor<4xi64>} : () -> tensor<4xi64>
  %last = "onnx.Constant"() {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
  %zero = "onnx.Constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %one = "onnx.Constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %ones = "onnx.ConstantOfShape"(%shape) {value = dense<true> : tensor<1xi1>} : (tensor<4xi64>) -> tensor<1x1x3x3xi1>
  %tri = "onnx.Trilu"(%ones) {upper = 0 : i64} : (tensor<1x1x3x3xi1>) -> tensor<1x1x3x3xi1>
  %mask = "onnx.Cast"(%tri) {to = 1 : i64} : (tensor<1x1x3x3xi1>) -> tensor<1x1x3x3xf32>
  %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x3x4xf32>) -> tensor<1x2x4x3xf32>
  %l = "onnx.MatMul"(%q, %kt) : (tensor<1x2x3x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x3x3xf32>
  %w = "onnx.Softmax"(%l) {axis = 3 : i64} : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %m = "onnx.Mul"(%w, %mask) : (tensor<1x2x3x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x2x3x3xf32>
  %sum = "onnx.ReduceSum"(%m, %last) {keepdims = 1 : i64} : (tensor<1x2x3x3xf32>, tensor<1xi64>) -> tensor<1x2x3x1xf32>
  %some = "onnx.Greater"(%sum, %zero) : (tensor<1x2x3x1xf32>, tensor<f32>) -> tensor<1x2x3x1xi1>
  %by = "onnx.Where"(%some, %sum, %one) : (tensor<1x2x3x1xi1>, tensor<1x2x3x1xf32>, tensor<f32>) -> tensor<1x2x3x1xf32>
  %d = "onnx.Div"(%m, %by) : (tensor<1x2x3x3xf32>, tensor<1x2x3x1xf32>) -> tensor<1x2x3x3xf32>
  %n = "onnx.Where"(%some, %d, %zero) : (tensor<1x2x3x1xi1>, tensor<1x2x3x3xf32>, tensor<f32>) -> tensor<1x2x3x3xf32>
  %o = "onnx.MatMul"(%n, %v) : (tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %w2 = "onnx.Softmax"(%l) {axis = 3 : i64} : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %m2 = "onnx.Where"(%flags, %w2, %zero) : (tensor<1x2x3x3xi1>, tensor<1x2x3x3xf32>, tensor<f32>) -> tensor<1x2x3x3xf32>
  %sum2 = "onnx.ReduceSum"(%m2, %last) {keepdims = 1 : i64} : (tensor<1x2x3x3xf32>, tensor<1xi64>) -> tensor<1x2x3x1xf32>
  %d2 = "onnx.Div"(%m2, %sum2) : (tensor<1x2x3x3xf32>, tensor<1x2x3x1xf32>) -> tensor<1x2x3x3xf32>
  %o2 = "onnx.MatMul"(%d2, %v) : (tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  return %o, %o2 : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>
}

// -----

// Masked but not divided again; divided by another sum; weights that are no flags; hidden before the softmax as well.
// CHECK-LABEL: @not_masked
// CHECK-NOT: hone.attention
// REMARK: its probabilities are used by something else than one product
// REMARK: its probabilities are used by something else than one product
// REMARK: its probabilities are used by something else than one product
// REMARK: keys are hidden before and after its softmax
func.func @not_masked(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>, %mask: tensor<1x2x3x3xi1>, %any: tensor<1x2x3x3xf32>)
    -> (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) {
  %last = "onnx.Constant"() {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
  %other = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %least = "onnx.Constant"() {value = dense<-1.0e+30> : tensor<f32>} : () -> tensor<f32>
  %flags = "onnx.Cast"(%mask) {to = 1 : i64} : (tensor<1x2x3x3xi1>) -> tensor<1x2x3x3xf32>
  %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x3x4xf32>) -> tensor<1x2x4x3xf32>
  %l = "onnx.MatMul"(%q, %kt) : (tensor<1x2x3x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x3x3xf32>
  %w0 = "onnx.Softmax"(%l) {axis = 3 : i64} : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %m0 = "onnx.Mul"(%w0, %flags) : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %o0 = "onnx.MatMul"(%m0, %v) : (tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %w1 = "onnx.Softmax"(%l) {axis = 3 : i64} : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %m1 = "onnx.Mul"(%w1, %flags) : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %s1 = "onnx.ReduceSum"(%m1, %other) {keepdims = 1 : i64} : (tensor<1x2x3x3xf32>, tensor<1xi64>) -> tensor<1x2x1x3xf32>
  %d1 = "onnx.Div"(%m1, %s1) : (tensor<1x2x3x3xf32>, tensor<1x2x1x3xf32>) -> tensor<1x2x3x3xf32>
  %o1 = "onnx.MatMul"(%d1, %v) : (tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %w2 = "onnx.Softmax"(%l) {axis = 3 : i64} : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %m2 = "onnx.Mul"(%w2, %any) : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %s2 = "onnx.ReduceSum"(%m2, %last) {keepdims = 1 : i64} : (tensor<1x2x3x3xf32>, tensor<1xi64>) -> tensor<1x2x3x1xf32>
  %d2 = "onnx.Div"(%m2, %s2) : (tensor<1x2x3x3xf32>, tensor<1x2x3x1xf32>) -> tensor<1x2x3x3xf32>
  %o2 = "onnx.MatMul"(%d2, %v) : (tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %l3 = "onnx.Where"(%mask, %l, %least) : (tensor<1x2x3x3xi1>, tensor<1x2x3x3xf32>, tensor<f32>) -> tensor<1x2x3x3xf32>
  %w3 = "onnx.Softmax"(%l3) {axis = 3 : i64} : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %m3 = "onnx.Mul"(%w3, %flags) : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %s3 = "onnx.ReduceSum"(%m3, %last) {keepdims = 1 : i64} : (tensor<1x2x3x3xf32>, tensor<1xi64>) -> tensor<1x2x3x1xf32>
  %d3 = "onnx.Div"(%m3, %s3) : (tensor<1x2x3x3xf32>, tensor<1x2x3x1xf32>) -> tensor<1x2x3x3xf32>
  %o3 = "onnx.MatMul"(%d3, %v) : (tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  return %o0, %o1, %o2, %o3 : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>
}

// -----

// Columns of probabilities; heads before the batch.
// CHECK-LABEL: @not_rows
// CHECK-NOT: hone.attention
// REMARK: its probabilities are used by something else than one product
// REMARK: the product of its probabilities has other dimensions than its logits
func.func @not_rows(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>, %u: tensor<2x1x3x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<2x1x3x4xf32>) {
  %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x3x4xf32>) -> tensor<1x2x4x3xf32>
  %l = "onnx.MatMul"(%q, %kt) : (tensor<1x2x3x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x3x3xf32>
  %w0 = "onnx.Softmax"(%l) {axis = 3 : i64} : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %t0 = "onnx.Transpose"(%w0) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %o0 = "onnx.MatMul"(%t0, %v) : (tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %w1 = "onnx.Softmax"(%l) {axis = 3 : i64} : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %t1 = "onnx.Transpose"(%w1) {perm = array<i64: 1, 0, 2, 3>} : (tensor<1x2x3x3xf32>) -> tensor<2x1x3x3xf32>
  %o1 = "onnx.MatMul"(%t1, %u) : (tensor<2x1x3x3xf32>, tensor<2x1x3x4xf32>) -> tensor<2x1x3x4xf32>
  return %o0, %o1 : tensor<1x2x3x4xf32>, tensor<2x1x3x4xf32>
}
