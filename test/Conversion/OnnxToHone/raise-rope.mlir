// RUN: hone-opt %s --hone-raise-rope --split-input-file | FileCheck %s

// x * cos + rotate_half(x) * sin, the tables made of one half twice.
// CHECK-LABEL: @rotate_half
// CHECK: hone.rope %arg0, %{{.*}}, %{{.*}} : (tensor<?x2x?x8xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x2x?x8xf32>
// CHECK-NOT: onnx.Neg
func.func @rotate_half(%x: tensor<?x2x?x8xf32> {onnx.dims = ["b", "", "s", ""]}, %angles: tensor<?x?x4xf32> {onnx.dims = ["b", "s", ""]}) -> tensor<?x2x?x8xf32> {
  %zero = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %half = "onnx.Constant"() {value = dense<4> : tensor<1xi64>} : () -> tensor<1xi64>
  %end = "onnx.Constant"() {value = dense<9223372036854775807> : tensor<1xi64>} : () -> tensor<1xi64>
  %axis = "onnx.Constant"() {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
  %both = "onnx.Concat"(%angles, %angles) {axis = -1 : i64} : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x8xf32>
  %c = "onnx.Cos"(%both) : (tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %s = "onnx.Sin"(%both) : (tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %cos = "onnx.Unsqueeze"(%c, %one) : (tensor<?x?x8xf32>, tensor<1xi64>) -> tensor<?x1x?x8xf32>
  %sin = "onnx.Unsqueeze"(%s, %one) : (tensor<?x?x8xf32>, tensor<1xi64>) -> tensor<?x1x?x8xf32>
  %0 = "onnx.Mul"(%x, %cos) : (tensor<?x2x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x2x?x8xf32>
  %1 = "onnx.Slice"(%x, %zero, %half, %axis, %one) : (tensor<?x2x?x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x4xf32>
  %2 = "onnx.Slice"(%x, %half, %end, %axis, %one) : (tensor<?x2x?x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x4xf32>
  %3 = "onnx.Neg"(%2) : (tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  %4 = "onnx.Concat"(%3, %1) {axis = -1 : i64} : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x8xf32>
  %5 = "onnx.Mul"(%4, %sin) : (tensor<?x2x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x2x?x8xf32>
  %6 = "onnx.Add"(%0, %5) : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  return %6 : tensor<?x2x?x8xf32>
}

// -----

// The halves of the tables may differ: no rotation of pairs.
// CHECK-LABEL: @unequal_halves
// CHECK-NOT: hone.rope
// CHECK: onnx.Neg
func.func @unequal_halves(%x: tensor<?x2x?x8xf32> {onnx.dims = ["b", "", "s", ""]}, %cos: tensor<?x1x?x8xf32> {onnx.dims = ["b", "", "s", ""]},
                          %sin: tensor<?x1x?x8xf32> {onnx.dims = ["b", "", "s", ""]}) -> tensor<?x2x?x8xf32> {
  %split:2 = "onnx.Split"(%x) {axis = 3 : i64, num_outputs = 2 : i64} : (tensor<?x2x?x8xf32>) -> (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>)
  %0 = "onnx.Mul"(%x, %cos) : (tensor<?x2x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x2x?x8xf32>
  %3 = "onnx.Neg"(%split#1) : (tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  %4 = "onnx.Concat"(%3, %split#0) {axis = -1 : i64} : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x8xf32>
  %5 = "onnx.Mul"(%4, %sin) : (tensor<?x2x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x2x?x8xf32>
  %6 = "onnx.Add"(%0, %5) : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  return %6 : tensor<?x2x?x8xf32>
}

// -----

// CHECK-LABEL: @operator
// CHECK: hone.rope %arg0, %arg1, %arg2 interleaved
func.func @operator(%x: tensor<?x2x?x8xf32>, %cos: tensor<?x?x4xf32>, %sin: tensor<?x?x4xf32>) -> tensor<?x2x?x8xf32> {
  %0 = "onnx.RotaryEmbedding"(%x, %cos, %sin) {interleaved = 1 : i64} : (tensor<?x2x?x8xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x2x?x8xf32>
  return %0 : tensor<?x2x?x8xf32>
}

// -----

// Packed heads are split; the tables are read by position.
// CHECK-LABEL: @microsoft
// CHECK: %[[COS:.*]] = "onnx.Gather"(%arg2, %arg1)
// CHECK: %[[SIN:.*]] = "onnx.Gather"(%arg3, %arg1)
// CHECK: hone.rope %{{.*}}, %[[COS]], %[[SIN]] : (tensor<?x2x?x8xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x2x?x8xf32>
func.func @microsoft(%x: tensor<?x?x16xf32>, %positions: tensor<?x?xi64>, %cos: tensor<64x4xf32>, %sin: tensor<64x4xf32>) -> tensor<?x?x16xf32> {
  %0 = "onnx.com.microsoft.RotaryEmbedding"(%x, %positions, %cos, %sin) {num_heads = 2 : i64}
    : (tensor<?x?x16xf32>, tensor<?x?xi64>, tensor<64x4xf32>, tensor<64x4xf32>) -> tensor<?x?x16xf32>
  return %0 : tensor<?x?x16xf32>
}

// -----

// Both parts of a complex product, of pairs of neighbours, one after the other.
// CHECK-LABEL: @parts
// CHECK: %[[EVEN:.*]] = "onnx.Slice"(%arg0
// CHECK: %[[ODD:.*]] = "onnx.Slice"(%arg0
// CHECK: %[[ROWS:.*]] = "onnx.Concat"(%[[EVEN]], %[[ODD]]) {axis = 3 : i64}
// CHECK: hone.rope %[[ROWS]], %{{.*}}, %{{.*}} : (tensor<?x2x?x8xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x2x?x8xf32>
// CHECK-NOT: onnx.Sub
func.func @parts(%x: tensor<?x2x?x8xf32> {onnx.dims = ["b", "", "s", ""]}, %cos: tensor<?x1x?x4xf32> {onnx.dims = ["b", "", "s", ""]},
                 %sin: tensor<?x1x?x4xf32> {onnx.dims = ["b", "", "s", ""]}) -> tensor<?x2x?x8xf32> {
  %zero = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %two = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %end = "onnx.Constant"() {value = dense<9223372036854775807> : tensor<1xi64>} : () -> tensor<1xi64>
  %axis = "onnx.Constant"() {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
  %a = "onnx.Slice"(%x, %zero, %end, %axis, %two) : (tensor<?x2x?x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x4xf32>
  %b = "onnx.Slice"(%x, %one, %end, %axis, %two) : (tensor<?x2x?x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x4xf32>
  %ac = "onnx.Mul"(%a, %cos) : (tensor<?x2x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x2x?x4xf32>
  %bs = "onnx.Mul"(%sin, %b) : (tensor<?x1x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  %real = "onnx.Sub"(%ac, %bs) : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  %as = "onnx.Mul"(%a, %sin) : (tensor<?x2x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x2x?x4xf32>
  %bc = "onnx.Mul"(%b, %cos) : (tensor<?x2x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x2x?x4xf32>
  %imaginary = "onnx.Add"(%as, %bc) : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  %0 = "onnx.Concat"(%real, %imaginary) {axis = -1 : i64} : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x8xf32>
  return %0 : tensor<?x2x?x8xf32>
}

// -----

// The second part rotates the other way: no rotation.
// CHECK-LABEL: @other_parts
// CHECK-NOT: hone.rope
// CHECK: onnx.Sub
func.func @other_parts(%a: tensor<?x2x?x4xf32> {onnx.dims = ["b", "", "s", ""]}, %b: tensor<?x2x?x4xf32> {onnx.dims = ["b", "", "s", ""]},
                       %cos: tensor<?x1x?x4xf32> {onnx.dims = ["b", "", "s", ""]}, %sin: tensor<?x1x?x4xf32> {onnx.dims = ["b", "", "s", ""]}) -> tensor<?x2x?x8xf32> {
  %ac = "onnx.Mul"(%a, %cos) : (tensor<?x2x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x2x?x4xf32>
  %bs = "onnx.Mul"(%b, %sin) : (tensor<?x2x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x2x?x4xf32>
  %real = "onnx.Sub"(%ac, %bs) : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  %imaginary = "onnx.Add"(%ac, %bs) : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  %0 = "onnx.Concat"(%real, %imaginary) {axis = -1 : i64} : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x8xf32>
  return %0 : tensor<?x2x?x8xf32>
}

// -----

// One table in both ways: as two equal halves for heads of 8, and as a half for heads of 16.
// CHECK-LABEL: @both_uses
// CHECK-DAG: hone.rope %arg0, %{{.*}}, %{{.*}} : (tensor<?x2x?x8xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x2x?x8xf32>
// CHECK-DAG: hone.rope %{{.*}}, %{{.*}}, %{{.*}} : (tensor<?x2x?x16xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x2x?x16xf32>
func.func @both_uses(%x: tensor<?x2x?x8xf32> {onnx.dims = ["b", "", "s", ""]}, %y: tensor<?x2x?x8xf32> {onnx.dims = ["b", "", "s", ""]},
                     %angles: tensor<?x?x4xf32> {onnx.dims = ["b", "s", ""]}) -> (tensor<?x2x?x8xf32>, tensor<?x2x?x16xf32>) {
  %one = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %both = "onnx.Concat"(%angles, %angles) {axis = -1 : i64} : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x8xf32>
  %c = "onnx.Cos"(%both) : (tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %s = "onnx.Sin"(%both) : (tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %cos = "onnx.Unsqueeze"(%c, %one) : (tensor<?x?x8xf32>, tensor<1xi64>) -> tensor<?x1x?x8xf32>
  %sin = "onnx.Unsqueeze"(%s, %one) : (tensor<?x?x8xf32>, tensor<1xi64>) -> tensor<?x1x?x8xf32>
  %split:2 = "onnx.Split"(%x) {axis = 3 : i64, num_outputs = 2 : i64} : (tensor<?x2x?x8xf32>) -> (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>)
  %0 = "onnx.Neg"(%split#1) : (tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  %1 = "onnx.Concat"(%0, %split#0) {axis = -1 : i64} : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x8xf32>
  %2 = "onnx.Mul"(%x, %cos) : (tensor<?x2x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x2x?x8xf32>
  %3 = "onnx.Mul"(%1, %sin) : (tensor<?x2x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x2x?x8xf32>
  %halves = "onnx.Add"(%2, %3) : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %xc = "onnx.Mul"(%x, %cos) : (tensor<?x2x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x2x?x8xf32>
  %ys = "onnx.Mul"(%y, %sin) : (tensor<?x2x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x2x?x8xf32>
  %real = "onnx.Sub"(%xc, %ys) : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %xs = "onnx.Mul"(%x, %sin) : (tensor<?x2x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x2x?x8xf32>
  %yc = "onnx.Mul"(%y, %cos) : (tensor<?x2x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x2x?x8xf32>
  %imaginary = "onnx.Add"(%xs, %yc) : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %parts = "onnx.Concat"(%real, %imaginary) {axis = -1 : i64} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x16xf32>
  return %halves, %parts : tensor<?x2x?x8xf32>, tensor<?x2x?x16xf32>
}
