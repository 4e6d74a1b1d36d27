// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @pool_c1_numbers(%x: tensor<1x4x9xf32>) {
  // expected-error @below {{expected 1 numbers in 'strides', but got 0}}
  hone.pool max %x kernel [3] strides [] dilations [1] low [0] : (tensor<1x4x9xf32>) -> tensor<1x4x7xf32>
  return
}

// -----

func.func @pool_c2_kernel(%x: tensor<1x4x9xf32>) {
  // expected-error @below {{expected the numbers of 'kernel' to be positive, but got -3}}
  hone.pool sum %x kernel [-3] strides [1] dilations [1] low [0] : (tensor<1x4x9xf32>) -> tensor<1x4x7xf32>
  return
}

// -----

func.func @pool_c3_channels(%x: tensor<1x4x9xf32>) {
  // expected-error @below {{expected the channels of the result to be 4, but got 3}}
  hone.pool max %x kernel [3] strides [1] dilations [1] low [0] : (tensor<1x4x9xf32>) -> tensor<1x3x7xf32>
  return
}

// -----

func.func @pool_c3_batch(%x: tensor<2x4x9xf32>) {
  // expected-error @below {{expected the batch of the result to be 2, but got 1}}
  hone.pool max %x kernel [3] strides [1] dilations [1] low [0] : (tensor<2x4x9xf32>) -> tensor<1x4x7xf32>
  return
}

// -----

func.func @pool_c4_sizes(%x: tensor<1x4x9xf32>, %n: index) {
  // expected-error @below {{expected 0 sizes of the result, but got 1}}
  hone.pool max %x sizes(%n) kernel [3] strides [1] dilations [1] low [0] : (tensor<1x4x9xf32>, index) -> tensor<1x4x7xf32>
  return
}
