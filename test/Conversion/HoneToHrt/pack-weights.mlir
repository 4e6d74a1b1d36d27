// RUN: hone-opt %s -hone-pack-weights -split-input-file | FileCheck %s
// RUN: hone-opt %s -hone-pack-weights -split-input-file -remarks-filter=hone-pack-weights 2>&1 | FileCheck %s --check-prefix=REMARK

// A matrix of products keeps the type that its elements are stored in; one that is converted already is converted once.
// CHECK: hone.param @plain : tensor<20x8xf32, #hrt.panels<f32>> = #hone.converted<tensor<20x8xf32> = dense<0.000000e+00> : tensor<20x8xf32>>
// CHECK: hone.param @half : tensor<8x20xf32, #hrt.panels<bf16>> = #hone.converted<tensor<8x20xf32, #hone.stored<f32, transposed>> = #hone.external<"w", 0, 640>>
// CHECK-LABEL: @products
// CHECK: hone.get_param @plain : tensor<20x8xf32, #hrt.panels<f32>>
// CHECK: hone.linear %{{.*}}, %{{.*}} : (tensor<?x8xf32>, tensor<20x8xf32, #hrt.panels<f32>>) -> tensor<?x20xf32>
// REMARK: remark: [Passed] Packed | Category:hone-pack-weights | Remark="plain is packed"
hone.param @plain : tensor<20x8xf32> = dense<0.0> : tensor<20x8xf32>
hone.param @half : tensor<8x20xf32, #hone.stored<bf16, transposed>> = #hone.converted<tensor<8x20xf32, #hone.stored<f32, transposed>> = #hone.external<"w", 0, 640>>
func.func @products(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = hone.get_param @plain : tensor<20x8xf32>
  %1 = hone.get_param @half : tensor<8x20xf32, #hone.stored<bf16, transposed>>
  %2 = hone.linear %x, %0 : (tensor<?x8xf32>, tensor<20x8xf32>) -> tensor<?x20xf32>
  %3 = hone.linear %2, %1 : (tensor<?x20xf32>, tensor<8x20xf32, #hone.stored<bf16, transposed>>) -> tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}

// -----

// A table that is a weight of a product too.
// CHECK: hone.param @tied : tensor<20x8xf32, #hrt.panels<f32>>
// CHECK-LABEL: @tied_embedding
// CHECK: hone.embedding {{.*}} #hrt.panels<f32>
hone.param @tied : tensor<20x8xf32> = dense<0.0> : tensor<20x8xf32>
func.func @tied_embedding(%ids: tensor<?xi64>) -> tensor<?x20xf32> {
  %0 = hone.get_param @tied : tensor<20x8xf32>
  %1 = hone.embedding %ids, %0 : (tensor<?xi64>, tensor<20x8xf32>) -> tensor<?x8xf32>
  %2 = hone.linear %1, %0 : (tensor<?x8xf32>, tensor<20x8xf32>) -> tensor<?x20xf32>
  return %2 : tensor<?x20xf32>
}

// -----

// A weight of a convolution as the matrix that kernels with output channels as lanes read: a parameter of more dimensions, which nobody
// else reads, or a constant. Few outputs stay as they are, and a parameter that others read too stays beside its matrix.
// CHECK-DAG: hone.param @kernel.matrix : tensor<16x12xf32, #hrt.panels<f32>> = #hone.converted<tensor<16x12xf32> = #hone.external<"w", 0, 768>>
// CHECK-DAG: hone.param @convolution : tensor<16x16xf32, #hrt.panels<f32>>
// CHECK-DAG: hone.param @few : tensor<4x3x4xf32>
// CHECK-DAG: hone.param @shared : tensor<16x3x4xf32>
// CHECK-DAG: hone.param @shared.matrix : tensor<16x12xf32, #hrt.panels<f32>>
// CHECK-NOT: @kernel :
// CHECK-LABEL: @convolutions
// CHECK-COUNT-4: hone.convolution
hone.param @kernel : tensor<16x3x4xf32> = #hone.external<"w", 0, 768>
hone.param @few : tensor<4x3x4xf32> = dense<0.0> : tensor<4x3x4xf32>
hone.param @shared : tensor<16x3x4xf32> = dense<0.0> : tensor<16x3x4xf32>
func.func @convolutions(%x: tensor<1x3x9xf32>) -> (tensor<1x16x6xf32>, tensor<1x4x6xf32>, tensor<1x16x6xf32>, tensor<16x3x4xf32>) {
  %0 = hone.get_param @kernel : tensor<16x3x4xf32>
  %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<16x3x4xf32> into tensor<16x12xf32>
  %2 = hone.convolution %x, %1 kernel [4] strides [1] dilations [1] low [0] groups 1 : (tensor<1x3x9xf32>, tensor<16x12xf32>) -> tensor<1x16x6xf32>
  %3 = arith.constant dense<1.0> : tensor<16x16xf32>
  %4 = hone.convolution %2, %3 kernel [1] strides [1] dilations [1] low [0] groups 1 : (tensor<1x16x6xf32>, tensor<16x16xf32>) -> tensor<1x16x6xf32>
  %5 = hone.get_param @few : tensor<4x3x4xf32>
  %6 = tensor.collapse_shape %5 [[0], [1, 2]] : tensor<4x3x4xf32> into tensor<4x12xf32>
  %7 = hone.convolution %x, %6 kernel [4] strides [1] dilations [1] low [0] groups 1 : (tensor<1x3x9xf32>, tensor<4x12xf32>) -> tensor<1x4x6xf32>
  %8 = hone.get_param @shared : tensor<16x3x4xf32>
  %9 = tensor.collapse_shape %8 [[0], [1, 2]] : tensor<16x3x4xf32> into tensor<16x12xf32>
  %10 = hone.convolution %x, %9 kernel [4] strides [1] dilations [1] low [0] groups 1 : (tensor<1x3x9xf32>, tensor<16x12xf32>) -> tensor<1x16x6xf32>
  return %4, %7, %10, %8 : tensor<1x16x6xf32>, tensor<1x4x6xf32>, tensor<1x16x6xf32>, tensor<16x3x4xf32>
}

// -----

// What is not packed, and why.
// CHECK: // -----
// CHECK-NOT: #hrt.panels
// REMARK-DAG: [Missed] Packed {{.*}}"table is not packed: no product reads it"
// REMARK-DAG: [Missed] Packed {{.*}}"other is not packed: something other than products, convolutions and embeddings reads it"
// REMARK-DAG: [Missed] Packed {{.*}}"narrow is not packed: it is no matrix of f32"
hone.param @table : tensor<20x8xf32> = dense<0.0> : tensor<20x8xf32>
hone.param @other : tensor<20x8xf32> = dense<0.0> : tensor<20x8xf32>
hone.param @narrow : tensor<20x8xbf16> = dense<0.0> : tensor<20x8xbf16>
func.func @not_packed(%ids: tensor<?xi64>, %x: tensor<?x8xf32>, %y: tensor<?x8xbf16>)
    -> (tensor<?x8xf32>, tensor<?x20xf32>, tensor<20x8xf32>, tensor<?x20xbf16>) {
  %0 = hone.get_param @table : tensor<20x8xf32>
  %1 = hone.embedding %ids, %0 : (tensor<?xi64>, tensor<20x8xf32>) -> tensor<?x8xf32>
  %2 = hone.get_param @other : tensor<20x8xf32>
  %3 = hone.linear %x, %2 : (tensor<?x8xf32>, tensor<20x8xf32>) -> tensor<?x20xf32>
  %4 = hone.get_param @narrow : tensor<20x8xbf16>
  %5 = hone.linear %y, %4 : (tensor<?x8xbf16>, tensor<20x8xbf16>) -> tensor<?x20xbf16>
  return %1, %3, %2, %5 : tensor<?x8xf32>, tensor<?x20xf32>, tensor<20x8xf32>, tensor<?x20xbf16>
}
