// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --hone-convert-onnx-to-linalg | FileCheck %s

// The constant weight of an integer convolution is a parameter of floats, without its zero points.
// CHECK: hone.param @w.0 : tensor<2x1x3x3xf32>
hone.param @w : tensor<2x1x3x3xui8> = dense<3> : tensor<2x1x3x3xui8>
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<1x1x8x8xui8>) -> tensor<1x2x6x6xi32> {
  %w = hone.get_param @w : tensor<2x1x3x3xui8>
  %zero = "onnx.Constant"() {value = dense<2> : tensor<ui8>} : () -> tensor<ui8>
  // CHECK: hone.get_param @w.0
  // CHECK: hone.convolution {{.*}} groups 1 exact
  %y = "onnx.ConvInteger"(%x, %w, %zero, %zero) : (tensor<1x1x8x8xui8>, tensor<2x1x3x3xui8>, tensor<ui8>, tensor<ui8>) -> tensor<1x2x6x6xi32>
  return %y : tensor<1x2x6x6xi32>
}
