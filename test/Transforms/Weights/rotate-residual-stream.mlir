// All that the layers of @lm read and add to is rotated, in both functions: the table, what reads it after a norm whose gain moves
// there first, and what is added to it, with its bias.
// RUN: hone-opt %s -split-input-file -hone-rotate-residual-stream -remarks-filter=hone-rotate-residual-stream 2>&1 | FileCheck %s
// RUN: hone-opt %s -split-input-file -hone-rotate-residual-stream -o %t.1 && hone-opt %s -split-input-file -hone-rotate-residual-stream | cmp %t.1 -
// RUN: hone-opt %s -split-input-file -hone-rotate-residual-stream="seed=1" -o %t.2 && not cmp %t.1 %t.2

// CHECK-DAG: [Passed] Rotated {{.*}}"table is rotated by rows"
// CHECK-DAG: [Passed] Rotated {{.*}}"gain is multiplied into what reads it"
// CHECK-DAG: [Passed] Rotated {{.*}}"up is rotated by rows"
// CHECK-DAG: [Passed] Rotated {{.*}}"down is rotated by columns"
// CHECK-DAG: [Passed] Rotated {{.*}}"bias is rotated by columns"
// CHECK-DAG: [Passed] Rotated {{.*}}"head is rotated by rows"
// CHECK-DAG: [Missed] Rotated {{.*}}"inner stays as it is: it holds nothing of the residual stream"
// CHECK-DAG: hone.param @up : tensor<4x2xf32> {{.*}} {hone.input_rotation = {gain = array<f32: 2.000000e+00, 5.000000e-01>, seed = 0 : i64}}
// CHECK-DAG: hone.param @head : tensor<3x2xf32> {{.*}} {hone.input_rotation = {gain = array<f32>, seed = 0 : i64}}
hone.param @table : tensor<3x2xf32> = dense<[[1.0, 0.0], [0.0, 1.0], [3.0, 4.0]]> : tensor<3x2xf32>
hone.param @gain : tensor<2xf32> = dense<[1.0, -0.5]> : tensor<2xf32>
hone.param @up : tensor<4x2xf32> = dense<1.0> : tensor<4x2xf32>
hone.param @inner : tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
hone.param @down : tensor<2x4xf32> = dense<1.0> : tensor<2x4xf32>
hone.param @bias : tensor<2xf32> = dense<1.0> : tensor<2xf32>
hone.param @head : tensor<3x2xf32> = dense<1.0> : tensor<3x2xf32>
func.func @lm(%ids: tensor<?xi64>) -> tensor<?x3xf32> {
  %table = hone.get_param @table : tensor<3x2xf32>
  %gain = hone.get_param @gain : tensor<2xf32>
  %up = hone.get_param @up : tensor<4x2xf32>
  %inner = hone.get_param @inner : tensor<4x4xf32>
  %down = hone.get_param @down : tensor<2x4xf32>
  %bias = hone.get_param @bias : tensor<2xf32>
  %head = hone.get_param @head : tensor<3x2xf32>
  %0 = hone.embedding %ids, %table : (tensor<?xi64>, tensor<3x2xf32>) -> tensor<?x2xf32>
  %1 = hone.rms_norm %0, %gain epsilon(1.0e-6) unit_offset : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %2 = hone.linear %1, %up : (tensor<?x2xf32>, tensor<4x2xf32>) -> tensor<?x4xf32>
  %3 = hone.linear %2, %inner : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %4 = hone.linear %3, %down bias(%bias) : (tensor<?x4xf32>, tensor<2x4xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %5 = "onnx.Add"(%0, %4) : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %6 = hone.linear %5, %head : (tensor<?x2xf32>, tensor<3x2xf32>) -> tensor<?x3xf32>
  return %6 : tensor<?x3xf32>
}
func.func @rows(%ids: tensor<?xi64>) -> tensor<?x3xf32> {
  %table = hone.get_param @table : tensor<3x2xf32>
  %head = hone.get_param @head : tensor<3x2xf32>
  %0 = hone.embedding %ids, %table : (tensor<?xi64>, tensor<3x2xf32>) -> tensor<?x2xf32>
  %1 = hone.linear %0, %head : (tensor<?x2xf32>, tensor<3x2xf32>) -> tensor<?x3xf32>
  return %1 : tensor<?x3xf32>
}

// -----

// A table that is the last layer too has two parts.
// CHECK-DAG: [Missed] Rotated {{.*}}"the residual stream stays as it is: hone.linear reads table, which has another part as well"
hone.param @table : tensor<3x2xf32> = dense<1.0> : tensor<3x2xf32>
func.func @tied(%ids: tensor<?xi64>) -> tensor<?x3xf32> {
  %table = hone.get_param @table : tensor<3x2xf32>
  %0 = hone.embedding %ids, %table : (tensor<?xi64>, tensor<3x2xf32>) -> tensor<?x2xf32>
  %1 = hone.linear %0, %table : (tensor<?x2xf32>, tensor<3x2xf32>) -> tensor<?x3xf32>
  return %1 : tensor<?x3xf32>
}

// -----

// CHECK-DAG: [Missed] Rotated {{.*}}"the residual stream stays as it is: hone.layer_norm reads the residual stream"
hone.param @table : tensor<3x2xf32> = dense<1.0> : tensor<3x2xf32>
hone.param @weight : tensor<2xf32> = dense<1.0> : tensor<2xf32>
func.func @mean(%ids: tensor<?xi64>) -> tensor<?x2xf32> {
  %table = hone.get_param @table : tensor<3x2xf32>
  %weight = hone.get_param @weight : tensor<2xf32>
  %0 = hone.embedding %ids, %table : (tensor<?xi64>, tensor<3x2xf32>) -> tensor<?x2xf32>
  %1 = hone.layer_norm %0, %weight epsilon(1.0e-6) : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}

// -----

// CHECK-DAG: [Missed] Rotated {{.*}}"the residual stream stays as it is: func.return reads the residual stream"
hone.param @table : tensor<3x2xf32> = dense<1.0> : tensor<3x2xf32>
func.func @returned(%ids: tensor<?xi64>) -> tensor<?x2xf32> {
  %table = hone.get_param @table : tensor<3x2xf32>
  %0 = hone.embedding %ids, %table : (tensor<?xi64>, tensor<3x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}

// -----

// CHECK-DAG: [Missed] Rotated {{.*}}"the residual stream stays as it is: weight has elements that are 0 or not finite"
hone.param @table : tensor<3x2xf32> = dense<1.0> : tensor<3x2xf32>
hone.param @weight : tensor<2xf32> = dense<[1.0, 0.0]> : tensor<2xf32>
hone.param @head : tensor<3x2xf32> = dense<1.0> : tensor<3x2xf32>
func.func @dead(%ids: tensor<?xi64>) -> tensor<?x3xf32> {
  %table = hone.get_param @table : tensor<3x2xf32>
  %weight = hone.get_param @weight : tensor<2xf32>
  %head = hone.get_param @head : tensor<3x2xf32>
  %0 = hone.embedding %ids, %table : (tensor<?xi64>, tensor<3x2xf32>) -> tensor<?x2xf32>
  %1 = hone.rms_norm %0, %weight epsilon(1.0e-6) : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %2 = hone.linear %1, %head : (tensor<?x2xf32>, tensor<3x2xf32>) -> tensor<?x3xf32>
  return %2 : tensor<?x3xf32>
}

// -----

// CHECK-DAG: [Missed] Rotated {{.*}}"the residual stream stays as it is: no embedding begins one"
func.func @none(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
