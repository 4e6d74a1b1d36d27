// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @partial_interleaved
func.func @partial_interleaved(%x: tensor<?x2x?x8xf16>, %cos: tensor<1x?x3xf32>) -> tensor<?x2x?x8xf16> {
  // CHECK: hone.rope %{{.*}}, %[[T:.*]], %[[T]] interleaved : (tensor<?x2x?x8xf16>, tensor<1x?x3xf32>, tensor<1x?x3xf32>) -> tensor<?x2x?x8xf16>
  %0 = hone.rope %x, %cos, %cos interleaved
     : (tensor<?x2x?x8xf16>, tensor<1x?x3xf32>, tensor<1x?x3xf32>) -> tensor<?x2x?x8xf16>
  return %0 : tensor<?x2x?x8xf16>
}

// CHECK-LABEL: @halves
func.func @halves(%x: tensor<?x2x?x8xf32>, %cos: tensor<?x?x4xf32>) -> tensor<?x2x?x8xf32> {
  // CHECK: hone.rope %{{.*}}, %[[T:.*]], %[[T]] : (
  %0 = hone.rope %x, %cos, %cos : (tensor<?x2x?x8xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x2x?x8xf32>
  return %0 : tensor<?x2x?x8xf32>
}
