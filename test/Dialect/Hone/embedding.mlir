// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @embedding
func.func @embedding(%ids: tensor<?x?xi32>, %t: tensor<16x8xf32, #hone.stored<f16>>) -> tensor<?x?x8xf32> {
  // CHECK: hone.embedding %{{.*}}, %{{.*}} : (tensor<?x?xi32>, tensor<16x8xf32, #hone.stored<f16>>) -> tensor<?x?x8xf32>
  %0 = hone.embedding %ids, %t : (tensor<?x?xi32>, tensor<16x8xf32, #hone.stored<f16>>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

// CHECK-LABEL: @one
func.func @one(%id: tensor<i64>, %t: tensor<16x8xbf16>) -> tensor<8xbf16> {
  // CHECK: hone.embedding
  %0 = hone.embedding %id, %t : (tensor<i64>, tensor<16x8xbf16>) -> tensor<8xbf16>
  return %0 : tensor<8xbf16>
}
