// RUN: hone-opt %s --hone-fuse-elementwise | FileCheck %s --enable-var-scope --check-prefixes=CHECK,ALL
// RUN: hone-opt %s --hone-fuse-elementwise=max-operations=5 | FileCheck %s --enable-var-scope --check-prefixes=CHECK,FEW

#id = affine_map<(d0) -> (d0)>

// Three operations and a yield each: all in one, or two and one.
// CHECK-LABEL: func @chain
func.func @chain(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32> {
  // ALL-COUNT-1: linalg.generic
  // FEW-COUNT-2: linalg.generic
  // CHECK-NOT: linalg.generic
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%0 : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %e = math.sin %a : f32
    linalg.yield %e : f32
  } -> tensor<?xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%1 : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %e = math.cos %a : f32
    %f = math.sqrt %e : f32
    linalg.yield %f : f32
  } -> tensor<?xf32>
  return %2 : tensor<?xf32>
}

// What two others read is not computed twice.
// CHECK-LABEL: func @two_readers
func.func @two_readers(%x: tensor<?xf32>, %out: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  // CHECK-COUNT-2: linalg.generic
  // CHECK-NOT: linalg.generic
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%0 : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %e = math.sin %a : f32
    linalg.yield %e : f32
  } -> tensor<?xf32>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}

// A quotient for each column is computed once, not for each row again; one for each row is fused.
// CHECK-LABEL: func @columns_and_rows
func.func @columns_and_rows(%x: tensor<?x?xf32>, %v: tensor<?xf32>, %w: tensor<?xf32>, %out: tensor<?xf32>, %outs: tensor<?x?xf32>) -> tensor<?x?xf32> {
  // ALL: linalg.generic {{.*}} ins(%arg1
  // ALL: arith.divf
  // ALL: linalg.generic
  // ALL: math.sqrt
  // ALL: arith.mulf
  // ALL: arith.addf
  // ALL-NOT: linalg.generic
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.constant 3.0 : f32
    %e = arith.divf %c, %a : f32
    linalg.yield %e : f32
  } -> tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%w : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %e = math.sqrt %a : f32
    linalg.yield %e : f32
  } -> tensor<?xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>,
                                        affine_map<(d0, d1) -> (d0, d1)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %0, %1 : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>) outs(%outs : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    %e = arith.mulf %a, %b : f32
    %f = arith.addf %e, %c : f32
    linalg.yield %f : f32
  } -> tensor<?x?xf32>
  return %2 : tensor<?x?xf32>
}
