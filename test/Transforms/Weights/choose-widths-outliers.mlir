// Where one element of each row is far from the others, 2 bits beside a slot of outliers lose less than 2 bits alone, and fit where 8
// bits do not; with room for those there are no outliers.
// RUN: %python %S/Inputs/rows_with_outliers.py > %t.mlir
// RUN: hone-opt %t.mlir -hone-choose-widths="bits-per-weight=4 bits=2,8 groups=32" -remarks-filter=hone-choose-widths 2>&1 | FileCheck %s
// RUN: hone-opt %t.mlir -hone-choose-widths="bits-per-weight=3 bits=2,8 groups=32" -remarks-filter=hone-choose-widths 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: hone-opt %t.mlir -hone-choose-widths="bits-per-weight=9 bits=2,8 groups=32" -remarks-filter=hone-choose-widths 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: hone-opt %t.mlir -hone-choose-widths="bits-per-weight=4 bits=2,8 groups=32" -hone-quantize-weights="bits=4" | FileCheck %s --check-prefix=STORED

// CHECK: "weight gets 2 bits in groups of 32 and 16 outliers, for a loss of
// CHECK: hone.encoding = #hone.dense_sparse<of = #hone.affine<bits = 2, group = 32, scales = f16, activations = 8, atLeast = true>, outliers = 16>
// SMALL: "weight gets 2 bits in groups of 32, for a loss of
// LARGE: "weight gets 8 bits, for a loss of
// STORED-NOT: hone.encoding
// STORED: hone.param @weight : tensor<16x32xf32, #hone.dense_sparse<of = #hone.affine<bits = 2, group = 32, scales = f16, activations = 8, atLeast = true>, outliers = 16>>
