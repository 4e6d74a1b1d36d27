func.func @main(%x: tensor<?xf32>, %i: tensor<i64>) -> tensor<f32> {
  %number = tensor.extract %i[] : tensor<i64>
  %place = arith.index_cast %number : i64 to index
  %element = tensor.extract %x[%place] : tensor<?xf32>
  %result = tensor.from_elements %element : tensor<f32>
  return %result : tensor<f32>
}
