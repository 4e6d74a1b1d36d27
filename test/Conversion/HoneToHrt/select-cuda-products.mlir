// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cuda | FileCheck %s --enable-var-scope

// Matrices that are computed, or state: the kernels of linear layers bring their rows into order.

hone.param @begin : tensor<16x6xf32> = dense<1.0> : tensor<16x6xf32>
hone.param @odd : tensor<16x6xf32> = dense<1.0> : tensor<16x6xf32>
hone.state @s [#hone.slot<"w", tensor<16x6xf32> = @begin>]

// CHECK-LABEL: @state
// CHECK: %[[W:.*]] = hrt.state_view %{{.*}}[0] : tensor<16x6xf32>
// CHECK: hrt.kernel "cuda.linear.f32" %{{.*}} ints [0] ins(%{{.*}}, %[[W]], %[[BIAS:.*]], %{{.*}}, %{{.*}} : tensor<?x6xf32>, tensor<16x6xf32>, tensor<16xf32>, tensor<f32>, tensor<f32>)
func.func @state(%s: !hone.kv<@s>, %x: tensor<?x6xf32>, %bias: tensor<16xf32>) -> (!hone.kv<@s>, tensor<?x16xf32>) {
  %w = hone.kv_view %s[0] : !hone.kv<@s> -> tensor<16x6xf32>
  %y = hone.linear %x, %w bias(%bias) : (tensor<?x6xf32>, tensor<16x6xf32>, tensor<16xf32>) -> tensor<?x16xf32>
  return %s, %y : !hone.kv<@s>, tensor<?x16xf32>
}

// A parameter with such rows would be copied in each call.
// CHECK-LABEL: @parameter
// CHECK-NOT: hrt.kernel
// CHECK: linalg.generic
func.func @parameter(%x: tensor<?x6xf32>) -> tensor<?x16xf32> {
  %w = hone.get_param @odd : tensor<16x6xf32>
  %y = hone.linear %x, %w : (tensor<?x6xf32>, tensor<16x6xf32>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// a · b is the layer of bᵀ.
// CHECK-LABEL: @matrices
// CHECK: %[[T:.*]] = linalg.transpose ins(%{{.*}} : tensor<?x16xf32>) outs(%{{.*}} : tensor<16x?xf32>) permutation = [1, 0]
// CHECK: hrt.kernel "cuda.linear.f32" %{{.*}} ints [0] ins(%{{.*}}, %[[T]], %{{.*}} : tensor<8x?xf32>, tensor<16x?xf32>, tensor<f32>, tensor<f32>, tensor<f32>) outs(%{{.*}} : tensor<8x16xf32>)
func.func @matrices(%a: tensor<8x?xf32>, %b: tensor<?x16xf32>) -> tensor<8x16xf32> {
  %c = hone.matmul %a, %b : (tensor<8x?xf32>, tensor<?x16xf32>) -> tensor<8x16xf32>
  return %c : tensor<8x16xf32>
}

// Of several matrices.
// CHECK-LABEL: @several
// CHECK: hrt.kernel "cuda.matmul.f32" %{{.*}} ints [0] ins(%{{.*}}, %{{.*}} : tensor<2x8x?xf32>, tensor<2x?x16xf32>) outs(%{{.*}} : tensor<2x8x16xf32>)
func.func @several(%a: tensor<2x8x?xf32>, %b: tensor<2x?x16xf32>) -> tensor<2x8x16xf32> {
  %c = hone.matmul %a, %b : (tensor<2x8x?xf32>, tensor<2x?x16xf32>) -> tensor<2x8x16xf32>
  return %c : tensor<2x8x16xf32>
}

// An addend is the layer's residual, or what the kernel for several matrices adds to.
// CHECK-LABEL: @accumulated
// CHECK: hrt.kernel "cuda.linear.f32" %{{.*}} ints [0] ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[C:.*]] : tensor<8x?xf32>, tensor<16x?xf32>, tensor<f32>, tensor<f32>, tensor<8x16xf32>) outs(%{{.*}} : tensor<8x16xf32>)
// CHECK: hrt.kernel "cuda.matmul.f32" %{{.*}} ints [1] ins(%{{.*}}, %{{.*}} : {{.*}}) outs(%{{.*}} : tensor<2x8x16xf32>)
func.func @accumulated(%a: tensor<8x?xf32>, %b: tensor<?x16xf32>, %c: tensor<8x16xf32>, %d: tensor<2x8x?xf32>, %e: tensor<2x?x16xf32>,
                       %f: tensor<2x8x16xf32>) -> (tensor<8x16xf32>, tensor<2x8x16xf32>) {
  %0 = hone.matmul %a, %b addend(%c) : (tensor<8x?xf32>, tensor<?x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = hone.matmul %d, %e addend(%f) : (tensor<2x8x?xf32>, tensor<2x?x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %0, %1 : tensor<8x16xf32>, tensor<2x8x16xf32>
}

// Sums of few terms are generated code.
// CHECK-LABEL: @generated
// CHECK-NOT: hrt.kernel
func.func @generated(%a: tensor<2x8x4xf32>, %b: tensor<4x16xf32>) -> tensor<2x8x16xf32> {
  %c = hone.matmul %a, %b : (tensor<2x8x4xf32>, tensor<4x16xf32>) -> tensor<2x8x16xf32>
  return %c : tensor<2x8x16xf32>
}
