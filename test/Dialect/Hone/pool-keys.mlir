// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @padded
func.func @padded(%k: tensor<?x2x?x96xbf16>, %fresh: index, %pad: tensor<?xi64>) -> tensor<?x2x?x2xf32> {
  // CHECK: hone.pool_keys %{{.*}} of %{{.*}} key_begin(%{{.*}}) size(64) : (tensor<?x2x?x96xbf16>, index, tensor<?xi64>) -> tensor<?x2x?x2xf32>
  %0 = hone.pool_keys %k of %fresh key_begin(%pad) size(64) : (tensor<?x2x?x96xbf16>, index, tensor<?xi64>) -> tensor<?x2x?x2xf32>
  return %0 : tensor<?x2x?x2xf32>
}

// CHECK-LABEL: @of_bounds
func.func @of_bounds(%k: tensor<?x2x?x96xf32>, %fresh: index) -> tensor<?x2x?x3xf32> {
  // CHECK: hone.pool_keys %{{.*}} of %{{.*}} size(64) bounds : (tensor<?x2x?x96xf32>, index) -> tensor<?x2x?x3xf32>
  %0 = hone.pool_keys %k of %fresh size(64) bounds : (tensor<?x2x?x96xf32>, index) -> tensor<?x2x?x3xf32>
  return %0 : tensor<?x2x?x3xf32>
}

// CHECK-LABEL: @in_a_layout
func.func @in_a_layout(%k: tensor<?x2x?x64xf32, #hrt.key_blocks>, %fresh: index) -> tensor<?x2x?x1xf32> {
  // CHECK: hone.pool_keys %{{.*}} of %{{.*}} size(64) : (tensor<?x2x?x64xf32, #hrt.key_blocks>, index) -> tensor<?x2x?x1xf32>
  %0 = hone.pool_keys %k of %fresh size(64) : (tensor<?x2x?x64xf32, #hrt.key_blocks>, index) -> tensor<?x2x?x1xf32>
  return %0 : tensor<?x2x?x1xf32>
}
