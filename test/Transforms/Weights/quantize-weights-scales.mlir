// The fingerprint of this module is in the message that refuses statistics of another one.
// RUN: %python %S/../Prune/Inputs/statistics.py %t.other < /dev/null
// RUN: not hone-opt %s -hone-quantize-weights="statistics=%t.other" 2>&1 | %python %S/../Prune/Inputs/statistics.py %t.stats product=0:8
// RUN: hone-opt %s -hone-quantize-weights="bits=2 group=8 scales=mse" | FileCheck %s --check-prefix=SEARCHED
// RUN: hone-opt %s -hone-quantize-weights="bits=2 group=8 scales=mse" -remarks-filter=hone-quantize-weights 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: hone-opt %s -hone-quantize-weights="bits=2 group=8 method=gptq statistics=%t.stats scales=mse" -remarks-filter=hone-quantize-weights 2>&1 | FileCheck %s --check-prefix=GPTQ
// RUN: hone-opt %s -hone-quantize-weights="bits=2 group=8 method=gptq statistics=%t.stats scales=mse refinements=2" -remarks-filter=hone-quantize-weights 2>&1 | FileCheck %s --check-prefix=GPTQ
// RUN: hone-opt %s -hone-quantize-weights="bits=2 group=8 method=gptq statistics=%t.stats scales=mse refinements=2 outliers=6.25%%" -remarks-filter=hone-quantize-weights 2>&1 | FileCheck %s --check-prefix=OUTLIERS

// The bytes differ with the scales, and are the same twice.
// RUN: hone-opt %s -hone-quantize-weights="bits=2 group=8 method=gptq statistics=%t.stats" -o %t.absmax
// RUN: hone-opt %s -hone-quantize-weights="bits=2 group=8 method=gptq statistics=%t.stats scales=mse" -o %t.mse
// RUN: hone-opt %s -hone-quantize-weights="bits=2 group=8 method=gptq statistics=%t.stats scales=mse refinements=2" -o %t.refined
// RUN: hone-opt %s -hone-quantize-weights="bits=2 group=8 method=gptq statistics=%t.stats scales=mse refinements=2" -o %t.again
// RUN: not cmp %t.absmax %t.mse
// RUN: not cmp %t.mse %t.refined
// RUN: cmp %t.refined %t.again

// Of 2 bits, one element of 4 among seven of 1: a step of 2 that reaches it makes 0 or 2 of the others, a step of 1 leaves them.
// SEARCHED: hone.param @table : tensor<1x8xf32, #hone.affine<bits = 2, group = 8, scales = f16, activations = 8, atLeast = true>> = {scales = dense_resource<[[SCALES:.*]]> : tensor<1x1xf16>, values = dense_resource<[[CODES:.*]]> : tensor<1x2xi8>}
// REMARK-DAG: "table is stored in 2 bits an element"
// REMARK-DAG: "product is stored in 2 bits an element"
// GPTQ-DAG: "table is stored in 2 bits an element, rounded to nearest: an embedding reads it"
// GPTQ-DAG: "product is stored in 2 bits an element, with a relative error of 0.{{[0-9]+}} of its outputs"
// OUTLIERS-DAG: "table is stored in 2 bits an element, and 1 slots of elements in 16, rounded to nearest: an embedding reads it"
// OUTLIERS-DAG: "product is stored in 2 bits an element, and 1 slots of elements in 16, with a relative error of 0.{{[0-9]+}} of its outputs"
hone.param @table : tensor<1x8xf32> = dense<[[4.0, 1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0]]> : tensor<1x8xf32>
hone.param @product : tensor<4x8xf32> = dense<[
  [0.5, -1.25, 2.0, 0.75, -0.5, 1.0, 0.25, -2.0], [1.5, 0.25, -0.75, 1.0, 2.0, -1.0, 0.5, 0.125],
  [-0.5, 1.75, 0.5, 0.25, 1.0, 0.75, -1.5, 1.0], [0.125, 1.0, -2.0, 0.5, -1.0, 0.25, 1.25, 0.5]]> : tensor<4x8xf32>

func.func @main(%ids: tensor<?xi64>) -> tensor<?x4xf32> {
  %table = hone.get_param @table : tensor<1x8xf32>
  %product = hone.get_param @product : tensor<4x8xf32>
  %0 = hone.embedding %ids, %table : (tensor<?xi64>, tensor<1x8xf32>) -> tensor<?x8xf32>
  %1 = hone.linear %0, %product : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}
