// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --split-input-file --hone-convert-onnx-to-linalg --canonicalize --cse | FileCheck %s -enable-var-scope

// The branches see outer values; their results have different sizes and are joined.
// CHECK-LABEL: @if_joined(
// CHECK: %[[COND:.*]] = tensor.extract %arg0[]
// CHECK: scf.if %[[COND]] -> (tensor<?xf32>)
// CHECK: scf.yield %{{.*}} : tensor<?xf32>
// CHECK: } else {
// CHECK: scf.yield %{{.*}} : tensor<?xf32>
func.func @if_joined(%cond: tensor<i1>, %x: tensor<2xf32>) -> tensor<?xf32> {
  %r = "onnx.If"(%cond) ({
    "onnx.Yield"(%x) : (tensor<2xf32>) -> ()
  }, {
    %y = "onnx.Concat"(%x, %x) {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
    "onnx.Yield"(%y) : (tensor<4xf32>) -> ()
  }) {onnx.regions = ["then_branch", "else_branch"]} : (tensor<i1>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// A size that both branches make alike is the same value afterwards: the sum needs no run-time broadcast.
// CHECK-LABEL: @if_same_size(
// CHECK: scf.if
// CHECK-NOT: hrt.check
// CHECK: linalg.generic
// CHECK-NOT: tensor.extract
func.func @if_same_size(%cond: tensor<i1>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %r = "onnx.If"(%cond) ({
    %y = "onnx.Add"(%x, %x) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    "onnx.Yield"(%y) : (tensor<?xf32>) -> ()
  }, {
    "onnx.Yield"(%x) : (tensor<?xf32>) -> ()
  }) {onnx.regions = ["then_branch", "else_branch"]} : (tensor<i1>) -> tensor<?xf32>
  %s = "onnx.Add"(%r, %x) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %s : tensor<?xf32>
}

// -----

// squeeze(dim) of a size that only calls know, as torch's exporter writes it, has the rank of what is squeezed.
// CHECK-LABEL: @if_squeezes(
// CHECK-SAME: -> (tensor<?x128xf32>
// CHECK: hrt.check {{.*}}expected the dimension that is squeezed where its size is 1 to have that size"
// CHECK-NOT: scf.if
func.func @if_squeezes(%x: tensor<?x128x?xf32>) -> tensor<*xf32> {
  %shape = "onnx.Shape"(%x) : (tensor<?x128x?xf32>) -> tensor<3xi64>
  %last = "onnx.Constant"() {value_int = -1 : i64} : () -> tensor<i64>
  %one = "onnx.Constant"() {value_int = 1 : i64} : () -> tensor<i64>
  %n = "onnx.Gather"(%shape, %last) : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
  %cond = "onnx.Equal"(%n, %one) : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %r = "onnx.If"(%cond) ({
    %axes = "onnx.Constant"() {value_ints = array<i64: -1>} : () -> tensor<1xi64>
    %y = "onnx.Squeeze"(%x, %axes) : (tensor<?x128x?xf32>, tensor<1xi64>) -> tensor<*xf32>
    "onnx.Yield"(%y) : (tensor<*xf32>) -> ()
  }, {
    %y = "onnx.Identity"(%x) : (tensor<?x128x?xf32>) -> tensor<*xf32>
    "onnx.Yield"(%y) : (tensor<*xf32>) -> ()
  }) {onnx.regions = ["then_branch", "else_branch"]} : (tensor<i1>) -> tensor<*xf32>
  return %r : tensor<*xf32>
}

// -----

// A known condition takes its branch; the other is not even looked at.
// CHECK-LABEL: @if_known(
// CHECK-NOT: scf.if
// CHECK: return %arg0
func.func @if_known(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %shape = "onnx.Shape"(%x) : (tensor<2x3xf32>) -> tensor<2xi64>
  %zero = "onnx.Constant"() {value_int = 0 : i64} : () -> tensor<i64>
  %two = "onnx.Constant"() {value_int = 2 : i64} : () -> tensor<i64>
  %n = "onnx.Gather"(%shape, %zero) : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
  %cond = "onnx.Equal"(%n, %two) : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %r = "onnx.If"(%cond) ({
    "onnx.Yield"(%x) : (tensor<2x3xf32>) -> ()
  }, {
    %five = "onnx.Constant"() {value_ints = array<i64: 5>} : () -> tensor<1xi64>
    %y = "onnx.Reshape"(%x, %five) : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<2x3xf32>
    "onnx.Yield"(%y) : (tensor<2x3xf32>) -> ()
  }) {onnx.regions = ["then_branch", "else_branch"]} : (tensor<i1>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// A body that never ends the loop makes a counted one, and collects into a tensor of the right size.
// CHECK-LABEL: @counted(
// CHECK: %[[ROOM:.*]] = tensor.empty() : tensor<3x2xf32>
// CHECK: scf.for %{{.*}} = %c0 to %c3 step %c1 iter_args(%{{.*}} = %arg0, %{{.*}} = %[[ROOM]]) -> (tensor<2xf32>, tensor<3x2xf32>)
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[%{{.*}}, 0] [1, 2] [1, 1] : tensor<2xf32> into tensor<3x2xf32>
func.func @counted(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<3x2xf32>) {
  %three = "onnx.Constant"() {value_int = 3 : i64} : () -> tensor<i64>
  %none = "onnx.NoValue"() : () -> none
  %r:2 = "onnx.Loop"(%three, %none, %x) ({
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %state: tensor<2xf32>):
    %next = "onnx.Add"(%state, %state) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "onnx.Yield"(%go, %next, %next) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> ()
  }) {onnx.regions = ["body"]} : (tensor<i64>, none, tensor<2xf32>) -> (tensor<2xf32>, tensor<3x2xf32>)
  return %r#0, %r#1 : tensor<2xf32>, tensor<3x2xf32>
}

// -----

// A body that may end the loop: what it collects goes to a buffer that grows.
// CHECK-LABEL: @conditional(
// CHECK: scf.while
// CHECK: scf.condition
// CHECK: scf.if
// CHECK: tensor.insert_slice
// CHECK: tensor.extract_slice
func.func @conditional(%x: tensor<f32>, %limit: tensor<f32>) -> (tensor<f32>, tensor<?xf32>) {
  %none = "onnx.NoValue"() : () -> none
  %r:2 = "onnx.Loop"(%none, %none, %x) ({
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %state: tensor<f32>):
    %next = "onnx.Add"(%state, %state) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %more = "onnx.Less"(%next, %limit) : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "onnx.Yield"(%more, %next, %next) : (tensor<i1>, tensor<f32>, tensor<f32>) -> ()
  }) {onnx.regions = ["body"]} : (none, none, tensor<f32>) -> (tensor<f32>, tensor<?xf32>)
  return %r#0, %r#1 : tensor<f32>, tensor<?xf32>
}

// -----

// A carried tensor that grows has a size of its own in every iteration.
// CHECK-LABEL: @growing(
// CHECK: scf.while {{.*}} : (index, tensor<?xf32>) -> (index, tensor<?xf32>)
func.func @growing(%x: tensor<1xf32>, %n: tensor<i64>) -> tensor<?xf32> {
  %none = "onnx.NoValue"() : () -> none
  %r = "onnx.Loop"(%n, %none, %x) ({
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %state: tensor<?xf32>):
    %next = "onnx.Concat"(%state, %x) {axis = 0 : i64} : (tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>
    "onnx.Yield"(%go, %next) : (tensor<i1>, tensor<?xf32>) -> ()
  }) {onnx.regions = ["body"]} : (tensor<i64>, none, tensor<1xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// CHECK-LABEL: @scan_backward(
// CHECK: %[[N:.*]] = tensor.dim %arg1, %c0
// CHECK: scf.for %[[I:.*]] = %c0 to %[[N]]
// CHECK: tensor.extract_slice %arg1[%{{.*}}, 0] [1, 2] [1, 1] : tensor<?x2xf32> to tensor<1x2xf32>
func.func @scan_backward(%x: tensor<2xf32>, %xs: tensor<?x2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>) {
  %r:2 = "onnx.Scan"(%x, %xs) ({
  ^bb0(%state: tensor<2xf32>, %one: tensor<2xf32>):
    %next = "onnx.Add"(%state, %one) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "onnx.Yield"(%next, %next) : (tensor<2xf32>, tensor<2xf32>) -> ()
  }) {num_scan_inputs = 1 : i64, scan_input_directions = array<i64: 1>, onnx.regions = ["body"]} : (tensor<2xf32>, tensor<?x2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>)
  return %r#0, %r#1 : tensor<2xf32>, tensor<?x2xf32>
}
