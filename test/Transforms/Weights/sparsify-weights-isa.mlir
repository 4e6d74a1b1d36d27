// For an ISA, weights lose their zeros where products are faster for it, by measured times.
// RUN: hone-opt %s -split-input-file -hone-sparsify-weights="target=avx2 rows=1" -remarks-filter=hone-sparsify-weights 2>&1 | FileCheck %s
// RUN: hone-opt %s -split-input-file -hone-sparsify-weights="target=avx2 rows=2,4" -remarks-filter=hone-sparsify-weights 2>&1 | FileCheck %s --check-prefix=MEAN
// RUN: hone-opt %s -split-input-file -hone-sparsify-weights="target=avx512_bf16" -remarks-filter=hone-sparsify-weights 2>&1 | FileCheck %s --check-prefix=USUAL
// RUN: hone-opt %s -split-input-file -hone-sparsify-weights="target=avx512_vnni" -remarks-filter=hone-sparsify-weights 2>&1 | FileCheck %s --check-prefix=BELOW
// RUN: not hone-opt %s -split-input-file -hone-sparsify-weights="target=sse2" 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not hone-opt %s -split-input-file -hone-sparsify-weights="target=amx rows=1,0" 2>&1 | FileCheck %s --check-prefix=ROWS

// CHECK-DAG: [Passed] Sparsified {{.*}}"floats is stored by 2 of every 4 inputs, in 18 bytes instead of 32; hone.sparse_linear.f32 takes 0.{{[0-9]+}} times what hone.packed_linear.f32 takes, for rows: 1 (avx2)"
// CHECK-DAG: [Missed] Sparsified {{.*}}"codes stays as it is: hone.sparse_linear.u4 takes {{[1-9]\.[0-9]+}} times what hone.packed_linear.u4 takes, for rows: 1 (avx2)"
// CHECK: hone.param @floats : tensor<2x4xf32, #hone.nm<2:4, of = f32>>
// CHECK: hone.param @codes : tensor<1x4xf32, #hone.affine<bits = 4>> = {
// MEAN-DAG: [Passed] Sparsified {{.*}}"floats {{.*}} for rows: 2, 4 (avx2)"
// USUAL-DAG: "floats {{.*}} takes {{.*}} for rows: 512 (avx512_bf16)"
// USUAL-DAG: [Passed] Sparsified {{.*}}"stepped {{.*}} takes 0.{{.*}} for rows: 1 (avx512_bf16)"
// Integers have kernels of their own there, floats those of avx512.
// BELOW-DAG: "floats stays {{.*}} takes 1.0{{.*}} for rows: 512 (avx512_vnni)"
// BELOW-DAG: "codes is stored {{.*}} takes 0.{{.*}} for rows: 512 (avx512_vnni)"
// TARGET: error: unsupported target 'sse2' to choose kernels for; supported: avx2, avx_vnni, avx512, avx512_vnni, avx512_bf16, amx
// ROWS: error: expected numbers of rows to be at least 1
hone.param @floats : tensor<2x4xf32> = dense<[[0.0, -6.0, 2.0, 0.0], [3.0, -0.0, 0.0, 0.0]]> : tensor<2x4xf32>
hone.param @codes : tensor<1x4xf32, #hone.affine<bits = 4>> = {scales = dense<1.0> : tensor<1x1xf32>, values = dense<[[-120, 8]]> : tensor<1x2xi8>}

func.func @main(%x: tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x1xf32>) {
  %floats = hone.get_param @floats : tensor<2x4xf32>
  %codes = hone.get_param @codes : tensor<1x4xf32, #hone.affine<bits = 4>>
  %0 = hone.linear %x, %floats : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  %1 = hone.linear %x, %codes : (tensor<?x4xf32>, tensor<1x4xf32, #hone.affine<bits = 4>>) -> tensor<?x1xf32>
  return %0, %1 : tensor<?x2xf32>, tensor<?x1xf32>
}

// -----

// Who keeps a state takes a token at a time.
module {
  hone.state @kv [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>]
  hone.param @stepped : tensor<2x4xf32> = dense<[[0.0, -6.0, 2.0, 0.0], [3.0, -0.0, 0.0, 0.0]]> : tensor<2x4xf32>

  func.func @main(%x: tensor<?x4xf32>, %s: !hone.kv<@kv>, %k: tensor<1x4x3x8xf32>) -> (tensor<?x2xf32>, !hone.kv<@kv>) {
    %stepped = hone.get_param @stepped : tensor<2x4xf32>
    %next, %all = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<1x4x3x8xf32> -> tensor<1x4x?x8xf32>
    %0 = hone.linear %x, %stepped : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
    return %0, %next : tensor<?x2xf32>, !hone.kv<@kv>
  }
}
