// RUN: hone-opt %s -hone-narrow-scales -remarks-filter=hone-narrow-scales 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: hone-opt %s -hone-narrow-scales=exact=true -remarks-filter=hone-narrow-scales 2>&1 | FileCheck %s --check-prefix=EXACT

// EXACT-DAG: [Passed] Narrowed {{.*}}"exact has scales of f16"
// EXACT-DAG: [Missed] Narrowed {{.*}}"rounded keeps scales of f32: a scale is no f16, and its products round no activations"

// REMARK-DAG: [Passed] Narrowed {{.*}}"exact has scales of f16"
// REMARK-DAG: [Passed] Narrowed {{.*}}"rounded has scales of f16"
// REMARK-DAG: [Passed] Narrowed {{.*}}"down has scales of f16"
// REMARK-DAG: [Missed] Narrowed {{.*}}"inexact keeps scales of f32: a scale is no f16, and its products round no activations"
// REMARK-DAG: [Missed] Narrowed {{.*}}"large keeps scales of f32: a scale is out of the range of f16"
// REMARK-DAG: [Missed] Narrowed {{.*}}"small keeps scales of f32: a scale is out of the range of f16"
// REMARK-DAG: [Missed] Narrowed {{.*}}"second keeps scales of f32: kernels read it like first, of which a scale is out of the range of f16"
// REMARK-NOT: halves
// REMARK-NOT: plain

// CHECK: hone.param @exact : tensor<4x4xf32, #hone.affine<bits = 8, scales = f16, hasZeros = true>> = {scales = dense_resource<{{.*}}> : tensor<4x1xf16>, values = dense<1> : tensor<4x4xi8>, zeros = dense<2> : tensor<4x1xi8>}
// CHECK: hone.param @rounded : tensor<4x4xf32, #hone.affine<bits = 8, scales = f16, activations = 8>>
// CHECK: hone.param @inexact : tensor<4x4xf32, #hone.affine<bits = 8>> = {scales = dense<1.000000e-01> : tensor<4x1xf32>
// CHECK: hone.param @large : tensor<4x4xf32, #hone.affine<bits = 8, activations = 8>>
// CHECK: hone.param @small : tensor<4x4xf32, #hone.affine<bits = 8, activations = 8>>
hone.param @exact : tensor<4x4xf32, #hone.affine<bits = 8, hasZeros = true>>
  = {values = dense<1> : tensor<4x4xi8>, scales = dense<[[0.5], [0.5], [1.0], [1.0]]> : tensor<4x1xf32>, zeros = dense<2> : tensor<4x1xi8>}
hone.param @rounded : tensor<4x4xf32, #hone.affine<bits = 8, activations = 8>>
  = {values = dense<1> : tensor<4x4xi8>, scales = dense<[[0.1], [-0.2], [0.0], [65504.0]]> : tensor<4x1xf32>}
hone.param @inexact : tensor<4x4xf32, #hone.affine<bits = 8>> = {values = dense<1> : tensor<4x4xi8>, scales = dense<0.1> : tensor<4x1xf32>}
hone.param @large : tensor<4x4xf32, #hone.affine<bits = 8, activations = 8>>
  = {values = dense<1> : tensor<4x4xi8>, scales = dense<65520.0> : tensor<4x1xf32>}
hone.param @small : tensor<4x4xf32, #hone.affine<bits = 8, activations = 8>>
  = {values = dense<1> : tensor<4x4xi8>, scales = dense<1.0e-05> : tensor<4x1xf32>}
hone.param @halves : tensor<4x4xf32, #hone.affine<bits = 8, scales = f16>>
  = {values = dense<1> : tensor<4x4xi8>, scales = dense<0.5> : tensor<4x1xf16>}
hone.param @plain : tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
hone.param @first : tensor<8x4xf32, #hone.affine<bits = 8, activations = 8>>
  = {values = dense<1> : tensor<8x4xi8>, scales = dense<1.0e+20> : tensor<8x1xf32>}
hone.param @second : tensor<8x4xf32, #hone.affine<bits = 8, activations = 8>>
  = {values = dense<1> : tensor<8x4xi8>, scales = dense<0.5> : tensor<8x1xf32>}
hone.param @down : tensor<8x4xf32, #hone.affine<bits = 8, activations = 8>>
  = {values = dense<1> : tensor<8x4xi8>, scales = dense<0.5> : tensor<8x1xf32>}

!whole = tensor<4x4xf32, #hone.affine<bits = 8>>
!rounding = tensor<4x4xf32, #hone.affine<bits = 8, activations = 8>>
!zeros = tensor<4x4xf32, #hone.affine<bits = 8, hasZeros = true>>
!halves = tensor<4x4xf32, #hone.affine<bits = 8, scales = f16>>
!experts = tensor<8x4xf32, #hone.affine<bits = 8, activations = 8>>

// CHECK-LABEL: @main
// CHECK: hone.linear %{{.*}}, %{{.*}} : (tensor<?x4xf32>, tensor<4x4xf32, #hone.affine<bits = 8, scales = f16, hasZeros = true>>) -> tensor<?x4xf32>
func.func @main(%x: tensor<?x4xf32>, %ids: tensor<?x1xi64>, %p: tensor<?x1xf32>) -> tensor<?x4xf32> {
  %exact = hone.get_param @exact : !zeros
  %rounded = hone.get_param @rounded : !rounding
  %inexact = hone.get_param @inexact : !whole
  %large = hone.get_param @large : !rounding
  %small = hone.get_param @small : !rounding
  %halves = hone.get_param @halves : !halves
  %plain = hone.get_param @plain : tensor<4x4xf32>
  %first = hone.get_param @first : !experts
  %second = hone.get_param @second : !experts
  %down = hone.get_param @down : !experts
  %0 = hone.linear %x, %exact : (tensor<?x4xf32>, !zeros) -> tensor<?x4xf32>
  %1 = hone.linear %0, %rounded : (tensor<?x4xf32>, !rounding) -> tensor<?x4xf32>
  %2 = hone.linear %1, %inexact : (tensor<?x4xf32>, !whole) -> tensor<?x4xf32>
  %3 = hone.linear %2, %large : (tensor<?x4xf32>, !rounding) -> tensor<?x4xf32>
  %4 = hone.linear %3, %small : (tensor<?x4xf32>, !rounding) -> tensor<?x4xf32>
  %5 = hone.linear %4, %halves : (tensor<?x4xf32>, !halves) -> tensor<?x4xf32>
  %6 = hone.linear %5, %plain : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %7 = hone.moe silu %6, experts(%ids, %p), up(%first), down(%down) gate(%second)
    : (tensor<?x4xf32>, tensor<?x1xi64>, tensor<?x1xf32>, !experts, !experts, !experts) -> tensor<?x4xf32>
  return %7 : tensor<?x4xf32>
}

// Two of 0.5, two of 1; then those nearest to 0.1 and -0.2, 0 and 65504.
// CHECK: weight: "0x{{[0-9A-F]*}}00380038003C003C"
// CHECK-NEXT: weight_1: "0x{{[0-9A-F]*}}662E66B20000FF7B"
