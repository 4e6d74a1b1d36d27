// RUN: hone-opt %s --hone-decompose | FileCheck %s --enable-var-scope

// Groups are a dimension of their own; windows are affine in the output and the kernel position.
// CHECK-DAG: #[[$X:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1 * 2 + d5, d3 * 2 + d6, d4 * 2 + d7)>
// CHECK-DAG: #[[$W:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d2, d5, d6, d7)>
// CHECK-DAG: #[[$CUT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2 + d3 + 1)>
// CHECK-LABEL: @convolution
// CHECK: %[[X:.*]] = tensor.insert_slice %arg0 into %{{.*}}[0, 0, 1, 1] [1, 4, 9, 9] [1, 1, 1, 1] : tensor<1x4x9x9xf32> into tensor<1x4x11x11xf32>
// CHECK: %[[W:.*]] = tensor.expand_shape %arg1 {{.*}} into tensor<2x3x2x3x3xf32>
// CHECK: linalg.generic {indexing_maps = [#[[$X]], #[[$W]], {{.*}} ins(%[[X]], %[[W]]
// CHECK: tensor.collapse_shape {{.*}} into tensor<1x6x5x5xf32>
func.func @convolution(%x: tensor<1x4x9x9xf32>, %w: tensor<6x18xf32>) -> tensor<1x6x5x5xf32> {
  %0 = hone.convolution %x, %w kernel [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] groups 2
      : (tensor<1x4x9x9xf32>, tensor<6x18xf32>) -> tensor<1x6x5x5xf32>
  return %0 : tensor<1x6x5x5xf32>
}

// Negative padding leaves the first elements out.
// CHECK-LABEL: @pool
// CHECK: %[[LEAST:.*]] = arith.constant 0xFF800000 : f32
// CHECK: linalg.fill ins(%[[LEAST]]
// CHECK: linalg.generic {indexing_maps = [#[[$CUT]], {{.*}} ins(%arg0,
// CHECK: arith.maximumf
func.func @pool(%x: tensor<?x3x9xf32>) -> tensor<?x3x6xf32> {
  %0 = hone.pool max %x kernel [3] strides [1] dilations [1] low [-1] : (tensor<?x3x9xf32>) -> tensor<?x3x6xf32>
  return %0 : tensor<?x3x6xf32>
}
