// The manifest lists what is only looked up in: a step reads a row of it. A table that is multiplied too is read whole.

// RUN: rm -rf %t.hone
// RUN: hone compile %s -o %t.hone --quiet
// RUN: FileCheck %s < %t.hone/manifest.json

// CHECK: "gathered": [
// CHECK-NEXT: "plain",
// CHECK-NEXT: "positions"
// CHECK-NEXT: ]

hone.param @both : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>
hone.param @plain : tensor<16x8xf32> = dense<2.0> : tensor<16x8xf32>
hone.param @positions : tensor<4x8xf32> = dense<3.0> : tensor<4x8xf32>
hone.param @vector : tensor<8xf32> = dense<4.0> : tensor<8xf32>

func.func @main(%ids: tensor<?xi64>) -> (tensor<?x8xf32>, tensor<?x16xf32>, tensor<f32>) {
  %both = hone.get_param @both : tensor<16x8xf32>
  %plain = hone.get_param @plain : tensor<16x8xf32>
  %0 = hone.embedding %ids, %both : (tensor<?xi64>, tensor<16x8xf32>) -> tensor<?x8xf32>
  %1 = hone.embedding %ids, %plain : (tensor<?xi64>, tensor<16x8xf32>) -> tensor<?x8xf32>
  %2 = hone.linear %0, %both : (tensor<?x8xf32>, tensor<16x8xf32>) -> tensor<?x16xf32>
  %positions = hone.get_param @positions : tensor<4x8xf32>
  %vector = hone.get_param @vector : tensor<8xf32>
  %c0 = arith.constant 0 : index
  %p = tensor.extract %positions[%c0, %c0] : tensor<4x8xf32>
  %v = tensor.extract %vector[%c0] : tensor<8xf32>
  %s = arith.addf %p, %v : f32
  %3 = tensor.from_elements %s : tensor<f32>
  return %1, %2, %3 : tensor<?x8xf32>, tensor<?x16xf32>, tensor<f32>
}
