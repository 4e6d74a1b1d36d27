// The fingerprint of this module is in the message that refuses statistics of another one.
// RUN: %python %S/../Prune/Inputs/statistics.py %t.other < /dev/null
// RUN: not hone-opt %s -hone-scale-channels="statistics=%t.other" 2>&1 | %python %S/../Prune/Inputs/statistics.py %t.stats q=0:8 gate=1:8 up=1:8 down=2:4 shared=3:8 last=4:8
// RUN: hone-opt %s -hone-scale-channels="group=0 statistics=%t.stats" | FileCheck %s
// RUN: hone-opt %s -hone-scale-channels="group=0 statistics=%t.stats" -remarks-filter=hone-scale-channels 2>&1 | FileCheck %s --check-prefix=REMARK

// What was measured counts divided by the scales: passes after this one, and itself, which finds nothing left to gain.
// RUN: hone-opt %s -hone-scale-channels="group=0 statistics=%t.stats" -hone-quantize-weights="bits=4 group=0 method=gptq statistics=%t.stats" -remarks-filter=hone-quantize-weights 2>&1 | FileCheck %s --check-prefix=AFTER
// RUN: not hone-opt %s -hone-scale-channels 2>&1 | FileCheck %s --check-prefix=NONE

// REMARK-DAG: "the input of q is scaled by channels: rounding to nearest would leave 0.{{[0-9]+}} of the error"
// REMARK-DAG: "the input of gate is scaled by channels: rounding to nearest would leave 0.{{[0-9]+}} of the error"
// REMARK-DAG: "the input of down is scaled by channels: rounding to nearest would leave 0.{{[0-9]+}} of the error"
// REMARK-DAG: "the input of shared stays as it is: shared_norm is also read elsewhere"
// REMARK-DAG: "the input of unknown stays as it is: nothing was measured of it"
// REMARK-DAG: "the input of last stays as it is: what computes it takes no scales"
// AFTER-DAG: "q is stored in 4 bits an element, with a relative error of 0.{{[0-9]+}} of its outputs"
// NONE: error: expected a file of statistics to scale channels by

// CHECK: hone.param @q {{.*}} {hone.channel_scales = array<f32: {{[^>]*}}>}
// CHECK: hone.param @gate {{.*}} {hone.channel_scales = array<f32: {{[^>]*}}>}
// CHECK: hone.param @up {{.*}} {hone.channel_scales = array<f32: {{[^>]*}}>}
// CHECK: hone.param @down {{.*}} {hone.channel_scales = array<f32: {{[^>]*}}>}
// CHECK: hone.param @shared : {{.*}}>{{$}}
hone.param @q_norm : tensor<8xf32> = dense<0.5> : tensor<8xf32>
hone.param @mlp_norm : tensor<8xf32> = dense<2.0> : tensor<8xf32>
hone.param @mlp_bias : tensor<8xf32> = dense<1.0> : tensor<8xf32>
hone.param @own_norm : tensor<8xf32> = dense<1.0> : tensor<8xf32>
hone.param @shared_norm : tensor<8xf32> = dense<1.0> : tensor<8xf32>
hone.param @q : tensor<4x8xf32> = dense<[
  [8.0, 0.5, -4.0, 0.06, 2.0, -0.25, 0.03, 1.0], [7.0, -0.3, 3.0, 0.05, -1.5, 0.15, 0.02, -0.9],
  [-6.0, 0.4, 2.5, -0.07, 1.8, 0.22, -0.04, 0.8], [5.0, 0.6, -3.5, 0.02, 1.1, -0.12, 0.01, 1.2]]> : tensor<4x8xf32>
hone.param @gate : tensor<4x8xf32> = dense<[
  [8.0, 0.5, -4.0, 0.06, 2.0, -0.25, 0.03, 1.0], [7.0, -0.3, 3.0, 0.05, -1.5, 0.15, 0.02, -0.9],
  [-6.0, 0.4, 2.5, -0.07, 1.8, 0.22, -0.04, 0.8], [5.0, 0.6, -3.5, 0.02, 1.1, -0.12, 0.01, 1.2]]> : tensor<4x8xf32>
hone.param @up : tensor<4x8xf32> = dense<[
  [6.0, 0.3, -4.0, 0.05, 2.1, -0.2, 0.02, 1.0], [5.0, -0.4, 2.0, 0.04, -1.2, 0.1, 0.03, -0.7],
  [-7.0, 0.2, 2.2, -0.03, 1.4, 0.2, -0.01, 0.9], [4.0, 0.5, -3.1, 0.01, 1.5, -0.1, 0.02, 1.1]]> : tensor<4x8xf32>
hone.param @down : tensor<3x4xf32> = dense<[[8.0, 0.1, -0.02, 1.0], [7.0, -0.15, 0.01, -1.3], [-5.0, 0.12, 0.03, 0.8]]> : tensor<3x4xf32>
hone.param @shared : tensor<4x8xf32> = dense<0.25> : tensor<4x8xf32>
hone.param @unknown : tensor<4x8xf32> = dense<0.5> : tensor<4x8xf32>
hone.param @last : tensor<2x8xf32> = dense<0.125> : tensor<2x8xf32>

func.func @main(%x: tensor<?x8xf32>) -> (tensor<?x4xf32>, tensor<?x3xf32>, tensor<?x4xf32>, tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x2xf32>, index) {
  %zero = arith.constant 0 : index
  %q_norm = hone.get_param @q_norm : tensor<8xf32>
  %mlp_norm = hone.get_param @mlp_norm : tensor<8xf32>
  %mlp_bias = hone.get_param @mlp_bias : tensor<8xf32>
  %own_norm = hone.get_param @own_norm : tensor<8xf32>
  %shared_norm = hone.get_param @shared_norm : tensor<8xf32>
  %q = hone.get_param @q : tensor<4x8xf32>
  %gate = hone.get_param @gate : tensor<4x8xf32>
  %up = hone.get_param @up : tensor<4x8xf32>
  %down = hone.get_param @down : tensor<3x4xf32>
  %shared = hone.get_param @shared : tensor<4x8xf32>
  %unknown = hone.get_param @unknown : tensor<4x8xf32>
  %last = hone.get_param @last : tensor<2x8xf32>

  // CHECK: hone.rms_norm %{{.*}}, %{{.*}} epsilon(9.99999997E-7) :
  %0 = hone.rms_norm %x, %q_norm epsilon(1.0e-6) unit_offset : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %size = tensor.dim %0, %zero : tensor<?x8xf32>
  %1 = hone.linear %0, %q : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %2 = hone.layer_norm %x, %mlp_norm bias(%mlp_bias) epsilon(1.0e-6) : (tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %3 = hone.gated_mlp silu %2, gate(%gate), up(%up), down(%down)
     : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<3x4xf32>) -> tensor<?x3xf32>
  %4 = hone.rms_norm %x, %shared_norm epsilon(1.0e-6) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %5 = hone.linear %4, %shared : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %6 = hone.layer_norm %x, %shared_norm epsilon(1.0e-6) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %7 = hone.rms_norm %x, %own_norm epsilon(1.0e-6) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %8 = hone.linear %7, %unknown : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %9 = hone.linear %x, %last : (tensor<?x8xf32>, tensor<2x8xf32>) -> tensor<?x2xf32>
  return %1, %3, %5, %6, %8, %9, %size : tensor<?x4xf32>, tensor<?x3xf32>, tensor<?x4xf32>, tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x2xf32>, index
}
