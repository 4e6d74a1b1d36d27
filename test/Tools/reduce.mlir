// Only what the test script looks for remains.
// RUN: hone-reduce %s -reduction-tree='traversal-mode=0 test=%S/Inputs/has-division.sh' | FileCheck %s

// CHECK-NOT: @unrelated
// CHECK:      func.func @culprit
// CHECK-NEXT:   arith.divf
// CHECK-NOT: @unrelated

func.func @unrelated_first(%a: f32) -> f32 {
  %0 = arith.addf %a, %a : f32
  return %0 : f32
}

func.func @culprit(%a: f32, %b: f32) -> f32 {
  %0 = arith.mulf %a, %b : f32
  %1 = arith.divf %a, %b : f32
  %2 = arith.mulf %1, %b : f32
  return %2 : f32
}

func.func @unrelated_last(%a: f32) -> f32 {
  %0 = arith.mulf %a, %a : f32
  return %0 : f32
}
