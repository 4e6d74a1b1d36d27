// What a norm does not compute is rotated while the model runs, once for all products that read it, four neighbours at a time, and the weights
// keep how: in both functions that read them.
// RUN: hone-opt %s -hone-rotate-inputs=block=4 -remarks-filter=hone-rotate-inputs 2>&1 | FileCheck %s
// RUN: not hone-opt %s -hone-rotate-inputs=block=3 2>&1 | FileCheck %s --check-prefix=BLOCK
// RUN: not hone-opt %s -hone-rotate-inputs=block=512 2>&1 | FileCheck %s --check-prefix=BLOCK
// BLOCK: error: expected the block to be a power of two from 2 to 256, but got {{3|512}}

// CHECK-DAG: [Passed] Rotated {{.*}}"down has its inputs rotated, 4 at a time"
// CHECK-DAG: [Passed] Rotated {{.*}}"other has its inputs rotated, 4 at a time"
// CHECK-DAG: [Passed] Rotated {{.*}}"narrow has its inputs rotated, 2 at a time"
// CHECK-DAG: [Missed] Rotated {{.*}}"up stays as it is: a norm computes its inputs"
// CHECK-DAG: [Missed] Rotated {{.*}}"odd stays as it is: its 3 inputs are no multiple of 2"
// CHECK-DAG: [Missed] Rotated {{.*}}"table stays as it is: something other than products reads it"
// CHECK-DAG: [Missed] Rotated {{.*}}"done stays as it is: its inputs are rotated already"
// CHECK: hone.param @down : tensor<2x8xf32> = {{.*}} {hone.input_rotation = {block = 4 : i64, gain = array<f32>, seed = 0 : i64}}
// CHECK: func.func @main
// CHECK: %[[X:.*]] = math.absf
// CHECK: %[[BLOCKS:.*]] = tensor.expand_shape %[[X]] {{\[\[}}0], [1, 2]{{.*}} : tensor<?x8xf32> into tensor<?x2x4xf32>
// CHECK: %[[HADAMARD:.*]] = arith.constant dense<{{.*}}> : tensor<4x4xf32>
// CHECK: %[[ROTATED:.*]] = hone.linear %[[BLOCKS]], %[[HADAMARD]]
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[ROTATED]]
// CHECK-NOT: tensor<4x4xf32>
// CHECK: hone.linear %[[ROWS]], %{{.*}} : (tensor<?x8xf32>, tensor<2x8xf32>)
// CHECK: hone.linear %[[ROWS]], %{{.*}} : (tensor<?x8xf32>, tensor<4x8xf32>)
// CHECK: func.func @again
// CHECK: tensor.expand_shape
// Four ones become 2, 0, 0, 0.
// CHECK: weight: "0x4000000000000040000000000000000000000000{{0+4}}
hone.param @gain : tensor<2xf32> = dense<1.0> : tensor<2xf32>
hone.param @up : tensor<8x2xf32> = dense<1.0> : tensor<8x2xf32>
hone.param @down : tensor<2x8xf32> = dense<1.0> : tensor<2x8xf32>
hone.param @other : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>
hone.param @narrow : tensor<3x2xf32> = dense<1.0> : tensor<3x2xf32>
hone.param @odd : tensor<2x3xf32> = dense<1.0> : tensor<2x3xf32>
hone.param @table : tensor<4x2xf32> = dense<1.0> : tensor<4x2xf32>
hone.param @done : tensor<2x2xf32> = dense<1.0> : tensor<2x2xf32> {hone.input_rotation = {gain = array<f32>, seed = 0 : i64}}
func.func @main(%ids: tensor<?xi64>) -> (tensor<?x2xf32>, tensor<?x4xf32>, tensor<?x2xf32>) {
  %table = hone.get_param @table : tensor<4x2xf32>
  %gain = hone.get_param @gain : tensor<2xf32>
  %up = hone.get_param @up : tensor<8x2xf32>
  %down = hone.get_param @down : tensor<2x8xf32>
  %other = hone.get_param @other : tensor<4x8xf32>
  %narrow = hone.get_param @narrow : tensor<3x2xf32>
  %odd = hone.get_param @odd : tensor<2x3xf32>
  %done = hone.get_param @done : tensor<2x2xf32>
  %x = hone.embedding %ids, %table : (tensor<?xi64>, tensor<4x2xf32>) -> tensor<?x2xf32>
  %normed = hone.rms_norm %x, %gain epsilon(1.0e-05) : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %0 = hone.linear %normed, %up : (tensor<?x2xf32>, tensor<8x2xf32>) -> tensor<?x8xf32>
  %1 = math.absf %0 : tensor<?x8xf32>
  %2 = hone.linear %1, %down : (tensor<?x8xf32>, tensor<2x8xf32>) -> tensor<?x2xf32>
  %3 = hone.linear %1, %other : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %4 = hone.linear %2, %narrow : (tensor<?x2xf32>, tensor<3x2xf32>) -> tensor<?x3xf32>
  %5 = hone.linear %4, %odd : (tensor<?x3xf32>, tensor<2x3xf32>) -> tensor<?x2xf32>
  %6 = hone.linear %5, %done : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  return %2, %3, %6 : tensor<?x2xf32>, tensor<?x4xf32>, tensor<?x2xf32>
}
func.func @again(%x: tensor<?x8xf32>) -> tensor<?x2xf32> {
  %down = hone.get_param @down : tensor<2x8xf32>
  %0 = hone.linear %x, %down : (tensor<?x8xf32>, tensor<2x8xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
