// RUN: hone-opt %s --hone-fold-clamps | hone-opt | FileCheck %s

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// max(min(x, 6), 0) after no limits.
// CHECK-LABEL: @limited
// CHECK: %[[Y:.*]] = hrt.kernel "hone.packed_convolution.f32" {{.*}}floats [1.000000e+00, 0.000000e+00, 0.000000e+00, 6.000000e+00]
// CHECK-NOT: linalg.generic
// CHECK: return %[[Y]]
func.func @limited(%call: !hrt.call, %x: tensor<1x3x9xf32>, %w: tensor<1x3x16x1xf32>) -> tensor<1x16x9xf32> {
  %zero = arith.constant 0.0 : f32
  %six = arith.constant 6.0 : f32
  %absent = tensor.empty() : tensor<f32>
  %empty = tensor.empty() : tensor<1x16x9xf32>
  %0 = hrt.kernel "hone.packed_convolution.f32" %call ints [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0] floats [1.0, 0.0, -3.0e+38, 3.0e+38]
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
// CHECK: floats [1.000000e+00, 0.000000e+00, -3.000000e+38, 3.000000e+38]
// CHECK: linalg.generic
// CHECK: floats [1.000000e+00, 0.000000e+00, -3.000000e+38, 3.000000e+38]
// CHECK: linalg.generic
func.func @kept(%call: !hrt.call, %x: tensor<1x3x9xf32>, %w: tensor<1x3x16x1xf32>) -> (tensor<1x16x9xf32>, tensor<1x16x9xf32>, tensor<1x16x9xf32>) {
  %zero = arith.constant 0.0 : f32
  %absent = tensor.empty() : tensor<f32>
  %empty = tensor.empty() : tensor<1x16x9xf32>
  %0 = hrt.kernel "hone.packed_convolution.f32" %call ints [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0] floats [1.0, 0.0, -3.0e+38, 3.0e+38]
      ins(%x, %w, %absent, %absent : tensor<1x3x9xf32>, tensor<1x3x16x1xf32>, tensor<f32>, tensor<f32>) outs(%empty : tensor<1x16x9xf32>) -> tensor<1x16x9xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0 : tensor<1x16x9xf32>) outs(%empty : tensor<1x16x9xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = arith.maximumf %in, %zero : f32
    linalg.yield %2 : f32
  } -> tensor<1x16x9xf32>
  %3 = hrt.kernel "hone.packed_convolution.f32" %call ints [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0] floats [1.0, 0.0, -3.0e+38, 3.0e+38]
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

// (x * (max(min(x + 3, 6), 0)) / 6) * 2 - 1 is hard swish with a scale and a shift; limits follow.
// CHECK-LABEL: @hard_swish
// CHECK: %[[Y:.*]] = hrt.kernel "hone.packed_convolution.f32" {{.*}}0, 5, 0] floats [2.000000e+00, -1.000000e+00, 0.000000e+00, 3.000000e+38]
// CHECK-NOT: linalg.generic
// CHECK: return %[[Y]]
func.func @hard_swish(%call: !hrt.call, %x: tensor<1x3x9xf32>, %w: tensor<1x3x16x1xf32>) -> tensor<1x16x9xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %three = arith.constant 3.0 : f32
  %six = arith.constant 6.0 : f32
  %absent = tensor.empty() : tensor<f32>
  %empty = tensor.empty() : tensor<1x16x9xf32>
  %0 = hrt.kernel "hone.packed_convolution.f32" %call ints [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0] floats [1.0, 0.0, -3.0e+38, 3.0e+38]
      ins(%x, %w, %absent, %absent : tensor<1x3x9xf32>, tensor<1x3x16x1xf32>, tensor<f32>, tensor<f32>) outs(%empty : tensor<1x16x9xf32>) -> tensor<1x16x9xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0 : tensor<1x16x9xf32>) outs(%empty : tensor<1x16x9xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.addf %in, %three : f32
    %b = arith.minimumf %a, %six : f32
    %c = arith.maximumf %b, %zero : f32
    %d = arith.mulf %in, %c : f32
    %e = arith.divf %d, %six : f32
    %f = arith.mulf %e, %two : f32
    %g = arith.subf %f, %one : f32
    linalg.yield %g : f32
  } -> tensor<1x16x9xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%1 : tensor<1x16x9xf32>) outs(%empty : tensor<1x16x9xf32>) {
  ^bb0(%in: f32, %out: f32):
    %h = arith.maximumf %in, %zero : f32
    linalg.yield %h : f32
  } -> tensor<1x16x9xf32>
  return %2 : tensor<1x16x9xf32>
}

// x * 0.5 * (1 + erf(x / sqrt 2)) is gelu, x / (1 + e^-x) written as a product is silu.
// CHECK-LABEL: @gelu_and_silu
// CHECK: hrt.kernel "hone.packed_convolution.f32" {{.*}}0, 3, 0] floats [1.000000e+00, 0.000000e+00, -3.000000e+38
// CHECK: hrt.kernel "hone.packed_convolution.f32" {{.*}}0, 2, 0] floats [1.000000e+00, 0.000000e+00, -3.000000e+38
// CHECK-NOT: linalg.generic
func.func @gelu_and_silu(%call: !hrt.call, %x: tensor<1x3x9xf32>, %w: tensor<1x3x16x1xf32>) -> (tensor<1x16x9xf32>, tensor<1x16x9xf32>) {
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant 1.41421354 : f32
  %absent = tensor.empty() : tensor<f32>
  %empty = tensor.empty() : tensor<1x16x9xf32>
  %0 = hrt.kernel "hone.packed_convolution.f32" %call ints [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0] floats [1.0, 0.0, -3.0e+38, 3.0e+38]
      ins(%x, %w, %absent, %absent : tensor<1x3x9xf32>, tensor<1x3x16x1xf32>, tensor<f32>, tensor<f32>) outs(%empty : tensor<1x16x9xf32>) -> tensor<1x16x9xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0 : tensor<1x16x9xf32>) outs(%empty : tensor<1x16x9xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.divf %in, %root : f32
    %b = math.erf %a : f32
    %c = arith.addf %b, %one : f32
    %d = arith.mulf %in, %c : f32
    %e = arith.mulf %d, %half : f32
    linalg.yield %e : f32
  } -> tensor<1x16x9xf32>
  %2 = hrt.kernel "hone.packed_convolution.f32" %call ints [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0] floats [1.0, 0.0, -3.0e+38, 3.0e+38]
      ins(%x, %w, %absent, %absent : tensor<1x3x9xf32>, tensor<1x3x16x1xf32>, tensor<f32>, tensor<f32>) outs(%empty : tensor<1x16x9xf32>) -> tensor<1x16x9xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%2 : tensor<1x16x9xf32>) outs(%empty : tensor<1x16x9xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.negf %in : f32
    %b = math.exp %a : f32
    %c = arith.addf %b, %one : f32
    %d = arith.divf %one, %c : f32
    %e = arith.mulf %in, %d : f32
    linalg.yield %e : f32
  } -> tensor<1x16x9xf32>
  return %1, %3 : tensor<1x16x9xf32>, tensor<1x16x9xf32>
}
