// RUN: hone-opt %s | hone-opt | FileCheck %s

!x = tensor<?x?x4xf32>
!ids = tensor<?x?x2xi64>
!p = tensor<?x?x2xf32>
!up = tensor<48x4xf32>
!down = tensor<32x6xf32>

// CHECK-LABEL: @gated
func.func @gated(%x: !x, %ids: !ids, %p: !p, %u: !up, %d: !down, %bi: tensor<8x6xf32>, %bn: tensor<8x4xf32>) -> !x {
  // CHECK: hone.moe silu %{{.*}}, experts(%{{.*}}, %{{.*}}), up(%{{.*}}, %{{.*}}), down(%{{.*}}, %{{.*}}) gate(%{{.*}}) gate_bias(%{{.*}}) : (
  %0 = hone.moe silu %x, experts(%ids, %p), up(%u, %bi), down(%d, %bn) gate(%u) gate_bias(%bi)
     : (!x, !ids, !p, !up, !down, !up, tensor<8x6xf32>, tensor<8x4xf32>, tensor<8x6xf32>) -> !x
  return %0 : !x
}

// CHECK-LABEL: @plain
func.func @plain(%x: tensor<?x4xf32>, %ids: tensor<?x1xi32>, %p: tensor<?x1xf32>, %u: !up, %d: !down) -> tensor<?x4xf32> {
  // CHECK: hone.moe relu %{{.*}}, experts(%{{.*}}, %{{.*}}), up(%{{.*}}), down(%{{.*}}) : (
  %0 = hone.moe relu %x, experts(%ids, %p), up(%u), down(%d)
     : (tensor<?x4xf32>, tensor<?x1xi32>, tensor<?x1xf32>, !up, !down) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// CHECK-LABEL: @fused
func.func @fused(%x: tensor<?x4xf32>, %ids: tensor<?x2xi32>, %p: tensor<?x2xf32>, %u: tensor<96x4xf32>, %b: tensor<8x12xf32>, %d: !down) -> tensor<?x4xf32> {
  // CHECK: hone.moe silu %{{.*}}, experts(%{{.*}}, %{{.*}}), up(%{{.*}}, %{{.*}}), down(%{{.*}}) fused halves : (
  %0 = hone.moe silu %x, experts(%ids, %p), up(%u, %b), down(%d) fused halves
     : (tensor<?x4xf32>, tensor<?x2xi32>, tensor<?x2xf32>, tensor<96x4xf32>, !down, tensor<8x12xf32>) -> tensor<?x4xf32>
  // CHECK: down(%{{.*}}) fused alternate : (
  %1 = hone.moe silu %0, experts(%ids, %p), up(%u), down(%d) fused alternate
     : (tensor<?x4xf32>, tensor<?x2xi32>, tensor<?x2xf32>, tensor<96x4xf32>, !down) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// CHECK-LABEL: @clamped
func.func @clamped(%x: tensor<?x4xf32>, %ids: tensor<?x2xi32>, %p: tensor<?x2xf32>, %u: tensor<96x4xf32>, %d: !down) -> tensor<?x4xf32> {
  // CHECK: down(%{{.*}}) fused alternate swiglu(1.702000e+00, 1.000000e+00, 7.000000e+00) : (
  %0 = hone.moe silu %x, experts(%ids, %p), up(%u), down(%d) fused alternate swiglu(1.702, 1.0, 7.0)
     : (tensor<?x4xf32>, tensor<?x2xi32>, tensor<?x2xf32>, tensor<96x4xf32>, !down) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
