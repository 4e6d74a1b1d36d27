// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cuda --canonicalize | FileCheck %s --enable-var-scope

// A bias that begins with zeros is one of the last keys: a tree of tokens that are verified together.
// CHECK-LABEL: @tree
// CHECK: %[[INPUT:.*]] = hrt.input %{{.*}}[2]
// CHECK: %[[TREE:.*]] = bufferization.to_tensor %[[INPUT]]
// CHECK-NOT: tensor.pad
// CHECK: hrt.kernel "cuda.attention.f32" %{{.*}} ints [1, -1, 0, 0, 1] floats [5.000000e-01, 0.000000e+00] ins(%{{.*}}, %{{.*}}, %{{.*}}, %[[TREE]],
func.func @tree(%q: tensor<?x4x?x32xf32>, %k: tensor<?x2x?x32xbf16>, %tree: tensor<1x1x?x?xf32>, %before: tensor<?xi64>) -> tensor<?x4x?x32xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %prefix = tensor.dim %before, %c0 : tensor<?xi64>
  %bias = tensor.pad %tree low[0, 0, 0, %prefix] high[0, 0, 0, 0] {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<1x1x?x?xf32> to tensor<1x1x?x?xf32>
  %y = hone.attention %q, %k, %k pattern(#hone.causal) scale(0.5) bias(%bias) : (tensor<?x4x?x32xf32>, tensor<?x2x?x32xbf16>, tensor<?x2x?x32xbf16>, tensor<1x1x?x?xf32>) -> tensor<?x4x?x32xf32>
  return %y : tensor<?x4x?x32xf32>
}

// Not where other numbers stand in front, nor where something stands after.
// CHECK-LABEL: @others
// CHECK: %[[ONES:.*]] = tensor.pad
// CHECK: %[[AFTER:.*]] = tensor.pad
// CHECK: hrt.kernel "cuda.attention.f32" %{{.*}} ints [1, -1, 0, 0, 0] floats {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}}, %[[ONES]],
// CHECK: hrt.kernel "cuda.attention.f32" %{{.*}} ints [1, -1, 0, 0, 0] floats {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}}, %[[AFTER]],
func.func @others(%q: tensor<?x4x?x32xf32>, %k: tensor<?x2x?x32xf32>, %tree: tensor<1x1x?x?xf32>, %before: tensor<?xi64>) -> tensor<?x4x?x32xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %prefix = tensor.dim %before, %c0 : tensor<?xi64>
  %ones = tensor.pad %tree low[0, 0, 0, %prefix] high[0, 0, 0, 0] {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    tensor.yield %one : f32
  } : tensor<1x1x?x?xf32> to tensor<1x1x?x?xf32>
  %after = tensor.pad %tree low[0, 0, 0, %prefix] high[0, 0, 0, 1] {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<1x1x?x?xf32> to tensor<1x1x?x?xf32>
  %y = hone.attention %q, %k, %k pattern(#hone.causal) scale(0.5) bias(%ones) : (tensor<?x4x?x32xf32>, tensor<?x2x?x32xf32>, tensor<?x2x?x32xf32>, tensor<1x1x?x?xf32>) -> tensor<?x4x?x32xf32>
  %z = hone.attention %y, %k, %k pattern(#hone.causal) scale(0.5) bias(%after) : (tensor<?x4x?x32xf32>, tensor<?x2x?x32xf32>, tensor<?x2x?x32xf32>, tensor<1x1x?x?xf32>) -> tensor<?x4x?x32xf32>
  return %z : tensor<?x4x?x32xf32>
}
