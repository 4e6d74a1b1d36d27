// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --allow-unregistered-dialect --hone-hoist-checks | FileCheck %s
// RUN: hone-opt %s --allow-unregistered-dialect --hone-hoist-checks --canonicalize | FileCheck %s --check-prefix=FOLDED

// The size is checked before the loop over it, whose result gets the type that it has then.
// CHECK-LABEL: @fixed
// CHECK: %[[SIZE:.*]] = tensor.dim %arg0
// CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[SIZE]]
// CHECK: hrt.check %[[SAME]], "expected 1, but got {}"(%[[SIZE]])
// CHECK: linalg.generic
// FOLDED-LABEL: @fixed
// FOLDED: hrt.check
// FOLDED: linalg.generic {{.*}} ins(%{{.*}} : tensor<1xi32>)
func.func @fixed(%x: tensor<?xi32>) -> tensor<1xi64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xi32>
  %e = tensor.empty(%n) : tensor<?xi64>
  %w = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%x : tensor<?xi32>) outs(%e : tensor<?xi64>) {
  ^bb0(%in: i32, %out: i64):
    %y = arith.extsi %in : i32 to i64
    linalg.yield %y : i64
  } -> tensor<?xi64>
  %same = arith.cmpi eq, %n, %c1 : index
  hrt.check %same, "expected 1, but got {}"(%n)
  %r = tensor.cast %w : tensor<?xi64> to tensor<1xi64>
  return %r : tensor<1xi64>
}

// What depends on data stays after it, division after the check of the divisor; checks of one place keep their order.
// CHECK-LABEL: @data
// CHECK: hrt.check %{{.*}}, "first"
// CHECK: hrt.check %{{.*}}, "second"
// CHECK: "test.work"
// CHECK: tensor.extract
// CHECK: hrt.check %{{.*}}, "third"
// CHECK: arith.divsi
// CHECK: hrt.check %{{.*}}, "fourth"
func.func @data(%x: tensor<?xindex>, %n: index, %m: index) {
  %c0 = arith.constant 0 : index
  "test.work"() : () -> ()
  %a = arith.cmpi ne, %n, %c0 : index
  hrt.check %a, "first"
  %b = arith.cmpi ne, %m, %c0 : index
  hrt.check %b, "second"
  %e = tensor.extract %x[%c0] : tensor<?xindex>
  "test.work"() : () -> ()
  %c = arith.cmpi ne, %e, %c0 : index
  hrt.check %c, "third"
  %q = arith.divsi %n, %e : index
  "test.work"() : () -> ()
  %d = arith.cmpi ne, %q, %c0 : index
  hrt.check %d, "fourth"
  return
}

// In a region, to its beginning at most.
// CHECK-LABEL: @region
// CHECK: scf.if
// CHECK-NEXT: arith.constant
// CHECK-NEXT: arith.cmpi
// CHECK-NEXT: hrt.check
func.func @region(%c: i1, %n: index) {
  scf.if %c {
    "test.work"() : () -> ()
    %c1 = arith.constant 1 : index
    %a = arith.cmpi eq, %n, %c1 : index
    hrt.check %a, "expected 1"
  }
  return
}
