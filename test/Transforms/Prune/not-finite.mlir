// An element that is no number, or infinite, is an error that names it.
// RUN: not hone-opt %s -hone-prune-nm -split-input-file 2>&1 | FileCheck %s

// CHECK: error: expected the elements of weight to be finite, but element [1, 2] is nan
hone.param @weight : tensor<2x4xf32> = dense<[[1.0, 9.0, 2.0, 0.5], [1.0, 2.0, 0x7FC00000, 3.0]]> : tensor<2x4xf32>
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %weight = hone.get_param @weight : tensor<2x4xf32>
  %0 = hone.linear %x, %weight : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  %1 = math.absf %0 : tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}

// -----

// CHECK: error: expected the elements of weight to be finite, but element [0, 3] is -inf
hone.param @weight : tensor<2x4xf32, #hone.stored<f16>> = dense<[[1.0, 9.0, 2.0, 0xFC00], [1.0, 2.0, 2.0, 3.0]]> : tensor<2x4xf16>
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %weight = hone.get_param @weight : tensor<2x4xf32, #hone.stored<f16>>
  %0 = hone.linear %x, %weight : (tensor<?x4xf32>, tensor<2x4xf32, #hone.stored<f16>>) -> tensor<?x2xf32>
  %1 = math.absf %0 : tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}

// -----

// CHECK: error: expected the bytes of a parameter of type 'tensor<2x4xf32>' to be 32, but got 8
hone.param @weight : tensor<2x4xf32> = dense_resource<short> : tensor<2x4xf32>
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %weight = hone.get_param @weight : tensor<2x4xf32>
  %0 = hone.linear %x, %weight : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  %1 = math.absf %0 : tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}
{-#
  dialect_resources: {
    builtin: {
      short: "0x040000000000803F00004040"
    }
  }
#-}
