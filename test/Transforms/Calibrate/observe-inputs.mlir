// RUN: hone-opt %s -hone-observe-inputs | FileCheck %s
// RUN: hone-opt %s -hone-observe-inputs -remarks-filter=hone-observe-inputs 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: hone-opt %s -hone-observe-inputs=entry=other | FileCheck %s --check-prefix=OTHER
// RUN: not hone-opt %s -hone-observe-inputs=entry=absent 2>&1 | FileCheck %s --check-prefix=ABSENT

// REMARK-DAG: [Passed] Observed {{.*}}"the input of query is observed at site 0"
// REMARK-DAG: [Passed] Observed {{.*}}"the input of key is observed at site 0"
// REMARK-DAG: [Passed] Observed {{.*}}"the input of gate is observed at site 1"
// REMARK-DAG: [Passed] Observed {{.*}}"the input of up is observed at site 1"
// REMARK-DAG: [Passed] Observed {{.*}}"the input of down is observed at site 2"
// REMARK-DAG: [Passed] Observed {{.*}}"the input of twice is observed at site 3"
// REMARK-DAG: [Missed] Observed {{.*}}"its input is not observed: its weight is no parameter"
// REMARK-DAG: [Passed] Observed {{.*}}"the input of experts[0] is observed at site 4"
// REMARK-DAG: [Passed] Observed {{.*}}"the input of experts[1] is observed at site 6"
// REMARK-DAG: [Passed] Observed {{.*}}"the input of second[0] is observed at site 5"
// REMARK-DAG: [Passed] Observed {{.*}}"the input of second[1] is observed at site 7"
// ABSENT: error: expected a function 'absent' to observe, but the module has none

hone.param @query : tensor<4x4xf32> = dense<0.0> : tensor<4x4xf32>
hone.param @key : tensor<2x4xf32> = dense<0.0> : tensor<2x4xf32>
hone.param @gate : tensor<6x4xf32> = dense<0.0> : tensor<6x4xf32>
hone.param @up : tensor<6x4xf32> = dense<0.0> : tensor<6x4xf32>
hone.param @down : tensor<4x6xf32> = dense<0.0> : tensor<4x6xf32>
hone.param @twice : tensor<4x4xf32> = dense<0.0> : tensor<4x4xf32>
hone.param @experts : tensor<8x4xf32> = dense<0.0> : tensor<8x4xf32>
hone.param @second : tensor<8x4xf32> = dense<0.0> : tensor<8x4xf32>

// One observation where an input is computed, for all layers that read it.
// CHECK-LABEL: @forward
// CHECK-SAME: (%[[X:.*]]: tensor<?x4xf32>,
// CHECK-NEXT: hone.observe %[[X]] site 0
// CHECK: %[[QUERY:.*]] = hone.linear %[[X]]
// A block is split: its hidden row is an input too.
// CHECK-NEXT: hone.observe %[[QUERY]] site 1
// CHECK-NOT: hone.gated_mlp
// CHECK: %[[HIDDEN:.*]] = linalg.generic
// CHECK: hone.observe %[[HIDDEN]] site 2
// CHECK: %[[DOWN:.*]] = hone.linear %[[HIDDEN]]
// Two inputs of one weight have one site.
// CHECK: hone.observe %[[DOWN]] site 3
// CHECK: %[[ONCE:.*]] = hone.linear %[[DOWN]]
// CHECK: hone.observe %[[ONCE]] site 3
// Each expert is shown the rows that chose it, and zeros in place of the others; so is its second layer.
// CHECK: hone.observe %[[CHOSEN:.*]] site 4
// CHECK: %[[MATRIX:.*]] = tensor.extract_slice %{{.*}}[0, 0] [4, 4] [1, 1]
// CHECK: hone.linear %[[CHOSEN]], %[[MATRIX]]
// CHECK-NOT: hone.moe
// CHECK-COUNT-3: hone.observe
// CHECK-NOT: hone.observe
// OTHER: func.func @forward
// OTHER-NOT: hone.observe
// OTHER: func.func @other
// OTHER-NEXT: hone.observe
func.func @forward(%x: tensor<?x4xf32>, %w: tensor<4x4xf32>, %ids: tensor<?x1xi64>, %p: tensor<?x1xf32>)
    -> (tensor<?x4xf32>, tensor<?x2xf32>) {
  %query = hone.get_param @query : tensor<4x4xf32>
  %key = hone.get_param @key : tensor<2x4xf32>
  %gate = hone.get_param @gate : tensor<6x4xf32>
  %up = hone.get_param @up : tensor<6x4xf32>
  %down = hone.get_param @down : tensor<4x6xf32>
  %twice = hone.get_param @twice : tensor<4x4xf32>
  %experts = hone.get_param @experts : tensor<8x4xf32>
  %second = hone.get_param @second : tensor<8x4xf32>
  %0 = hone.linear %x, %query : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %1 = hone.linear %x, %key : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  %2 = hone.gated_mlp silu %0, gate(%gate), up(%up), down(%down)
    : (tensor<?x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<4x6xf32>) -> tensor<?x4xf32>
  %3 = hone.linear %2, %twice : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %4 = hone.linear %3, %twice : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %5 = hone.linear %4, %w : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %6 = hone.moe relu %5, experts(%ids, %p), up(%experts), down(%second)
    : (tensor<?x4xf32>, tensor<?x1xi64>, tensor<?x1xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  return %6, %1 : tensor<?x4xf32>, tensor<?x2xf32>
}

func.func @other(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %query = hone.get_param @query : tensor<4x4xf32>
  %0 = hone.linear %x, %query : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
