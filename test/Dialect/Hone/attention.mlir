// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @self
func.func @self(%q: tensor<?x14x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x32xbf16>) -> tensor<?x14x?x32xbf16> {
  // CHECK: hone.attention %{{.*}}, %{{.*}}, %{{.*}} pattern(#hone.causal) scale(1.250000e-01) : (tensor<?x14x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x32xbf16>) -> tensor<?x14x?x32xbf16>
  %0 = hone.attention %q, %k, %v pattern(#hone.causal) scale(0.125)
     : (tensor<?x14x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x32xbf16>) -> tensor<?x14x?x32xbf16>
  return %0 : tensor<?x14x?x32xbf16>
}

// CHECK-LABEL: @everything
func.func @everything(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %bias: tensor<1x4x1x5xf32>, %heads: tensor<4xf32>,
                      %lengths: tensor<2xi64>, %positions: tensor<2x5xi64>) -> tensor<2x4x3x8xf32> {
  // CHECK: hone.attention %[[Q:.*]], %[[K:.*]], %[[K]] pattern(#hone.all_of<#hone.prefix_causal, #hone.sliding<window = 4>>, %[[L:[a-z0-9]+]])
  // CHECK-SAME: scale(5.000000e-01) softcap(3.000000e+01) skip(2.000000e+00) bias(%[[B:.*]]) alibi(%[[H:.*]]) sinks(%[[H]])
  // CHECK-SAME: bf16_products key_begin(%[[L]]) key_end(%[[L]]) lags(%[[L]]) key_positions(%[[P:.*]]) : (tensor<2x4x3x8xf32>
  %0 = hone.attention %q, %k, %k pattern(#hone.all_of<#hone.prefix_causal, #hone.sliding<window = 4>>, %lengths)
         scale(0.5) softcap(30.0) skip(2.0) bias(%bias) alibi(%heads) sinks(%heads) bf16_products key_begin(%lengths)
         key_end(%lengths) lags(%lengths) key_positions(%positions)
     : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<1x4x1x5xf32>, tensor<4xf32>, tensor<4xf32>,
        tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2x5xi64>, tensor<2xi64>) -> tensor<2x4x3x8xf32>
  return %0 : tensor<2x4x3x8xf32>
}

// CHECK-LABEL: @listed
func.func @listed(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %lists: tensor<1x2x2x?xi64>, %tree: tensor<2x3x1xi64>)
    -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>) {
  // CHECK: %{{.*}}, %[[LSE:.*]] = hone.attention %{{.*}}, %{{.*}}, %{{.*}} pattern(#hone.all_of<#hone.blocks<size = 2, queries = 2>, #hone.tree>, %{{.*}}, %{{.*}}) scale(5.000000e-01)
  // CHECK-SAME: -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>)
  %0, %lse = hone.attention %q, %k, %k pattern(#hone.all_of<#hone.blocks<size = 2, queries = 2>, #hone.tree>, %lists, %tree) scale(0.5)
     : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<1x2x2x?xi64>, tensor<2x3x1xi64>)
     -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>)
  return %0, %lse : tensor<2x4x3x8xf32>, tensor<2x4x3xf32>
}
