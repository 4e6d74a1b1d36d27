// RUN: hone-opt %s | hone-opt | FileCheck %s

hone.state @kv [#hone.slot<"key", tensor<?x4x?x8xf32>, axis = 2>, #hone.slot<"value", tensor<?x4x?x8xf32>, axis = 2>]

// CHECK-LABEL: @view
func.func @view(%s: !hone.kv<@kv>) -> tensor<?x4x?x8xf32> {
  // CHECK: hone.kv_view %{{.*}}[1] : !hone.kv<@kv> -> tensor<?x4x?x8xf32>
  %0 = hone.kv_view %s[1] : !hone.kv<@kv> -> tensor<?x4x?x8xf32>
  return %0 : tensor<?x4x?x8xf32>
}

// CHECK-LABEL: @positions
func.func @positions(%s: !hone.kv<@kv>, %b: index) -> (index, index, index) {
  // CHECK: hone.kv_length %{{.*}}
  %0 = hone.kv_length %s : !hone.kv<@kv>
  // CHECK: hone.kv_padding %{{.*}}[%{{.*}}]
  %1 = hone.kv_padding %s[%b] : !hone.kv<@kv>
  // CHECK: hone.kv_lag %{{.*}}[%{{.*}}]
  %2 = hone.kv_lag %s[%b] : !hone.kv<@kv>
  return %0, %1, %2 : index, index, index
}
