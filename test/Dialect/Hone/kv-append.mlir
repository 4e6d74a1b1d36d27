// RUN: hone-opt %s | hone-opt | FileCheck %s

module attributes {hone.slots = [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>]} {
  // CHECK-LABEL: @append
  func.func @append(%s: !hone.kv, %k: tensor<1x4x3x8xf32>) -> (!hone.kv, tensor<1x4x?x8xf32>) {
    // CHECK: %{{.*}}, %{{.*}} = hone.kv_append %{{.*}}[0], %{{.*}} : tensor<1x4x3x8xf32> -> tensor<1x4x?x8xf32>
    %next, %all = hone.kv_append %s[0], %k : tensor<1x4x3x8xf32> -> tensor<1x4x?x8xf32>
    return %next, %all : !hone.kv, tensor<1x4x?x8xf32>
  }
}

// Without a list of slots any slot will do, and any one dimension may grow.
module {
  // CHECK-LABEL: @unlisted
  func.func @unlisted(%s: !hone.kv, %k: tensor<1x4x3x8xf32>) -> (!hone.kv, tensor<1x4x7x8xf32>) {
    // CHECK: hone.kv_append %{{.*}}[12], %{{.*}} : tensor<1x4x3x8xf32> -> tensor<1x4x7x8xf32>
    %next, %all = hone.kv_append %s[12], %k : tensor<1x4x3x8xf32> -> tensor<1x4x7x8xf32>
    return %next, %all : !hone.kv, tensor<1x4x7x8xf32>
  }
}
