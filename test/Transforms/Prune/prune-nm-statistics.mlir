// The fingerprint of this module is in the message that refuses statistics of another one.
// RUN: %python %S/Inputs/statistics.py %t.other < /dev/null
// RUN: not hone-opt %s -hone-prune-nm="statistics=%t.other" 2>&1 | %python %S/Inputs/statistics.py %t.stats up=0:8 gate=0:8 down=1:12
// RUN: hone-opt %s -hone-prune-nm="method=wanda statistics=%t.stats" -remarks-filter=hone-prune-nm 2>&1 | FileCheck %s --check-prefixes=WANDA,REFUSED
// RUN: hone-opt %s -hone-prune-nm="method=sparsegpt statistics=%t.stats" -remarks-filter=hone-prune-nm 2>&1 | FileCheck %s --check-prefixes=SPARSEGPT,REFUSED
// RUN: hone-opt %s -hone-prune-nm="statistics=%t.stats" -remarks-filter=hone-prune-nm 2>&1 | FileCheck %s --check-prefix=MAGNITUDE

// Twice is the same, and a second pass knows the statistics as those of the model that the first one has changed.
// RUN: hone-opt %s -hone-prune-nm="method=sparsegpt statistics=%t.stats" -o %t.1
// RUN: hone-opt %s -hone-prune-nm="method=sparsegpt statistics=%t.stats" -o %t.2
// RUN: cmp %t.1 %t.2
// RUN: hone-opt %t.1 -hone-quantize-weights="bits=4 group=8 method=gptq statistics=%t.stats" -remarks-filter=hone-quantize-weights 2>&1 | FileCheck %s --check-prefix=SECOND
// RUN: hone-opt %s -hone-prune-nm -hone-quantize-weights="bits=4 group=8 method=gptq statistics=%t.stats" | FileCheck %s --check-prefix=SECOND-IR

// WANDA-DAG: "gate is pruned to 2 of 4 by wanda, with a relative error of 0.{{[0-9]+}} of its outputs"
// WANDA-DAG: "down is pruned to 2 of 4 by wanda, with a relative error of 0.{{[0-9]+}} of its outputs"
// SPARSEGPT-DAG: "gate is pruned to 2 of 4 by sparsegpt, with a relative error of 0.{{[0-9]+}} of its outputs"
// SPARSEGPT-DAG: "up is pruned to 2 of 4 by sparsegpt, with a relative error of 0.{{[0-9]+}} of its outputs"
// REFUSED-DAG: "other stays as it is: nothing was measured of its inputs"
// MAGNITUDE-DAG: "up is pruned to 2 of 4 by magnitude, with a relative error of 0.{{[0-9]+}} of its outputs"
// MAGNITUDE-DAG: "other is pruned to 2 of 4 by magnitude"{{$}}
// SECOND-DAG: "gate is stored in 4 bits an element, with a relative error of 0.{{[0-9]+}} of its outputs"
// SECOND-DAG: "other is stored in 4 bits an element, rounded to nearest: nothing was measured of its inputs"
// SECOND-IR: hone.param @up : tensor<12x8xf32, #hone.affine<bits = 4, group = 8, scales = f16, activations = 8, atLeast = true>> = {scales = dense_resource<{{.*}}>, values = dense_resource<{{.*}}>}
hone.param @up : tensor<12x8xf32> = dense<[
  [0.5, -1.25, 2.0, 0.75, -0.5, 1.0, 0.25, -2.0], [1.5, 0.25, -0.75, 1.0, 2.0, -1.0, 0.5, 0.125],
  [-0.5, 1.75, 0.5, 0.25, 1.0, 0.75, -1.5, 1.0], [0.125, 1.0, -2.0, 0.5, -1.0, 0.25, 1.25, 0.5],
  [1.0, -0.5, 0.75, -1.75, 0.5, 1.5, -0.25, 1.0], [-1.25, 0.5, 1.0, 0.75, -0.5, 2.0, 1.0, -0.125],
  [0.75, 1.5, -0.25, 1.0, 1.25, -0.5, 0.5, -1.0], [2.0, -1.0, 0.5, 0.25, -0.75, 1.0, 1.75, 0.5],
  [-0.5, 0.25, 1.5, -1.0, 0.75, 0.5, -2.0, 1.25], [1.0, 0.75, -0.5, 2.0, 0.25, -1.25, 1.0, 0.5],
  [0.25, -1.5, 1.0, 0.5, -1.0, 0.125, 0.75, 2.0], [-1.0, 0.5, 0.25, -0.75, 1.5, 1.0, -0.5, 0.25]]> : tensor<12x8xf32>
hone.param @gate : tensor<12x8xf32> = dense<[
  [1.0, 0.75, -0.5, 2.0, 0.25, -1.25, 1.0, 0.5], [0.25, -1.5, 1.0, 0.5, -1.0, 0.125, 0.75, 2.0],
  [-0.5, 0.25, 1.5, -1.0, 0.75, 0.5, -2.0, 1.25], [-1.0, 0.5, 0.25, -0.75, 1.5, 1.0, -0.5, 0.25],
  [0.75, 1.5, -0.25, 1.0, 1.25, -0.5, 0.5, -1.0], [2.0, -1.0, 0.5, 0.25, -0.75, 1.0, 1.75, 0.5],
  [1.0, -0.5, 0.75, -1.75, 0.5, 1.5, -0.25, 1.0], [-1.25, 0.5, 1.0, 0.75, -0.5, 2.0, 1.0, -0.125],
  [-0.5, 1.75, 0.5, 0.25, 1.0, 0.75, -1.5, 1.0], [0.125, 1.0, -2.0, 0.5, -1.0, 0.25, 1.25, 0.5],
  [0.5, -1.25, 2.0, 0.75, -0.5, 1.0, 0.25, -2.0], [1.5, 0.25, -0.75, 1.0, 2.0, -1.0, 0.5, 0.125]]> : tensor<12x8xf32>
hone.param @down : tensor<4x12xf32> = dense<[
  [0.5, -1.25, 2.0, 0.75, -0.5, 1.0, 0.25, -2.0, 1.0, 0.5, -0.25, 1.5], [1.5, 0.25, -0.75, 1.0, 2.0, -1.0, 0.5, 0.125, -1.0, 0.75, 2.0, 0.5],
  [-0.5, 1.75, 0.5, 0.25, 1.0, 0.75, -1.5, 1.0, 0.25, -2.0, 0.5, 1.0], [0.125, 1.0, -2.0, 0.5, -1.0, 0.25, 1.25, 0.5, 0.75, 1.0, -1.5, 0.25]]> : tensor<4x12xf32>
hone.param @other : tensor<4x4xf32> = dense<[[1.0, 0.5, 0.25, 2.0], [0.5, 1.0, 2.0, 0.25], [1.0, 2.0, 0.5, 0.25], [2.0, 1.0, 0.25, 0.5]]> : tensor<4x4xf32>

func.func @main(%x: tensor<?x8xf32>) -> tensor<?x4xf32> {
  %up = hone.get_param @up : tensor<12x8xf32>
  %gate = hone.get_param @gate : tensor<12x8xf32>
  %down = hone.get_param @down : tensor<4x12xf32>
  %other = hone.get_param @other : tensor<4x4xf32>
  %0 = hone.gated_mlp silu %x, gate(%gate), up(%up), down(%down)
     : (tensor<?x8xf32>, tensor<12x8xf32>, tensor<12x8xf32>, tensor<4x12xf32>) -> tensor<?x4xf32>
  %1 = hone.linear %0, %other : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %2 = math.absf %1 : tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}
