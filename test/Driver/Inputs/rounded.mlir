// Two products with a Relu between them, whose result is rounded.
hone.param @up : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>
hone.param @down : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %zero = "onnx.Constant"() {value = dense<7> : tensor<i8>} : () -> tensor<i8>
  %up = hone.get_param @up : tensor<4x8xf32>
  %down = hone.get_param @down : tensor<8x4xf32>
  %0 = "onnx.MatMul"(%x, %up) : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %1 = "onnx.Relu"(%0) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %2 = "onnx.QuantizeLinear"(%1, %scale, %zero) {axis = 1 : i64} : (tensor<2x8xf32>, tensor<f32>, tensor<i8>) -> tensor<2x8xi8>
  %3 = "onnx.DequantizeLinear"(%2, %scale, %zero) {axis = 1 : i64} : (tensor<2x8xi8>, tensor<f32>, tensor<i8>) -> tensor<2x8xf32>
  %4 = "onnx.MatMul"(%3, %down) : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  return %4 : tensor<2x4xf32>
}
