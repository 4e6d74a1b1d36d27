// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @open_sizes
func.func @open_sizes(%x: tensor<?x4x?x9xf32>, %w: tensor<6x12xf32>, %b: tensor<6xf32>, %rows: index) -> tensor<?x6x?x4xf32> {
  // CHECK: hone.convolution %{{.*}}, %{{.*}} bias(%{{.*}}) sizes(%{{.*}}) kernel [2, 3] strides [1, 2] dilations [1, 1] low [0, 0] groups 2
  %0 = hone.convolution %x, %w bias(%b) sizes(%rows) kernel [2, 3] strides [1, 2] dilations [1, 1] low [0, 0] groups 2
      : (tensor<?x4x?x9xf32>, tensor<6x12xf32>, tensor<6xf32>, index) -> tensor<?x6x?x4xf32>
  return %0 : tensor<?x6x?x4xf32>
}

// Negative padding leaves elements out.
// CHECK-LABEL: @cut
func.func @cut(%x: tensor<1x2x9xf32>, %w: tensor<3x4xf32>) -> tensor<1x3x7xf32> {
  // CHECK: hone.convolution %{{.*}}, %{{.*}} kernel [2] strides [1] dilations [1] low [-1] groups 1 :
  %0 = hone.convolution %x, %w kernel [2] strides [1] dilations [1] low [-1] groups 1
      : (tensor<1x2x9xf32>, tensor<3x4xf32>) -> tensor<1x3x7xf32>
  return %0 : tensor<1x3x7xf32>
}
