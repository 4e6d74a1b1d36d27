// RUN: hone-opt %s --hone-skip-softmax="factor=0.25" | FileCheck %s
// RUN: hone-opt %s --hone-skip-softmax="factor=0.25" --remarks-filter="hone-skip-softmax" -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: not hone-opt %s --hone-skip-softmax="factor=0" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not hone-opt %s --hone-skip-softmax="factor=1e60" 2>&1 | FileCheck %s --check-prefix=LARGE
// ZERO: expected factor to be a positive number, but got 0
// LARGE: expected factor to be a positive number

// Whatever the pattern is; one that has a factor gets the new one.
// CHECK-LABEL: @all
// CHECK: hone.attention %{{.*}} pattern(#hone.causal) scale(1.250000e-01) skip(2.500000e-01) :
// CHECK: hone.attention %{{.*}} pattern(#hone.full) scale(1.250000e-01) softcap(3.000000e+01) skip(2.500000e-01) :
// REMARK: [Passed] SkipSoftmax {{.*}}"queries skip keys below the running maximum, with at most 20.00 % of their attention probability"
func.func @all(%q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32> {
  %0 = hone.attention %q, %k, %k pattern(#hone.causal) scale(0.125)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32>
  %1 = hone.attention %0, %k, %k pattern(#hone.full) scale(0.125) softcap(30.0) skip(9.0)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32>
  return %1 : tensor<?x4x?x64xf32>
}
