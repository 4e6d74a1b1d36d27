// Each expert of a mixture keeps as many hidden channels, and its own.

// RUN: rm -rf %t && split-file %s %t && cd %t
// RUN: hone-opt gate.mlir -hone-prune-structured="sparsity=0.5 multiple=1" | FileCheck gate.mlir
// RUN: hone-opt fused.mlir -hone-prune-structured="sparsity=0.5 multiple=1" | FileCheck fused.mlir
// RUN: hone-opt refused.mlir -hone-prune-structured="sparsity=0 multiple=1" -remarks-filter=hone-prune-structured 2>&1 | FileCheck refused.mlir

// By what was measured of each expert's channels; one that no row chose by magnitude. The statistics serve what comes after.
// RUN: %python %hone_src/test/Transforms/Prune/Inputs/statistics.py other < /dev/null
// RUN: not hone-opt gate.mlir -hone-quantize-weights="statistics=other" 2> message
// RUN: %python %hone_src/test/Transforms/Prune/Inputs/statistics.py all gate[0]=0:2 gate[1]=1:2 up[0]=0:2 up[1]=1:2 down[0]=2:4 down[1]=3:4 < message
// RUN: %python %hone_src/test/Transforms/Prune/Inputs/statistics.py missing gate[0]=0:2 gate[1]=1:2 up[0]=0:2 up[1]=1:2 down[0]=2:4 down[1]=3:4 --set=3.rows:0 < message
// RUN: hone-opt gate.mlir -hone-prune-structured="sparsity=0.5 multiple=1 method=obs statistics=all" -hone-quantize-weights="bits=8 group=0 method=gptq statistics=all" -remarks-filter="hone-.*" 2>&1 | FileCheck gate.mlir --check-prefix=OBS
// RUN: hone-opt gate.mlir -hone-prune-structured="sparsity=0.5 multiple=1 method=energy statistics=missing" -remarks-filter=hone-prune-structured 2>&1 | FileCheck gate.mlir --check-prefix=MISSING

//--- gate.mlir
// Of expert 0 channels 1 and 3 are the largest, of expert 1 channels 0 and 2.
// CHECK-DAG: hone.param @up : tensor<4x2xf32> = dense_resource<[[UP:[a-z_0-9]*]]>
// CHECK-DAG: hone.param @gate : tensor<4x2xf32>
// CHECK-DAG: hone.param @bias : tensor<2x2xf32> = dense_resource<[[BIAS:[a-z_0-9]*]]>
// CHECK-DAG: hone.param @down : tensor<4x2xf32> = dense_resource<[[DOWN:[a-z_0-9]*]]> : tensor<4x2xf32> {hone.inputs = {kept = array<i64: 1, 3, 0, 2>, of = 4 : i64}}
// Both functions read what is left.
// CHECK-COUNT-2: hone.moe silu {{.*}} : (tensor<?x2xf32>, tensor<?x1xi64>, tensor<?x1xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
// Rows 5 6 | 7 8, biases 11 13 | 20 22, columns 2 4 and 1 1 | 5 7 and 1 1.
// CHECK-DAG: [[UP]]: "0x{{........}}0000A040000000000000C040000000000000E0400000000000000041{{0+}}"
// CHECK-DAG: [[BIAS]]: "0x{{........}}00003041000050410000A0410000B041"
// CHECK-DAG: [[DOWN]]: "0x{{........}}00000040000080400000803F0000803F0000A0400000E0400000803F0000803F"
// OBS: [Passed] Pruned {{.*}}"down keeps 2 of 4 inputs of each of 2 experts by obs, with a relative error of 0.{{[0-9]+}} of its outputs"
// OBS: [Passed] Quantized {{.*}}"down is stored in 8 bits an element, with a relative error of 0.00{{[0-9]+}} of its outputs"
// MISSING: [Passed] Pruned {{.*}}"down keeps 2 of 4 inputs of each of 2 experts by energy, of 1 by magnitude: no row chose them, with a relative error of 0.{{[0-9]+}} of its outputs"
hone.param @gate : tensor<8x2xf32> = dense<1.0> : tensor<8x2xf32>
hone.param @up : tensor<8x2xf32> = dense<[[1.0, 0.0], [5.0, 0.0], [2.0, 0.0], [6.0, 0.0], [7.0, 0.0], [1.0, 0.0], [8.0, 0.0], [2.0, 0.0]]> : tensor<8x2xf32>
hone.param @bias : tensor<2x4xf32> = dense<[[10.0, 11.0, 12.0, 13.0], [20.0, 21.0, 22.0, 23.0]]> : tensor<2x4xf32>
hone.param @down : tensor<4x4xf32> = dense<[[1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0], [5.0, 6.0, 7.0, 8.0], [1.0, 1.0, 1.0, 1.0]]> : tensor<4x4xf32>
func.func @main(%x: tensor<?x2xf32>, %ids: tensor<?x1xi64>, %p: tensor<?x1xf32>) -> tensor<?x2xf32> {
  %gate = hone.get_param @gate : tensor<8x2xf32>
  %up = hone.get_param @up : tensor<8x2xf32>
  %bias = hone.get_param @bias : tensor<2x4xf32>
  %down = hone.get_param @down : tensor<4x4xf32>
  %0 = hone.moe silu %x, experts(%ids, %p), up(%up, %bias), down(%down) gate(%gate)
    : (tensor<?x2xf32>, tensor<?x1xi64>, tensor<?x1xf32>, tensor<8x2xf32>, tensor<4x4xf32>, tensor<8x2xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
func.func @again(%x: tensor<?x2xf32>, %ids: tensor<?x1xi64>, %p: tensor<?x1xf32>) -> tensor<?x2xf32> {
  %gate = hone.get_param @gate : tensor<8x2xf32>
  %up = hone.get_param @up : tensor<8x2xf32>
  %bias = hone.get_param @bias : tensor<2x4xf32>
  %down = hone.get_param @down : tensor<4x4xf32>
  %0 = hone.moe silu %x, experts(%ids, %p), up(%up, %bias), down(%down) gate(%gate)
    : (tensor<?x2xf32>, tensor<?x1xi64>, tensor<?x1xf32>, tensor<8x2xf32>, tensor<4x4xf32>, tensor<8x2xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}

//--- fused.mlir
// Gates and ups of a channel go together: rows g0 g1 u0 u1, and g0 u0 g1 u1. The first channel of expert 0 is the larger, and the second
// of expert 1. Constants are cut where they are read.
// CHECK-DAG: hone.param @halves : tensor<4x1xf32> = dense_resource<[[HALVES:[a-z_0-9]*]]>
// CHECK-DAG: hone.param @turns : tensor<4x1xf32> = dense_resource<[[TURNS:[a-z_0-9]*]]>
// CHECK-DAG: hone.param @down : tensor<2x1xf32> = {{.*}} {hone.inputs = {kept = array<i64: 0, 1>, of = 2 : i64}}
// CHECK-DAG: arith.constant dense<{{\[\[}}0.000000e+00, 2.000000e+00], [5.000000e+00, 7.000000e+00]]> : tensor<2x2xf32>
// CHECK-DAG: arith.constant dense<{{\[\[}}0.000000e+00, 1.000000e+00], [6.000000e+00, 7.000000e+00]]> : tensor<2x2xf32>
// CHECK-DAG: [[HALVES]]: "0x{{........}}0000A0400000E0400000C04000000041"
// CHECK-DAG: [[TURNS]]: "0x{{........}}0000A0400000E0400000C04000000041"
hone.param @halves : tensor<8x1xf32> = dense<[[5.0], [1.0], [7.0], [2.0], [1.0], [6.0], [2.0], [8.0]]> : tensor<8x1xf32>
hone.param @turns : tensor<8x1xf32> = dense<[[5.0], [7.0], [1.0], [2.0], [1.0], [2.0], [6.0], [8.0]]> : tensor<8x1xf32>
hone.param @down : tensor<2x2xf32> = dense<1.0> : tensor<2x2xf32>
hone.param @other : tensor<2x2xf32> = dense<1.0> : tensor<2x2xf32>
func.func @main(%x: tensor<?x1xf32>, %ids: tensor<?x1xi64>, %p: tensor<?x1xf32>) -> (tensor<?x1xf32>, tensor<?x1xf32>) {
  %halves = hone.get_param @halves : tensor<8x1xf32>
  %turns = hone.get_param @turns : tensor<8x1xf32>
  %down = hone.get_param @down : tensor<2x2xf32>
  %other = hone.get_param @other : tensor<2x2xf32>
  %bias = arith.constant dense<[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]> : tensor<2x4xf32>
  %0 = hone.moe silu %x, experts(%ids, %p), up(%halves, %bias), down(%down) fused halves
    : (tensor<?x1xf32>, tensor<?x1xi64>, tensor<?x1xf32>, tensor<8x1xf32>, tensor<2x2xf32>, tensor<2x4xf32>) -> tensor<?x1xf32>
  %1 = hone.moe silu %x, experts(%ids, %p), up(%turns, %bias), down(%other) fused alternate
    : (tensor<?x1xf32>, tensor<?x1xi64>, tensor<?x1xf32>, tensor<8x1xf32>, tensor<2x2xf32>, tensor<2x4xf32>) -> tensor<?x1xf32>
  return %0, %1 : tensor<?x1xf32>, tensor<?x1xf32>
}

//--- refused.mlir
// CHECK: [Missed] Pruned {{.*}}"its hidden channels of each expert stay, and with them those of all layers: down is read in another way too"
hone.param @up : tensor<4x1xf32> = dense<1.0> : tensor<4x1xf32>
hone.param @down : tensor<2x2xf32> = dense<1.0> : tensor<2x2xf32>
func.func @main(%x: tensor<?x1xf32>, %ids: tensor<?x1xi64>, %p: tensor<?x1xf32>) -> (tensor<?x1xf32>, tensor<2x2xf32>) {
  %up = hone.get_param @up : tensor<4x1xf32>
  %down = hone.get_param @down : tensor<2x2xf32>
  %0 = hone.moe relu %x, experts(%ids, %p), up(%up), down(%down)
    : (tensor<?x1xf32>, tensor<?x1xi64>, tensor<?x1xf32>, tensor<4x1xf32>, tensor<2x2xf32>) -> tensor<?x1xf32>
  return %0, %down : tensor<?x1xf32>, tensor<2x2xf32>
}
