// RUN: not hone-opt %s -hone-narrow-scales 2>&1 | FileCheck %s

// CHECK: error: cannot open no-such-file.bin: No such file or directory
hone.param @gone : tensor<4x4xf32, #hone.affine<bits = 8>>
  = {values = dense<1> : tensor<4x4xi8>, scales = #hone.external<"no-such-file.bin", 0, 16>}
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %gone = hone.get_param @gone : tensor<4x4xf32, #hone.affine<bits = 8>>
  %0 = hone.linear %x, %gone : (tensor<?x4xf32>, tensor<4x4xf32, #hone.affine<bits = 8>>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
