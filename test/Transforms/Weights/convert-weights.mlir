// RUN: hone-opt %s -hone-convert-weights=type=f16 | FileCheck %s
// RUN: hone-opt %s -hone-convert-weights=type=f16 -remarks-filter=hone-convert-weights 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: not hone-opt %s -hone-convert-weights=type=f8 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: error: unsupported type 'f8' to store weights in; supported: bf16, f16

// The order of the elements stays.
// CHECK: hone.param @weight : tensor<8x4xf32, #hone.stored<f16, transposed>> = #hone.converted<tensor<8x4xf32, #hone.stored<f32, transposed>> = #hone.external<"w", 0, 128>>
// CHECK: hone.param @table : tensor<9x4xf32, #hone.stored<f16>>
// CHECK: hone.param @norm : tensor<4xf32> = dense
// CHECK: hone.param @read : tensor<8x4xf32> = dense
// REMARK-DAG: [Passed] Converted {{.*}}"weight is stored as f16"
// REMARK-DAG: [Missed] Converted {{.*}}"norm stays as it is: it is no matrix of f32"
// REMARK-DAG: [Missed] Converted {{.*}}"read stays as it is: something other than products and embeddings reads it"
hone.param @weight : tensor<8x4xf32, #hone.stored<f32, transposed>> = #hone.external<"w", 0, 128>
hone.param @table : tensor<9x4xf32> = dense<0.0> : tensor<9x4xf32>
hone.param @norm : tensor<4xf32> = dense<0.0> : tensor<4xf32>
hone.param @read : tensor<8x4xf32> = dense<0.0> : tensor<8x4xf32>

// CHECK-LABEL: @main
// CHECK: hone.linear %{{.*}}, %{{.*}} : (tensor<?x4xf32>, tensor<8x4xf32, #hone.stored<f16, transposed>>) -> tensor<?x8xf32>
func.func @main(%ids: tensor<?xi64>) -> (tensor<?x8xf32>, tensor<8x4xf32>) {
  %table = hone.get_param @table : tensor<9x4xf32>
  %weight = hone.get_param @weight : tensor<8x4xf32, #hone.stored<f32, transposed>>
  %norm = hone.get_param @norm : tensor<4xf32>
  %read = hone.get_param @read : tensor<8x4xf32>
  %0 = hone.embedding %ids, %table : (tensor<?xi64>, tensor<9x4xf32>) -> tensor<?x4xf32>
  %1 = hone.rms_norm %0, %norm epsilon(1.0e-6) : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %2 = hone.linear %1, %weight : (tensor<?x4xf32>, tensor<8x4xf32, #hone.stored<f32, transposed>>) -> tensor<?x8xf32>
  return %2, %read : tensor<?x8xf32>, tensor<8x4xf32>
}
