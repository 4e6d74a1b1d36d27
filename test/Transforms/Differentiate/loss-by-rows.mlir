// RUN: hone-opt %s --split-input-file '--hone-differentiate=loss=cross-entropy most-logits=64' --canonicalize --cse --mlir-print-local-scope | FileCheck %s --enable-var-scope
// RUN: hone-opt %s --split-input-file '--hone-differentiate=loss=cross-entropy' --canonicalize --cse | FileCheck %s --check-prefix=WHOLE

// Chunks of at most four rows: logits, their loss, the gradient of the logits in their place, and what that adds to the gradients of the
// rows and of the weight. No tensor has all logits.

// CHECK-LABEL: func.func @gradients(
// CHECK-SAME: %[[IDS:.*]]: tensor<?x?xi64>
// CHECK-NOT: tensor<?x?x16xf32>
// CHECK: %[[X:.*]] = hone.embedding
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[X]]
// CHECK: %[[LOOP:.*]]:3 = scf.for {{.*}} iter_args(%[[DX:.*]] = %{{.*}}, %[[DW:.*]] = %{{.*}}, %[[SUM:.*]] = %{{.*}}) -> (tensor<?x8xf32>, tensor<16x8xf32>, f32) {
// CHECK: %[[SOME:.*]] = tensor.extract_slice %[[ROWS]][
// CHECK: %[[LOGITS:.*]] = hone.linear %[[SOME]]
// CHECK: hone.cross_entropy %[[LOGITS]]
// CHECK-NOT: hone.linear
// CHECK: %[[G:.*]] = linalg.generic {{.*}} outs(%[[LOGITS]] : tensor<?x16xf32>)
// CHECK: hone.matmul %[[G]], %{{.*}} : (tensor<?x16xf32>, tensor<16x8xf32>) -> tensor<?x8xf32>
// CHECK: %[[NEXT:.*]] = hone.matmul %{{.*}}, %[[SOME]] addend(%[[DW]])
// CHECK: tensor.insert_slice %{{.*}} into %[[DX]]
// CHECK: scf.yield %{{.*}}, %[[NEXT]], %{{.*}} : tensor<?x8xf32>, tensor<16x8xf32>, f32
// CHECK: %[[LOSS:.*]] = tensor.from_elements %[[LOOP]]#2
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[LOOP]]#1)
// CHECK: return %[[LOSS]]

// WHOLE-LABEL: func.func @gradients(
// WHOLE: hone.cross_entropy %{{.*}} : (tensor<?x?x16xf32>, tensor<?x?xi64>)
module {
  hone.param @table : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>
  func.func @main(%ids: tensor<?x?xi64>) -> (tensor<?x?x16xf32> {onnx.name = "logits"}) {
    %table = hone.get_param @table : tensor<16x8xf32>
    %x = hone.embedding %ids, %table : (tensor<?x?xi64>, tensor<16x8xf32>) -> tensor<?x?x8xf32>
    %y = hone.linear %x, %table : (tensor<?x?x8xf32>, tensor<16x8xf32>) -> tensor<?x?x16xf32>
    return %y : tensor<?x?x16xf32>
  }
}

// -----

// The gradient of a weight that the file has as [inputs, outputs] is summed up in that order, and elementwise operations after the layer,
// such as a cap, go into the loop.

// CHECK-LABEL: func.func @gradients(
// CHECK-SAME: tensor<8x16xf32> {onnx.name = "w.gradient"}
// CHECK: %[[LOOP:.*]]:{{[0-9]+}} = scf.for {{.*}} iter_args(%[[DW:.*]] = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<8x16xf32>, f32) {
// CHECK: %[[SOME:.*]] = tensor.extract_slice {{.*}} : tensor<?x8xf32> to tensor<?x8xf32>
// CHECK: %[[LOGITS:.*]] = hone.matmul %[[SOME]], %{{.*}} : (tensor<?x8xf32>, tensor<8x16xf32>) -> tensor<?x16xf32>
// CHECK: math.tanh
// CHECK: hone.cross_entropy
// CHECK: %[[NEXT:.*]] = hone.matmul %{{.*}}, %{{.*}} addend(%[[DW]]) : (tensor<8x?xf32>, tensor<?x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
// CHECK: scf.yield %[[NEXT]]
// CHECK: return %{{.*}}, %[[LOOP]]#0
module {
  hone.param @w : tensor<16x8xf32, #hone.stored<f32, transposed>> = dense<1.0> : tensor<8x16xf32>
  func.func @main(%x: tensor<?x?x8xf32>) -> (tensor<?x?x16xf32> {onnx.name = "logits"}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %w = hone.get_param @w : tensor<16x8xf32, #hone.stored<f32, transposed>>
    %y = hone.linear %x, %w : (tensor<?x?x8xf32>, tensor<16x8xf32, #hone.stored<f32, transposed>>) -> tensor<?x?x16xf32>
    %b = tensor.dim %x, %c0 : tensor<?x?x8xf32>
    %s = tensor.dim %x, %c1 : tensor<?x?x8xf32>
    %e = tensor.empty(%b, %s) : tensor<?x?x16xf32>
    %capped = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
        iterator_types = ["parallel", "parallel", "parallel"]} ins(%y : tensor<?x?x16xf32>) outs(%e : tensor<?x?x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %t = math.tanh %in : f32
      linalg.yield %t : f32
    } -> tensor<?x?x16xf32>
    return %capped : tensor<?x?x16xf32>
  }
}

// -----

// An operation after the layer that is not the same for all rows: the loss is of all logits.

// CHECK-LABEL: func.func @gradients(
// CHECK-NOT: scf.for
// CHECK: hone.cross_entropy %{{.*}} : (tensor<?x16xf32>, tensor<?xi64>)
module {
  hone.param @w : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>
  func.func @main(%x: tensor<?x8xf32>) -> (tensor<?x16xf32> {onnx.name = "logits"}) {
    %w = hone.get_param @w : tensor<16x8xf32>
    %y = hone.linear %x, %w : (tensor<?x8xf32>, tensor<16x8xf32>) -> tensor<?x16xf32>
    %c0 = arith.constant 0 : index
    %n = tensor.dim %x, %c0 : tensor<?x8xf32>
    %e = tensor.empty(%n) : tensor<?x16xf32>
    %other = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
        iterator_types = ["parallel", "parallel"]} ins(%y : tensor<?x16xf32>) outs(%e : tensor<?x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %place = linalg.index 0 : index
      %isFirst = arith.cmpi eq, %place, %c0 : index
      %square = arith.mulf %in, %in : f32
      %t = arith.select %isFirst, %square, %in : f32
      linalg.yield %t : f32
    } -> tensor<?x16xf32>
    return %other : tensor<?x16xf32>
  }
}
