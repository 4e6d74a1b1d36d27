// RUN: hone-opt %s --hone-round-products --remarks-filter=hone-round-products 2> %t.log | FileCheck %s
// RUN: FileCheck %s --check-prefix=LOG < %t.log
// RUN: hone-opt %s --hone-round-products --hone-convert-hone-to-hrt=target=cpu | FileCheck %s --check-prefix=CPU

// LOG: remark: [Passed] Rounded | Category:hone-round-products | Remark="5 products may multiply in bf16"

!h = tensor<?x2x?x8xf32>
!l = tensor<?x2x?xf32>
!w = tensor<4x8xf32, #hone.stored<f32, transposed>>

hone.param @plain : tensor<4x8xf32> = dense<0.0> : tensor<4x8xf32>
hone.param @transposed : !w = dense<0.0> : tensor<8x4xf32>
hone.param @half : tensor<4x8xf32, #hone.stored<f16>> = dense<0.0> : tensor<4x8xf16>

// A weight of 16 bits has values that are as they are.
// CHECK-LABEL: @layers
// CHECK: hone.linear %{{.*}}, %{{.*}} bias(%{{.*}}) bf16_products : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<4xf32>)
// CHECK: hone.linear %{{.*}}, %{{.*}} bf16_products : (tensor<?x8xf32>, tensor<4x8xf32, #hone.stored<f32, transposed>>)
// CHECK: hone.linear %{{.*}}, %{{[^ ]*}} : (tensor<?x8xf32>, tensor<4x8xf32, #hone.stored<f16>>)
// CHECK: hone.matmul %{{.*}}, %{{.*}} bf16_products : (tensor<?x4xf32>, tensor<4x8xf32>)
// CPU-LABEL: @layers
// CPU: hrt.kernel "hone.linear.bf16"
// CPU: hrt.kernel "hone.matmul.bf16"
func.func @layers(%x: tensor<?x8xf32>, %b: tensor<4xf32>, %c: tensor<4x8xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) {
  %w0 = hone.get_param @plain : tensor<4x8xf32>
  %w1 = hone.get_param @transposed : !w
  %w2 = hone.get_param @half : tensor<4x8xf32, #hone.stored<f16>>
  %0 = hone.linear %x, %w0 bias(%b) : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = hone.linear %x, %w1 : (tensor<?x8xf32>, !w) -> tensor<?x4xf32>
  %2 = hone.linear %x, %w2 : (tensor<?x8xf32>, tensor<4x8xf32, #hone.stored<f16>>) -> tensor<?x4xf32>
  %3 = hone.matmul %2, %c : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  return %0, %1, %3 : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: @attentions
// CHECK: hone.attention {{.*}} bf16_products :
// CHECK: hone.attention_gradient {{.*}} bf16_products :
// CPU-LABEL: @attentions
// CPU: hrt.kernel "hone.attention.pairs.f32"
// CPU: hrt.kernel "hone.attention_gradient.bf16"
func.func @attentions(%q: !h, %k: !h, %v: !h, %lse: !l, %s: !l, %g: !h) -> (!h, !h, !h, !h) {
  %0 = hone.attention %q, %k, %v pattern(#hone.causal) scale(0.5) : (!h, !h, !h) -> !h
  %1:3 = hone.attention_gradient %q, %k, %v, %lse, %s, %g pattern(#hone.causal) scale(0.5) : (!h, !h, !h, !l, !l, !h) -> (!h, !h, !h)
  return %0, %1#0, %1#1, %1#2 : !h, !h, !h, !h
}

// Narrower elements are rounded already.
// CHECK-LABEL: @halves
// CHECK-NOT: bf16_products
// CHECK: return
func.func @halves(%a: tensor<4x8xf16>, %b: tensor<8x4xf16>, %q: !h, %k: tensor<?x2x?x8xf16>) -> (tensor<4x4xf16>, !h) {
  %0 = hone.matmul %a, %b : (tensor<4x8xf16>, tensor<8x4xf16>) -> tensor<4x4xf16>
  %1 = hone.attention %q, %k, %k pattern(#hone.full) scale(0.5) : (!h, tensor<?x2x?x8xf16>, tensor<?x2x?x8xf16>) -> !h
  return %0, %1 : tensor<4x4xf16>, !h
}
