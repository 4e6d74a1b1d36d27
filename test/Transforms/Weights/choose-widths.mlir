// With room all get 8 bits; with less, what loses least for its bytes gets fewer. @smooth is a multiple of few codes, and loses
// nothing with 2 bits; @norm is no matrix and stays, at its cost.
// RUN: hone-opt %s -hone-choose-widths="bits-per-weight=11 bits=8" | FileCheck %s --check-prefix=WIDE
// RUN: hone-opt %s -hone-choose-widths="bits-per-weight=5.2 bits=2,8 groups=32" -remarks-filter=hone-choose-widths 2>&1 | FileCheck %s
// RUN: hone-opt %s -hone-choose-widths="bits-per-weight=5.2 bits=2,8 groups=32" -hone-quantize-weights="bits=4" | FileCheck %s --check-prefix=STORED
// RUN: hone-opt %s -hone-choose-widths="bits-per-weight=5.2 bits=2,8 groups=32" -o %t.1 && hone-opt %s -hone-choose-widths="bits-per-weight=5.2 bits=2,8 groups=32" | cmp %t.1 -

// RUN: not hone-opt %s -hone-choose-widths="bits-per-weight=2 bits=2,8 groups=32" 2>&1 | FileCheck %s --check-prefix=SMALL
// SMALL: error: expected a target of at least {{[0-9.]+}} bits a weight, which this model takes in the smallest forms, but got 2.00
// RUN: not hone-opt %s -hone-choose-widths="bits=7" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: expected bits and groups that an encoding has
// RUN: not hone-opt %s -hone-choose-widths="bits-per-weight=0" 2>&1 | FileCheck %s --check-prefix=ZERO
// ZERO: error: expected bits-per-weight to be more than 0 and at most 32, but got 0.00
// RUN: not hone-opt %s -hone-choose-widths="statistics=%t.absent" 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: error: cannot open {{.*}}.absent: No such file or directory

// WIDE-DAG: hone.param @smooth {{.*}} {hone.encoding = #hone.affine<bits = 8, scales = f16, activations = 8, atLeast = true>}
// WIDE-DAG: hone.param @rough {{.*}} {hone.encoding = #hone.affine<bits = 8,

// CHECK-DAG: [Missed] Chosen {{.*}}"errors of all weights count the same: nobody measured what they cost, as hone calibrate --cost-tokens does"
// CHECK-DAG: [Passed] Chosen {{.*}}"smooth gets 2 bits in groups of 32, for a loss of 0.000E+00"
// CHECK-DAG: [Passed] Chosen {{.*}}"rough gets 8 bits, for a loss of {{[1-9]\.[0-9]+E-[0-9]+}}"
// CHECK-DAG: [Missed] Chosen {{.*}}"norm takes no part: it is no matrix of f32"
// CHECK-DAG: hone.param @smooth : tensor<4x32xf32> {{.*}} {hone.encoding = #hone.affine<bits = 2, group = 32,
// CHECK-DAG: hone.param @rough : tensor<2x32xf32> {{.*}} {hone.encoding = #hone.affine<bits = 8, scales = f16

// STORED-NOT: hone.encoding
// STORED-DAG: hone.param @smooth : tensor<4x32xf32, #hone.affine<bits = 2, group = 32,
// STORED-DAG: hone.param @rough : tensor<2x32xf32, #hone.affine<bits = 8, scales = f16
hone.param @smooth : tensor<4x32xf32> = dense<1.0> : tensor<4x32xf32>
hone.param @rough : tensor<2x32xf32> = dense<[
  [0.5, -1.25, 2.0, 0.75, -0.5, 1.0, 0.25, -2.0, 1.5, 0.25, -0.75, 1.0, 2.0, -1.0, 0.5, 0.125,
   -0.5, 1.75, 0.5, 0.25, 1.0, 0.75, -1.5, 1.0, 0.125, 1.0, -2.0, 0.5, -1.0, 0.25, 1.25, 0.5],
  [1.0, -0.5, 0.75, -1.75, 0.5, 1.5, -0.25, 1.0, -1.25, 0.5, 1.0, 0.75, -0.5, 2.0, 1.0, -0.125,
   0.75, 1.5, -0.25, 1.0, 1.25, -0.5, 0.5, -1.0, 2.0, -1.0, 0.5, 0.25, -0.75, 1.0, 1.75, 0.3]]> : tensor<2x32xf32>
hone.param @norm : tensor<4xf32> = dense<1.0> : tensor<4xf32>
func.func @main(%x: tensor<?x32xf32>) -> (tensor<?x4xf32>, tensor<?x2xf32>) {
  %smooth = hone.get_param @smooth : tensor<4x32xf32>
  %rough = hone.get_param @rough : tensor<2x32xf32>
  %norm = hone.get_param @norm : tensor<4xf32>
  %0 = hone.linear %x, %smooth : (tensor<?x32xf32>, tensor<4x32xf32>) -> tensor<?x4xf32>
  %1 = hone.rms_norm %0, %norm epsilon(1.0e-6) : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %2 = hone.linear %x, %rough : (tensor<?x32xf32>, tensor<2x32xf32>) -> tensor<?x2xf32>
  return %1, %2 : tensor<?x4xf32>, tensor<?x2xf32>
}
