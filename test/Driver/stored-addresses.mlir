// Stored planes whose elements are addresses are checked before anything is unpacked by them.

// RUN: hone compile %s --start-from=rewrite --quiet -o %t.hone
// RUN: hone inspect %t.hone --masks | FileCheck %s --check-prefix=GOOD
// GOOD: 100.00 {{.*}} w: 16x32
// RUN: sed 's/\[0, 2\]/[0, 3]/' %s > %t.last.mlir
// RUN: not hone compile %t.last.mlir --start-from=rewrite --quiet -o %t.last.hone 2>&1 | FileCheck %s --check-prefix=LAST
// LAST: hone: error: {{.*}}:17:1: expected element 1 of 'w.starts' to be from 0 to 2, but got 3
// RUN: sed 's/\[0, 2\]/[-9, 2]/' %s > %t.first.mlir
// RUN: not hone compile %t.first.mlir --start-from=rewrite --quiet -o %t.first.hone 2>&1 | FileCheck %s --check-prefix=FIRST
// FIRST: hone: error: {{.*}}:17:1: expected element 0 of 'w.starts' to be 0, but got -9
// RUN: sed 's/dense<31>/dense<32>/' %s > %t.column.mlir
// RUN: not hone compile %t.column.mlir --start-from=rewrite --quiet -o %t.column.hone 2>&1 | FileCheck %s --check-prefix=COLUMN
// COLUMN: hone: error: {{.*}}:17:1: expected element 0 of 'w.columns' to be less than 32, but got 32

#sparse = #hone.dense_sparse<of = #hone.affine<bits = 4, group = 32>, outliers = 32>
hone.param @w : tensor<16x32xf32, #sparse> = {
  starts = dense<[0, 2]> : tensor<2xi32>, columns = dense<31> : tensor<2x16xi16>, outliers = dense<1.0> : tensor<2x16xf16>,
  values = dense<0> : tensor<16x16xi8>, scales = dense<1.0> : tensor<16x1xf32>}
func.func @main(%x: tensor<?x32xf32>) -> tensor<?x16xf32> {
  %w = hone.get_param @w : tensor<16x32xf32, #sparse>
  %y = hone.linear %x, %w : (tensor<?x32xf32>, tensor<16x32xf32, #sparse>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
