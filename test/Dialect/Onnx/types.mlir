// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types that tensors do not cover come back from text and bytecode.

// RUN: hone-opt %s | hone-opt | FileCheck %s
// RUN: hone-opt %s -emit-bytecode | hone-opt | FileCheck %s

// CHECK-LABEL: func.func @types(
// CHECK-SAME: %{{.*}}: tensor<2x!onnx.string>, %{{.*}}: tensor<*x!onnx.unknown>
// CHECK-SAME: !onnx.sequence<tensor<?xf32>>, %{{.*}}: !onnx.optional<!onnx.sequence<tensor<2xi64>>>
func.func @types(%arg0: tensor<2x!onnx.string>, %arg1: tensor<*x!onnx.unknown>, %arg2: !onnx.sequence<tensor<?xf32>>,
                 %arg3: !onnx.optional<!onnx.sequence<tensor<2xi64>>>) {
  return
}
