// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cuda | FileCheck %s --enable-var-scope
// The RMSNorm of what sibling or gated layers read is part of their kernel where nothing else reads it.

!w = tensor<8x8xf32, #hone.stored<bf16>>
!rounding = tensor<16x64xf32, #hone.affine<bits = 8, group = 32, activations = 8>>

hone.param @k : !w = #hone.external<"weights.bin", 0, 128>
hone.param @v : !w = #hone.external<"weights.bin", 128, 128>
hone.param @scale : tensor<8xf32> = #hone.external<"weights.bin", 256, 32>
hone.param @scale64 : tensor<64xf32> = #hone.external<"weights.bin", 288, 256>
hone.param @rounding : !rounding = #hone.converted<tensor<16x64xf32> = dense<0.5> : tensor<16x64xf32>>

// CHECK-LABEL: @siblings
// CHECK: %[[X:.*]] = bufferization.to_tensor %{{.*}} : memref<?x8xf32>
// CHECK-NOT: rms_norm
// CHECK: hrt.kernel "cuda.sibling_linear.bf16" %{{.*}} ints [1] floats [1.000000e-06] ins(%[[X]], %{{.*}} : tensor<?x8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<8x8xbf16>
// CHECK-NOT: rms_norm
// CHECK: return
func.func @siblings(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %s = hone.get_param @scale : tensor<8xf32>
  %k = hone.get_param @k : !w
  %v = hone.get_param @v : !w
  %n = hone.rms_norm %x, %s epsilon(1.0e-6) unit_offset : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %a = hone.linear %n, %k : (tensor<?x8xf32>, !w) -> tensor<?x8xf32>
  %b = hone.linear %n, %v : (tensor<?x8xf32>, !w) -> tensor<?x8xf32>
  return %a, %b : tensor<?x8xf32>, tensor<?x8xf32>
}

// The norm before a single layer, and one that is read by something else too, are kernels of their own.
// CHECK-LABEL: @single
// CHECK: hrt.kernel "cuda.rms_norm.f32"
// CHECK: hrt.kernel "cuda.linear.bf16"
func.func @single(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %s = hone.get_param @scale : tensor<8xf32>
  %k = hone.get_param @k : !w
  %n = hone.rms_norm %x, %s epsilon(1.0e-6) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %a = hone.linear %n, %k : (tensor<?x8xf32>, !w) -> tensor<?x8xf32>
  return %a : tensor<?x8xf32>
}

// CHECK-LABEL: @read_twice
// CHECK: %[[N:.*]] = hrt.kernel "cuda.rms_norm.f32"
// CHECK: hrt.kernel "cuda.gated_linear.bf16" %{{.*}} ints [2, 0] floats [0.000000e+00] ins(%[[N]],
func.func @read_twice(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %s = hone.get_param @scale : tensor<8xf32>
  %k = hone.get_param @k : !w
  %n = hone.rms_norm %x, %s epsilon(1.0e-6) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %y = hone.gated_mlp silu %n, gate(%k), up(%k), down(%k) : (tensor<?x8xf32>, !w, !w, !w) -> tensor<?x8xf32>
  return %y, %n : tensor<?x8xf32>, tensor<?x8xf32>
}

// Activations are rounded after their norm.
// CHECK-LABEL: @rounded
// CHECK: hrt.kernel "cuda.rms_norm.f32"
// CHECK: math.roundeven
// CHECK: hrt.kernel "cuda.sibling_linear.affine8" %{{.*}} ints [0, 32, 0] floats [0.000000e+00]
func.func @rounded(%x: tensor<?x64xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %s = hone.get_param @scale64 : tensor<64xf32>
  %w = hone.get_param @rounding : !rounding
  %n = hone.rms_norm %x, %s epsilon(1.0e-6) : (tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xf32>
  %a = hone.linear %n, %w : (tensor<?x64xf32>, !rounding) -> tensor<?x16xf32>
  %b = hone.linear %n, %w : (tensor<?x64xf32>, !rounding) -> tensor<?x16xf32>
  return %a, %b : tensor<?x16xf32>, tensor<?x16xf32>
}
