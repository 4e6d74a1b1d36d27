// RUN: hone-opt %s --hone-fold-clamps | hone-opt | FileCheck %s

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// max(min(x, 6), 0) after no limits.
// CHECK-LABEL: @limited
// CHECK: %[[Y:.*]] = hrt.kernel "hone.packed_convolution.f32" {{.*}}floats [0.000000e+00, 6.000000e+00]
// CHECK-NOT: linalg.generic
// CHECK: return %[[Y]]
func.func @limited(%call: !hrt.call, %x: tensor<1x3x9xf32>, %w: tensor<1x3x16x1xf32>) -> tensor<1x16x9xf32> {
  %zero = arith.constant 0.0 : f32
  %six = arith.constant 6.0 : f32
  %absent = tensor.empty() : tensor<f32>
  %empty = tensor.empty() : tensor<1x16x9xf32>
  %0 = hrt.kernel "hone.packed_convolution.f32" %call ints [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0] floats [-3.000000e+38, 3.000000e+38]
      ins(%x, %w, %absent, %absent : tensor<1x3x9xf32>, tensor<1x3x16x1xf32>, tensor<f32>, tensor<f32>) outs(%empty : tensor<1x16x9xf32>) -> tensor<1x16x9xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0 : tensor<1x16x9xf32>) outs(%empty : tensor<1x16x9xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = arith.minimumf %six, %in : f32
    %3 = arith.maximumf %2, %zero : f32
    linalg.yield %3 : f32
  } -> tensor<1x16x9xf32>
  return %1 : tensor<1x16x9xf32>
}

// What is limited is read elsewhere too, and here more than limits is computed.
// CHECK-LABEL: @kept
// CHECK: floats [-3.000000e+38, 3.000000e+38]
// CHECK: linalg.generic
// CHECK: floats [-3.000000e+38, 3.000000e+38]
// CHECK: linalg.generic
func.func @kept(%call: !hrt.call, %x: tensor<1x3x9xf32>, %w: tensor<1x3x16x1xf32>) -> (tensor<1x16x9xf32>, tensor<1x16x9xf32>, tensor<1x16x9xf32>) {
  %zero = arith.constant 0.0 : f32
  %absent = tensor.empty() : tensor<f32>
  %empty = tensor.empty() : tensor<1x16x9xf32>
  %0 = hrt.kernel "hone.packed_convolution.f32" %call ints [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0] floats [-3.000000e+38, 3.000000e+38]
      ins(%x, %w, %absent, %absent : tensor<1x3x9xf32>, tensor<1x3x16x1xf32>, tensor<f32>, tensor<f32>) outs(%empty : tensor<1x16x9xf32>) -> tensor<1x16x9xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0 : tensor<1x16x9xf32>) outs(%empty : tensor<1x16x9xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = arith.maximumf %in, %zero : f32
    linalg.yield %2 : f32
  } -> tensor<1x16x9xf32>
  %3 = hrt.kernel "hone.packed_convolution.f32" %call ints [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0] floats [-3.000000e+38, 3.000000e+38]
      ins(%x, %w, %absent, %absent : tensor<1x3x9xf32>, tensor<1x3x16x1xf32>, tensor<f32>, tensor<f32>) outs(%empty : tensor<1x16x9xf32>) -> tensor<1x16x9xf32>
  %4 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%3 : tensor<1x16x9xf32>) outs(%empty : tensor<1x16x9xf32>) {
  ^bb0(%in: f32, %out: f32):
    %5 = arith.maximumf %in, %zero : f32
    %6 = arith.mulf %5, %in : f32
    linalg.yield %6 : f32
  } -> tensor<1x16x9xf32>
  return %0, %1, %4 : tensor<1x16x9xf32>, tensor<1x16x9xf32>, tensor<1x16x9xf32>
}
