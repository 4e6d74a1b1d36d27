// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cpu --canonicalize --split-input-file | FileCheck %s --enable-var-scope --check-prefixes=CHECK,CPU
// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cuda --canonicalize --split-input-file | FileCheck %s --enable-var-scope --check-prefixes=CHECK,CUDA

// Decay and state are absent; both results are outputs, in their order.
// CHECK-LABEL: @delta
// CPU: %[[R:.*]]:2 = hrt.kernel "hone.linear_attention.f32" %{{.*}} floats [5.000000e-01]
// CUDA: %[[R:.*]]:2 = hrt.kernel "cuda.linear_attention.f32" %{{.*}} floats [5.000000e-01]
// CHECK-SAME: ins(%{{.*}} : tensor<?x?x4x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x8xf32>, tensor<f32>, tensor<?x?x2xf32>, tensor<f32>)
// CHECK-SAME: outs(%{{.*}}, %{{.*}} : tensor<?x?x4x8xf32>, tensor<?x2x16x8xf32>)
// CHECK: materialize_in_destination %[[R]]#0
// CHECK: materialize_in_destination %[[R]]#1
func.func @delta(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x2x16xf32>, %v: tensor<?x?x2x8xf32>, %b: tensor<?x?x2xf32>)
    -> (tensor<?x?x4x8xf32>, tensor<?x2x16x8xf32>) {
  %0:2 = hone.linear_attention %q, %k, %v beta(%b) scale(0.5)
       : (tensor<?x?x4x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2xf32>) -> (tensor<?x?x4x8xf32>, tensor<?x2x16x8xf32>)
  return %0#0, %0#1 : tensor<?x?x4x8xf32>, tensor<?x2x16x8xf32>
}

// -----

// The CPU's kernel reads no 16 bits.
// CHECK-LABEL: @half
// CPU-NOT: hrt.kernel
// CPU: scf.for
// CUDA: hrt.kernel "cuda.linear_attention.f32" {{.*}} outs(%{{.*}}, %{{.*}} : tensor<?x?x4x8xf16>, tensor<?x4x16x8xf32>)
func.func @half(%q: tensor<?x?x4x16xf16>, %v: tensor<?x?x4x8xf16>) -> tensor<?x?x4x8xf16> {
  %0:2 = hone.linear_attention %q, %q, %v scale(0.5)
       : (tensor<?x?x4x16xf16>, tensor<?x?x4x16xf16>, tensor<?x?x4x8xf16>) -> (tensor<?x?x4x8xf16>, tensor<?x4x16x8xf32>)
  return %0#0 : tensor<?x?x4x8xf16>
}

// -----

// Keys of more elements than a GPU has room for.
// CHECK-LABEL: @wide
// CPU: hrt.kernel "hone.linear_attention.f32"
// CUDA-NOT: hrt.kernel
// CUDA: scf.for
func.func @wide(%q: tensor<?x?x1x257xf32>, %v: tensor<?x?x1x8xf32>) -> tensor<?x?x1x8xf32> {
  %0:2 = hone.linear_attention %q, %q, %v scale(0.5)
       : (tensor<?x?x1x257xf32>, tensor<?x?x1x257xf32>, tensor<?x?x1x8xf32>) -> (tensor<?x?x1x8xf32>, tensor<?x1x257x8xf32>)
  return %0#0 : tensor<?x?x1x8xf32>
}
