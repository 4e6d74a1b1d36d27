// Kernels of experts read weights without zeros as those of other products do, gate and up in one form.

// RUN: hone-opt %s -hone-sparsify-weights -hone-pack-weights -remarks-filter=hone-sparsify-weights 2>&1 | FileCheck %s

// CHECK-DAG: "fits is stored by 2 of every 4 inputs, in 36 bytes instead of 64"
// CHECK-DAG: "beside stays as it is: kernels read it like misfit, which stays as it is: row 3 has more than 2 of the inputs 0 to 3"
// CHECK-DAG: "misfit stays as it is: row 3 has more than 2 of the inputs 0 to 3"
// CHECK-DAG: "down is stored by 2 of every 4 inputs
// CHECK: hone.moe silu {{.*}} tensor<4x4xf32, [[DENSE:#hrt.panels<f32>]]>, tensor<4x4xf32, [[SPARSE:#hrt.panels<#hone.nm<2:4, of = f32>>]]>, tensor<4x4xf32, [[DENSE]]>)
// CHECK: hone.moe silu {{.*}} tensor<4x4xf32, [[SPARSE]]>, tensor<4x4xf32, [[SPARSE]]>, tensor<4x4xf32, [[SPARSE]]>)
hone.param @fits : tensor<4x4xf32> = dense<[[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]]> : tensor<4x4xf32>
hone.param @beside : tensor<4x4xf32> = dense<[[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]]> : tensor<4x4xf32>
hone.param @misfit : tensor<4x4xf32> = dense<[[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 2.0, 0.0, 3.0]]> : tensor<4x4xf32>
hone.param @down : tensor<4x4xf32> = dense<[[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]]> : tensor<4x4xf32>
func.func @main(%x: tensor<?x4xf32>, %ids: tensor<?x1xi64>, %p: tensor<?x1xf32>) -> tensor<?x4xf32> {
  %fits = hone.get_param @fits : tensor<4x4xf32>
  %beside = hone.get_param @beside : tensor<4x4xf32>
  %misfit = hone.get_param @misfit : tensor<4x4xf32>
  %down = hone.get_param @down : tensor<4x4xf32>
  %0 = hone.moe silu %x, experts(%ids, %p), up(%beside), down(%down) gate(%misfit)
    : (tensor<?x4xf32>, tensor<?x1xi64>, tensor<?x1xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %1 = hone.moe silu %0, experts(%ids, %p), up(%fits), down(%down) gate(%fits)
    : (tensor<?x4xf32>, tensor<?x1xi64>, tensor<?x1xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}
