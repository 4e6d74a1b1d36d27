// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: func @plain
// CHECK: hone.attention_gradient %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} pattern(#hone.causal) scale(1.250000e-01) :
func.func @plain(%q: tensor<?x8x?x32xf32>, %k: tensor<?x4x?x32xf32>, %v: tensor<?x4x?x16xf32>, %lse: tensor<?x8x?xf32>,
                 %s: tensor<?x8x?xf32>, %g: tensor<?x8x?x16xf32>)
    -> (tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x16xf32>) {
  %0:3 = hone.attention_gradient %q, %k, %v, %lse, %s, %g pattern(#hone.causal) scale(0.125)
      : (tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x16xf32>, tensor<?x8x?xf32>, tensor<?x8x?xf32>, tensor<?x8x?x16xf32>)
      -> (tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x16xf32>)
  return %0#0, %0#1, %0#2 : tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x16xf32>
}

// CHECK-LABEL: func @everything
// CHECK: pattern(#hone.prefix_causal, %{{.*}}) scale(1.250000e-01) softcap(5.000000e+00)
// CHECK-SAME: bias(%{{.*}}) alibi(%{{.*}}) key_begin(%{{.*}}) key_end(%{{.*}}) lags(%{{.*}}) key_positions(%{{.*}}) :
func.func @everything(%q: tensor<2x8x3x32xf32>, %k: tensor<2x4x5x32xf32>, %v: tensor<2x4x5x32xf32>, %rows: tensor<2x8x3xf32>,
                      %prefix: tensor<2xi64>, %bias: tensor<1x8x3x5xf32>, %alibi: tensor<8xf32>, %n: tensor<2xi64>,
                      %positions: tensor<2x5xi64>) -> tensor<2x4x5x32xf32> {
  %0:3 = hone.attention_gradient %q, %k, %v, %rows, %rows, %q pattern(#hone.prefix_causal, %prefix) scale(0.125) softcap(5.0)
      bias(%bias) alibi(%alibi) key_begin(%n) key_end(%n) lags(%n) key_positions(%positions)
      : (tensor<2x8x3x32xf32>, tensor<2x4x5x32xf32>, tensor<2x4x5x32xf32>, tensor<2x8x3xf32>, tensor<2x8x3xf32>, tensor<2x8x3x32xf32>,
         tensor<1x8x3x5xf32>, tensor<8xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2x5xi64>, tensor<2xi64>)
      -> (tensor<2x8x3x32xf32>, tensor<2x4x5x32xf32>, tensor<2x4x5x32xf32>)
  return %0#1 : tensor<2x4x5x32xf32>
}
