// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cuda | FileCheck %s --enable-var-scope
// Linear layers that read the same values are one kernel; gate and up of a gated block are one as well.

!w = tensor<16x8xf32, #hone.stored<bf16>>
!narrow = tensor<8x8xf32, #hone.stored<bf16>>
!half = tensor<16x8xf32, #hone.stored<f16>>
!codes = tensor<16x64xf32, #hone.affine<bits = 4, group = 32>>
!others = tensor<16x64xf32, #hone.affine<bits = 4, group = 64>>
!rounding = tensor<16x64xf32, #hone.affine<bits = 8, group = 32, activations = 8>>
!outliers = tensor<16x64xf32, #hone.dense_sparse<of = #hone.affine<bits = 4, group = 32>, outliers = 32>>

hone.param @q : !w = #hone.external<"weights.bin", 0, 256>
hone.param @k : !narrow = #hone.external<"weights.bin", 256, 128>
hone.param @v : !narrow = #hone.external<"weights.bin", 384, 128>
hone.param @half : !half = #hone.external<"weights.bin", 512, 256>
hone.param @bias : tensor<16xf32> = #hone.external<"weights.bin", 768, 64>
hone.param @bias8 : tensor<8xf32> = #hone.external<"weights.bin", 1088, 32>
hone.param @kept : tensor<8x8xf32> = #hone.external<"weights.bin", 1120, 256>
hone.param @kept2 : tensor<8x8xf32> = #hone.external<"weights.bin", 1376, 256>
hone.param @codes : !codes = #hone.converted<tensor<16x64xf32> = dense<0.5> : tensor<16x64xf32>>
hone.param @others : !others = #hone.converted<tensor<16x64xf32> = dense<0.5> : tensor<16x64xf32>>
hone.param @rounding : !rounding = #hone.converted<tensor<16x64xf32> = dense<0.5> : tensor<16x64xf32>>
hone.param @outliers : !outliers = #hone.converted<tensor<16x64xf32> = dense<0.5> : tensor<16x64xf32>>

// Weights and biases are read before the first layer, wherever the model reads them.
// CHECK-LABEL: @three
// CHECK: hrt.kernel "cuda.sibling_linear.bf16" %{{.*}} ints [0] floats [0.000000e+00] ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x8xf32>, tensor<f32>, tensor<16x8xbf16>, tensor<16xf32>, tensor<8x8xbf16>, tensor<f32>, tensor<8x8xbf16>, tensor<f32>) outs({{.*}} : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
// CHECK-NOT: hrt.kernel
// CHECK: return
func.func @three(%x: tensor<?x8xf32>) -> (tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %wq = hone.get_param @q : !w
  %b = hone.get_param @bias : tensor<16xf32>
  %q = hone.linear %x, %wq bias(%b) : (tensor<?x8xf32>, !w, tensor<16xf32>) -> tensor<?x16xf32>
  %wk = hone.get_param @k : !narrow
  %k = hone.linear %x, %wk : (tensor<?x8xf32>, !narrow) -> tensor<?x8xf32>
  %wv = hone.get_param @v : !narrow
  %v = hone.linear %x, %wv : (tensor<?x8xf32>, !narrow) -> tensor<?x8xf32>
  return %q, %k, %v : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// So are those that are read as they lie in memory.
// CHECK-LABEL: @plain
// CHECK: hrt.kernel "cuda.sibling_linear.f32"
// CHECK-NOT: hrt.kernel
// CHECK: return
func.func @plain(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %w = hone.get_param @kept : tensor<8x8xf32>
  %a = hone.linear %x, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %v = hone.get_param @kept2 : tensor<8x8xf32>
  %bias = hone.get_param @bias8 : tensor<8xf32>
  %b = hone.linear %x, %v bias(%bias) : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %a, %b : tensor<?x8xf32>, tensor<?x8xf32>
}

// Two layers are the second and the third; a fourth begins the next kernel, and is alone here.
// CHECK-LABEL: @two_and_four
// CHECK: hrt.kernel "cuda.sibling_linear.affine4" %{{.*}} ints [0, 32, 0] floats [0.000000e+00] ins({{.*}} : tensor<?x64xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<16x32xi8>, tensor<16x2xf32>, tensor<f32>, tensor<f32>, tensor<16x32xi8>, tensor<16x2xf32>, tensor<f32>, tensor<f32>, tensor<f32>) outs({{.*}} : tensor<?x16xf32>, tensor<?x16xf32>)
// CHECK: hrt.kernel "cuda.sibling_linear.bf16"
// CHECK: hrt.kernel "cuda.linear.bf16"
func.func @two_and_four(%x: tensor<?x64xf32>, %z: tensor<?x8xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %w = hone.get_param @codes : !codes
  %a = hone.linear %x, %w : (tensor<?x64xf32>, !codes) -> tensor<?x16xf32>
  %b = hone.linear %x, %w : (tensor<?x64xf32>, !codes) -> tensor<?x16xf32>
  %k = hone.get_param @k : !narrow
  %v = hone.get_param @v : !narrow
  %c = hone.linear %z, %k : (tensor<?x8xf32>, !narrow) -> tensor<?x8xf32>
  %d = hone.linear %z, %v : (tensor<?x8xf32>, !narrow) -> tensor<?x8xf32>
  %e = hone.linear %z, %k : (tensor<?x8xf32>, !narrow) -> tensor<?x8xf32>
  %f = hone.linear %z, %v : (tensor<?x8xf32>, !narrow) -> tensor<?x8xf32>
  return %a, %b, %c, %d, %e, %f : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// Activations that the weights round are rounded once.
// CHECK-LABEL: @rounded
// CHECK-COUNT-1: math.roundeven
// CHECK-NOT: math.roundeven
// CHECK: hrt.kernel "cuda.sibling_linear.affine8" %{{.*}} ints [0, 32, 0]
func.func @rounded(%x: tensor<?x64xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %w = hone.get_param @rounding : !rounding
  %a = hone.linear %x, %w : (tensor<?x64xf32>, !rounding) -> tensor<?x16xf32>
  %b = hone.linear %x, %w : (tensor<?x64xf32>, !rounding) -> tensor<?x16xf32>
  return %a, %b : tensor<?x16xf32>, tensor<?x16xf32>
}

// Weights of different types or groups, and such with outliers, stay single.
// CHECK-LABEL: @different
// CHECK-NOT: sibling_linear
// CHECK: return
func.func @different(%x: tensor<?x64xf32>, %z: tensor<?x8xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>) {
  %q = hone.get_param @q : !w
  %half = hone.get_param @half : !half
  %a = hone.linear %z, %q : (tensor<?x8xf32>, !w) -> tensor<?x16xf32>
  %b = hone.linear %z, %half : (tensor<?x8xf32>, !half) -> tensor<?x16xf32>
  %codes = hone.get_param @codes : !codes
  %others = hone.get_param @others : !others
  %c = hone.linear %x, %codes : (tensor<?x64xf32>, !codes) -> tensor<?x16xf32>
  %d = hone.linear %x, %others : (tensor<?x64xf32>, !others) -> tensor<?x16xf32>
  %outliers = hone.get_param @outliers : !outliers
  %e = hone.linear %x, %outliers : (tensor<?x64xf32>, !outliers) -> tensor<?x16xf32>
  %f = hone.linear %x, %outliers : (tensor<?x64xf32>, !outliers) -> tensor<?x16xf32>
  return %a, %b, %c, %d, %e, %f : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>
}

// A layer of other values in between is another part of the model.
// CHECK-LABEL: @apart
// CHECK-NOT: sibling_linear
// CHECK: return
func.func @apart(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %k = hone.get_param @k : !narrow
  %a = hone.linear %x, %k : (tensor<?x8xf32>, !narrow) -> tensor<?x8xf32>
  %b = hone.linear %a, %k : (tensor<?x8xf32>, !narrow) -> tensor<?x8xf32>
  %c = hone.linear %x, %k : (tensor<?x8xf32>, !narrow) -> tensor<?x8xf32>
  return %b, %c : tensor<?x8xf32>, tensor<?x8xf32>
}

// A bias that is computed from the first layer is not known before it.
// CHECK-LABEL: @dependent
// CHECK-NOT: sibling_linear
// CHECK: return
func.func @dependent(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %k = hone.get_param @k : !narrow
  %a = hone.linear %x, %k : (tensor<?x8xf32>, !narrow) -> tensor<?x8xf32>
  %b = tensor.extract_slice %a[0, 0] [1, 8] [1, 1] : tensor<?x8xf32> to tensor<8xf32>
  %c = hone.linear %x, %k bias(%b) : (tensor<?x8xf32>, !narrow, tensor<8xf32>) -> tensor<?x8xf32>
  return %a, %c : tensor<?x8xf32>, tensor<?x8xf32>
}

// Gate and up by weights of different types are two kernels: the gate is the factor of up.
// CHECK-LABEL: @gate_of_another_type
// CHECK: %[[G:.*]] = hrt.kernel "cuda.linear.f16" %{{.*}} ints [2] ins(%[[X:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} :
// CHECK: hrt.kernel "cuda.linear.bf16" %{{.*}} ints [0] ins(%[[X]], %{{.*}}, %{{.*}}, %[[G]], %{{.*}} :
func.func @gate_of_another_type(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %gate = hone.get_param @half : !half
  %up = hone.get_param @q : !w
  %down = hone.get_param @down : tensor<8x16xf32, #hone.stored<bf16>>
  %y = hone.gated_mlp silu %x, gate(%gate), up(%up), down(%down) : (tensor<?x8xf32>, !half, !w, tensor<8x16xf32, #hone.stored<bf16>>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
hone.param @down : tensor<8x16xf32, #hone.stored<bf16>> = #hone.external<"weights.bin", 832, 256>
