// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK: hone.state @kv [#hone.slot<"0.conv", tensor<?x4x8xf32>>]
hone.state @kv [#hone.slot<"0.conv", tensor<?x4x8xf32>>]

// CHECK-LABEL: @replace
func.func @replace(%s: !hone.kv<@kv>, %v: tensor<1x4x8xf32>) -> !hone.kv<@kv> {
  // CHECK: hone.kv_replace %{{.*}}[0], %{{.*}} : !hone.kv<@kv>, tensor<1x4x8xf32>
  %next = hone.kv_replace %s[0], %v : !hone.kv<@kv>, tensor<1x4x8xf32>
  return %next : !hone.kv<@kv>
}

// CHECK-LABEL: @in_place
func.func @in_place(%s: !hone.kv<@kv>, %v: tensor<1x4x8xf32>) -> !hone.kv<@kv> {
  // CHECK: hone.kv_replace %{{.*}}[0], %{{.*}} {in_place} : !hone.kv<@kv>, tensor<1x4x8xf32>
  %next = hone.kv_replace %s[0], %v {in_place} : !hone.kv<@kv>, tensor<1x4x8xf32>
  return %next : !hone.kv<@kv>
}
