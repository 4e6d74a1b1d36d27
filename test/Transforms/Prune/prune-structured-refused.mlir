// What cannot be cut keeps its groups, in every layer, and a remark says why. What cannot be asked for is an error.

// RUN: not hone-opt %s -split-input-file -hone-prune-structured="sparsity=0.2 multiple=1" --remarks-filter=hone-prune-structured 2>&1 | FileCheck %s
// RUN: not hone-opt %s -split-input-file -hone-prune-structured="sparsity=0.9" 2>&1 | FileCheck %s --check-prefix=MUCH
// MUCH: error: cannot remove 90.0 % of the parameters: those of groups that can go are {{[0-9.]+}} %
// RUN: not hone-opt %s -split-input-file -hone-prune-structured="method=obs" 2>&1 | FileCheck %s --check-prefix=DATA
// DATA: error: expected a file of statistics for method 'obs'
// RUN: not hone-opt %s -split-input-file -hone-prune-structured="method=wanda" 2>&1 | FileCheck %s --check-prefix=METHOD
// METHOD: error: unsupported method 'wanda' to prune groups; supported: magnitude, energy, obs
// RUN: not hone-opt %s -split-input-file -hone-prune-structured="sparsity=1" 2>&1 | FileCheck %s --check-prefix=SHARE
// SHARE: error: expected the sparsity to be at least 0 and less than 1, but got 1.0000

// Something else reads the weight of one of two blocks: both keep their channels.
// CHECK: its hidden channels stay, and with them those of all layers: Softmax has its groups in one row
// CHECK: there are no GQA groups to remove
// CHECK: error: cannot remove 20.0 % of the parameters: those of groups that can go are 0.0 %
module {
hone.param @up : tensor<4x2xf32> = dense<1.0> : tensor<4x2xf32>
hone.param @down : tensor<2x4xf32> = dense<1.0> : tensor<2x4xf32>
hone.param @other_up : tensor<4x2xf32> = dense<1.0> : tensor<4x2xf32>
hone.param @other_down : tensor<2x4xf32> = dense<1.0> : tensor<2x4xf32>
func.func @main(%x: tensor<?x2xf32>) -> (tensor<?x2xf32>, tensor<4x2xf32>) {
  %up = hone.get_param @up : tensor<4x2xf32>
  %down = hone.get_param @down : tensor<2x4xf32>
  %0 = hone.mlp relu %x, up(%up), down(%down) : (tensor<?x2xf32>, tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  %other_up = hone.get_param @other_up : tensor<4x2xf32>
  %other_down = hone.get_param @other_down : tensor<2x4xf32>
  %1 = hone.mlp relu %0, up(%other_up), down(%other_down) : (tensor<?x2xf32>, tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  %2 = "onnx.Softmax"(%other_up) {axis = 0 : i64} : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %1, %2 : tensor<?x2xf32>, tensor<4x2xf32>
}
}

// -----

// Layers of different widths: both keep their channels. Heads that Concat puts beside each other stay too.
// CHECK: its hidden channels stay, and with them those of all layers: it has 6 hidden channels, and others have 4
// CHECK: its GQA groups stay, and with them those of all layers: Concat puts its groups beside others
module {
hone.param @up : tensor<4x2xf32> = dense<1.0> : tensor<4x2xf32>
hone.param @down : tensor<2x4xf32> = dense<1.0> : tensor<2x4xf32>
hone.param @wide_up : tensor<6x2xf32> = dense<1.0> : tensor<6x2xf32>
hone.param @wide_down : tensor<2x6xf32> = dense<1.0> : tensor<2x6xf32>
func.func @main(%x: tensor<?x2xf32>, %q: tensor<?x2x?x2xf32>, %k: tensor<?x2x?x2xf32>) -> (tensor<?x2xf32>, tensor<?x4x?x2xf32>) {
  %up = hone.get_param @up : tensor<4x2xf32>
  %down = hone.get_param @down : tensor<2x4xf32>
  %0 = hone.mlp relu %x, up(%up), down(%down) : (tensor<?x2xf32>, tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  %wide_up = hone.get_param @wide_up : tensor<6x2xf32>
  %wide_down = hone.get_param @wide_down : tensor<2x6xf32>
  %1 = hone.mlp relu %0, up(%wide_up), down(%wide_down) : (tensor<?x2xf32>, tensor<6x2xf32>, tensor<2x6xf32>) -> tensor<?x2xf32>
  %2 = hone.attention %q, %k, %k pattern(#hone.causal) scale(1.0) : (tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>) -> tensor<?x2x?x2xf32>
  %3 = "onnx.Concat"(%2, %2) {axis = 1 : i64} : (tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>) -> tensor<?x4x?x2xf32>
  return %1, %3 : tensor<?x2xf32>, tensor<?x4x?x2xf32>
}
}

// -----

// Heads that have lists of blocks of their own stay.
// CHECK: its GQA groups stay, and with them those of all layers: attention lists blocks for each of its heads
module {
func.func @main(%q: tensor<?x2x?x2xf32>, %k: tensor<?x2x?x2xf32>, %lists: tensor<1x2x?x3xi64>) -> tensor<?x2x?x2xf32> {
  %0 = hone.attention %q, %k, %k pattern(#hone.blocks<size = 4>, %lists) scale(1.0)
     : (tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>, tensor<1x2x?x3xi64>) -> tensor<?x2x?x2xf32>
  return %0 : tensor<?x2x?x2xf32>
}
}
