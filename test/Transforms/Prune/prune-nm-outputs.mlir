// With outputs, the product that a function returns is pruned too. An embedding that reads the same table goes on reading it whole.
// RUN: hone-opt %s -hone-prune-nm="outputs=true" | FileCheck %s
// RUN: hone-opt %s -hone-prune-nm="outputs=true" -remarks-filter=hone-prune-nm 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: hone-opt %s -hone-prune-nm="outputs=true" -hone-sparsify-weights | FileCheck %s --check-prefix=SPARSE
// RUN: hone-opt %s -hone-prune-nm -remarks-filter=hone-prune-nm 2>&1 | FileCheck %s --check-prefix=LEFT

// CHECK: hone.param @table : tensor<2x4xf32> = dense_resource<[[PRUNED:weight[_0-9]*]]>
// CHECK-NEXT: hone.param @table.embedding : tensor<2x4xf32> = dense<{{\[\[}}1.000000e+00, -6.000000e+00, 2.000000e+00, 1.000000e+00], [3.000000e+00, 5.000000e+00, 1.000000e+00, 5.000000e-01]]>
// CHECK: hone.param @alone
// CHECK: %[[COPY:.*]] = hone.get_param @table.embedding : tensor<2x4xf32>
// CHECK: %[[TABLE:.*]] = hone.get_param @table : tensor<2x4xf32>
// CHECK: %[[ROWS:.*]] = hone.embedding %{{.*}}, %[[COPY]]
// CHECK: hone.linear %[[ROWS]], %[[TABLE]]
// CHECK: [[PRUNED]]: "0x40000000000000000000C0C00000004000000000000040400000A0400000000000000000"

// SPARSE: hone.param @table : tensor<2x4xf32, #hone.nm<2:4, of = f32>>
// SPARSE: hone.param @table.embedding : tensor<2x4xf32> = dense

// REMARK-DAG: [Passed] Pruned {{.*}}"table is pruned to 2 of 4 by magnitude"
// REMARK-DAG: [Missed] Pruned {{.*}}"alone stays as it is: no product reads it"
// LEFT-DAG: [Missed] Pruned {{.*}}"table stays as it is: an embedding reads it"
hone.param @table : tensor<2x4xf32> = dense<[[1.0, -6.0, 2.0, 1.0], [3.0, 5.0, 1.0, 0.5]]> : tensor<2x4xf32>
hone.param @alone : tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>

func.func @main(%ids: tensor<?xi64>) -> (tensor<?x2xf32>, tensor<?x4xf32>) {
  %table = hone.get_param @table : tensor<2x4xf32>
  %alone = hone.get_param @alone : tensor<4x4xf32>
  %rows = hone.embedding %ids, %table : (tensor<?xi64>, tensor<2x4xf32>) -> tensor<?x4xf32>
  %others = hone.embedding %ids, %alone : (tensor<?xi64>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %logits = hone.linear %rows, %table : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  return %logits, %others : tensor<?x2xf32>, tensor<?x4xf32>
}
