// RUN: hone-opt %s -hone-sparsify-weights | FileCheck %s
// RUN: hone-opt %s -hone-sparsify-weights -remarks-filter=hone-sparsify-weights 2>&1 | FileCheck %s --check-prefix=REMARK

// CHECK: hone.param @plain : tensor<2x4xf32, #hone.nm<2:4, of = f32>> = #hone.converted<tensor<2x4xf32> = dense
// CHECK: hone.param @transposed : tensor<2x4xf32, #hone.nm<2:4, of = f32>> = #hone.converted<tensor<2x4xf32, #hone.stored<f32, transposed>> = dense
// What will be rounded is judged before.
// CHECK: hone.param @rounded : tensor<2x4xf32, #hone.nm<2:4, of = #hone.affine<bits = 4, scales = f16>>> = #hone.converted<tensor<2x4xf32> = dense
// Codes are 0 where they are the zero point.
// CHECK: hone.param @codes : tensor<1x4xf32, #hone.nm<2:4, of = #hone.affine<bits = 8>>> = #hone.converted<tensor<1x4xf32, #hone.affine<bits = 8>> = {
// CHECK: hone.param @full : tensor<2x4xf32> = dense
// CHECK: hone.param @odd : tensor<4x6xf32> = dense
// CHECK: hone.param @read : tensor<4x4xf32> = dense
// CHECK: hone.param @table : tensor<4x4xf32> = dense
// CHECK: hone.param @zeros : tensor<1x4xf32, #hone.affine<bits = 8, hasZeros = true>> = {
// CHECK: hone.param @columns : tensor<1x4xf32, #hone.affine<bits = 8, transposed = true>> = {

// REMARK-DAG: [Passed] Sparsified {{.*}}"plain is stored by 2 of every 4 inputs, in 18 bytes instead of 32"
// REMARK-DAG: [Missed] Sparsified {{.*}}"full stays as it is: row 1 has more than 2 of the inputs 0 to 3"
// REMARK-DAG: [Missed] Sparsified {{.*}}"odd stays as it is: its 6 inputs are no multiple of 4"
// REMARK-DAG: [Missed] Sparsified {{.*}}"read stays as it is: something other than products and embeddings reads it"
// REMARK-DAG: [Missed] Sparsified {{.*}}"table stays as it is: no product reads it"
// REMARK-DAG: [Missed] Sparsified {{.*}}"zeros stays as it is: no kernel reads its elements without zeros"
// REMARK-DAG: [Missed] Sparsified {{.*}}"columns stays as it is: it is stored in another way already"
// REMARK-DAG: [Missed] Sparsified {{.*}}"norm stays as it is: it is no matrix of f32"
hone.param @plain : tensor<2x4xf32> = dense<[[0.0, -6.0, 2.0, 0.0], [3.0, -0.0, 0.0, 0.0]]> : tensor<2x4xf32>
hone.param @transposed : tensor<2x4xf32, #hone.stored<f32, transposed>> = dense<[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]> : tensor<4x2xf32>
hone.param @rounded : tensor<2x4xf32, #hone.affine<bits = 4, scales = f16>> = #hone.converted<tensor<2x4xf32> = dense<[[0.0, 0.0, 2.0, 1.0], [0.0, 5.0, 1.0, 0.0]]> : tensor<2x4xf32>>
hone.param @codes : tensor<1x4xf32, #hone.affine<bits = 8>> = {scales = dense<1.0> : tensor<1x1xf32>, values = dense<[[-128, 3, -128, 0]]> : tensor<1x4xi8>}
hone.param @full : tensor<2x4xf32> = dense<[[0.0, -6.0, 2.0, 0.0], [3.0, 1.0, 0.0, 4.0]]> : tensor<2x4xf32>
hone.param @odd : tensor<4x6xf32> = dense<0.0> : tensor<4x6xf32>
hone.param @read : tensor<4x4xf32> = dense<0.0> : tensor<4x4xf32>
hone.param @table : tensor<4x4xf32> = dense<0.0> : tensor<4x4xf32>
hone.param @zeros : tensor<1x4xf32, #hone.affine<bits = 8, hasZeros = true>> = {scales = dense<1.0> : tensor<1x1xf32>, values = dense<0> : tensor<1x4xi8>, zeros = dense<0> : tensor<1x1xi8>}
hone.param @columns : tensor<1x4xf32, #hone.affine<bits = 8, transposed = true>> = {scales = dense<1.0> : tensor<1x1xf32>, values = dense<-128> : tensor<4x1xi8>}
hone.param @norm : tensor<4xf32> = dense<0.0> : tensor<4xf32>

// CHECK-LABEL: @main
// CHECK: hone.linear %{{.*}}, %{{.*}} : (tensor<?x4xf32>, tensor<2x4xf32, #hone.nm<2:4, of = f32>>) -> tensor<?x2xf32>
func.func @main(%x: tensor<?x4xf32>, %ids: tensor<?xi64>)
    -> (tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x1xf32>, tensor<?x4xf32>, tensor<4x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) {
  %plain = hone.get_param @plain : tensor<2x4xf32>
  %transposed = hone.get_param @transposed : tensor<2x4xf32, #hone.stored<f32, transposed>>
  %rounded = hone.get_param @rounded : tensor<2x4xf32, #hone.affine<bits = 4, scales = f16>>
  %codes = hone.get_param @codes : tensor<1x4xf32, #hone.affine<bits = 8>>
  %full = hone.get_param @full : tensor<2x4xf32>
  %odd = hone.get_param @odd : tensor<4x6xf32>
  %read = hone.get_param @read : tensor<4x4xf32>
  %table = hone.get_param @table : tensor<4x4xf32>
  %zeros = hone.get_param @zeros : tensor<1x4xf32, #hone.affine<bits = 8, hasZeros = true>>
  %columns = hone.get_param @columns : tensor<1x4xf32, #hone.affine<bits = 8, transposed = true>>
  %norm = hone.get_param @norm : tensor<4xf32>
  %0 = hone.linear %x, %plain : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  %1 = hone.linear %x, %transposed : (tensor<?x4xf32>, tensor<2x4xf32, #hone.stored<f32, transposed>>) -> tensor<?x2xf32>
  %2 = hone.linear %x, %rounded : (tensor<?x4xf32>, tensor<2x4xf32, #hone.affine<bits = 4, scales = f16>>) -> tensor<?x2xf32>
  %3 = hone.linear %x, %codes : (tensor<?x4xf32>, tensor<1x4xf32, #hone.affine<bits = 8>>) -> tensor<?x1xf32>
  %4 = hone.linear %x, %full : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  %5 = hone.linear %x, %zeros : (tensor<?x4xf32>, tensor<1x4xf32, #hone.affine<bits = 8, hasZeros = true>>) -> tensor<?x1xf32>
  %6 = hone.linear %x, %columns : (tensor<?x4xf32>, tensor<1x4xf32, #hone.affine<bits = 8, transposed = true>>) -> tensor<?x1xf32>
  %7 = hone.embedding %ids, %table : (tensor<?xi64>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %8 = hone.rms_norm %x, %norm epsilon(1.0e-6) : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %9 = hone.linear %x, %read : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %wide = tensor.concat dim(1) %x, %1 : (tensor<?x4xf32>, tensor<?x2xf32>) -> tensor<?x6xf32>
  %10 = hone.linear %wide, %odd : (tensor<?x6xf32>, tensor<4x6xf32>) -> tensor<?x4xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %read, %8, %10 : tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x1xf32>, tensor<?x4xf32>, tensor<4x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
}
