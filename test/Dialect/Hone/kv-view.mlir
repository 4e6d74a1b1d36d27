// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @view
func.func @view(%s: !hone.kv) -> tensor<?x4x?x8xf32> {
  // CHECK: hone.kv_view %{{.*}}[1] : tensor<?x4x?x8xf32>
  %0 = hone.kv_view %s[1] : tensor<?x4x?x8xf32>
  return %0 : tensor<?x4x?x8xf32>
}

// CHECK-LABEL: @positions
func.func @positions(%s: !hone.kv, %b: index) -> (index, index) {
  // CHECK: hone.kv_length %{{.*}}
  %0 = hone.kv_length %s
  // CHECK: hone.kv_padding %{{.*}}[%{{.*}}]
  %1 = hone.kv_padding %s[%b]
  return %0, %1 : index, index
}
