// RUN: hone-opt %s --hone-add-optimizer="sparse-mode=ast sparse=w evaluate" --canonicalize --cse --remarks-filter=hone-add-optimizer 2> %t.log | FileCheck %s --check-prefixes=CHECK,AST --enable-var-scope
// RUN: FileCheck %s --check-prefix=LOG < %t.log
// RUN: hone-opt %s --hone-add-optimizer="sparse-mode=sr-ste sparse=w optimizer=sgd" --canonicalize --cse | FileCheck %s --check-prefix=SRSTE --enable-var-scope
// RUN: hone-opt %s --hone-add-optimizer="sparse-mode=s-ste sparse=w" --canonicalize --cse | FileCheck %s --check-prefix=SSTE --enable-var-scope
// RUN: hone-opt %s --hone-add-optimizer="sparse-mode=cast mask-decay=0.5 sparse=w evaluate" --canonicalize --cse | FileCheck %s --check-prefix=CAST --enable-var-scope
// RUN: not hone-opt %s --hone-add-optimizer="sparse-mode=cast sparse=w optimizer=muon" 2>&1 | FileCheck %s --check-prefix=MUON
// RUN: not hone-opt %s --hone-add-optimizer="sparse-mode=cast sparse=w mask-decay=-1" 2>&1 | FileCheck %s --check-prefix=LAMBDA
// RUN: not hone-opt %s --hone-add-optimizer="sparse-mode=sr-ste sparse=gain" 2>&1 | FileCheck %s --check-prefix=VECTOR
// RUN: not hone-opt %s --hone-add-optimizer="sparse-mode=sr-ste sparse=w n=3 m=5" 2>&1 | FileCheck %s --check-prefix=MULTIPLE
// RUN: not hone-opt %s --hone-add-optimizer="sparse-mode=sr-ste sparse=w,v" 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not hone-opt %s --hone-add-optimizer="sparse-mode=sr-ste" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not hone-opt %s --hone-add-optimizer="sparse-mode=sr-ste sparse=w keep-zeros" 2>&1 | FileCheck %s --check-prefix=KEEP
// RUN: not hone-opt %s --hone-add-optimizer="sparse-mode=ast sparse=w optimizer=sgd" 2>&1 | FileCheck %s --check-prefix=SGD
// RUN: not hone-opt %s --hone-add-optimizer="sparse-mode=ste sparse=w" 2>&1 | FileCheck %s --check-prefix=MODE
// RUN: not hone-opt %s --hone-add-optimizer="sparse-mode=ast sparse=w n=4" 2>&1 | FileCheck %s --check-prefix=PATTERN

// LOG: remark: [Passed] AddedOptimizer | Category:hone-add-optimizer | Remark="adamw updates 2 parameters in each call"
// LOG: remark: [Passed] ProjectedWeights | Category:hone-add-optimizer | Remark="ast projects 1 of them to 2:4"
// VECTOR: error: cannot train 'gain' with 2 of 4 inputs: it is no matrix of products with a multiple of 4 inputs
// MULTIPLE: error: cannot train 'w' with 3 of 5 inputs: it is no matrix of products with a multiple of 5 inputs
// ABSENT: error: cannot add an optimizer: no gradient is that of the sparse weight 'v'
// NONE: error: expected a sparse mode and the names of sparse weights, but got one of them
// KEEP: error: expected no keep-zeros with a sparse mode, which chooses the zeros anew
// SGD: error: expected the optimizer adamw for the sparse mode ast, but got sgd
// MUON: error: expected the optimizer adamw for the sparse mode cast, but got muon
// LAMBDA: error: expected mask-decay to be 0 or more, but got -1
// MODE: error: unsupported sparse mode 'ste'; supported: sr-ste, ast, cast, s-ste
// PATTERN: error: expected n of m inputs to be 1 to m - 1 of 2 to 128, but got 4 of 4

// The weight lies input after input in the file, so groups lie along its first dimension. What reads it reads its projection, the loss
// beside the step too; the dense weight is what is updated.
// CHECK-LABEL: func.func @evaluate(
// CHECK: %[[VIEW:.*]] = hone.kv_view %{{.*}}[0]
// CHECK: %[[GROUPS:.*]] = tensor.expand_shape %[[VIEW]] {{\[\[}}0, 1], [2]] output_shape [2, 4, 2] : tensor<8x2xf32> into tensor<2x4x2xf32>
// CHECK: %[[RANKS:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[GROUPS]], %[[GROUPS]] :
// CHECK: %[[KEPT:.*]] = linalg.generic {{.*}} ins(%[[GROUPS]], %[[RANKS]] :
// CHECK: %[[S:.*]] = tensor.collapse_shape %[[KEPT]]
// CHECK: linalg.transpose ins(%[[S]] : tensor<8x2xf32>)

// At the end the weight becomes what was read of it.
// CHECK-LABEL: func.func @project(
// CHECK-SAME: %[[STATE:.*]]: !hone.kv<@training>) -> !hone.kv<@training>
// CHECK: %[[HELD:.*]] = hone.kv_view %[[STATE]][0]
// CHECK: tensor.expand_shape %[[HELD]]
// CHECK: %[[RESULT:.*]] = tensor.collapse_shape
// CHECK: %[[NEXT:.*]] = hone.kv_replace %[[STATE]][0], %[[RESULT]]
// CHECK: return %[[NEXT]]

// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: tensor<f32> {onnx.name = "learning_rate"}, %{{.*}}: tensor<f32> {onnx.name = "mask_decay"})
// CHECK-DAG: %[[P:.*]] = hone.kv_view %{{.*}}[0] : !hone.kv<@training> -> tensor<8x2xf32>
// Vectors are read as they are.
// CHECK-DAG: ins(%{{[^,]*}} : tensor<8xf32>) outs(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
// CHECK: %[[PROJECTED:.*]] = tensor.collapse_shape
// CHECK: linalg.transpose ins(%[[PROJECTED]] : tensor<8x2xf32>)
// CHECK: %[[UPDATED:.*]]:3 = linalg.generic {{.*}} ins(%{{.*}}, %[[PROJECTED]] : {{.*}}) outs(%[[P]], %{{.*}}, %{{.*}} :
// AST: ^bb0(%{{[^:]*}}: f32, %[[SW:[^:]*]]: f32, %[[W:[^:]*]]: f32, %{{[^:]*}}: f32, %{{[^:]*}}: f32):
// AST: %[[MASKED:.*]] = arith.subf %[[W]], %[[SW]]
// AST: arith.mulf %{{.*}}, %[[MASKED]]
// CHECK: hone.kv_replace %{{.*}}[0], %[[UPDATED]]#0

// SRSTE-LABEL: func.func @train_step(
// SRSTE: ^bb0(%[[G:[^:]*]]: f32, %[[SW:[^:]*]]: f32, %[[W:[^:]*]]: f32):
// SRSTE: %[[MASKED:.*]] = arith.subf %[[W]], %[[SW]]
// SRSTE: %[[DECAY:.*]] = arith.mulf %{{.*}}, %[[MASKED]]
// SRSTE: arith.addf %[[G]], %[[DECAY]]

// The loss beside the step is that of the projection; the step reads the dense weight, and its update the projection alone.
// CAST-LABEL: func.func @evaluate(
// CAST: %[[S:.*]] = tensor.collapse_shape
// CAST: linalg.transpose ins(%[[S]] : tensor<8x2xf32>)
// CAST-LABEL: func.func @train_step(
// CAST: %[[P:.*]] = hone.kv_view %{{.*}}[0] : !hone.kv<@training> -> tensor<8x2xf32>
// CAST: linalg.transpose ins(%[[P]] : tensor<8x2xf32>)
// CAST: %[[PROJECTED:.*]] = tensor.collapse_shape
// CAST: linalg.generic {{.*}} ins(%{{.*}}, %[[PROJECTED]] : {{.*}}) outs(%[[P]], %{{.*}}, %{{.*}} :
// CAST: ^bb0(%{{[^:]*}}: f32, %[[SW:[^:]*]]: f32, %[[W:[^:]*]]: f32, %{{[^:]*}}: f32, %{{[^:]*}}: f32):
// CAST: %[[M:.*]] = arith.addf
// CAST: %[[TARGET:.*]] = math.copysign %{{.*}}, %[[W]]
// CAST: %[[KEPT:.*]] = arith.mulf %{{.*}}, %[[M]]
// CAST: %[[SIGNED:.*]] = arith.select %{{.*}}, %{{.*}}, %[[TARGET]]
// CAST: %[[AMENDED:.*]] = arith.addf %[[KEPT]], %[[SIGNED]]
// CAST: %[[IS_MASKED:.*]] = arith.cmpf oeq, %[[SW]], %{{.*}}
// CAST: %[[USED:.*]] = arith.select %[[IS_MASKED]], %[[AMENDED]], %[[M]]
// CAST: arith.mulf %[[USED]], %[[USED]]

// The scale is that of the weight as it begins, whose groups are all (1, -3, 2, 0.5): 8/5.
// SSTE-LABEL: func.func @project(
// SSTE: math.copysign
// SSTE-LABEL: func.func @train_step(
// SSTE: %[[SCALE:.*]] = arith.constant 1.600000e+00 : f32
// SSTE-NOT: mask_decay
// SSTE: linalg.generic
// SSTE: arith.maximumf %out
// SSTE: %[[POSITIVE:.*]] = arith.maximumf
// SSTE: arith.mulf %[[POSITIVE]], %[[SCALE]]
// SSTE: math.copysign
// SSTE: linalg.generic
module {
  hone.param @w : tensor<2x8xf32, #hone.stored<f32, transposed>> = dense<[[1.0, 1.0], [-3.0, -3.0], [2.0, 2.0], [0.5, 0.5], [1.0, 1.0], [-3.0, -3.0], [2.0, 2.0], [0.5, 0.5]]> : tensor<8x2xf32>
  hone.param @gain : tensor<8xf32> = dense<1.0> : tensor<8xf32>
  func.func @forward(%x: tensor<?x8xf32>) -> tensor<?x2xf32> {
    %w = hone.get_param @w : tensor<2x8xf32, #hone.stored<f32, transposed>>
    %y = hone.linear %x, %w : (tensor<?x8xf32>, tensor<2x8xf32, #hone.stored<f32, transposed>>) -> tensor<?x2xf32>
    return %y : tensor<?x2xf32>
  }
  func.func @gradients(%x: tensor<?x8xf32>, %t: tensor<?xi64> {onnx.name = "targets"})
      -> (tensor<f32> {onnx.name = "loss"}, tensor<8x2xf32> {onnx.name = "w.gradient"}, tensor<8xf32> {onnx.name = "gain.gradient"}) {
    %w = hone.get_param @w : tensor<2x8xf32, #hone.stored<f32, transposed>>
    %y = hone.linear %x, %w : (tensor<?x8xf32>, tensor<2x8xf32, #hone.stored<f32, transposed>>) -> tensor<?x2xf32>
    %loss = hone.cross_entropy %y, %t : (tensor<?x2xf32>, tensor<?xi64>) -> tensor<f32>
    %gain = hone.get_param @gain : tensor<8xf32>
    %dw = tensor.empty() : tensor<8x2xf32>
    return %loss, %dw, %gain : tensor<f32>, tensor<8x2xf32>, tensor<8xf32>
  }
}
