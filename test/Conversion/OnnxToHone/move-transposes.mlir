// RUN: hone-opt %s --hone-move-transposes | FileCheck %s --enable-var-scope
// RUN: hone-opt %s --hone-move-transposes --remarks-filter='hone-move-transposes' 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: computed over permuted dimensions, and 1536 elements fewer are transposed
// REMARK-DAG: stays between transpositions: as many elements would be transposed elsewhere

module attributes {onnx.opsets = {ai.onnx = 17 : i64}} {

// Both transpositions go; numbers of channels become those of dimension 1, and a sum with two transposed operands needs none.
// CHECK-LABEL: func @between(
// CHECK-NOT: onnx.Transpose
// CHECK: %[[B:.*]] = "onnx.Constant"() {value = dense<{{\[\[\[}}[1.000000e+00]], {{\[}}[2.000000e+00]]]]> : tensor<1x2x1x1xf32>}
// CHECK: %[[SUM:.*]] = "onnx.Add"(%arg0, %[[B]]) : (tensor<4x2x8x8xf32>, tensor<1x2x1x1xf32>) -> tensor<4x2x8x8xf32>
// CHECK: %[[BOTH:.*]] = "onnx.Add"(%[[SUM]], %arg1)
// CHECK: return %[[BOTH]]
func.func @between(%x: tensor<4x2x8x8xf32>, %y: tensor<4x2x8x8xf32>) -> tensor<4x2x8x8xf32> {
  %b = "onnx.Constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "onnx.Transpose"(%x) {perm = array<i64: 0, 2, 3, 1>} : (tensor<4x2x8x8xf32>) -> tensor<4x8x8x2xf32>
  %1 = "onnx.Transpose"(%y) {perm = array<i64: 0, 2, 3, 1>} : (tensor<4x2x8x8xf32>) -> tensor<4x8x8x2xf32>
  %2 = "onnx.Add"(%0, %b) : (tensor<4x8x8x2xf32>, tensor<2xf32>) -> tensor<4x8x8x2xf32>
  %3 = "onnx.Add"(%2, %1) : (tensor<4x8x8x2xf32>, tensor<4x8x8x2xf32>) -> tensor<4x8x8x2xf32>
  %4 = "onnx.Transpose"(%3) {perm = array<i64: 0, 3, 1, 2>} : (tensor<4x8x8x2xf32>) -> tensor<4x2x8x8xf32>
  return %4 : tensor<4x2x8x8xf32>
}

// What names axes names the permuted ones, and who asks for sizes gets them in the old order.
// CHECK-LABEL: func @axes(
// CHECK-NOT: onnx.Transpose
// CHECK: %[[ALL:.*]] = "onnx.Concat"(%arg0, %arg0) {axis = 1 : i64}
// CHECK: %[[PADS:.*]] = "onnx.Constant"() {value = dense<[0, 0, 1, 2, 0, 0, 3, 4]> : tensor<8xi64>}
// CHECK: %[[PADDED:.*]] = "onnx.Pad"(%[[ALL]], %[[PADS]]) {{.*}} -> tensor<1x4x12x14xf32>
// CHECK: %[[MEAN:.*]] = "onnx.ReduceMean"(%[[PADDED]]) {axes = array<i64: 2, 3>{{.*}} -> tensor<1x4x1x1xf32>
// CHECK: %[[SIZES:.*]] = "onnx.Shape"(%[[PADDED]])
// CHECK: %[[ORDER:.*]] = "onnx.Constant"() {value = dense<[0, 2, 3, 1]> : tensor<4xi64>}
// CHECK: %[[OLD:.*]] = "onnx.Gather"(%[[SIZES]], %[[ORDER]]) {axis = 0 : i64}
// CHECK: return %[[PADDED]], %[[MEAN]], %[[OLD]]
func.func @axes(%x: tensor<1x2x8x8xf32>) -> (tensor<1x4x12x14xf32>, tensor<1x4x1x1xf32>, tensor<4xi64>) {
  %pads = "onnx.Constant"() {value = dense<[0, 1, 2, 0, 0, 3, 4, 0]> : tensor<8xi64>} : () -> tensor<8xi64>
  %0 = "onnx.Transpose"(%x) {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x2x8x8xf32>) -> tensor<1x8x8x2xf32>
  %1 = "onnx.Concat"(%0, %0) {axis = -1 : i64} : (tensor<1x8x8x2xf32>, tensor<1x8x8x2xf32>) -> tensor<1x8x8x4xf32>
  %2 = "onnx.Pad"(%1, %pads) {mode = "constant"} : (tensor<1x8x8x4xf32>, tensor<8xi64>) -> tensor<1x12x14x4xf32>
  %3 = "onnx.ReduceMean"(%2) {axes = array<i64: 1, 2>, keepdims = 1 : i64} : (tensor<1x12x14x4xf32>) -> tensor<1x1x1x4xf32>
  %4 = "onnx.Shape"(%2) : (tensor<1x12x14x4xf32>) -> tensor<4xi64>
  %5 = "onnx.Transpose"(%2) {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x12x14x4xf32>) -> tensor<1x4x12x14xf32>
  %6 = "onnx.Transpose"(%3) {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x1x1x4xf32>) -> tensor<1x4x1x1xf32>
  return %5, %6, %4 : tensor<1x4x12x14xf32>, tensor<1x4x1x1xf32>, tensor<4xi64>
}

// The smaller side is transposed: here before padding, not after.
// CHECK-LABEL: func @smaller_side(
// CHECK: %[[T:.*]] = "onnx.Transpose"(%arg0) {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x8x8x2xf32>)
// CHECK: "onnx.Pad"(%[[T]]
// CHECK-NOT: onnx.Transpose
func.func @smaller_side(%x: tensor<1x8x8x2xf32>) -> tensor<1x2x12x14xf32> {
  %pads = "onnx.Constant"() {value = dense<[0, 1, 2, 0, 0, 3, 4, 0]> : tensor<8xi64>} : () -> tensor<8xi64>
  %0 = "onnx.Pad"(%x, %pads) {mode = "constant"} : (tensor<1x8x8x2xf32>, tensor<8xi64>) -> tensor<1x12x14x2xf32>
  %1 = "onnx.Transpose"(%0) {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x12x14x2xf32>) -> tensor<1x2x12x14xf32>
  return %1 : tensor<1x2x12x14xf32>
}

// Sizes that are computed are permuted as well; the result that is not transposed is transposed back.
// CHECK-LABEL: func @resized(
// CHECK: %[[ORDER:.*]] = "onnx.Constant"() {value = dense<[0, 3, 1, 2]> : tensor<4xi64>}
// CHECK: %[[SIZES:.*]] = "onnx.Gather"(%arg1, %[[ORDER]]) {axis = 0 : i64}
// CHECK: %[[R:.*]] = "onnx.Resize"(%arg0, %{{.*}}, %{{.*}}, %[[SIZES]]) {mode = "nearest"} : {{.*}} -> tensor<1x2x?x?xf32>
// CHECK: %[[BACK:.*]] = "onnx.Transpose"(%[[R]]) {perm = array<i64: 0, 2, 3, 1>}
// CHECK: %[[MM:.*]] = "onnx.MatMul"(%[[BACK]]
// CHECK: return %[[R]], %[[MM]]
func.func @resized(%x: tensor<1x2x8x8xf32>, %sizes: tensor<4xi64>, %w: tensor<2x3xf32>) -> (tensor<1x2x?x?xf32>, tensor<1x?x?x3xf32>) {
  %none = "onnx.NoValue"() : () -> none
  %0 = "onnx.Transpose"(%x) {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x2x8x8xf32>) -> tensor<1x8x8x2xf32>
  %1 = "onnx.Resize"(%0, %none, %none, %sizes) {mode = "nearest"} : (tensor<1x8x8x2xf32>, none, none, tensor<4xi64>) -> tensor<1x?x?x2xf32>
  %2 = "onnx.Transpose"(%1) {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x?x?x2xf32>) -> tensor<1x2x?x?xf32>
  %3 = "onnx.MatMul"(%1, %w) : (tensor<1x?x?x2xf32>, tensor<2x3xf32>) -> tensor<1x?x?x3xf32>
  return %2, %3 : tensor<1x2x?x?xf32>, tensor<1x?x?x3xf32>
}

// One transposition, of as many elements on the other side: it stays.
// CHECK-LABEL: func @no_gain(
// CHECK: "onnx.Transpose"(%arg0)
// CHECK: "onnx.Relu"
// CHECK-NOT: onnx.Transpose
func.func @no_gain(%x: tensor<1x2x8x8xf32>) -> tensor<1x8x8x2xf32> {
  %0 = "onnx.Transpose"(%x) {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x2x8x8xf32>) -> tensor<1x8x8x2xf32>
  %1 = "onnx.Relu"(%0) : (tensor<1x8x8x2xf32>) -> tensor<1x8x8x2xf32>
  return %1 : tensor<1x8x8x2xf32>
}

// The meaning of dimensions is theirs: nothing moves across.
// CHECK-LABEL: func @fixed(
// CHECK-COUNT-2: onnx.Transpose
func.func @fixed(%x: tensor<1x8x8x2xf32>) -> tensor<1x8x8x2xf32> {
  %0 = "onnx.Transpose"(%x) {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x8x8x2xf32>) -> tensor<1x2x8x8xf32>
  %1 = "onnx.MaxPool"(%0) {kernel_shape = array<i64: 1, 1>} : (tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  %2 = "onnx.Transpose"(%1) {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x2x8x8xf32>) -> tensor<1x8x8x2xf32>
  return %2 : tensor<1x8x8x2xf32>
}

// Transpositions of transpositions are one, or none.
// CHECK-LABEL: func @merged(
// CHECK-NEXT: %[[T:.*]] = "onnx.Transpose"(%arg0) {perm = array<i64: 2, 0, 1>}
// CHECK-NEXT: return %[[T]], %arg0
func.func @merged(%x: tensor<2x3x4xf32>) -> (tensor<4x2x3xf32>, tensor<2x3x4xf32>) {
  %0 = "onnx.Transpose"(%x) {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = "onnx.Transpose"(%0) {perm = array<i64: 1, 2, 0>} : (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>
  %2 = "onnx.Transpose"(%1) {perm = array<i64: 1, 2, 0>} : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  return %1, %2 : tensor<4x2x3xf32>, tensor<2x3x4xf32>
}
}
