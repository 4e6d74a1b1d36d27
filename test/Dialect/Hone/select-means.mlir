// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @dynamic
func.func @dynamic(%q: tensor<?x4x?x128xf16>, %k: tensor<?x2x?x128xf16>, %t: tensor<?x3xf32>, %begin: tensor<1x?xi64>, %end: tensor<?x?xi64>, %pad: tensor<?xi64>)
    -> tensor<?x2x?x?xi64> {
  // CHECK: hone.select_means %{{.*}}, %{{.*}} by %{{.*}} from %{{.*}} to %{{.*}} key_begin(%{{.*}}) size(64) queries(128) scale(1.250000e-01) : (tensor<?x4x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x3xf32>, tensor<1x?xi64>, tensor<?x?xi64>, tensor<?xi64>) -> tensor<?x2x?x?xi64>
  %0 = hone.select_means %q, %k by %t from %begin to %end key_begin(%pad) size(64) queries(128) scale(0.125)
     : (tensor<?x4x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x3xf32>, tensor<1x?xi64>, tensor<?x?xi64>, tensor<?xi64>) -> tensor<?x2x?x?xi64>
  return %0 : tensor<?x2x?x?xi64>
}

// CHECK-LABEL: @known
func.func @known(%q: tensor<2x4x130x64xf32>, %k: tensor<2x4x300x64xf32, #hrt.key_blocks>, %t: tensor<4x3xf32>, %begin: tensor<2x3xi64>) -> tensor<2x4x3x5xi64> {
  // CHECK: hone.select_means {{.*}} -> tensor<2x4x3x5xi64>
  %0 = hone.select_means %q, %k by %t from %begin to %begin size(64) queries(64) scale(0.125)
     : (tensor<2x4x130x64xf32>, tensor<2x4x300x64xf32, #hrt.key_blocks>, tensor<4x3xf32>, tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x4x3x5xi64>
  return %0 : tensor<2x4x3x5xi64>
}
