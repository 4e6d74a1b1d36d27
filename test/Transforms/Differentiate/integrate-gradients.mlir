// RUN: hone-opt %s --hone-integrate-gradients --canonicalize --cse --mlir-print-local-scope --remarks-filter=hone-integrate-gradients 2> %t.log | FileCheck %s --enable-var-scope
// RUN: FileCheck %s --check-prefix=LOG < %t.log

// LOG: remark: [Passed] IntegratedGradients | Category:hone-integrate-gradients | Remark="the path goes through 1 parameters"

// Both ends have the shape of the file. What has no end stays as it is.
// CHECK: hone.param @w : tensor<8x16xf32> = dense<1.000000e+00> : tensor<8x16xf32>
// CHECK: hone.param @w.path_end : tensor<8x16xf32> = dense<2.000000e+00> : tensor<8x16xf32>
// CHECK: hone.state @path [#hone.slot<"w", tensor<8x16xf32>>]
// CHECK-LABEL: func.func @path_step(
// CHECK-SAME: %[[STATE:.*]]: !hone.kv<@path>, %[[X:.*]]: tensor<?x8xf32>, %[[T:.*]]: tensor<?xi64> {onnx.name = "targets"},
// CHECK-SAME: %[[POSITION:.*]]: tensor<f32> {onnx.name = "position"}, %[[SHARE:.*]]: tensor<f32> {onnx.name = "share"})
// CHECK-SAME: -> (!hone.kv<@path>, tensor<f32> {onnx.name = "loss"}, tensor<f64> {onnx.name = "slope"})
// CHECK: %[[SO_FAR:.*]] = hone.kv_view %[[STATE]][0]
// CHECK-DAG: %[[S:.*]] = tensor.extract %[[POSITION]][] : tensor<f32>
// CHECK-DAG: %[[PART:.*]] = tensor.extract %[[SHARE]][] : tensor<f32>
// CHECK-DAG: %[[W:.*]] = hone.get_param @w : tensor<8x16xf32>
// CHECK-DAG: %[[END:.*]] = hone.get_param @w.path_end : tensor<8x16xf32>

// w + s (e - w)
// CHECK: %[[AT:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[END]]
// CHECK: %[[WHOLE:.*]] = arith.subf
// CHECK: %[[MOVED:.*]] = arith.mulf {{.*}}%[[WHOLE]]
// CHECK: arith.addf %{{.*}}, %[[MOVED]]
// CHECK: linalg.transpose ins(%[[AT]] : tensor<8x16xf32>)
// CHECK: %[[LOSS:.*]] = hone.cross_entropy

// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[END]], %{{.*}} : {{.*}}) outs(%[[SO_FAR]] :
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: %[[NEXT:.*]] = hone.kv_replace %[[STATE]][0], %[[SUM]] {in_place}
// CHECK: %[[SLOPE:.*]] = tensor.from_elements %{{.*}} : tensor<f64>
// CHECK: return %[[NEXT]], %[[LOSS]], %[[SLOPE]]

module {
  hone.param @w : tensor<16x8xf32, #hone.stored<f32, transposed>> = dense<1.0> : tensor<8x16xf32>
  hone.param @w.path_end : tensor<16x8xf32, #hone.stored<f32, transposed>> = dense<2.0> : tensor<8x16xf32>
  hone.param @gain : tensor<8xf32> = dense<1.0> : tensor<8xf32>
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
