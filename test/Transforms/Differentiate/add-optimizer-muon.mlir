// RUN: hone-opt %s --hone-add-optimizer="optimizer=muon weight-decay=0.1" --canonicalize --cse | FileCheck %s --enable-var-scope

// A hidden matrix has one moment; the last layer, which has the size of the vocabulary, and vectors have those of adamw.
// CHECK: hone.state @training
// CHECK-SAME: #hone.slot<"w.velocity", tensor<8x4xf32>>
// CHECK-SAME: #hone.slot<"head.first_moment", tensor<16x8xf32>>, #hone.slot<"head.second_moment", tensor<16x8xf32>>
// CHECK-SAME: #hone.slot<"gain.first_moment", tensor<8xf32>>, #hone.slot<"gain.second_moment", tensor<8xf32>>
// CHECK-LABEL: func.func @train_step(
// CHECK: %[[V:.*]] = hone.kv_view %{{.*}}[{{[0-9]+}}] : !hone.kv<@training> -> tensor<8x4xf32>

// The velocity in place, and products of the shorter side: the matrix is tall.
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<8x4xf32>)
// CHECK-COUNT-5: hone.matmul %{{.*}}, %{{.*}} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
// CHECK: %[[O:.*]] = hone.matmul %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
// CHECK-NOT: hone.matmul
// CHECK: return

module {
  hone.param @w : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
  hone.param @head : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>
  hone.param @gain : tensor<8xf32> = dense<1.0> : tensor<8xf32>
  func.func @gradients(%x: tensor<?x4xf32>, %t: tensor<?xi64> {onnx.name = "targets"})
      -> (tensor<f32> {onnx.name = "loss"}, tensor<8x4xf32> {onnx.name = "w.gradient"}, tensor<16x8xf32> {onnx.name = "head.gradient"}, tensor<8xf32> {onnx.name = "gain.gradient"}) {
    %w = hone.get_param @w : tensor<8x4xf32>
    %head = hone.get_param @head : tensor<16x8xf32>
    %gain = hone.get_param @gain : tensor<8xf32>
    %h = hone.linear %x, %w : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x8xf32>
    %y = hone.linear %h, %head : (tensor<?x8xf32>, tensor<16x8xf32>) -> tensor<?x16xf32>
    %loss = hone.cross_entropy %y, %t : (tensor<?x16xf32>, tensor<?xi64>) -> tensor<f32>
    return %loss, %w, %head, %gain : tensor<f32>, tensor<8x4xf32>, tensor<16x8xf32>, tensor<8xf32>
  }
}
