// RUN: %python %S/Inputs/sensitivities.py %t.scores 2:3 0:1
// RUN: hone-opt %s -hone-quantize-weights="bits=4 group=8 outliers=6.25%% outlier-method=magnitude" | FileCheck %s --check-prefixes=CHECK,LAZY
// RUN: hone-opt %s -hone-quantize-weights="bits=4 group=8 outliers=6.25%%" | FileCheck %s --check-prefixes=CHECK,SPQR
// RUN: hone-opt %s -hone-quantize-weights="bits=4 group=8 outliers=6.25%% outlier-method=sensitivity sensitivities=%t.scores" | FileCheck %s --check-prefixes=CHECK,SCORES
// RUN: hone-opt %s -hone-quantize-weights="bits=4 group=8 outliers=6.25%%" -remarks-filter=hone-quantize-weights 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: not hone-opt %s -hone-quantize-weights=outliers=0.45 2>&1 | FileCheck %s --check-prefix=SHARE
// RUN: not hone-opt %s -hone-quantize-weights=outliers=101%% 2>&1 | FileCheck %s --check-prefix=MUCH
// RUN: not hone-opt %s -hone-quantize-weights="outliers=1%% outlier-method=random" 2>&1 | FileCheck %s --check-prefix=METHOD
// RUN: not hone-opt %s -hone-quantize-weights="outliers=1%% outlier-method=sensitivity" 2>&1 | FileCheck %s --check-prefix=DATA
// RUN: not hone-opt %s -hone-quantize-weights="outliers=1%% sensitivities=%t.scores" 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: not hone-opt %s -hone-quantize-weights="outliers=1%% outlier-method=sensitivity sensitivities=%t.absent" 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: sed s/weight/heavy_/ %t.scores > %t.renamed
// RUN: not hone-opt %s -hone-quantize-weights="outliers=1%% outlier-method=sensitivity sensitivities=%t.renamed" 2>&1 | FileCheck %s --check-prefix=NAMES

// SHARE: error: expected outliers to be a share of the elements such as 0.45%, but got '0.45'
// MUCH: error: expected outliers to be a share of the elements such as 0.45%, but got '101%'
// METHOD: error: unsupported method 'random' to choose outliers; supported: magnitude, sensitivity, spqr
// DATA: error: expected a file of statistics or of sensitivities for outlier-method 'sensitivity'
// NAMES: error: {{.*}}.renamed: expected tensors with the names of weights of the model, such as 'weight', but there is none
// UNUSED: error: expected outliers and outlier-method 'sensitivity' with a file of sensitivities
// ABSENT: error: cannot open {{.*}}.absent: No such file or directory

// Half an element of each row is one slot, of all rows; a matrix of which the share is less has none.
// CHECK: hone.param @weight : tensor<4x8xf32, #hone.dense_sparse<of = #hone.affine<bits = 4, group = 8, scales = f16, activations = 8, atLeast = true>, outliers = 16>> =
// LAZY-SAME: #hone.converted<tensor<4x8xf32> = dense<
// SPQR-SAME: {columns = dense_resource<{{.*}}>, outliers = dense_resource<{{.*}}>, scales = dense_resource<{{.*}}>, starts = dense_resource<{{.*}}>, values = dense_resource<{{.*}}>}
// CHECK: hone.param @small : tensor<1x4xf32, #hone.affine<bits = 4, group = 8, scales = f16, activations = 8, atLeast = true>> =
// REMARK-DAG: "weight is stored in 4 bits an element, and 1 slots of elements in 16"
// REMARK-DAG: "small is stored in 4 bits an element, and 0 slots of elements in 16"

// A 1.0 is what the others of row 0 cannot mean beside a -1.0; 5.0 leaves row 1 a finer scale, and -9.0 row 3; row 2 has nothing
// to gain, and gives its first element. Rows that are not there have 0.
// SPQR-DAG: "0x400000000000000001000000"
// SPQR-DAG: "0x4000000005000300000002000000{{0*}}"
// SPQR-DAG: "0x40000000003C004500B880C80000{{0*}}"
// SCORES-DAG: "0x4000000001000000030000000000{{0*}}"
hone.param @weight : tensor<4x8xf32> = dense<[
  [0.5, -1.0, 0.25, 0.75, -0.5, 1.0, 0.25, -0.75], [0.5, 0.25, -0.75, 5.0, 0.5, -1.0, 0.5, 0.125],
  [-0.5, 0.75, 0.5, 0.25, 1.0, 0.75, -0.5, 1.0], [0.125, 1.0, -9.0, 0.5, -1.0, 8.5, 0.25, 0.5]]> : tensor<4x8xf32>
hone.param @small : tensor<1x4xf32> = dense<[[0.5, 1.0, 0.25, -0.5]]> : tensor<1x4xf32>

func.func @main(%x: tensor<?x8xf32>, %y: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x1xf32>) {
  %weight = hone.get_param @weight : tensor<4x8xf32>
  %small = hone.get_param @small : tensor<1x4xf32>
  %0 = hone.linear %x, %weight : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %1 = hone.linear %y, %small : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x1xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<?x1xf32>
}
