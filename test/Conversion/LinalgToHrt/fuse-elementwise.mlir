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
