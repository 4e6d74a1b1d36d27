// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: %python %hone_src/test/Transforms/Prune/Inputs/statistics.py other < /dev/null
// RUN: not hone-opt %s -hone-quantize-weights="statistics=other" 2> message
// RUN: %python %hone_src/test/Transforms/Prune/Inputs/statistics.py same one=0:8 two[0]=0:8 two[1]=0:8 down[0]=1:4 down[1]=1:4 < message
// RUN: %python %hone_src/test/Transforms/Prune/Inputs/statistics.py missing one=0:8 two[0]=0:8 two[1]=2:8 down[0]=1:4 down[1]=1:4 --set=2.rows:0 < message
// RUN: hone-opt %s -hone-quantize-weights="bits=3 group=0 method=gptq statistics=same" -remarks-filter=hone-quantize-weights 2>&1 | FileCheck %s
// RUN: hone-opt %s -hone-quantize-weights="bits=3 group=0 method=gptq statistics=missing" -remarks-filter=hone-quantize-weights 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: hone-opt %s -hone-quantize-weights="bits=4 group=32 outliers=10%% outlier-method=magnitude" -remarks-filter=hone-quantize-weights 2>&1 | FileCheck %s --check-prefix=NEAREST
// RUN: hone-opt %s -hone-quantize-weights="bits=4 group=32 outliers=10%% outlier-method=magnitude expert-outliers=false" -remarks-filter=hone-quantize-weights 2>&1 | FileCheck %s --check-prefix=WHOLE
// RUN: hone-opt %s -hone-quantize-weights="bits=4 group=32 method=gptq outliers=10%% statistics=same" -remarks-filter=hone-quantize-weights 2>&1 | FileCheck %s --check-prefix=OUTLIERS
// RUN: hone-opt %s -hone-prune-nm="method=sparsegpt statistics=same" -remarks-filter=hone-prune-nm 2>&1 | FileCheck %s --check-prefix=PRUNED
// RUN: hone-opt %s -hone-prune-nm="method=wanda statistics=missing" -remarks-filter=hone-prune-nm 2>&1 | FileCheck %s --check-prefix=PRUNED

// Each expert is rounded by what was measured of it: two experts that are @one err as that does.
// CHECK-DAG: "one is stored in 3 bits an element, with a relative error of [[ERROR:0.[0-9]+]] of its outputs"
// CHECK-DAG: "two is stored in 3 bits an element, with a relative error of [[ERROR]] of its outputs"
// CHECK-DAG: "down is stored in 3 bits an element, with a relative error of

// One that no row chose has no error either.
// MISSING-DAG: "one is stored in 3 bits an element, with a relative error of [[ERROR:0.[0-9]+]] of its outputs"
// MISSING-DAG: "two is stored in 3 bits an element, 1 of 2 experts rounded to nearest: no row chose them, with a relative error of [[ERROR]] of its outputs"

// All experts at once, or each by itself: a panel of outliers is sixteen rows of one expert then.
// NEAREST-DAG: "two is stored in 4 bits an element, and 1 slots of elements in 16"
// WHOLE-DAG: "two is stored in 4 bits an element, without outliers: it is of experts"
// WHOLE-DAG: "one is stored in 4 bits an element, and 1 slots of elements in 16"
// OUTLIERS-DAG: "two is stored in 4 bits an element, without outliers: the 4 outputs of an expert are no multiple of 16, with a relative error
// PRUNED-DAG: "one is pruned to 2 of 4 by {{.*}}, with a relative error of [[ERROR:0.[0-9]+]] of its outputs"
// PRUNED-DAG: "two is pruned to 2 of 4 by {{.*}}, with a relative error of [[ERROR]] of its outputs"

hone.param @one : tensor<4x8xf32> = dense<[[0.3, -1.2, 0.8, 0.1, -0.4, 0.9, 1.7, -0.6], [1.1, 0.2, -0.7, 0.5, 0.6, -1.3, 0.4, 0.3],
  [-0.9, 0.7, 1.4, -0.2, 0.8, 0.1, -1.1, 0.5], [0.6, -0.3, 0.2, 1.9, -1.5, 0.4, 0.7, -0.8]]> : tensor<4x8xf32>
hone.param @two : tensor<8x8xf32> = dense<[[0.3, -1.2, 0.8, 0.1, -0.4, 0.9, 1.7, -0.6], [1.1, 0.2, -0.7, 0.5, 0.6, -1.3, 0.4, 0.3],
  [-0.9, 0.7, 1.4, -0.2, 0.8, 0.1, -1.1, 0.5], [0.6, -0.3, 0.2, 1.9, -1.5, 0.4, 0.7, -0.8],
  [0.3, -1.2, 0.8, 0.1, -0.4, 0.9, 1.7, -0.6], [1.1, 0.2, -0.7, 0.5, 0.6, -1.3, 0.4, 0.3],
  [-0.9, 0.7, 1.4, -0.2, 0.8, 0.1, -1.1, 0.5], [0.6, -0.3, 0.2, 1.9, -1.5, 0.4, 0.7, -0.8]]> : tensor<8x8xf32>
hone.param @down : tensor<16x4xf32> = dense<[[0.5, 0.3, -0.2, 0.9], [0.1, -0.6, 0.4, 0.2], [0.7, 0.2, 0.8, -0.3], [-0.4, 0.9, 0.1, 0.6],
  [0.5, 0.3, -0.2, 0.9], [0.1, -0.6, 0.4, 0.2], [0.7, 0.2, 0.8, -0.3], [-0.4, 0.9, 0.1, 0.6],
  [0.5, 0.3, -0.2, 0.9], [0.1, -0.6, 0.4, 0.2], [0.7, 0.2, 0.8, -0.3], [-0.4, 0.9, 0.1, 0.6],
  [0.5, 0.3, -0.2, 0.9], [0.1, -0.6, 0.4, 0.2], [0.7, 0.2, 0.8, -0.3], [-0.4, 0.9, 0.1, 0.6]]> : tensor<16x4xf32>

func.func @block(%x: tensor<?x8xf32>, %ids: tensor<?x1xi64>, %p: tensor<?x1xf32>) -> (tensor<?x4xf32>, tensor<?x8xf32>) {
  %one = hone.get_param @one : tensor<4x8xf32>
  %two = hone.get_param @two : tensor<8x8xf32>
  %down = hone.get_param @down : tensor<16x4xf32>
  %0 = hone.linear %x, %one : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %1 = hone.moe relu %x, experts(%ids, %p), up(%two), down(%down)
    : (tensor<?x8xf32>, tensor<?x1xi64>, tensor<?x1xf32>, tensor<8x8xf32>, tensor<16x4xf32>) -> tensor<?x8xf32>
  %2 = tensor.extract_slice %0[0, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<1x4xf32>
  %3 = tensor.cast %2 : tensor<1x4xf32> to tensor<?x4xf32>
  %4 = arith.negf %1 : tensor<?x8xf32>
  return %3, %4 : tensor<?x4xf32>, tensor<?x8xf32>
}
