// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @linear
func.func @linear(%q: tensor<2x?x4x16xf16>, %k: tensor<2x?x2x16xf16>, %v: tensor<2x?x2x24xf16>) -> (tensor<2x?x4x24xf16>, tensor<2x2x16x24xf32>) {
  // CHECK: hone.linear_attention %{{.*}}, %{{.*}}, %{{.*}} scale(1.000000e+00) : (tensor<2x?x4x16xf16>, tensor<2x?x2x16xf16>, tensor<2x?x2x24xf16>) -> (tensor<2x?x4x24xf16>, tensor<2x2x16x24xf32>)
  %0:2 = hone.linear_attention %q, %k, %v scale(1.0)
       : (tensor<2x?x4x16xf16>, tensor<2x?x2x16xf16>, tensor<2x?x2x24xf16>) -> (tensor<2x?x4x24xf16>, tensor<2x2x16x24xf32>)
  return %0#0, %0#1 : tensor<2x?x4x24xf16>, tensor<2x2x16x24xf32>
}

// CHECK-LABEL: @gated_by_element
func.func @gated_by_element(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x4x16xf32>, %g: tensor<?x?x4x16xf32>, %s: tensor<?x4x16x16xf32>) {
  // CHECK: hone.linear_attention %{{.*}}, %{{.*}}, %{{.*}} decay(%{{.*}}) state(%{{.*}}) scale(2.500000e-01)
  %0:2 = hone.linear_attention %q, %k, %k decay(%g) state(%s) scale(0.25)
       : (tensor<?x?x4x16xf32>, tensor<?x?x4x16xf32>, tensor<?x?x4x16xf32>, tensor<?x?x4x16xf32>, tensor<?x4x16x16xf32>)
       -> (tensor<?x?x4x16xf32>, tensor<?x4x16x16xf32>)
  return
}

// One beta for all heads.
// CHECK-LABEL: @delta
func.func @delta(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x4x16xf32>, %b: tensor<?x?x1xf32>) {
  // CHECK: hone.linear_attention %{{.*}}, %{{.*}}, %{{.*}} beta(%{{.*}}) scale(2.500000e-01)
  %0:2 = hone.linear_attention %q, %k, %k beta(%b) scale(0.25)
       : (tensor<?x?x4x16xf32>, tensor<?x?x4x16xf32>, tensor<?x?x4x16xf32>, tensor<?x?x1xf32>) -> (tensor<?x?x4x16xf32>, tensor<?x4x16x16xf32>)
  return
}
