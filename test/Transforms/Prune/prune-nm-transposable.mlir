// Rows alone would keep the first two columns of @block everywhere; with its columns it keeps two blocks of two.
// RUN: hone-opt %s -hone-prune-nm="transposable=true outputs=true" -remarks-filter=hone-prune-nm 2>&1 | FileCheck %s
// RUN: hone-opt %s -hone-prune-nm="outputs=true" | FileCheck %s --check-prefix=ROWS
// RUN: not hone-opt %s -hone-prune-nm="transposable=true n=1" 2>&1 | FileCheck %s --check-prefix=PATTERN
// PATTERN: error: expected transposable masks to be 2 of 4 by magnitude or wanda, but got 1 of 4 by magnitude
// RUN: not hone-opt %s -hone-prune-nm="transposable=true method=sparsegpt statistics=none" 2>&1 | FileCheck %s --check-prefix=METHOD
// METHOD: error: expected transposable masks to be 2 of 4 by magnitude or wanda, but got 2 of 4 by sparsegpt

// CHECK-DAG: [Passed] Pruned {{.*}}"block is pruned to 2 of 4 by magnitude, in rows and columns"
// CHECK-DAG: [Missed] Pruned {{.*}}"flat stays as it is: its 2 outputs are no multiple of 4"
// CHECK-DAG: block{{.*}}= dense_resource<[[BLOCK:weight[_0-9]*]]>
// CHECK: [[BLOCK]]: "0x400000000000A040000080400000000000000000000080400000A04000000000000000000000000000000000000000400000004000000000000000000000004000000040"
// ROWS: hone.param @block : tensor<4x4xf32> = dense_resource<[[BLOCK:weight[_0-9]*]]>
// ROWS: [[BLOCK]]: "0x400000000000A040000080400000000000000000000080400000A04000000000000000000000404000004040000000000000000000004040000040400000000000000000"
hone.param @block : tensor<4x4xf32> = dense<[[5.0, 4.0, 1.0, 1.0], [4.0, 5.0, 1.0, 1.0], [3.0, 3.0, 2.0, 2.0], [3.0, 3.0, 2.0, 2.0]]> : tensor<4x4xf32>
hone.param @flat : tensor<2x4xf32> = dense<1.0> : tensor<2x4xf32>
func.func @main(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x2xf32>) {
  %block = hone.get_param @block : tensor<4x4xf32>
  %flat = hone.get_param @flat : tensor<2x4xf32>
  %0 = hone.linear %x, %block : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %1 = hone.linear %x, %flat : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<?x2xf32>
}
