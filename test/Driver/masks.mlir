// Which elements are kept, of a model and of an artefact made from it.
// RUN: hone inspect %s --masks | FileCheck %s
// RUN: hone inspect %s --masks --weight=pruned --rows=1:9 --columns=4:12 | FileCheck %s --check-prefix=BLOCK
// RUN: rm -rf %t.hone && hone compile %s -o %t.hone && hone inspect %t.hone --masks --weight=pruned --rows=1:9 --columns=4:12 | FileCheck %s --check-prefix=BLOCK
// RUN: hone compile %s --quantize=int8 -o %t.hone --quiet && hone inspect --masks %t.hone | FileCheck %s --check-prefix=INTEGERS

// RUN: not hone inspect %s --masks --weight=norm 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: {{^}}hone: error: masks.mlir: unknown matrix 'norm'; 'hone inspect --masks' without --weight lists those of the model{{$}}
// RUN: not hone inspect %s --masks --weight=pruned --rows=4:8 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// OUTSIDE: {{^}}hone: error: masks.mlir: expected --rows to begin before 4, but got '4:8'{{$}}
// RUN: not hone inspect %s --masks --weight=pruned --columns=8:4 2>&1 | FileCheck %s --check-prefix=RANGE
// RANGE: {{^}}hone: error: masks.mlir: expected --columns to be B:E with 0 <= B < E, but got '8:4'{{$}}
// RUN: not hone inspect %s --masks --mask-group=0 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not hone inspect %s --masks --mask-group=9223372036854775807 2>&1 | FileCheck %s --check-prefix=LARGE-GROUP
// LARGE-GROUP: {{^}}hone: error: expected --mask-group to be a whole number from 1 to 65536, but got 9223372036854775807{{$}}
// GROUP: {{^}}hone: error: expected --mask-group to be a whole number from 1 to 65536, but got 0{{$}}
// RUN: not hone inspect --masks absent.hone 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: {{^}}hone: error: cannot open absent.hone/weights.safetensors: No such file or directory{{$}}

// CHECK: kept % pattern outliers matrix
// CHECK-NEXT: 50.00 2:4 1 pruned: 4x24 f32
// CHECK-NEXT: 100.00 - 0 dense: 2x4 f32
// CHECK-NOT: norm

// BLOCK: pruned: 4x24
// BLOCK-NEXT: 48 of 96 elements kept (50.00 %), 1 outliers
// BLOCK-NEXT: 24 groups of 4 keep 2
// BLOCK-NEXT: rows 1 to 3, columns 4 to 11: . is 0, # is kept, O is kept and at least 4 times
// BLOCK-NEXT: 1 #.#. ..O# 4 of 8 here, 12 of 24 in the row
// BLOCK-NEXT: 2 ##.. ##.. 4 of 8 here, 12 of 24 in the row
// BLOCK-NEXT: 3 ##.. ##.. 4 of 8 here, 12 of 24 in the row
// BLOCK-NOT: {{.}}
// INTEGERS: 50.00 2:4 {{[01]}} pruned: 4x24 #hrt.panels<{{.*}}#hone.affine<bits = 8
hone.param @pruned : tensor<4x24xf32> = dense<[
  [1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0],
  [1.0, 2.0, 0.0, 0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 90.0, 1.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0],
  [1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0],
  [1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0]]> : tensor<4x24xf32>
hone.param @dense : tensor<2x4xf32> = dense<1.0> : tensor<2x4xf32>
hone.param @norm : tensor<4xf32> = dense<1.0> : tensor<4xf32>
func.func @main(%x: tensor<?x24xf32>) -> tensor<?x2xf32> {
  %pruned = hone.get_param @pruned : tensor<4x24xf32>
  %dense = hone.get_param @dense : tensor<2x4xf32>
  %norm = hone.get_param @norm : tensor<4xf32>
  %0 = hone.linear %x, %pruned : (tensor<?x24xf32>, tensor<4x24xf32>) -> tensor<?x4xf32>
  %1 = hone.rms_norm %0, %norm epsilon(1.0e-6) : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %2 = hone.linear %1, %dense : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  return %2 : tensor<?x2xf32>
}
