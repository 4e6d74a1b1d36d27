// RUN: hone-opt %s | hone-opt | FileCheck %s

hone.param @w : tensor<4x2xf32, #hone.stored<bf16>> = dense<1.0> : tensor<4x2xbf16>

// CHECK-LABEL: @get
func.func @get() -> tensor<4x2xf32, #hone.stored<bf16>> {
  // CHECK: hone.get_param @w : tensor<4x2xf32, #hone.stored<bf16>>
  %0 = hone.get_param @w : tensor<4x2xf32, #hone.stored<bf16>>
  return %0 : tensor<4x2xf32, #hone.stored<bf16>>
}
