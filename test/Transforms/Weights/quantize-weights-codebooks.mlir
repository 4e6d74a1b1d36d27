// RUN: hone-opt %s -hone-quantize-weights="bits=3 method=squeezellm" | FileCheck %s
// RUN: hone-opt %s -hone-quantize-weights="bits=4 method=squeezellm output-bits=8" | FileCheck %s --check-prefix=OUTPUT
// RUN: hone-opt %s -hone-quantize-weights="bits=2 method=squeezellm" | FileCheck %s --check-prefix=TWO
// RUN: hone-opt %s -hone-quantize-weights="bits=3 method=squeezellm" -remarks-filter=hone-quantize-weights 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: hone-opt %s -hone-quantize-weights="bits=3 method=squeezellm outliers=6.25%% outlier-method=magnitude" | FileCheck %s --check-prefix=OUTLIERS
// RUN: %python %S/Inputs/sensitivities.py %t.scores 2:3 0:1
// RUN: hone-opt %s -hone-quantize-weights="bits=3 method=squeezellm sensitivities=%t.scores" | FileCheck %s --check-prefix=SCORES
// RUN: not hone-opt %s -hone-quantize-weights="bits=5 method=squeezellm" 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: not hone-opt %s -hone-quantize-weights="bits=3 method=squeezellm-gptq" 2>&1 | FileCheck %s --check-prefix=DATA
// RUN: not hone-opt %s -hone-quantize-weights="bits=3 method=squeezellm act-order=true" 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not hone-opt %s -hone-quantize-weights="bits=3 method=squeezellm outliers=1%%" 2>&1 | FileCheck %s --check-prefix=SPQR

// With statistics remarks tell the error: none here, where no row has more values than a codebook has centroids.
// RUN: %python %S/../Prune/Inputs/statistics.py %t.other weight=0:8 < /dev/null
// RUN: not hone-opt %s -hone-quantize-weights="statistics=%t.other" 2>&1 | %python %S/../Prune/Inputs/statistics.py %t.stats weight=0:8
// RUN: hone-opt %s -hone-quantize-weights="bits=3 method=squeezellm-gptq refinements=2 statistics=%t.stats" -remarks-filter=hone-quantize-weights 2>&1 | FileCheck %s --check-prefix=SWEEP
// SWEEP: "weight is stored in 3 bits an element and codebooks, with a relative error of 0.0000 of its outputs"

// BITS: error: unsupported number of bits 5 of a codebook; supported: 2, 3, 4
// DATA: error: expected a file of statistics for method 'squeezellm-gptq'
// ORDER: error: expected method 'gptq' for act-order and static-groups, but got 'squeezellm'
// SPQR: error: unsupported method 'spqr' to choose outliers beside codebooks; supported: magnitude, sensitivity

// CHECK: hone.param @weight : tensor<4x8xf32, #hone.codebook<bits = 3>> = {codebook = dense_resource<{{.*}}> : tensor<4x8xbf16>, indices = dense_resource<{{.*}}> : tensor<4x3xi8>}
// TWO: hone.param @weight : tensor<4x8xf32, #hone.codebook<bits = 2>> = {codebook = dense_resource<{{.*}}> : tensor<4x4xbf16>, indices = dense_resource<{{.*}}> : tensor<4x2xi8>}
// OUTPUT: hone.param @weight : tensor<4x8xf32, #hone.codebook<bits = 4>>
// OUTPUT: hone.param @last : tensor<1x4xf32, #hone.affine<bits = 8, scales = f16, activations = 8, atLeast = true>>
// OUTLIERS: hone.param @weight : tensor<4x8xf32, #hone.dense_sparse<of = #hone.codebook<bits = 3>, outliers = 16>>
// Elements that a file says matter are centroids of their own; rows of which it says nothing have the centroids of all.
// SCORES: hone.param @weight : tensor<4x8xf32, #hone.codebook<bits = 3>>
// REMARK-DAG: "weight is stored in 3 bits an element and codebooks"

// The eight values of row 0 come back in their order; row 1 has three, the last of which fills its codebook up; half of row 2 are 0,
// which it keeps.
// CHECK-DAG: 80BF40BF00BF803E
// CHECK-DAG: 803F00400040
hone.param @weight : tensor<4x8xf32> = dense<[
  [0.5, -1.0, 0.25, 0.75, -0.5, 1.0, 0.375, -0.75], [1.0, 2.0, 1.0, 2.0, 1.0, 0.125, 2.0, 2.0],
  [0.0, 0.75, 0.0, 0.25, 1.0, 0.0, 0.0, 1.0], [0.125, 1.0, -9.0, 0.5, -1.0, 8.5, 0.25, 0.5]]> : tensor<4x8xf32>
hone.param @last : tensor<1x4xf32> = dense<[[0.5, 1.0, 0.25, -0.5]]> : tensor<1x4xf32>

func.func @main(%x: tensor<?x8xf32>) -> tensor<?x1xf32> {
  %weight = hone.get_param @weight : tensor<4x8xf32>
  %last = hone.get_param @last : tensor<1x4xf32>
  %0 = hone.linear %x, %weight : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %1 = hone.linear %0, %last : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x1xf32>
  return %1 : tensor<?x1xf32>
}
