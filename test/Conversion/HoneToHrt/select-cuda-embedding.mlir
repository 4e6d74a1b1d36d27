// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cuda | FileCheck %s --enable-var-scope

hone.param @narrow : tensor<16x8xf32, #hone.stored<bf16>> = #hone.external<"weights.bin", 0, 256>
hone.param @codes3 : tensor<16x64xf32, #hone.affine<bits = 3, group = 32, scales = f16, hasZeros = true>> = #hone.converted<tensor<16x64xf32> = dense<0.5> : tensor<16x64xf32>>
hone.param @codes8 : tensor<16x64xf32, #hone.affine<bits = 8, isSigned = true>> = #hone.converted<tensor<16x64xf32> = dense<0.5> : tensor<16x64xf32>>

// Rows of a table of floats, and of codes with their scales and zero points where they have some.
// CHECK-LABEL: func.func @rows
// CHECK: hrt.kernel "cuda.embedding.f32" %{{.*}} ins(%{{.*}}, %{{.*}} : tensor<?x?xi64>, tensor<16x8xbf16>) outs(%{{.*}} : tensor<?x?x8xf32>)
// CHECK: hrt.kernel "cuda.embedding.affine" %{{.*}} ints [3, 32, 0] ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x?xi64>, tensor<16x24xi8>, tensor<16x2xf16>, tensor<16x1xi8>)
// CHECK: hrt.kernel "cuda.embedding.affine" %{{.*}} ints [8, 0, 1] ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x?xi64>, tensor<16x64xi8>, tensor<16x1xf32>, tensor<f32>)
func.func @rows(%ids: tensor<?x?xi64>) -> (tensor<?x?x8xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>) {
  %t = hone.get_param @narrow : tensor<16x8xf32, #hone.stored<bf16>>
  %u = hone.get_param @codes3 : tensor<16x64xf32, #hone.affine<bits = 3, group = 32, scales = f16, hasZeros = true>>
  %w = hone.get_param @codes8 : tensor<16x64xf32, #hone.affine<bits = 8, isSigned = true>>
  %x = hone.embedding %ids, %t : (tensor<?x?xi64>, tensor<16x8xf32, #hone.stored<bf16>>) -> tensor<?x?x8xf32>
  %y = hone.embedding %ids, %u : (tensor<?x?xi64>, tensor<16x64xf32, #hone.affine<bits = 3, group = 32, scales = f16, hasZeros = true>>) -> tensor<?x?x64xf32>
  %z = hone.embedding %ids, %w : (tensor<?x?xi64>, tensor<16x64xf32, #hone.affine<bits = 8, isSigned = true>>) -> tensor<?x?x64xf32>
  return %x, %y, %z : tensor<?x?x8xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>
}
