// RUN: hone-opt %s | hone-opt | FileCheck %s
// RUN: hone-opt %s --hone-decompose | FileCheck %s --check-prefix=CODE
// RUN: hone-opt %s --hone-convert-hone-to-hrt | FileCheck %s --check-prefix=CALL

// CHECK-LABEL: @weighted
// CODE-LABEL: @weighted
// CODE: math.sqrt
// CALL-LABEL: @weighted
// CALL: hrt.kernel "hone.l2_norm.f32"
func.func @weighted(%x: tensor<?x?x64xf32>, %w: tensor<64xf32>) -> tensor<?x?x64xf32> {
  // CHECK: hone.l2_norm %{{.*}}, %{{.*}} epsilon(9.99999997E-7) : (tensor<?x?x64xf32>, tensor<64xf32>) -> tensor<?x?x64xf32>
  %0 = hone.l2_norm %x, %w epsilon(1.0e-6) : (tensor<?x?x64xf32>, tensor<64xf32>) -> tensor<?x?x64xf32>
  return %0 : tensor<?x?x64xf32>
}

// The kernel computes f32: others are decomposed.
// CALL-LABEL: @narrow
// CALL-NOT: hrt.kernel
// CALL: linalg.generic
func.func @narrow(%x: tensor<?x64xf16>, %w: tensor<64xf16>, %b: tensor<64xf16>) -> tensor<?x64xf16> {
  %0 = hone.l2_norm %x, %w bias(%b) epsilon(1.0e-6) : (tensor<?x64xf16>, tensor<64xf16>, tensor<64xf16>) -> tensor<?x64xf16>
  return %0 : tensor<?x64xf16>
}
