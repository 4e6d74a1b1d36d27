// Roundings of activations are set aside, and come back where they were.
//
// RUN: hone-opt %s --hone-defer-roundings | FileCheck %s -enable-var-scope
// RUN: hone-opt %s --hone-defer-roundings --hone-restore-roundings | FileCheck %s -enable-var-scope --check-prefix=BACK

// CHECK-LABEL: @rounded
// CHECK-SAME: attributes {onnx.roundings = 1 : i64}
// CHECK: %[[Y:.*]] = "onnx.Tanh"(%arg0) {onnx.rounding.0 = {codes = i8, {{.*}}}}
// CHECK-NOT: Linear"
// CHECK: "onnx.Exp"(%[[Y]])
// BACK-LABEL: @rounded
// BACK-NOT: onnx.rounding
// BACK: %[[Y:.*]] = "onnx.Tanh"(%arg0) :
// BACK: %[[Q:.*]] = "onnx.QuantizeLinear"(%[[Y]], {{.*}} -> tensor<?x4xi8>
// BACK: %[[DQ:.*]] = "onnx.DequantizeLinear"(%[[Q]], {{.*}} -> tensor<?x4xf32>
// BACK: "onnx.Exp"(%[[DQ]])
func.func @rounded(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %zero = "onnx.Constant"() {value = dense<7> : tensor<i8>} : () -> tensor<i8>
  %0 = "onnx.Tanh"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = "onnx.QuantizeLinear"(%0, %scale, %zero) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<f32>, tensor<i8>) -> tensor<?x4xi8>
  %2 = "onnx.DequantizeLinear"(%1, %scale, %zero) {axis = 1 : i64} : (tensor<?x4xi8>, tensor<f32>, tensor<i8>) -> tensor<?x4xf32>
  %3 = "onnx.Exp"(%2) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %3 : tensor<?x4xf32>
}

// A second rounding of the same elements with the same scale changes nothing.
// BACK-LABEL: @moved
// BACK: "onnx.Tanh"
// BACK: %[[DQ:.*]] = "onnx.DequantizeLinear"
// BACK: %[[T:.*]] = "onnx.Transpose"(%[[DQ]])
// BACK: return %[[T]]
func.func @moved(%x: tensor<?x4xf32>) -> tensor<4x?xf32> {
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %zero = "onnx.Constant"() {value = dense<7> : tensor<i8>} : () -> tensor<i8>
  %0 = "onnx.Tanh"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = "onnx.QuantizeLinear"(%0, %scale, %zero) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<f32>, tensor<i8>) -> tensor<?x4xi8>
  %2 = "onnx.DequantizeLinear"(%1, %scale, %zero) {axis = 1 : i64} : (tensor<?x4xi8>, tensor<f32>, tensor<i8>) -> tensor<?x4xf32>
  %3 = "onnx.Transpose"(%2) {perm = array<i64: 1, 0>} : (tensor<?x4xf32>) -> tensor<4x?xf32>
  %4 = "onnx.QuantizeLinear"(%3, %scale, %zero) {axis = 1 : i64} : (tensor<4x?xf32>, tensor<f32>, tensor<i8>) -> tensor<4x?xi8>
  %5 = "onnx.DequantizeLinear"(%4, %scale, %zero) {axis = 0 : i64} : (tensor<4x?xi8>, tensor<f32>, tensor<i8>) -> tensor<4x?xf32>
  return %5 : tensor<4x?xf32>
}

// Two that follow each other, and a Relu that a quantizer left out since the second one has no codes for less than 0.
// CHECK-LABEL: @without_sign
// CHECK: %[[Y:.*]] = "onnx.MatMul"(%arg0, {{.*}}) {onnx.rounding.0 = {codes = ui8
// CHECK: %[[LIMITED:.*]] = "onnx.Relu"(%[[Y]]) {onnx.rounding.0 = {codes = ui8
// CHECK: return %[[LIMITED]]
// BACK-LABEL: @without_sign
// BACK: "onnx.MatMul"
// BACK: "onnx.DequantizeLinear"
// BACK: "onnx.Relu"
// BACK: "onnx.DequantizeLinear"
func.func @without_sign(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %zero = "onnx.Constant"() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %least = "onnx.Constant"() {value = dense<0> : tensor<ui8>} : () -> tensor<ui8>
  %w = "onnx.Constant"() {value = dense<3.0> : tensor<4x2xf32>} : () -> tensor<4x2xf32>
  %0 = "onnx.MatMul"(%x, %w) : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  %1 = "onnx.QuantizeLinear"(%0, %scale, %zero) {axis = 1 : i64} : (tensor<?x2xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x2xui8>
  %2 = "onnx.DequantizeLinear"(%1, %scale, %zero) {axis = 1 : i64} : (tensor<?x2xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x2xf32>
  %3 = "onnx.QuantizeLinear"(%2, %scale, %least) {axis = 1 : i64} : (tensor<?x2xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x2xui8>
  %4 = "onnx.DequantizeLinear"(%3, %scale, %least) {axis = 1 : i64} : (tensor<?x2xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x2xf32>
  return %4 : tensor<?x2xf32>
}

// Written twice, as onnxruntime does for each reader.
// CHECK-LABEL: @written_twice
// CHECK: %[[Y:.*]] = "onnx.Tanh"
// CHECK-NOT: Linear"
// CHECK: "onnx.Add"(%[[Y]], %[[Y]])
func.func @written_twice(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %zero = "onnx.Constant"() {value = dense<7> : tensor<i8>} : () -> tensor<i8>
  %same = "onnx.Constant"() {value = dense<7> : tensor<i8>} : () -> tensor<i8>
  %0 = "onnx.Tanh"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = "onnx.QuantizeLinear"(%0, %scale, %zero) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<f32>, tensor<i8>) -> tensor<?x4xi8>
  %2 = "onnx.DequantizeLinear"(%1, %scale, %same) {axis = 1 : i64} : (tensor<?x4xi8>, tensor<f32>, tensor<i8>) -> tensor<?x4xf32>
  %3 = "onnx.QuantizeLinear"(%0, %scale, %same) : (tensor<?x4xf32>, tensor<f32>, tensor<i8>) -> tensor<?x4xi8>
  %4 = "onnx.DequantizeLinear"(%3, %scale, %zero) {axis = 1 : i64} : (tensor<?x4xi8>, tensor<f32>, tensor<i8>) -> tensor<?x4xf32>
  %5 = "onnx.Add"(%2, %4) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %5 : tensor<?x4xf32>
}

// A weight, an input, and what something else reads as it is are rounded where they are.
// CHECK-LABEL: @kept
// CHECK-COUNT-3: onnx.DequantizeLinear
// CHECK-LABEL: @read_elsewhere
// CHECK: onnx.DequantizeLinear
func.func @kept(%x: tensor<?x4xf32>, %s: tensor<f32>) -> (tensor<?x4xf32>, tensor<4x2xf32>, tensor<?x4xf32>) {
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %zero = "onnx.Constant"() {value = dense<7> : tensor<i8>} : () -> tensor<i8>
  %w = "onnx.Constant"() {value = dense<3.0> : tensor<4x2xf32>} : () -> tensor<4x2xf32>
  %0 = "onnx.QuantizeLinear"(%x, %scale, %zero) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<f32>, tensor<i8>) -> tensor<?x4xi8>
  %1 = "onnx.DequantizeLinear"(%0, %scale, %zero) {axis = 1 : i64} : (tensor<?x4xi8>, tensor<f32>, tensor<i8>) -> tensor<?x4xf32>
  %2 = "onnx.QuantizeLinear"(%w, %scale, %zero) {axis = 1 : i64} : (tensor<4x2xf32>, tensor<f32>, tensor<i8>) -> tensor<4x2xi8>
  %3 = "onnx.DequantizeLinear"(%2, %scale, %zero) {axis = 1 : i64} : (tensor<4x2xi8>, tensor<f32>, tensor<i8>) -> tensor<4x2xf32>
  %4 = "onnx.Tanh"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %5 = "onnx.QuantizeLinear"(%4, %s, %zero) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<f32>, tensor<i8>) -> tensor<?x4xi8>
  %6 = "onnx.DequantizeLinear"(%5, %s, %zero) {axis = 1 : i64} : (tensor<?x4xi8>, tensor<f32>, tensor<i8>) -> tensor<?x4xf32>
  return %1, %3, %6 : tensor<?x4xf32>, tensor<4x2xf32>, tensor<?x4xf32>
}
func.func @read_elsewhere(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %zero = "onnx.Constant"() {value = dense<7> : tensor<i8>} : () -> tensor<i8>
  %0 = "onnx.Tanh"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = "onnx.QuantizeLinear"(%0, %scale, %zero) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<f32>, tensor<i8>) -> tensor<?x4xi8>
  %2 = "onnx.DequantizeLinear"(%1, %scale, %zero) {axis = 1 : i64} : (tensor<?x4xi8>, tensor<f32>, tensor<i8>) -> tensor<?x4xf32>
  return %0, %2 : tensor<?x4xf32>, tensor<?x4xf32>
}

// Codes of another type are another rounding, which follows the first.
// CHECK-LABEL: @of_other_types
// CHECK: %[[Y:.*]] = "onnx.Tanh"(%arg0) {onnx.rounding.0 = {codes = i8
// CHECK: "onnx.Identity"(%[[Y]]) {onnx.rounding.0 = {codes = ui8
func.func @of_other_types(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %zero = "onnx.Constant"() {value = dense<7> : tensor<i8>} : () -> tensor<i8>
  %other = "onnx.Constant"() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %0 = "onnx.Tanh"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = "onnx.QuantizeLinear"(%0, %scale, %zero) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<f32>, tensor<i8>) -> tensor<?x4xi8>
  %2 = "onnx.DequantizeLinear"(%1, %scale, %zero) {axis = 1 : i64} : (tensor<?x4xi8>, tensor<f32>, tensor<i8>) -> tensor<?x4xf32>
  %3 = "onnx.QuantizeLinear"(%2, %scale, %other) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x4xui8>
  %4 = "onnx.DequantizeLinear"(%3, %scale, %other) {axis = 1 : i64} : (tensor<?x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x4xf32>
  return %4 : tensor<?x4xf32>
}
