// On a GPU's chip, weights lose their zeros where products are estimated to be faster for it: by the bytes of memory, the operations of
// tensor cores, and what a launch takes.
// RUN: hone-opt %s -hone-sparsify-weights="target=sm_80 rows=1" -remarks-filter=hone-sparsify-weights 2>&1 | FileCheck %s
// RUN: hone-opt %s -hone-sparsify-weights="target=sm_80 rows=8192" -remarks-filter=hone-sparsify-weights 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: hone-opt %s -hone-sparsify-weights="target=sm_90 rows=8192" -remarks-filter=hone-sparsify-weights 2>&1 | FileCheck %s --check-prefix=GROUPS
// RUN: hone-opt %s -hone-sparsify-weights="target=sm_100 rows=8192" -remarks-filter=hone-sparsify-weights 2>&1 | FileCheck %s --check-prefix=NEWEST

// A token reads 0.56 times the bytes, at less of the bandwidth.
// CHECK-DAG: [Passed] Sparsified {{.*}}"large is stored by 2 of every 4 inputs, in 18874368 bytes instead of 33554432; by bytes and operations the product takes 0.80 times what it takes with zeros, for rows: 1 (sm_80)"
// CHECK-DAG: [Missed] Sparsified {{.*}}"small stays as it is: by bytes and operations the product takes 1.00 times what it takes with zeros, for rows: 1 (sm_80)"
// CHECK-DAG: [Missed] Sparsified {{.*}}"odd stays as it is: its 40 inputs are no multiple of 32"
// CHECK: hone.param @large : tensor<4096x4096xf32, #hone.nm<2:4, of = bf16>>
// CHECK: hone.param @small : tensor<64x64xf32, #hone.stored<bf16>>

// Large-M products take half the operations. On sm_90 they have been measured to take longer than cuBLASLt's dense ones. Of sm_100 instructions of single warps, which 2:4 products are made of, are slower than what dense
// ones can have.
// MANY-DAG: [Passed] Sparsified {{.*}}"large {{.*}} takes 0.50 times {{.*}} for rows: 8192 (sm_80)"
// GROUPS-DAG: [Missed] Sparsified {{.*}}"large {{.*}} takes 1.25 times {{.*}} for rows: 8192 (sm_90)"
// NEWEST-DAG: [Missed] Sparsified {{.*}}"large stays as it is: by bytes and operations the product takes 1.8{{[0-9]}} times {{.*}} for rows: 8192 (sm_100)"
hone.param @large : tensor<4096x4096xf32, #hone.stored<bf16>> = dense<0.0> : tensor<4096x4096xbf16>
hone.param @small : tensor<64x64xf32, #hone.stored<bf16>> = dense<0.0> : tensor<64x64xbf16>
hone.param @odd : tensor<64x40xf32, #hone.stored<bf16>> = dense<0.0> : tensor<64x40xbf16>

func.func @main(%x: tensor<?x4096xf32>, %y: tensor<?x64xf32>, %z: tensor<?x40xf32>) -> (tensor<?x4096xf32>, tensor<?x64xf32>, tensor<?x64xf32>) {
  %large = hone.get_param @large : tensor<4096x4096xf32, #hone.stored<bf16>>
  %small = hone.get_param @small : tensor<64x64xf32, #hone.stored<bf16>>
  %odd = hone.get_param @odd : tensor<64x40xf32, #hone.stored<bf16>>
  %0 = hone.linear %x, %large : (tensor<?x4096xf32>, tensor<4096x4096xf32, #hone.stored<bf16>>) -> tensor<?x4096xf32>
  %1 = hone.linear %y, %small : (tensor<?x64xf32>, tensor<64x64xf32, #hone.stored<bf16>>) -> tensor<?x64xf32>
  %2 = hone.linear %z, %odd : (tensor<?x40xf32>, tensor<64x40xf32, #hone.stored<bf16>>) -> tensor<?x64xf32>
  return %0, %1, %2 : tensor<?x4096xf32>, tensor<?x64xf32>, tensor<?x64xf32>
}
