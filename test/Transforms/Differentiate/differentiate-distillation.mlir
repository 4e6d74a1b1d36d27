// RUN: hone-opt %s --hone-differentiate="loss=cross-entropy teacher=teacher distill-weight=0.25 temperature=2" --canonicalize --cse --mlir-print-local-scope | FileCheck %s --enable-var-scope
// RUN: hone-opt %s --hone-differentiate="loss=cross-entropy teacher=teacher" --hone-add-optimizer="optimizer=sgd evaluate" --canonicalize --cse | FileCheck %s --check-prefix=STEP

// The teacher's parameters have no gradients, and its state is empty; its first input is the first of the model, whatever it is called.

// CHECK-LABEL: func.func @gradients(
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32> {onnx.dims = ["n", "8"], onnx.name = "x"}, %[[TARGETS:.*]]: tensor<?xi64> {{{.*}}onnx.name = "targets"})
// CHECK-SAME: -> (tensor<f32> {onnx.name = "loss"}, tensor<f32> {onnx.name = "cross_entropy"}, tensor<16x8xf32> {onnx.name = "w.gradient"})
// Its table has a row for each position of the call, and none are held.
// CHECK-SAME: attributes {hone.limits = [{most = 64 : i64, sizes = ["n"], table = "t"}]}
// CHECK-DAG: %[[W:.*]] = hone.get_param @w : tensor<16x8xf32>
// CHECK-DAG: %[[KNOWN_W:.*]] = hone.get_param @teacher.w : tensor<16x8xf32>
// CHECK-DAG: %[[LOGITS:.*]] = hone.linear %[[X]], %[[W]]
// CHECK-DAG: %[[KNOWN:.*]] = hone.linear %[[X]], %[[KNOWN_W]]
// CHECK-DAG: %[[HARD:.*]] = hone.cross_entropy %[[LOGITS]], %[[TARGETS]]
// CHECK-DAG: %[[SOFT:.*]] = hone.kl_divergence %[[LOGITS]], %[[KNOWN]] {temperature = 2.000000e+00 : f32}
// 1 - w and w T²:
// CHECK: %[[LOSS:.*]] = linalg.generic {{.*}} ins(%[[HARD]], %[[SOFT]] : tensor<f32>, tensor<f32>)
// CHECK: arith.mulf %{{.*}}, %{{cst.*}} : f32
// CHECK: return %[[LOSS]], %[[HARD]], %{{.*}} : tensor<f32>, tensor<f32>, tensor<16x8xf32>

// A step keeps the teacher constant, and validation does without.

// STEP-LABEL: func.func @evaluate(
// STEP-NOT: @teacher.w
// STEP: %[[HARD:.*]] = hone.cross_entropy
// STEP: return %{{.*}}, %[[HARD]] :
// STEP: hone.state @training [#hone.slot<"w", tensor<16x8xf32> = @w>]
// STEP-LABEL: func.func @train_step(
// STEP: hone.get_param @teacher.w
// STEP: return %{{.*}}, %{{.*}}, %{{.*}} : !hone.kv<@training>, tensor<f32>, tensor<f32>
module {
  hone.param @w : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>
  hone.param @teacher.w : tensor<16x8xf32> = dense<2.0> : tensor<16x8xf32>
  hone.state @past [#hone.slot<"k", tensor<?x8xf32>, axis = 0>]
  func.func @main(%x: tensor<?x8xf32> {onnx.dims = ["n", "8"], onnx.name = "x"}) -> tensor<?x16xf32> {
    %w = hone.get_param @w : tensor<16x8xf32>
    %y = hone.linear %x, %w : (tensor<?x8xf32>, tensor<16x8xf32>) -> tensor<?x16xf32>
    return %y : tensor<?x16xf32>
  }
  func.func private @teacher(%state: !hone.kv<@past>, %rows: tensor<?x8xf32> {onnx.dims = ["rows", "8"], onnx.name = "rows"})
      -> (tensor<?x16xf32>, !hone.kv<@past>) attributes {hone.limits = [{most = 64 : i64, sizes = ["rows", "hone.kv_length"], table = "t"}]} {
    %w = hone.get_param @teacher.w : tensor<16x8xf32>
    %y = hone.linear %rows, %w : (tensor<?x8xf32>, tensor<16x8xf32>) -> tensor<?x16xf32>
    return %y, %state : tensor<?x16xf32>, !hone.kv<@past>
  }
}
