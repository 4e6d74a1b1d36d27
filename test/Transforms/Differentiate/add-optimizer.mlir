// RUN: hone-opt %s --hone-add-optimizer="optimizer=adamw weight-decay=0.1 max-norm=1" --canonicalize --cse --mlir-print-local-scope --remarks-filter=hone-add-optimizer --mlir-pass-statistics 2> %t.log | FileCheck %s --enable-var-scope
// RUN: FileCheck %s --check-prefix=LOG < %t.log
// RUN: hone-opt %s --hone-add-optimizer="optimizer=momentum" --canonicalize --cse | FileCheck %s --check-prefix=MOMENTUM
// RUN: hone-opt %s --hone-add-optimizer="optimizer=sgd" --canonicalize --cse | FileCheck %s --check-prefix=SGD
// RUN: hone-opt %s --hone-add-optimizer="optimizer=sgd keep-zeros evaluate" --canonicalize --cse | FileCheck %s --check-prefix=EVALUATE
// RUN: hone-opt %s --hone-add-optimizer="optimizer=sgd accumulate=4" --canonicalize --cse | FileCheck %s --check-prefix=ACCUMULATE

// LOG: remark: [Passed] AddedOptimizer | Category:hone-add-optimizer | Remark="adamw updates 2 parameters in each call"

// A parameter gets the shape of its file for all that read it, and keeps its elements.
// CHECK: hone.param @w : tensor<8x16xf32> = dense<1.000000e+00> : tensor<8x16xf32>
// CHECK-LABEL: func.func private @forward
// CHECK: %[[W:.*]] = hone.get_param @w : tensor<8x16xf32>
// CHECK: linalg.transpose ins(%[[W]] : tensor<8x16xf32>)

// CHECK: hone.state @training [#hone.slot<"w", tensor<8x16xf32> = @w>, #hone.slot<"gain", tensor<8xf32> = @gain>,
// CHECK-SAME: #hone.slot<"adamw.first_correction", tensor<f64>>, #hone.slot<"adamw.second_correction", tensor<f64>>,
// CHECK-SAME: #hone.slot<"w.first_moment", tensor<8x16xf32>>, #hone.slot<"w.second_moment", tensor<8x16xf32>>,
// CHECK-SAME: #hone.slot<"gain.first_moment", tensor<8xf32>>, #hone.slot<"gain.second_moment", tensor<8xf32>>]
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: %[[STATE:.*]]: !hone.kv<@training>, %{{.*}}: tensor<?x8xf32>, %{{.*}}: tensor<?xi64> {onnx.name = "targets"},
// CHECK-SAME: tensor<f32> {onnx.name = "learning_rate"})
// CHECK-SAME: -> (!hone.kv<@training>, tensor<f32> {onnx.name = "loss"}, tensor<f32> {onnx.name = "gradient_norm"})
// CHECK-NOT: hone.get_param
// CHECK: %[[M:.*]] = hone.kv_view %[[STATE]][4]
// CHECK: %[[P:.*]] = hone.kv_view %[[STATE]][0]
// CHECK: hone.linear
// CHECK: %[[LOSS:.*]] = hone.cross_entropy
// Written where they are.
// CHECK: %[[UPDATED:.*]]:3 = linalg.generic {{.*}} ins(%{{.*}} : tensor<8x16xf32>) outs(%[[P]], %[[M]], %{{.*}} : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>)
// CHECK: hone.kv_replace %{{.*}}[0], %[[UPDATED]]#0 {in_place}
// CHECK: hone.kv_replace %{{.*}}[4], %[[UPDATED]]#1 {in_place}
// CHECK: hone.kv_replace %{{.*}}[5], %[[UPDATED]]#2 {in_place}
// CHECK: return %{{.*}}, %[[LOSS]], %{{.*}} : !hone.kv<@training>, tensor<f32>, tensor<f32>

// MOMENTUM: hone.state @training [#hone.slot<"w", tensor<8x16xf32> = @w>, #hone.slot<"gain", tensor<8xf32> = @gain>, #hone.slot<"w.velocity", tensor<8x16xf32>>, #hone.slot<"gain.velocity", tensor<8xf32>>]
// SGD: hone.state @training [#hone.slot<"w", tensor<8x16xf32> = @w>, #hone.slot<"gain", tensor<8xf32> = @gain>]

// EVALUATE-LABEL: func.func @evaluate(
// EVALUATE-SAME: %[[STATE:.*]]: !hone.kv<@training>, %{{.*}}: tensor<?x8xf32>, %{{.*}}: tensor<?xi64> {onnx.name = "targets"}) -> (!hone.kv<@training>, tensor<f32> {onnx.name = "loss"})
// EVALUATE: %[[W:.*]] = hone.kv_view %[[STATE]][0]
// EVALUATE: linalg.transpose ins(%[[W]] : tensor<8x16xf32>)
// EVALUATE: %[[LOSS:.*]] = hone.cross_entropy
// EVALUATE-NEXT: return %[[STATE]], %[[LOSS]]

// What is 0 stays so, but in vectors.
// EVALUATE-LABEL: func.func @train_step(
// EVALUATE: linalg.generic
// EVALUATE: %[[IS_ZERO:.*]] = arith.cmpf oeq, %[[BEFORE:.*]], %{{.*}} : f32
// EVALUATE: arith.select %[[IS_ZERO]], %{{.*}}, %{{.*}} : f32
// EVALUATE: hone.kv_replace
// EVALUATE-NOT: arith.cmpf
// EVALUATE: return

// Gradients of other batches are added up before a step, which leaves nothing of them.
// ACCUMULATE-LABEL: func.func @accumulate(
// ACCUMULATE-SAME: %[[STATE:.*]]: !hone.kv<@training>, {{.*}} -> (!hone.kv<@training>, tensor<f32> {onnx.name = "loss"})
// ACCUMULATE-DAG: hone.kv_view %[[STATE]][0]
// ACCUMULATE-DAG: %[[SUM:.*]] = hone.kv_view %[[STATE]][2]
// ACCUMULATE: %[[MORE:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<8x16xf32>) outs(%[[SUM]] :
// ACCUMULATE: %[[NEXT:.*]] = hone.kv_replace %[[STATE]][2], %[[MORE]] {in_place}
// ACCUMULATE: hone.kv_replace %[[NEXT]][3]
// ACCUMULATE: hone.state @training {{.*}} #hone.slot<"w.accumulated", tensor<8x16xf32>>, #hone.slot<"gain.accumulated", tensor<8xf32>>]
// ACCUMULATE-LABEL: func.func @train_step(
// ACCUMULATE-DAG: %[[QUARTER:.*]] = arith.constant 2.500000e-01 : f32
// ACCUMULATE-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// ACCUMULATE-DAG: %[[BEFORE:.*]] = hone.kv_view %{{.*}}[2]
// ACCUMULATE: arith.mulf %{{.*}}, %[[QUARTER]] : f32
// ACCUMULATE: %[[ZEROS:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[BEFORE]] :
// ACCUMULATE: hone.kv_replace %{{.*}}[2], %[[ZEROS]] {in_place}

module {
  hone.param @w : tensor<16x8xf32, #hone.stored<f32, transposed>> = dense<1.0> : tensor<8x16xf32>
  hone.param @gain : tensor<8xf32> = dense<1.0> : tensor<8xf32>
  func.func @forward(%x: tensor<?x8xf32>) -> tensor<?x16xf32> {
    %w = hone.get_param @w : tensor<16x8xf32, #hone.stored<f32, transposed>>
    %y = hone.linear %x, %w : (tensor<?x8xf32>, tensor<16x8xf32, #hone.stored<f32, transposed>>) -> tensor<?x16xf32>
    return %y : tensor<?x16xf32>
  }
  func.func @gradients(%x: tensor<?x8xf32>, %t: tensor<?xi64> {onnx.name = "targets"})
      -> (tensor<f32> {onnx.name = "loss"}, tensor<8x16xf32> {onnx.name = "w.gradient"}, tensor<8xf32> {onnx.name = "gain.gradient"}) {
    %w = hone.get_param @w : tensor<16x8xf32, #hone.stored<f32, transposed>>
    %y = hone.linear %x, %w : (tensor<?x8xf32>, tensor<16x8xf32, #hone.stored<f32, transposed>>) -> tensor<?x16xf32>
    %loss = hone.cross_entropy %y, %t : (tensor<?x16xf32>, tensor<?xi64>) -> tensor<f32>
    %gain = hone.get_param @gain : tensor<8xf32>
    %p = hone.unpack %w : tensor<16x8xf32, #hone.stored<f32, transposed>> -> tensor<16x8xf32>
    %e = tensor.empty() : tensor<8x16xf32>
    %dw = linalg.transpose ins(%p : tensor<16x8xf32>) outs(%e : tensor<8x16xf32>) permutation = [1, 0]
    return %loss, %dw, %gain : tensor<f32>, tensor<8x16xf32>, tensor<8xf32>
  }
}
