// RUN: hone-opt %s --hone-lower-math | FileCheck %s

// A logarithm is arithmetic on the bits, which LLVM vectorizes.
// CHECK-LABEL: func.func @log(
// CHECK-NOT: math.log
// CHECK: arith.bitcast %{{.*}} : f32 to i32
// CHECK: math.fma
// CHECK-NOT: math.log
// CHECK: return
func.func @log(%x: f32) -> f32 {
  %0 = math.log %x : f32
  return %0 : f32
}

// The logarithm of 1 + x, and what rounding the sum took from it.
// CHECK-LABEL: func.func @log1p(
// CHECK-SAME: %[[X:.*]]: f32
// CHECK: %[[U:.*]] = arith.addf %[[X]], %{{.*}} : f32
// CHECK: arith.divf %{{.*}}, %[[U]] : f32
// CHECK-NOT: math.log
// CHECK: return
func.func @log1p(%x: f32) -> f32 {
  %0 = math.log1p %x : f32
  return %0 : f32
}

// 16-bit floats are computed in f32.
// CHECK-LABEL: func.func @half(
// CHECK: arith.extf
// CHECK-NOT: math.log
// CHECK: arith.truncf
func.func @half(%x: f16) -> f16 {
  %0 = math.log %x : f16
  return %0 : f16
}

// A double stays a call of the C library.
// CHECK-LABEL: func.func @double(
// CHECK: math.log %{{.*}} : f64
func.func @double(%x: f64) -> f64 {
  %0 = math.log %x : f64
  return %0 : f64
}
