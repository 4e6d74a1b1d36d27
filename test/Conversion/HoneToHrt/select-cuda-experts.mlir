// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cuda | FileCheck %s --enable-var-scope

!ids = tensor<?x2xi64>
!p = tensor<?x2xf32>
!q4 = tensor<192x64xf32, #hone.affine<bits = 4, group = 32, scales = f16, hasZeros = true>>
!q8 = tensor<256x24xf32, #hone.affine<bits = 8, isSigned = true>>

hone.param @up : tensor<96x64xf32, #hone.stored<bf16>> = #hone.external<"weights.bin", 0, 12288>
hone.param @gate : tensor<96x64xf32, #hone.stored<bf16>> = #hone.external<"weights.bin", 12288, 12288>
hone.param @down : tensor<256x24xf32, #hone.stored<f16>> = #hone.external<"weights.bin", 24576, 12288>
hone.param @down_f32 : tensor<256x24xf32> = #hone.external<"weights.bin", 36864, 24576>
hone.param @codes4 : !q4 = #hone.converted<tensor<192x64xf32> = dense<0.5> : tensor<192x64xf32>>
hone.param @codes8 : !q8 = #hone.converted<tensor<256x24xf32> = dense<0.5> : tensor<256x24xf32>>

// Four experts of 24 hidden numbers: pairs by expert, then both layers, each in its own type.
// CHECK-LABEL: @gated
// CHECK: %[[PAIRS:.*]] = arith.muli %{{.*}}, %{{.*}} : index
// CHECK: %[[SIZE:.*]] = arith.addi %[[PAIRS]], %{{.*}} : index
// CHECK: tensor.empty(%[[SIZE]]) : tensor<?xi32>
// CHECK: %[[GROUPS:.*]] = hrt.kernel "cuda.expert_groups" %{{.*}} ints [4] ins(%[[IDS:.*]] : tensor<?x2xi64>)
// CHECK: %[[HIDDEN:.*]] = hrt.kernel "cuda.expert_hidden.bf16" %{{.*}} ints [2, 0, 4] ins(%{{.*}}, %[[GROUPS]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<?xi32>, tensor<96x64xbf16>, tensor<f32>, tensor<96x64xbf16>, tensor<f32>) outs(%{{.*}} : tensor<?x2x24xf32>)
// CHECK: hrt.kernel "cuda.expert_sum.f16" %{{.*}} ints [4] ins(%[[HIDDEN]], %[[IDS]], %{{.*}}, %[[GROUPS]], %{{.*}}, %{{.*}} : tensor<?x2x24xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<?xi32>, tensor<256x24xf16>, tensor<f32>)
func.func @gated(%x: tensor<?x64xf32>, %ids: !ids, %p: !p) -> tensor<?x64xf32> {
  %up = hone.get_param @up : tensor<96x64xf32, #hone.stored<bf16>>
  %gate = hone.get_param @gate : tensor<96x64xf32, #hone.stored<bf16>>
  %down = hone.get_param @down : tensor<256x24xf32, #hone.stored<f16>>
  %y = hone.moe silu %x, experts(%ids, %p), up(%up), down(%down) gate(%gate) : (tensor<?x64xf32>, !ids, !p, tensor<96x64xf32, #hone.stored<bf16>>, tensor<256x24xf32, #hone.stored<f16>>, tensor<96x64xf32, #hone.stored<bf16>>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// Both layers of an expert in one weight of codes, whose planes are operands.
// CHECK-LABEL: @fused
// CHECK: hrt.kernel "cuda.expert_hidden.affine4" %{{.*}} ints [2, 1, 4, 32, 0] ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<?xi32>, tensor<192x32xi8>, tensor<192x2xf16>, tensor<192x1xi8>, tensor<4x48xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>)
// CHECK: hrt.kernel "cuda.expert_sum.affine8" %{{.*}} ints [4, 0, 1] ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x2x24xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<?xi32>, tensor<256x24xi8>, tensor<256x1xf32>, tensor<f32>, tensor<f32>)
func.func @fused(%x: tensor<?x64xf32>, %ids: !ids, %p: !p, %bias: tensor<4x48xf32>) -> tensor<?x64xf32> {
  %up = hone.get_param @codes4 : !q4
  %down = hone.get_param @codes8 : !q8
  %y = hone.moe silu %x, experts(%ids, %p), up(%up, %bias), down(%down) fused halves : (tensor<?x64xf32>, !ids, !p, !q4, !q8, tensor<4x48xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// The sums of both layers come from the kernel as they are; a clamped SwiGLU is generated.
// CHECK-LABEL: @clamped
// CHECK: %[[SUMS:.*]] = hrt.kernel "cuda.expert_hidden.affine4" %{{.*}} ints [0, 0, 4, 32, 0] ins({{.*}}) outs(%{{.*}} : tensor<?x2x48xf32>)
// CHECK-DAG: %[[GATE:.*]] = tensor.extract_slice %[[SUMS]][0, 0, 0] [{{.*}}, 2, 24] [1, 1, 2]
// CHECK-DAG: %[[UP:.*]] = tensor.extract_slice %[[SUMS]][0, 0, 1] [{{.*}}, 2, 24] [1, 1, 2]
// CHECK: %[[HIDDEN:.*]] = linalg.generic {{.*}} ins(%[[UP]], %[[GATE]]
// CHECK: hrt.kernel "cuda.expert_sum.affine8" %{{.*}} ints [4, 0, 1] ins(%[[HIDDEN]]
func.func @clamped(%x: tensor<?x64xf32>, %ids: !ids, %p: !p, %bias: tensor<4x48xf32>) -> tensor<?x64xf32> {
  %up = hone.get_param @codes4 : !q4
  %down = hone.get_param @codes8 : !q8
  %y = hone.moe silu %x, experts(%ids, %p), up(%up, %bias), down(%down) fused alternate swiglu(1.702, 1.0, 7.0) : (tensor<?x64xf32>, !ids, !p, !q4, !q8, tensor<4x48xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// Gate and up of different formats have no kernel.
// CHECK-LABEL: @mixed
// CHECK-NOT: hrt.kernel
// CHECK: linalg.generic
func.func @mixed(%x: tensor<?x64xf32>, %ids: !ids, %p: !p, %gate: tensor<96x64xf32>) -> tensor<?x64xf32> {
  %up = hone.get_param @up : tensor<96x64xf32, #hone.stored<bf16>>
  %down = hone.get_param @down_f32 : tensor<256x24xf32>
  %y = hone.moe silu %x, experts(%ids, %p), up(%up), down(%down) gate(%gate) : (tensor<?x64xf32>, !ids, !p, tensor<96x64xf32, #hone.stored<bf16>>, tensor<256x24xf32>, tensor<96x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
