// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @max
func.func @max(%x: tensor<?x?x9x9xf32>) -> tensor<?x?x5x5xf32> {
  // CHECK: hone.pool max %{{.*}} kernel [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] :
  %0 = hone.pool max %x kernel [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] : (tensor<?x?x9x9xf32>) -> tensor<?x?x5x5xf32>
  return %0 : tensor<?x?x5x5xf32>
}

// CHECK-LABEL: @sum
func.func @sum(%x: tensor<1x8x?xf32>, %n: index) -> tensor<1x8x?xf32> {
  // CHECK: hone.pool sum %{{.*}} sizes(%{{.*}}) kernel [4] strides [4] dilations [1] low [0] :
  %0 = hone.pool sum %x sizes(%n) kernel [4] strides [4] dilations [1] low [0] : (tensor<1x8x?xf32>, index) -> tensor<1x8x?xf32>
  return %0 : tensor<1x8x?xf32>
}
