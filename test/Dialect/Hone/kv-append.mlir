// RUN: hone-opt %s | hone-opt | FileCheck %s

module {
  hone.state @kv [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>]
  // CHECK-LABEL: @append
  func.func @append(%s: !hone.kv<@kv>, %k: tensor<1x4x3x8xf32>) -> (!hone.kv<@kv>, tensor<1x4x?x8xf32>) {
    // CHECK: %{{.*}}, %{{.*}} = hone.kv_append %{{.*}}[0], %{{.*}} : !hone.kv<@kv>, tensor<1x4x3x8xf32> -> tensor<1x4x?x8xf32>
    %next, %all = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<1x4x3x8xf32> -> tensor<1x4x?x8xf32>
    return %next, %all : !hone.kv<@kv>, tensor<1x4x?x8xf32>
  }
}

// Two states of one module, each with slots of its own.
module {
  hone.state @target [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>]
  hone.state @draft [#hone.slot<"0.key", tensor<?x2x?x8xbf16>, axis = 2>]
  // CHECK-LABEL: @both
  func.func @both(%s: !hone.kv<@target>, %d: !hone.kv<@draft>, %k: tensor<1x4x3x8xf32>, %l: tensor<1x2x3x8xf32>) {
    // CHECK: hone.kv_append %{{.*}}[0], %{{.*}} : !hone.kv<@target>, tensor<1x4x3x8xf32> -> tensor<1x4x7x8xf32>
    %0, %all = hone.kv_append %s[0], %k : !hone.kv<@target>, tensor<1x4x3x8xf32> -> tensor<1x4x7x8xf32>
    // CHECK: hone.kv_append %{{.*}}[0], %{{.*}} : !hone.kv<@draft>, tensor<1x2x3x8xf32> -> tensor<1x2x?x8xbf16>
    %1, %other = hone.kv_append %d[0], %l : !hone.kv<@draft>, tensor<1x2x3x8xf32> -> tensor<1x2x?x8xbf16>
    return
  }
}
