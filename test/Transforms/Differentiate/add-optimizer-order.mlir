// RUN: hone-opt %s --hone-add-optimizer="optimizer=sgd" --canonicalize --cse | FileCheck %s
// RUN: hone-opt %s --hone-add-optimizer="optimizer=sgd max-norm=1" --canonicalize --cse | FileCheck %s --check-prefix=CLIPPED
// RUN: hone-opt %s --hone-add-optimizer="optimizer=sgd max-norm=1 round-gradients" --canonicalize --cse | FileCheck %s --check-prefix=ROUNDED
// RUN: hone-opt %s --hone-add-optimizer="optimizer=sgd round-gradients" --canonicalize --cse | FileCheck %s

// An update comes as soon as its gradient is known and nothing reads the parameter any more, so that gradients need not be in memory at
// once; with a largest norm it waits for all of them, and the sums of their squares do not.

// CHECK-LABEL: func.func @train_step(
// CHECK-DAG: %[[W:.*]] = hone.kv_view %{{.*}}[0] : !hone.kv<@training> -> tensor<8x4xf32>
// CHECK-DAG: %[[HEAD:.*]] = hone.kv_view %{{.*}}[1] : !hone.kv<@training> -> tensor<16x8xf32>
// CHECK: hone.linear %{{.*}}, %[[W]]
// CHECK: hone.linear %{{.*}}, %[[HEAD]]
// CHECK: %[[DHEAD:.*]] = hone.matmul {{.*}} -> tensor<16x8xf32>
// CHECK: linalg.generic {{.*}} ins(%[[DHEAD]] : tensor<16x8xf32>) outs(%[[HEAD]] : tensor<16x8xf32>)
// CHECK: %[[DW:.*]] = hone.matmul {{.*}} -> tensor<8x4xf32>
// CHECK: linalg.generic {{.*}} ins(%[[DW]] : tensor<8x4xf32>) outs(%[[W]] : tensor<8x4xf32>)
// CHECK: hone.kv_replace
// CHECK: hone.kv_replace

// CLIPPED-LABEL: func.func @train_step(
// CLIPPED: %[[DHEAD:.*]] = hone.matmul {{.*}} -> tensor<16x8xf32>
// CLIPPED: linalg.generic {{.*}} ins(%[[DHEAD]] : tensor<16x8xf32>) outs(%{{.*}} : tensor<16xf32>)
// CLIPPED: %[[DW:.*]] = hone.matmul {{.*}} -> tensor<8x4xf32>
// CLIPPED: math.sqrt
// CLIPPED-DAG: linalg.generic {{.*}} ins(%[[DHEAD]] : tensor<16x8xf32>) outs(%{{.*}} : tensor<16x8xf32>)
// CLIPPED-DAG: linalg.generic {{.*}} ins(%[[DW]] : tensor<8x4xf32>) outs(%{{.*}} : tensor<8x4xf32>)

// What waits is bf16, from where the gradient is known, and the norm is that of what waits; the last waits for nothing.
// ROUNDED-LABEL: func.func @train_step(
// ROUNDED: %[[DHEAD:.*]] = hone.matmul {{.*}} -> tensor<16x8xf32>
// ROUNDED: %[[HEAD:.*]] = linalg.generic {{.*}} ins(%[[DHEAD]] : tensor<16x8xf32>) outs(%{{.*}} : tensor<16x8xbf16>)
// ROUNDED: linalg.generic {{.*}} ins(%[[HEAD]] : tensor<16x8xbf16>) outs(%{{.*}} : tensor<16xf32>)
// ROUNDED: %[[DW:.*]] = hone.matmul {{.*}} -> tensor<8x4xf32>
// ROUNDED: math.sqrt
// ROUNDED-DAG: linalg.generic {{.*}} ins(%[[HEAD]] : tensor<16x8xbf16>) outs(%{{.*}} : tensor<16x8xf32>)
// ROUNDED-DAG: linalg.generic {{.*}} ins(%[[DW]] : tensor<8x4xf32>) outs(%{{.*}} : tensor<8x4xf32>)

module {
  hone.param @w : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
  hone.param @head : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>
  func.func @gradients(%x: tensor<?x4xf32>, %t: tensor<?xi64> {onnx.name = "targets"})
      -> (tensor<f32> {onnx.name = "loss"}, tensor<8x4xf32> {onnx.name = "w.gradient"}, tensor<16x8xf32> {onnx.name = "head.gradient"}) {
    %w = hone.get_param @w : tensor<8x4xf32>
    %head = hone.get_param @head : tensor<16x8xf32>
    %h = hone.linear %x, %w : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x8xf32>
    %y = hone.linear %h, %head : (tensor<?x8xf32>, tensor<16x8xf32>) -> tensor<?x16xf32>
    %loss = hone.cross_entropy %y, %t : (tensor<?x16xf32>, tensor<?xi64>) -> tensor<f32>
    %c0 = arith.constant 0 : index
    %n = tensor.dim %x, %c0 : tensor<?x4xf32>
    %e = tensor.empty(%n) : tensor<16x?xf32>
    %yt = linalg.transpose ins(%y : tensor<?x16xf32>) outs(%e : tensor<16x?xf32>) permutation = [1, 0]
    %dhead = hone.matmul %yt, %h : (tensor<16x?xf32>, tensor<?x8xf32>) -> tensor<16x8xf32>
    %f = tensor.empty(%n) : tensor<8x?xf32>
    %ht = linalg.transpose ins(%h : tensor<?x8xf32>) outs(%f : tensor<8x?xf32>) permutation = [1, 0]
    %dw = hone.matmul %ht, %x : (tensor<8x?xf32>, tensor<?x4xf32>) -> tensor<8x4xf32>
    return %loss, %dw, %dhead : tensor<f32>, tensor<8x4xf32>, tensor<16x8xf32>
  }
}
