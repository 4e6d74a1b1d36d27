// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @convolution_c1_rank(%x: tensor<1x4xf32>, %w: tensor<6x4xf32>) {
  // expected-error @below {{expected the dimensions of x to be at least 3, but got 2}}
  hone.convolution %x, %w kernel [] strides [] dilations [] low [] groups 1 : (tensor<1x4xf32>, tensor<6x4xf32>) -> tensor<1x6xf32>
  return
}

// -----

func.func @convolution_c1_result(%x: tensor<1x4x9xf32>, %w: tensor<6x4xf32>) {
  // expected-error @below {{expected the result to have 3 dimensions, but got 4}}
  hone.convolution %x, %w kernel [1] strides [1] dilations [1] low [0] groups 1 : (tensor<1x4x9xf32>, tensor<6x4xf32>) -> tensor<1x6x9x1xf32>
  return
}

// -----

func.func @convolution_c1_numbers(%x: tensor<1x4x9xf32>, %w: tensor<6x4xf32>) {
  // expected-error @below {{expected 1 numbers in 'low', but got 2}}
  hone.convolution %x, %w kernel [1] strides [1] dilations [1] low [0, 0] groups 1 : (tensor<1x4x9xf32>, tensor<6x4xf32>) -> tensor<1x6x9xf32>
  return
}

// -----

func.func @convolution_c2_stride(%x: tensor<1x4x9xf32>, %w: tensor<6x4xf32>) {
  // expected-error @below {{expected the numbers of 'strides' to be positive, but got 0}}
  hone.convolution %x, %w kernel [1] strides [0] dilations [1] low [0] groups 1 : (tensor<1x4x9xf32>, tensor<6x4xf32>) -> tensor<1x6x9xf32>
  return
}

// -----

func.func @convolution_c2_groups(%x: tensor<1x4x9xf32>, %w: tensor<6x4xf32>) {
  // expected-error @below {{expected 'groups' to be positive, but got 0}}
  hone.convolution %x, %w kernel [1] strides [1] dilations [1] low [0] groups 0 : (tensor<1x4x9xf32>, tensor<6x4xf32>) -> tensor<1x6x9xf32>
  return
}

// -----

func.func @convolution_c3_columns(%x: tensor<1x4x9xf32>, %w: tensor<6x9xf32>) {
  // expected-error @below {{expected the columns of the weight to be the 4 channels of x over 2 groups, times the kernel's 3 elements, but got 9}}
  hone.convolution %x, %w kernel [3] strides [1] dilations [1] low [0] groups 2 : (tensor<1x4x9xf32>, tensor<6x9xf32>) -> tensor<1x6x7xf32>
  return
}

// -----

func.func @convolution_c3_known(%x: tensor<1x4x9xf32>, %w: tensor<?x12xf32>) {
  // expected-error @below {{expected the sizes of the weight to be known, but got [?x12]}}
  hone.convolution %x, %w kernel [3] strides [1] dilations [1] low [0] groups 1 : (tensor<1x4x9xf32>, tensor<?x12xf32>) -> tensor<1x?x7xf32>
  return
}

// -----

func.func @convolution_c3_kernel(%x: tensor<1x?x9xf32>, %w: tensor<6x4xf32>) {
  // expected-error @below {{expected the columns of the weight to be a multiple of the kernel's 3 elements, but got 4}}
  hone.convolution %x, %w kernel [3] strides [1] dilations [1] low [0] groups 1 : (tensor<1x?x9xf32>, tensor<6x4xf32>) -> tensor<1x6x7xf32>
  return
}

// -----

func.func @convolution_c4_groups(%x: tensor<1x4x9xf32>, %w: tensor<5x6xf32>) {
  // expected-error @below {{expected the rows of the weight to be a multiple of 2 groups, but got 5}}
  hone.convolution %x, %w kernel [3] strides [1] dilations [1] low [0] groups 2 : (tensor<1x4x9xf32>, tensor<5x6xf32>) -> tensor<1x5x7xf32>
  return
}

// -----

func.func @convolution_c4_bias(%x: tensor<1x4x9xf32>, %w: tensor<6x12xf32>, %b: tensor<5xf32>) {
  // expected-error @below {{expected the size of bias to be 6, but got 5}}
  hone.convolution %x, %w bias(%b) kernel [3] strides [1] dilations [1] low [0] groups 1
      : (tensor<1x4x9xf32>, tensor<6x12xf32>, tensor<5xf32>) -> tensor<1x6x7xf32>
  return
}

// -----

func.func @convolution_c5_sizes(%x: tensor<1x4x9xf32>, %w: tensor<6x12xf32>) {
  // expected-error @below {{expected 1 sizes of the result, but got 0}}
  hone.convolution %x, %w kernel [3] strides [1] dilations [1] low [0] groups 1 : (tensor<1x4x9xf32>, tensor<6x12xf32>) -> tensor<1x6x?xf32>
  return
}
