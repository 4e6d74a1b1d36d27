// RUN: hone-opt %s --hone-differentiate="loss=cross-entropy teacher=teacher distill-weight=0.25 feature-weight=3 of=w" --canonicalize --cse --mlir-print-local-scope | FileCheck %s --enable-var-scope
// RUN: not hone-opt %s --hone-differentiate="loss=cross-entropy teacher=deep feature-weight=3" 2>&1 | FileCheck %s --check-prefix=DEEP
// RUN: not hone-opt %s --hone-differentiate="loss=cross-entropy teacher=wide feature-weight=3" 2>&1 | FileCheck %s --check-prefix=WIDE

// What norms read of the shape that the last one reads is compared with what those of the teacher read; the norm of half rows is left out.

// CHECK-LABEL: func.func @gradients(
// CHECK-DAG: %[[H:.*]] = hone.linear %{{.*}}, %{{.*}} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
// CHECK-DAG: %[[KNOWN:.*]] = hone.linear %{{.*}}, %{{.*}} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
// CHECK: hone.kl_divergence
// CHECK: %[[ERROR:.*]] = linalg.generic {{.*}}"reduction", "reduction"]} ins(%[[H]], %[[KNOWN]] : tensor<?x8xf32>, tensor<?x8xf32>) outs(%{{.*}} : tensor<f32>)
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK: %[[SQUARE:.*]] = linalg.generic {{.*}}"reduction", "reduction"]} ins(%[[KNOWN]] : tensor<?x8xf32>) outs(%{{.*}} : tensor<f32>)
// CHECK: linalg.generic {{.*}} ins(%[[ERROR]], %[[SQUARE]] : tensor<f32>, tensor<f32>)
// CHECK: arith.divf

// DEEP: error: cannot distill: expected the teacher to have 1 hidden states, but got 2
// WIDE: error: cannot distill: expected hidden states of the teacher to be of type 'tensor<?x8xf32>', but got 'tensor<?x16xf32>'
module {
  hone.param @w : tensor<8x8xf32> = dense<1.0> : tensor<8x8xf32>
  hone.param @teacher.w : tensor<8x8xf32> = dense<2.0> : tensor<8x8xf32>
  hone.param @wide.w : tensor<16x8xf32> = dense<2.0> : tensor<16x8xf32>
  hone.param @wide.head : tensor<8x16xf32> = dense<2.0> : tensor<8x16xf32>
  hone.param @g4 : tensor<4xf32> = dense<1.0> : tensor<4xf32>
  hone.param @g8 : tensor<8xf32> = dense<1.0> : tensor<8xf32>
  hone.param @g16 : tensor<16xf32> = dense<1.0> : tensor<16xf32>
  func.func @main(%x: tensor<?x8xf32> {onnx.name = "x"}, %half: tensor<?x4xf32> {onnx.name = "half"}) -> (tensor<?x8xf32>, tensor<?x4xf32>) {
    %w = hone.get_param @w : tensor<8x8xf32>
    %g4 = hone.get_param @g4 : tensor<4xf32>
    %g8 = hone.get_param @g8 : tensor<8xf32>
    %m = hone.rms_norm %half, %g4 epsilon(1.0e-5) : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
    %h = hone.linear %x, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %n = hone.rms_norm %h, %g8 epsilon(1.0e-5) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    return %n, %m : tensor<?x8xf32>, tensor<?x4xf32>
  }
  func.func private @teacher(%x: tensor<?x8xf32> {onnx.name = "x"}) -> tensor<?x8xf32> {
    %w = hone.get_param @teacher.w : tensor<8x8xf32>
    %g8 = hone.get_param @g8 : tensor<8xf32>
    %h = hone.linear %x, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %n = hone.rms_norm %h, %g8 epsilon(1.0e-5) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    return %n : tensor<?x8xf32>
  }
  func.func private @deep(%x: tensor<?x8xf32> {onnx.name = "x"}) -> tensor<?x8xf32> {
    %g8 = hone.get_param @g8 : tensor<8xf32>
    %n = hone.rms_norm %x, %g8 epsilon(1.0e-5) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    %m = hone.rms_norm %n, %g8 epsilon(1.0e-5) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    return %m : tensor<?x8xf32>
  }
  func.func private @wide(%x: tensor<?x8xf32> {onnx.name = "x"}) -> tensor<?x8xf32> {
    %w = hone.get_param @wide.w : tensor<16x8xf32>
    %head = hone.get_param @wide.head : tensor<8x16xf32>
    %g16 = hone.get_param @g16 : tensor<16xf32>
    %h = hone.linear %x, %w : (tensor<?x8xf32>, tensor<16x8xf32>) -> tensor<?x16xf32>
    %n = hone.rms_norm %h, %g16 epsilon(1.0e-5) : (tensor<?x16xf32>, tensor<16xf32>) -> tensor<?x16xf32>
    %y = hone.linear %n, %head : (tensor<?x16xf32>, tensor<8x16xf32>) -> tensor<?x8xf32>
    return %y : tensor<?x8xf32>
  }
}
