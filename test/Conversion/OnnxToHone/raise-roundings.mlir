// What is inside of a recognised block is not rounded, and everything else is.
//
// RUN: hone-opt %s -split-input-file --hone-raise --remarks-filter=hone-restore-roundings 2>%t | FileCheck %s -enable-var-scope
// RUN: FileCheck %s --check-prefix=REMARK <%t

// Queries, keys and the result are rounded; logits, scaled logits and probabilities are not.
// CHECK-LABEL: @attention
// CHECK: %[[Q:.*]] = "onnx.DequantizeLinear"({{.*}} -> tensor<?x2x?x8xf32>
// CHECK: %[[K:.*]] = "onnx.DequantizeLinear"({{.*}} -> tensor<?x2x?x8xf32>
// CHECK-NOT: onnx.QuantizeLinear
// CHECK: %[[A:.*]] = hone.attention %[[Q]], %[[K]], %arg2
// CHECK: %[[CODES:.*]] = "onnx.QuantizeLinear"(%[[A]]
// CHECK: %[[ROUNDED:.*]] = "onnx.DequantizeLinear"(%[[CODES]]
// CHECK: return %[[ROUNDED]]
// REMARK: [Passed] Roundings | Category:hone-restore-roundings | Remark="left out ", Remark=4, Remark=" of ", Remark=7
func.func @attention(%x: tensor<?x2x?x8xf32> {onnx.dims = ["b", "", "q", ""]}, %y: tensor<?x2x?x8xf32> {onnx.dims = ["b", "", "k", ""]}, %v: tensor<?x2x?x8xf32> {onnx.dims = ["b", "", "k", ""]}) -> tensor<?x2x?x8xf32> {
  %s = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %z = "onnx.Constant"() {value = dense<7> : tensor<i8>} : () -> tensor<i8>
  %qt = "onnx.Tanh"(%x) : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %qrq = "onnx.QuantizeLinear"(%qt, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x8xf32>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x8xi8>
  %qr = "onnx.DequantizeLinear"(%qrq, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x8xi8>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x8xf32>
  %kt = "onnx.Tanh"(%y) : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %krq = "onnx.QuantizeLinear"(%kt, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x8xf32>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x8xi8>
  %kr = "onnx.DequantizeLinear"(%krq, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x8xi8>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x8xf32>
  %kp = "onnx.Transpose"(%kr) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x8xf32>) -> tensor<?x2x8x?xf32>
  %kprq = "onnx.QuantizeLinear"(%kp, %s, %z) {axis = 1 : i64} : (tensor<?x2x8x?xf32>, tensor<f32>, tensor<i8>) -> tensor<?x2x8x?xi8>
  %kpr = "onnx.DequantizeLinear"(%kprq, %s, %z) {axis = 1 : i64} : (tensor<?x2x8x?xi8>, tensor<f32>, tensor<i8>) -> tensor<?x2x8x?xf32>
  %l = "onnx.MatMul"(%qr, %kpr) : (tensor<?x2x?x8xf32>, tensor<?x2x8x?xf32>) -> tensor<?x2x?x?xf32>
  %lrq = "onnx.QuantizeLinear"(%l, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x?xf32>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x?xi8>
  %lr = "onnx.DequantizeLinear"(%lrq, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x?xi8>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x?xf32>
  %c = "onnx.Mul"(%lr, %s) : (tensor<?x2x?x?xf32>, tensor<f32>) -> tensor<?x2x?x?xf32>
  %crq = "onnx.QuantizeLinear"(%c, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x?xf32>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x?xi8>
  %cr = "onnx.DequantizeLinear"(%crq, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x?xi8>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x?xf32>
  %p = "onnx.Softmax"(%cr) {axis = -1 : i64} : (tensor<?x2x?x?xf32>) -> tensor<?x2x?x?xf32>
  %prq = "onnx.QuantizeLinear"(%p, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x?xf32>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x?xi8>
  %pr = "onnx.DequantizeLinear"(%prq, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x?xi8>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x?xf32>
  %o = "onnx.MatMul"(%pr, %v) : (tensor<?x2x?x?xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %orq = "onnx.QuantizeLinear"(%o, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x8xf32>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x8xi8>
  %or = "onnx.DequantizeLinear"(%orq, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x8xi8>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x8xf32>
  return %or : tensor<?x2x?x8xf32>
}

// -----

// Probabilities that are a result too are no part of a block: nothing is left out but a rounding of what was only transposed since.
// CHECK-LABEL: @not_recognised
// CHECK-NOT: hone.attention
// CHECK-COUNT-6: onnx.DequantizeLinear
// CHECK-NOT: onnx.DequantizeLinear
func.func @not_recognised(%x: tensor<?x2x?x8xf32> {onnx.dims = ["b", "", "q", ""]}, %y: tensor<?x2x?x8xf32> {onnx.dims = ["b", "", "k", ""]}, %v: tensor<?x2x?x8xf32> {onnx.dims = ["b", "", "k", ""]}) -> (tensor<?x2x?x8xf32>, tensor<?x2x?x?xf32>) {
  %s = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %z = "onnx.Constant"() {value = dense<7> : tensor<i8>} : () -> tensor<i8>
  %qt = "onnx.Tanh"(%x) : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %qrq = "onnx.QuantizeLinear"(%qt, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x8xf32>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x8xi8>
  %qr = "onnx.DequantizeLinear"(%qrq, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x8xi8>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x8xf32>
  %kt = "onnx.Tanh"(%y) : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %krq = "onnx.QuantizeLinear"(%kt, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x8xf32>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x8xi8>
  %kr = "onnx.DequantizeLinear"(%krq, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x8xi8>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x8xf32>
  %kp = "onnx.Transpose"(%kr) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x8xf32>) -> tensor<?x2x8x?xf32>
  %kprq = "onnx.QuantizeLinear"(%kp, %s, %z) {axis = 1 : i64} : (tensor<?x2x8x?xf32>, tensor<f32>, tensor<i8>) -> tensor<?x2x8x?xi8>
  %kpr = "onnx.DequantizeLinear"(%kprq, %s, %z) {axis = 1 : i64} : (tensor<?x2x8x?xi8>, tensor<f32>, tensor<i8>) -> tensor<?x2x8x?xf32>
  %l = "onnx.MatMul"(%qr, %kpr) : (tensor<?x2x?x8xf32>, tensor<?x2x8x?xf32>) -> tensor<?x2x?x?xf32>
  %lrq = "onnx.QuantizeLinear"(%l, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x?xf32>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x?xi8>
  %lr = "onnx.DequantizeLinear"(%lrq, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x?xi8>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x?xf32>
  %c = "onnx.Mul"(%lr, %s) : (tensor<?x2x?x?xf32>, tensor<f32>) -> tensor<?x2x?x?xf32>
  %crq = "onnx.QuantizeLinear"(%c, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x?xf32>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x?xi8>
  %cr = "onnx.DequantizeLinear"(%crq, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x?xi8>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x?xf32>
  %p = "onnx.Softmax"(%cr) {axis = -1 : i64} : (tensor<?x2x?x?xf32>) -> tensor<?x2x?x?xf32>
  %prq = "onnx.QuantizeLinear"(%p, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x?xf32>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x?xi8>
  %pr = "onnx.DequantizeLinear"(%prq, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x?xi8>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x?xf32>
  %o = "onnx.MatMul"(%pr, %v) : (tensor<?x2x?x?xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %orq = "onnx.QuantizeLinear"(%o, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x8xf32>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x8xi8>
  %or = "onnx.DequantizeLinear"(%orq, %s, %z) {axis = 1 : i64} : (tensor<?x2x?x8xi8>, tensor<f32>, tensor<i8>) -> tensor<?x2x?x8xf32>
  return %or, %pr : tensor<?x2x?x8xf32>, tensor<?x2x?x?xf32>
}

// -----

// The input and the result of an MLP are rounded.
// CHECK-LABEL: @mlp
// CHECK: %[[X:.*]] = "onnx.DequantizeLinear"({{.*}} -> tensor<?x?x4xf32>
// CHECK-NOT: onnx.QuantizeLinear
// CHECK: %[[BLOCK:.*]] = hone.mlp relu %[[X]],
// CHECK: "onnx.QuantizeLinear"(%[[BLOCK]]
// REMARK-NOT: not_recognised
// REMARK: left out ", Remark=2, Remark=" of ", Remark=4
hone.param @up : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>
hone.param @down : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
func.func @mlp(%a: tensor<?x?x4xf32>) -> tensor<?x?x4xf32> {
  %s = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %z = "onnx.Constant"() {value = dense<7> : tensor<i8>} : () -> tensor<i8>
  %up = hone.get_param @up : tensor<4x8xf32>
  %down = hone.get_param @down : tensor<8x4xf32>
  %x = "onnx.Tanh"(%a) : (tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %xrq = "onnx.QuantizeLinear"(%x, %s, %z) {axis = 1 : i64} : (tensor<?x?x4xf32>, tensor<f32>, tensor<i8>) -> tensor<?x?x4xi8>
  %xr = "onnx.DequantizeLinear"(%xrq, %s, %z) {axis = 1 : i64} : (tensor<?x?x4xi8>, tensor<f32>, tensor<i8>) -> tensor<?x?x4xf32>
  %h = "onnx.MatMul"(%xr, %up) : (tensor<?x?x4xf32>, tensor<4x8xf32>) -> tensor<?x?x8xf32>
  %hrq = "onnx.QuantizeLinear"(%h, %s, %z) {axis = 1 : i64} : (tensor<?x?x8xf32>, tensor<f32>, tensor<i8>) -> tensor<?x?x8xi8>
  %hr = "onnx.DequantizeLinear"(%hrq, %s, %z) {axis = 1 : i64} : (tensor<?x?x8xi8>, tensor<f32>, tensor<i8>) -> tensor<?x?x8xf32>
  %g = "onnx.Relu"(%hr) : (tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %grq = "onnx.QuantizeLinear"(%g, %s, %z) {axis = 1 : i64} : (tensor<?x?x8xf32>, tensor<f32>, tensor<i8>) -> tensor<?x?x8xi8>
  %gr = "onnx.DequantizeLinear"(%grq, %s, %z) {axis = 1 : i64} : (tensor<?x?x8xi8>, tensor<f32>, tensor<i8>) -> tensor<?x?x8xf32>
  %y = "onnx.MatMul"(%gr, %down) : (tensor<?x?x8xf32>, tensor<8x4xf32>) -> tensor<?x?x4xf32>
  %yrq = "onnx.QuantizeLinear"(%y, %s, %z) {axis = 1 : i64} : (tensor<?x?x4xf32>, tensor<f32>, tensor<i8>) -> tensor<?x?x4xi8>
  %yr = "onnx.DequantizeLinear"(%yrq, %s, %z) {axis = 1 : i64} : (tensor<?x?x4xi8>, tensor<f32>, tensor<i8>) -> tensor<?x?x4xf32>
  return %yr : tensor<?x?x4xf32>
}

// -----

// A Relu that the quantizer left out is there in the block.
// CHECK-LABEL: @without_relu
// CHECK: hone.mlp relu %arg0,
hone.param @up : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>
hone.param @down : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
func.func @without_relu(%x: tensor<?x?x4xf32>) -> tensor<?x?x4xf32> {
  %s = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %z = "onnx.Constant"() {value = dense<7> : tensor<i8>} : () -> tensor<i8>
  %least = "onnx.Constant"() {value = dense<-128> : tensor<i8>} : () -> tensor<i8>
  %up = hone.get_param @up : tensor<4x8xf32>
  %down = hone.get_param @down : tensor<8x4xf32>
  %h = "onnx.MatMul"(%x, %up) : (tensor<?x?x4xf32>, tensor<4x8xf32>) -> tensor<?x?x8xf32>
  %hrq = "onnx.QuantizeLinear"(%h, %s, %least) {axis = 1 : i64} : (tensor<?x?x8xf32>, tensor<f32>, tensor<i8>) -> tensor<?x?x8xi8>
  %hr = "onnx.DequantizeLinear"(%hrq, %s, %least) {axis = 1 : i64} : (tensor<?x?x8xi8>, tensor<f32>, tensor<i8>) -> tensor<?x?x8xf32>
  %y = "onnx.MatMul"(%hr, %down) : (tensor<?x?x8xf32>, tensor<8x4xf32>) -> tensor<?x?x4xf32>
  return %y : tensor<?x?x4xf32>
}

// -----

// The projection whose halves are gate and up is split later on.
// CHECK-LABEL: @gate_up
// CHECK: %[[ROWS:.*]] = hone.linear
// CHECK: "onnx.Split"(%[[ROWS]]
// CHECK-NOT: onnx.QuantizeLinear
// CHECK: hone.linear
hone.param @weight : tensor<4x16xf32> = dense<1.0> : tensor<4x16xf32>
hone.param @down : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
func.func @gate_up(%x: tensor<?x?x4xf32>) -> tensor<?x?x4xf32> {
  %s = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %z = "onnx.Constant"() {value = dense<7> : tensor<i8>} : () -> tensor<i8>
  %gu = hone.get_param @weight : tensor<4x16xf32>
  %down = hone.get_param @down : tensor<8x4xf32>
  %sizes = "onnx.Constant"() {value = dense<8> : tensor<2xi64>} : () -> tensor<2xi64>
  %h = "onnx.MatMul"(%x, %gu) : (tensor<?x?x4xf32>, tensor<4x16xf32>) -> tensor<?x?x16xf32>
  %hrq = "onnx.QuantizeLinear"(%h, %s, %z) {axis = 1 : i64} : (tensor<?x?x16xf32>, tensor<f32>, tensor<i8>) -> tensor<?x?x16xi8>
  %hr = "onnx.DequantizeLinear"(%hrq, %s, %z) {axis = 1 : i64} : (tensor<?x?x16xi8>, tensor<f32>, tensor<i8>) -> tensor<?x?x16xf32>
  %parts:2 = "onnx.Split"(%hr, %sizes) {axis = -1 : i64} : (tensor<?x?x16xf32>, tensor<2xi64>) -> (tensor<?x?x8xf32>, tensor<?x?x8xf32>)
  %grq = "onnx.QuantizeLinear"(%parts#0, %s, %z) {axis = 1 : i64} : (tensor<?x?x8xf32>, tensor<f32>, tensor<i8>) -> tensor<?x?x8xi8>
  %gr = "onnx.DequantizeLinear"(%grq, %s, %z) {axis = 1 : i64} : (tensor<?x?x8xi8>, tensor<f32>, tensor<i8>) -> tensor<?x?x8xf32>
  %urq = "onnx.QuantizeLinear"(%parts#1, %s, %z) {axis = 1 : i64} : (tensor<?x?x8xf32>, tensor<f32>, tensor<i8>) -> tensor<?x?x8xi8>
  %ur = "onnx.DequantizeLinear"(%urq, %s, %z) {axis = 1 : i64} : (tensor<?x?x8xi8>, tensor<f32>, tensor<i8>) -> tensor<?x?x8xf32>
  %a = "onnx.Sigmoid"(%gr) : (tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %arq = "onnx.QuantizeLinear"(%a, %s, %z) {axis = 1 : i64} : (tensor<?x?x8xf32>, tensor<f32>, tensor<i8>) -> tensor<?x?x8xi8>
  %ar = "onnx.DequantizeLinear"(%arq, %s, %z) {axis = 1 : i64} : (tensor<?x?x8xi8>, tensor<f32>, tensor<i8>) -> tensor<?x?x8xf32>
  %b = "onnx.Mul"(%gr, %ar) : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %brq = "onnx.QuantizeLinear"(%b, %s, %z) {axis = 1 : i64} : (tensor<?x?x8xf32>, tensor<f32>, tensor<i8>) -> tensor<?x?x8xi8>
  %br = "onnx.DequantizeLinear"(%brq, %s, %z) {axis = 1 : i64} : (tensor<?x?x8xi8>, tensor<f32>, tensor<i8>) -> tensor<?x?x8xf32>
  %c = "onnx.Mul"(%br, %ur) : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %crq = "onnx.QuantizeLinear"(%c, %s, %z) {axis = 1 : i64} : (tensor<?x?x8xf32>, tensor<f32>, tensor<i8>) -> tensor<?x?x8xi8>
  %cr = "onnx.DequantizeLinear"(%crq, %s, %z) {axis = 1 : i64} : (tensor<?x?x8xi8>, tensor<f32>, tensor<i8>) -> tensor<?x?x8xf32>
  %y = "onnx.MatMul"(%cr, %down) : (tensor<?x?x8xf32>, tensor<8x4xf32>) -> tensor<?x?x4xf32>
  return %y : tensor<?x?x4xf32>
}
