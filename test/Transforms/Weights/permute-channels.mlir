// Four hidden channels matter, and are neighbours: two of them change places with others, in all that is before them and after.
// RUN: hone-opt %s -split-input-file -hone-permute-channels -remarks-filter=hone-permute-channels 2>&1 | FileCheck %s
// RUN: hone-opt %s -split-input-file -hone-permute-channels | FileCheck %s --check-prefix=IR

// CHECK-DAG: [Passed] Permuted {{.*}}"the input of down has another order: 0.9990 of the outputs' energy stays when it is pruned, and not 0.5000"
// CHECK-DAG: [Missed] Permuted {{.*}}"the residual stream stays as it is: no embedding begins one"
// IR-LABEL: hone.param @up
// IR-SAME: dense_resource
// IR: hone.param @down {{.*}} {hone.inputs = {kept = array<i64: {{[0-9, ]+}}>, of = 8 : i64}}
hone.param @gate : tensor<8x2xf32> = dense<1.0> : tensor<8x2xf32>
hone.param @up : tensor<8x2xf32> = dense<[[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0], [4.0, 1.0], [5.0, 1.0], [6.0, 1.0], [7.0, 1.0]]> : tensor<8x2xf32>
hone.param @down : tensor<2x8xf32> = dense<[[32.0, 32.0, 32.0, 32.0, 1.0, 1.0, 1.0, 1.0], [32.0, 32.0, 32.0, 32.0, 1.0, 1.0, 1.0, 1.0]]> : tensor<2x8xf32>
func.func @block(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %gate = hone.get_param @gate : tensor<8x2xf32>
  %up = hone.get_param @up : tensor<8x2xf32>
  %down = hone.get_param @down : tensor<2x8xf32>
  %0 = hone.gated_mlp silu %x, gate(%gate), up(%up), down(%down) : (tensor<?x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<2x8xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}

// -----

// What another operation reads keeps its order.
// CHECK: [Missed] Permuted {{.*}}"the input of down stays as it is: another operation reads its weights"
hone.param @gate : tensor<8x2xf32> = dense<1.0> : tensor<8x2xf32>
hone.param @up : tensor<8x2xf32> = dense<1.0> : tensor<8x2xf32>
hone.param @down : tensor<2x8xf32> = dense<1.0> : tensor<2x8xf32>
func.func @shared(%x: tensor<?x2xf32>) -> (tensor<?x2xf32>, tensor<?x8xf32>) {
  %gate = hone.get_param @gate : tensor<8x2xf32>
  %up = hone.get_param @up : tensor<8x2xf32>
  %down = hone.get_param @down : tensor<2x8xf32>
  %0 = hone.gated_mlp silu %x, gate(%gate), up(%up), down(%down) : (tensor<?x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<2x8xf32>) -> tensor<?x2xf32>
  %1 = hone.linear %x, %up : (tensor<?x2xf32>, tensor<8x2xf32>) -> tensor<?x8xf32>
  return %0, %1 : tensor<?x2xf32>, tensor<?x8xf32>
}

// -----

// CHECK: [Missed] Permuted {{.*}}"the input of down stays as it is: its 6 channels are no multiple of 4"
hone.param @gate : tensor<6x2xf32> = dense<1.0> : tensor<6x2xf32>
hone.param @down : tensor<2x6xf32> = dense<1.0> : tensor<2x6xf32>
func.func @odd(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %gate = hone.get_param @gate : tensor<6x2xf32>
  %down = hone.get_param @down : tensor<2x6xf32>
  %0 = hone.mlp relu %x, up(%gate), down(%down) : (tensor<?x2xf32>, tensor<6x2xf32>, tensor<2x6xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
