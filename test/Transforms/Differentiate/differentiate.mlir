// RUN: hone-opt %s --hone-differentiate --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s --enable-var-scope
// RUN: hone-opt %s --hone-differentiate --split-input-file --remarks-filter=hone-differentiate 2>&1 | FileCheck %s --check-prefix=REMARK

// The weight gets the transposed gradients times the inputs, in the order that the file has it in; the bias their sum. What is not asked for, the
// gradient of the input, is not computed. @main stays.

// REMARK: [Passed] Differentiated {{.*}}"1 operations have adjoints, for the gradients of 2 parameters and inputs"
// CHECK-LABEL: func.func @main(
// CHECK: hone.linear
// CHECK-LABEL: func.func @gradients(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32> {onnx.dims = ["rows", ""], onnx.name = "x"}, %[[DY:.*]]: tensor<?x8xf32> {onnx.name = "y.gradient"})
// CHECK-SAME: -> (tensor<4x8xf32> {onnx.name = "w.gradient"}, tensor<8xf32> {onnx.name = "b.gradient"})
// CHECK-NOT: hone.linear
// The product is where the adjoint is, and not at the end, as a transposed gradient is read there.
// CHECK: %[[ROWS:.*]] = linalg.transpose ins(%[[X]] : tensor<?x4xf32>)
// CHECK: %[[DW:.*]] = hone.matmul %[[ROWS]], %[[DY]] : (tensor<4x?xf32>, tensor<?x8xf32>) -> tensor<4x8xf32>
// CHECK: %[[DB:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%[[DY]] : tensor<?x8xf32>)
// CHECK: return %[[DW]], %[[DB]] : tensor<4x8xf32>, tensor<8xf32>
module {
  hone.param @w : tensor<8x4xf32, #hone.stored<f32, transposed>> = dense<1.0> : tensor<4x8xf32>
  hone.param @b : tensor<8xf32> = dense<1.0> : tensor<8xf32>
  func.func @main(%x: tensor<?x4xf32> {onnx.name = "x", onnx.dims = ["rows", ""]}) -> (tensor<?x8xf32> {onnx.name = "y"}) {
    %w = hone.get_param @w : tensor<8x4xf32, #hone.stored<f32, transposed>>
    %b = hone.get_param @b : tensor<8xf32>
    %y = hone.linear %x, %w bias(%b) : (tensor<?x4xf32>, tensor<8x4xf32, #hone.stored<f32, transposed>>, tensor<8xf32>) -> tensor<?x8xf32>
    return %y : tensor<?x8xf32>
  }
}

// -----

// A decoder: without its state, and with the lse of its attention, of which the gradients of queries, keys and values follow.

// REMARK: [Passed] Differentiated {{.*}}"2 operations have adjoints, for the gradients of 1 parameters and inputs"
// CHECK-LABEL: func.func @gradients(
// CHECK-SAME: %[[Q:.*]]: tensor<?x4x?x8xf32>, %[[K:.*]]: tensor<?x2x?x8xf32>, %[[DY:.*]]: tensor<?x4x?x8xf32> {onnx.name = "output0.gradient"})
// CHECK-NOT: !hone.kv
// CHECK: %[[KEYS:.*]] = hone.rms_norm %[[K]]
// CHECK: %[[Y:.*]], %[[LSE:.*]] = hone.attention %[[Q]], %[[KEYS]], %[[K]] pattern(#hone.causal)
// CHECK: %[[SUBTRACTED:.*]] = linalg.generic {{.*}} ins(%[[DY]], %[[Y]]
// CHECK: hone.attention_gradient %[[Q]], %[[KEYS]], %[[K]], %[[LSE]], %[[SUBTRACTED]], %[[DY]] pattern(#hone.causal)
// CHECK-NOT: math.exp
// CHECK: math.sqrt
// CHECK: return %{{.*}} : tensor<8xf32>
module {
  hone.state @kv [#hone.slot<"key", tensor<?x2x?x8xf32>, axis = 2>, #hone.slot<"value", tensor<?x2x?x8xf32>, axis = 2>]
  hone.param @w : tensor<8xf32> = dense<1.0> : tensor<8xf32>
  func.func @forward(%q: tensor<?x4x?x8xf32>, %k: tensor<?x2x?x8xf32>, %state: !hone.kv<@kv>) -> (tensor<?x4x?x8xf32>, !hone.kv<@kv>) {
    %w = hone.get_param @w : tensor<8xf32>
    %n = hone.rms_norm %k, %w epsilon(1.0e-6) : (tensor<?x2x?x8xf32>, tensor<8xf32>) -> tensor<?x2x?x8xf32>
    %s0, %keys = hone.kv_append %state[0], %n : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>
    %s1, %values = hone.kv_append %s0[1], %k : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>
    %y = hone.attention %q, %keys, %values pattern(#hone.causal) scale(0.5)
       : (tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x4x?x8xf32>
    return %y, %s1 : tensor<?x4x?x8xf32>, !hone.kv<@kv>
  }
}

// -----

// A loop nest: its body once more, with derivatives, over the same loops. What the operand does not have is summed over.

// CHECK-LABEL: func.func @gradients(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf64>, %[[DY:.*]]: tensor<?x4xf64>
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
// CHECK-SAME: ins(%[[X]], %{{.*}}, %[[DY]] : tensor<?x4xf64>, tensor<4xf64>, tensor<?x4xf64>)
// CHECK: %[[PRODUCT:.*]] = arith.mulf
// CHECK: %[[EXP:.*]] = math.exp %[[PRODUCT]]
// CHECK: %[[SLOPE:.*]] = arith.mulf %{{.*}}, %[[EXP]]
// CHECK: %[[PART:.*]] = arith.mulf %[[SLOPE]], %{{.*}}
// CHECK: arith.addf %{{.*}}, %[[PART]]
module {
  hone.param @w : tensor<4xf64> = dense<1.0> : tensor<4xf64>
  func.func @main(%x: tensor<?x4xf64>) -> tensor<?x4xf64> {
    %c0 = arith.constant 0 : index
    %w = hone.get_param @w : tensor<4xf64>
    %rows = tensor.dim %x, %c0 : tensor<?x4xf64>
    %empty = tensor.empty(%rows) : tensor<?x4xf64>
    %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%x, %w : tensor<?x4xf64>, tensor<4xf64>) outs(%empty : tensor<?x4xf64>) {
    ^bb0(%a: f64, %b: f64, %out: f64):
      %p = arith.mulf %a, %b : f64
      %e = math.exp %p : f64
      linalg.yield %e : f64
    } -> tensor<?x4xf64>
    return %y : tensor<?x4xf64>
  }
}

// -----

// Operands with an element for each step share a nest, and what their gradients have in common.

// CHECK-LABEL: func.func @gradients(
// CHECK: %[[BOTH:.*]]:2 = linalg.generic
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: linalg.yield
// CHECK: return %[[BOTH]]#0, %[[BOTH]]#1 : tensor<4xf32>, tensor<4xf32>
module {
  hone.param @gate : tensor<4xf32> = dense<1.0> : tensor<4xf32>
  hone.param @up : tensor<4xf32> = dense<1.0> : tensor<4xf32>
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %gate = hone.get_param @gate : tensor<4xf32>
    %up = hone.get_param @up : tensor<4xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%gate, %up : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) {
    ^bb0(%g: f32, %u: f32, %old: f32):
      %e = math.exp %g : f32
      %p = arith.mulf %e, %u : f32
      linalg.yield %p : f32
    } -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
