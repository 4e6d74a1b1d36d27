// RUN: hone-opt %s --split-input-file --hone-convert-onnx-to-linalg --canonicalize --cse | FileCheck %s --enable-var-scope

// What takes elements from computed places has a table of indices for each dimension in which they move, and none for the others.

// CHECK-DAG: #[[$W:.*]] = affine_map<(d0, d1, d2, d3) -> (d3)>
// CHECK-DAG: #[[$FIRST:.*]] = affine_map<(d0, d1, d2, d3) -> (0, d3)>
// CHECK-DAG: #[[$SECOND:.*]] = affine_map<(d0, d1, d2, d3) -> (1, d3)>
// CHECK-DAG: #[[$ALL:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

module attributes {onnx.opsets = {ai.onnx = 18 : i64}} {

// CHECK-LABEL: func.func @nearest
// CHECK: %[[TABLE:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<16xindex>)
// CHECK: linalg.generic {indexing_maps = [#[[$W]], #[[$ALL]]]{{.*}} ins(%[[TABLE]] : tensor<16xindex>)
// CHECK: ^bb0(%[[AT:.*]]: index, %{{.*}}: f32):
// CHECK: tensor.extract %arg0[%{{.*}}, %{{.*}}, %{{.*}}, %[[AT]]]
func.func @nearest(%x: tensor<?x3x8x8xf32>) -> tensor<?x3x8x16xf32> {
  %none = "onnx.NoValue"() : () -> none
  %scales = "onnx.Constant"() {value = dense<[1.0, 1.0, 1.0, 2.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = "onnx.Resize"(%x, %none, %scales) {mode = "nearest"} : (tensor<?x3x8x8xf32>, none, tensor<4xf32>) -> tensor<?x3x8x16xf32>
  return %0 : tensor<?x3x8x16xf32>
}

// Both neighbours are added up in one body; dimensions that keep their size, the open one too, are not interpolated.
// CHECK-LABEL: func.func @linear
// CHECK: linalg.generic {indexing_maps = [#[[$FIRST]], #[[$FIRST]], #[[$SECOND]], #[[$SECOND]], #[[$ALL]]]
// CHECK-COUNT-2: tensor.extract %arg0
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @linear(%x: tensor<?x3x8x8xf32>) -> tensor<?x3x8x16xf32> {
  %none = "onnx.NoValue"() : () -> none
  %scales = "onnx.Constant"() {value = dense<[1.0, 1.0, 1.0, 2.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = "onnx.Resize"(%x, %none, %scales) {mode = "linear"} : (tensor<?x3x8x8xf32>, none, tensor<4xf32>) -> tensor<?x3x8x16xf32>
  return %0 : tensor<?x3x8x16xf32>
}

// CHECK-LABEL: func.func @edge
// CHECK: %[[TABLE:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<11xindex>)
// CHECK: linalg.generic {indexing_maps = [#[[$W]], #[[$ALL]]]{{.*}} ins(%[[TABLE]] : tensor<11xindex>)
// CHECK-NOT: linalg.generic
func.func @edge(%x: tensor<?x3x8x8xf32>) -> tensor<?x3x8x11xf32> {
  %pads = "onnx.Constant"() {value = dense<[0, 0, 0, 1, 0, 0, 0, 2]> : tensor<8xi64>} : () -> tensor<8xi64>
  %0 = "onnx.Pad"(%x, %pads) {mode = "edge"} : (tensor<?x3x8x8xf32>, tensor<8xi64>) -> tensor<?x3x8x11xf32>
  return %0 : tensor<?x3x8x11xf32>
}

}

// -----

module attributes {onnx.opsets = {ai.onnx = 11 : i64}} {
// Rows of the last axis are those of the matrix that older opsets mean: no reshape.
// CHECK-LABEL: func.func @last_axis
// CHECK-NOT: tensor.reshape
// CHECK-NOT: tensor.collapse_shape
// CHECK: return
func.func @last_axis(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %0 = "onnx.Softmax"(%x) {axis = 2 : i64} : (tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}
}
