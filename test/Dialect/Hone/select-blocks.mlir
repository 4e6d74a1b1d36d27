// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @of_sequences
func.func @of_sequences(%q: tensor<?x4x?x128xf16>, %pooled: tensor<?x2x?x2xf32>, %begin: tensor<1x?xi64>, %end: tensor<?x?xi64>)
    -> tensor<?x2x?x3xi64> {
  // CHECK: hone.select_blocks %{{.*}}, %{{.*}} from %{{.*}} to %{{.*}} size(64) scale(1.250000e-01) : (tensor<?x4x?x128xf16>, tensor<?x2x?x2xf32>, tensor<1x?xi64>, tensor<?x?xi64>) -> tensor<?x2x?x3xi64>
  %0 = hone.select_blocks %q, %pooled from %begin to %end size(64) scale(0.125)
     : (tensor<?x4x?x128xf16>, tensor<?x2x?x2xf32>, tensor<1x?xi64>, tensor<?x?xi64>) -> tensor<?x2x?x3xi64>
  return %0 : tensor<?x2x?x3xi64>
}

// CHECK-LABEL: @by_bounds
func.func @by_bounds(%q: tensor<?x4x?x128xf32>, %pooled: tensor<?x2x?x4xf32>, %begin: tensor<1x?xi64>) -> tensor<?x2x?x3xi64> {
  // CHECK: hone.select_blocks %{{.*}}, %{{.*}} from %{{.*}} to %{{.*}} size(64) scale(1.250000e-01) bounds : (tensor<?x4x?x128xf32>, tensor<?x2x?x4xf32>
  %0 = hone.select_blocks %q, %pooled from %begin to %begin size(64) scale(0.125) bounds
     : (tensor<?x4x?x128xf32>, tensor<?x2x?x4xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<?x2x?x3xi64>
  return %0 : tensor<?x2x?x3xi64>
}
