// RUN: hone-opt %s -canonicalize | FileCheck %s

!kv = tensor<?x4x?x8xf32>

hone.state @kv [#hone.slot<"0", !kv, axis = 2>, #hone.slot<"1", !kv, axis = 2>, #hone.slot<"2", !kv, axis = 2>]

// A view of a slot that was appended to is what the append returned; appends to other slots do not matter to it.
// CHECK-LABEL: @view_of_append
// CHECK-SAME: (%[[S:.*]]: !hone.kv<@kv>
func.func @view_of_append(%s: !hone.kv<@kv>, %k: !kv) -> (!kv, !kv, !hone.kv<@kv>) {
  // CHECK: %[[NEXT:.*]], %[[ALL:.*]] = hone.kv_append %[[S]][0]
  %next, %all = hone.kv_append %s[0], %k : !hone.kv<@kv>, !kv -> !kv
  // CHECK: %[[LAST:.*]], %{{.*}} = hone.kv_append %[[NEXT]][1]
  %last, %other = hone.kv_append %next[1], %k : !hone.kv<@kv>, !kv -> !kv
  %0 = hone.kv_view %last[0] : !hone.kv<@kv> -> !kv
  // CHECK: %[[VIEW:.*]] = hone.kv_view %[[S]][2]
  %1 = hone.kv_view %last[2] : !hone.kv<@kv> -> !kv
  // CHECK: return %[[ALL]], %[[VIEW]], %[[LAST]]
  return %0, %1, %last : !kv, !kv, !hone.kv<@kv>
}

// What is known of sizes must not be lost or made up: the types differ, so the view stays.
// CHECK-LABEL: @other_type
func.func @other_type(%s: !hone.kv<@kv>, %k: !kv) -> tensor<1x4x?x8xf32> {
  // CHECK: hone.kv_append
  %next, %all = hone.kv_append %s[0], %k : !hone.kv<@kv>, !kv -> !kv
  // CHECK: hone.kv_view
  %0 = hone.kv_view %next[0] : !hone.kv<@kv> -> tensor<1x4x?x8xf32>
  return %0 : tensor<1x4x?x8xf32>
}

// Length, padding and lag are those at the beginning of the call.
// CHECK-LABEL: @positions
// CHECK-SAME: (%[[S:.*]]: !hone.kv<@kv>
func.func @positions(%s: !hone.kv<@kv>, %k: !kv, %b: index) -> (index, index, index) {
  %next, %all = hone.kv_append %s[0], %k : !hone.kv<@kv>, !kv -> !kv
  // CHECK: hone.kv_length %[[S]]
  %0 = hone.kv_length %next : !hone.kv<@kv>
  // CHECK: hone.kv_padding %[[S]][
  %1 = hone.kv_padding %next[%b] : !hone.kv<@kv>
  // CHECK: hone.kv_lag %[[S]][
  %2 = hone.kv_lag %next[%b] : !hone.kv<@kv>
  return %0, %1, %2 : index, index, index
}
