// RUN: hone-opt %s -allow-unregistered-dialect -hone-prune-nm | FileCheck %s
// RUN: hone-opt %s -allow-unregistered-dialect -hone-prune-nm -remarks-filter=hone-prune-nm 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: hone-opt %s -allow-unregistered-dialect -hone-prune-nm="n=1 m=4 outputs=true" -remarks-filter=hone-prune-nm 2>&1 | FileCheck %s --check-prefix=ONE


// CHECK: module attributes {hone.model = "{{[0-9a-f]+}}"}
// CHECK: hone.param @plain : tensor<2x4xf32> = dense_resource<[[PLAIN:weight[_0-9]*]]>
// CHECK: hone.param @transposed : tensor<2x4xf32, #hone.stored<f32, transposed>> = dense_resource<[[TRANSPOSED:weight[_0-9]*]]> : tensor<4x2xf32>
// CHECK: hone.param @half : tensor<2x4xf32, #hone.stored<f16>> = dense_resource<[[HALF:weight[_0-9]*]]> : tensor<2x4xf16>
// CHECK: hone.param @converted : tensor<2x4xf32, #hone.stored<bf16>> = #hone.converted<tensor<2x4xf32> = dense_resource<[[CONVERTED:weight[_0-9]*]]> : tensor<2x4xf32>>
// CHECK: hone.param @narrow : tensor<2x6xf32> = dense
// CHECK: hone.param @read : tensor<8x4xf32> = dense
// CHECK: hone.param @table : tensor<4x4xf32> = dense
// CHECK: hone.param @integers : tensor<2x4xf32, #hone.affine<bits = 8>> = {
// CHECK: hone.param @last : tensor<8x2xf32> = dense

// Of equal elements the first are kept.
// CHECK-DAG: [[PLAIN]]: "0x40000000000000000000C0C00000004000000000000040400000A0400000000000000000"
// CHECK-DAG: [[TRANSPOSED]]: "0x40000000000000000000404000004040000000000000A0C00000A0C00000000000000000"
// CHECK-DAG: [[HALF]]: "0x40000000000000C2004000000042004500000000"
// CHECK-DAG: [[CONVERTED]]: "0x400000000000803F0000803F00000000000000000000803F0000803F0000000000000000"

// REMARK-DAG: [Passed] Pruned {{.*}}"plain is pruned to 2 of 4 by magnitude"
// REMARK-DAG: [Passed] Pruned {{.*}}"transposed is pruned to 2 of 4 by magnitude"
// REMARK-DAG: [Passed] Pruned {{.*}}"half is pruned to 2 of 4 by magnitude"
// REMARK-DAG: [Passed] Pruned {{.*}}"converted is pruned to 2 of 4 by magnitude"
// REMARK-DAG: [Missed] Pruned {{.*}}"narrow stays as it is: its 6 inputs are no multiple of 4"
// REMARK-DAG: [Missed] Pruned {{.*}}"read stays as it is: something other than products and embeddings reads it"
// REMARK-DAG: [Missed] Pruned {{.*}}"table stays as it is: an embedding reads it"
// REMARK-DAG: [Missed] Pruned {{.*}}"integers stays as it is: it has another encoding already"
// REMARK-DAG: [Missed] Pruned {{.*}}"norm stays as it is: it is no matrix of f32"
// REMARK-DAG: [Missed] Pruned {{.*}}"last stays as it is: it makes what a function returns"
// REMARK-DAG: [Missed] Pruned {{.*}}"idle stays as it is: no product reads it"
// ONE-DAG: [Passed] Pruned {{.*}}"plain is pruned to 1 of 4 by magnitude"
// ONE-DAG: [Missed] Pruned {{.*}}"last stays as it is: its 2 inputs are no multiple of 4"
hone.param @plain : tensor<2x4xf32> = dense<[[1.0, -6.0, 2.0, 1.0], [3.0, 5.0, 1.0, 0.5]]> : tensor<2x4xf32>
// Two rows of four, in memory as four rows of two.
hone.param @transposed : tensor<2x4xf32, #hone.stored<f32, transposed>> = dense<[[1.0, 3.0], [3.0, 0.5], [-5.0, -5.0], [1.0, 0.5]]> : tensor<4x2xf32>
hone.param @half : tensor<2x4xf32, #hone.stored<f16>> = dense<[[1.0, -3.0, 2.0, 1.0], [3.0, 5.0, 1.0, 0.5]]> : tensor<2x4xf16>
hone.param @converted : tensor<2x4xf32, #hone.stored<bf16>> = #hone.converted<tensor<2x4xf32> = dense<1.0> : tensor<2x4xf32>>
hone.param @narrow : tensor<2x6xf32> = dense<1.0> : tensor<2x6xf32>
hone.param @read : tensor<8x4xf32> = dense<0.0> : tensor<8x4xf32>
hone.param @table : tensor<4x4xf32> = dense<0.0> : tensor<4x4xf32>
hone.param @idle : tensor<4x4xf32> = dense<0.0> : tensor<4x4xf32>
hone.param @integers : tensor<2x4xf32, #hone.affine<bits = 8>> = {values = dense<1> : tensor<2x4xi8>, scales = dense<1.0> : tensor<2x1xf32>}
hone.param @norm : tensor<4xf32> = dense<1.0> : tensor<4xf32>
hone.param @last : tensor<8x2xf32> = dense<1.0> : tensor<8x2xf32>

func.func @main(%ids: tensor<?xi64>, %wide: tensor<?x6xf32>) -> (tensor<?x8xf32>, tensor<8x4xf32>) {
  %plain = hone.get_param @plain : tensor<2x4xf32>
  %transposed = hone.get_param @transposed : tensor<2x4xf32, #hone.stored<f32, transposed>>
  %half = hone.get_param @half : tensor<2x4xf32, #hone.stored<f16>>
  %converted = hone.get_param @converted : tensor<2x4xf32, #hone.stored<bf16>>
  %narrow = hone.get_param @narrow : tensor<2x6xf32>
  %read = hone.get_param @read : tensor<8x4xf32>
  %table = hone.get_param @table : tensor<4x4xf32>
  %idle = hone.get_param @idle : tensor<4x4xf32>
  %integers = hone.get_param @integers : tensor<2x4xf32, #hone.affine<bits = 8>>
  %norm = hone.get_param @norm : tensor<4xf32>
  %last = hone.get_param @last : tensor<8x2xf32>
  %0 = hone.embedding %ids, %table : (tensor<?xi64>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %1 = hone.rms_norm %0, %norm epsilon(1.0e-6) : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %a = hone.linear %1, %plain : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  %b = hone.linear %1, %transposed : (tensor<?x4xf32>, tensor<2x4xf32, #hone.stored<f32, transposed>>) -> tensor<?x2xf32>
  %c = hone.linear %1, %half : (tensor<?x4xf32>, tensor<2x4xf32, #hone.stored<f16>>) -> tensor<?x2xf32>
  %d = hone.linear %1, %converted : (tensor<?x4xf32>, tensor<2x4xf32, #hone.stored<bf16>>) -> tensor<?x2xf32>
  %e = hone.linear %wide, %narrow : (tensor<?x6xf32>, tensor<2x6xf32>) -> tensor<?x2xf32>
  %f = hone.linear %1, %integers : (tensor<?x4xf32>, tensor<2x4xf32, #hone.affine<bits = 8>>) -> tensor<?x2xf32>
  %sum = "test.sum"(%a, %b, %c, %d, %e, %f) : (tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %result = hone.linear %sum, %last : (tensor<?x2xf32>, tensor<8x2xf32>) -> tensor<?x8xf32>
  return %result, %read : tensor<?x8xf32>, tensor<8x4xf32>
}
