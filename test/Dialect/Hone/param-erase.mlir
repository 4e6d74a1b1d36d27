// RUN: hone-opt %s -symbol-dce | FileCheck %s

// A parameter that nothing reads goes, and one that is read stays.

// CHECK-NOT: @unread
hone.param @unread : tensor<2xf32> = dense<0.0> : tensor<2xf32>
// CHECK: hone.param @read
hone.param @read : tensor<2xf32> = dense<0.0> : tensor<2xf32>
func.func @main() -> tensor<2xf32> {
  %0 = hone.get_param @read : tensor<2xf32>
  return %0 : tensor<2xf32>
}
