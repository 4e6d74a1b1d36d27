// RUN: hone-opt %s --hone-raise-embedding | FileCheck %s

hone.param @table : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>
hone.param @narrow : tensor<16x2xf32> = dense<1.0> : tensor<16x2xf32>

// CHECK-LABEL: @rows
// CHECK: hone.embedding %arg0, %{{.*}} : (tensor<?x?xi64>, tensor<16x8xf32>) -> tensor<?x?x8xf32>
func.func @rows(%ids: tensor<?x?xi64>) -> tensor<?x?x8xf32> {
  %t = hone.get_param @table : tensor<16x8xf32>
  %0 = "onnx.Gather"(%t, %ids) : (tensor<16x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

// Columns, few elements, and a table that is no parameter are not raised.
// CHECK-LABEL: @not_rows
// CHECK-COUNT-3: onnx.Gather
func.func @not_rows(%ids: tensor<?xi64>, %x: tensor<16x8xf32>) -> (tensor<16x?xf32>, tensor<?x2xf32>, tensor<?x8xf32>) {
  %t = hone.get_param @table : tensor<16x8xf32>
  %n = hone.get_param @narrow : tensor<16x2xf32>
  %0 = "onnx.Gather"(%t, %ids) {axis = 1 : i64} : (tensor<16x8xf32>, tensor<?xi64>) -> tensor<16x?xf32>
  %1 = "onnx.Gather"(%n, %ids) : (tensor<16x2xf32>, tensor<?xi64>) -> tensor<?x2xf32>
  %2 = "onnx.Gather"(%x, %ids) : (tensor<16x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  return %0, %1, %2 : tensor<16x?xf32>, tensor<?x2xf32>, tensor<?x8xf32>
}

// A table that the file keeps as columns is read as it lies, under its own name.
hone.param @columns : tensor<8x16xf32> = dense<1.0> : tensor<8x16xf32>

// CHECK-LABEL: @rows_of_columns
// CHECK: %[[TABLE:.*]] = hone.get_param @columns : tensor<16x8xf32, #hone.stored<f32, transposed>>
// CHECK: hone.embedding %arg0, %[[TABLE]]
// CHECK-NOT: onnx.Transpose
func.func @rows_of_columns(%ids: tensor<?xi64>) -> tensor<?x8xf32> {
  %t = hone.get_param @columns : tensor<8x16xf32>
  %r = "onnx.Transpose"(%t) {perm = array<i64: 1, 0>} : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %0 = "onnx.Gather"(%r, %ids) : (tensor<16x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// A product reads the same parameter.
// CHECK-LABEL: @tied
// CHECK: %[[TIED:.*]] = hone.get_param @tied_weight : tensor<16x8xf32, #hone.stored<f32, transposed>>
// CHECK: hone.embedding %arg0, %[[TIED]]
hone.param @tied_weight : tensor<8x16xf32> = dense<2.0> : tensor<8x16xf32>
hone.param @tied_weight.linear : tensor<16x8xf32, #hone.stored<f32, transposed>> = dense<2.0> : tensor<8x16xf32>

func.func @tied(%ids: tensor<?xi64>) -> (tensor<?x8xf32>, tensor<16x8xf32, #hone.stored<f32, transposed>>) {
  %t = hone.get_param @tied_weight : tensor<8x16xf32>
  %r = "onnx.Transpose"(%t) {perm = array<i64: 1, 0>} : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %0 = "onnx.Gather"(%r, %ids) : (tensor<16x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  %w = hone.get_param @tied_weight.linear : tensor<16x8xf32, #hone.stored<f32, transposed>>
  return %0, %w : tensor<?x8xf32>, tensor<16x8xf32, #hone.stored<f32, transposed>>
}

// Codes of a table are dequantized row by row as they are read, in 16 bits after a cast as well.
hone.param @codes : tensor<16x8xi8> = dense<3> : tensor<16x8xi8>
hone.param @scales : tensor<16xf32> = dense<0.5> : tensor<16xf32>

// CHECK-LABEL: @dequantized
// CHECK: %[[CODES:.*]] = hone.get_param @{{.*}} : tensor<16x8xf16, #hone.affine<bits = 8, isSigned = true>>
// CHECK: hone.embedding %arg0, %[[CODES]]
// CHECK-NOT: onnx.DequantizeLinear
func.func @dequantized(%ids: tensor<?xi64>) -> tensor<?x8xf16> {
  %t = hone.get_param @codes : tensor<16x8xi8>
  %s = hone.get_param @scales : tensor<16xf32>
  %d = "onnx.DequantizeLinear"(%t, %s) {axis = 0 : i64} : (tensor<16x8xi8>, tensor<16xf32>) -> tensor<16x8xf32>
  %h = "onnx.Cast"(%d) {to = 10 : i64} : (tensor<16x8xf32>) -> tensor<16x8xf16>
  %0 = "onnx.Gather"(%h, %ids) : (tensor<16x8xf16>, tensor<?xi64>) -> tensor<?x8xf16>
  return %0 : tensor<?x8xf16>
}

hone.param @scaled_codes : tensor<16x8xi8> = dense<3> : tensor<16x8xi8>
hone.param @column : tensor<16x1xf32> = dense<0.5> : tensor<16x1xf32>

// The same as a cast and a product with a scale for each row.
// CHECK-LABEL: @scaled
// CHECK: hone.embedding %arg0, %{{.*}} : (tensor<?xi64>, tensor<16x8xf32, #hone.affine<bits = 8, isSigned = true>>)
// CHECK-NOT: onnx.Mul
func.func @scaled(%ids: tensor<?xi64>) -> tensor<?x8xf32> {
  %t = hone.get_param @scaled_codes : tensor<16x8xi8>
  %s = hone.get_param @column : tensor<16x1xf32>
  %floats = "onnx.Cast"(%t) {to = 1 : i64} : (tensor<16x8xi8>) -> tensor<16x8xf32>
  %d = "onnx.Mul"(%floats, %s) : (tensor<16x8xf32>, tensor<16x1xf32>) -> tensor<16x8xf32>
  %0 = "onnx.Gather"(%d, %ids) : (tensor<16x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
