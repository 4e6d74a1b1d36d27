// RUN: hone-opt %s --pass-pipeline='builtin.module(func.func(hone-rematerialize{far=3}))' | FileCheck %s
// RUN: hone-opt %s --hone-rematerialize | FileCheck %s --check-prefix=NEAR

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

func.func private @make(index) -> tensor<?x8xf32>
func.func private @use(tensor<?x8xf32>)
func.func private @use_flat(tensor<?xf32>)
func.func private @use_wide(tensor<?x1x8xf32>)
func.func private @size() -> index

// What the product reads is there for the last use in any case.
// CHECK-LABEL: func.func @far(
// CHECK: %[[GATE:.*]] = call @make
// CHECK: %[[UP:.*]] = call @make
// CHECK: %[[FIRST:.*]] = linalg.generic {{.*}} ins(%[[GATE]], %[[UP]]
// CHECK: call @use(%[[FIRST]])
// CHECK-NOT: tensor.collapse_shape %[[FIRST]]
// CHECK: call @use(%[[UP]])
// CHECK: %[[EMPTY:.*]] = tensor.empty
// CHECK: %[[SECOND:.*]] = linalg.generic {{.*}} ins(%[[GATE]], %[[UP]] : {{.*}} outs(%[[EMPTY]]
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[SECOND]]
// CHECK: call @use_flat(%[[FLAT]])
// CHECK: call @use(%[[SECOND]])
// CHECK: call @use(%[[GATE]])
// NEAR-LABEL: func.func @far(
// NEAR-COUNT-1: linalg.generic
// NEAR-NOT: linalg.generic
// NEAR-LABEL: func.func @late_view(
func.func @far(%n: index) {
  %gate = call @make(%n) : (index) -> tensor<?x8xf32>
  %up = call @make(%n) : (index) -> tensor<?x8xf32>
  %empty = tensor.empty(%n) : tensor<?x8xf32>
  %hidden = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%gate, %up : tensor<?x8xf32>, tensor<?x8xf32>) outs(%empty : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %product = arith.mulf %a, %b : f32
    linalg.yield %product : f32
  } -> tensor<?x8xf32>
  call @use(%hidden) : (tensor<?x8xf32>) -> ()
  %flat = tensor.collapse_shape %hidden [[0, 1]] : tensor<?x8xf32> into tensor<?xf32>
  call @use(%gate) : (tensor<?x8xf32>) -> ()
  call @use(%gate) : (tensor<?x8xf32>) -> ()
  call @use(%up) : (tensor<?x8xf32>) -> ()
  call @use_flat(%flat) : (tensor<?xf32>) -> ()
  call @use(%hidden) : (tensor<?x8xf32>) -> ()
  call @use(%gate) : (tensor<?x8xf32>) -> ()
  call @use(%up) : (tensor<?x8xf32>) -> ()
  return
}

// A view that is made late stays where its sizes are known.
// CHECK-LABEL: func.func @late_view(
// CHECK: linalg.generic
// CHECK: %[[SECOND:.*]] = linalg.generic
// CHECK: call @use(%[[SECOND]])
// CHECK: %[[M:.*]] = call @size
// CHECK: %[[WIDE:.*]] = tensor.expand_shape %[[SECOND]] {{.*}} output_shape [%[[M]], 1, 8]
// CHECK: call @use_wide(%[[WIDE]])
func.func @late_view(%gate: tensor<?x8xf32>, %n: index) {
  %empty = tensor.empty(%n) : tensor<?x8xf32>
  %twice = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%gate : tensor<?x8xf32>) outs(%empty : tensor<?x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %sum = arith.addf %a, %a : f32
    linalg.yield %sum : f32
  } -> tensor<?x8xf32>
  call @use(%twice) : (tensor<?x8xf32>) -> ()
  call @use(%gate) : (tensor<?x8xf32>) -> ()
  call @use(%gate) : (tensor<?x8xf32>) -> ()
  call @use(%twice) : (tensor<?x8xf32>) -> ()
  %m = call @size() : () -> index
  %wide = tensor.expand_shape %twice [[0, 1], [2]] output_shape [%m, 1, 8] : tensor<?x8xf32> into tensor<?x1x8xf32>
  call @use_wide(%wide) : (tensor<?x1x8xf32>) -> ()
  return
}

// Here it would have to be held for longer.
// CHECK-LABEL: func.func @gone(
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
func.func @gone(%n: index) {
  %gate = call @make(%n) : (index) -> tensor<?x8xf32>
  %empty = tensor.empty(%n) : tensor<?x8xf32>
  %twice = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%gate : tensor<?x8xf32>) outs(%empty : tensor<?x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %sum = arith.addf %a, %a : f32
    linalg.yield %sum : f32
  } -> tensor<?x8xf32>
  call @use(%twice) : (tensor<?x8xf32>) -> ()
  call @use(%gate) : (tensor<?x8xf32>) -> ()
  %other = call @make(%n) : (index) -> tensor<?x8xf32>
  call @use(%other) : (tensor<?x8xf32>) -> ()
  call @use(%other) : (tensor<?x8xf32>) -> ()
  call @use(%twice) : (tensor<?x8xf32>) -> ()
  return
}

// A sum costs more than reading its result.
// CHECK-LABEL: func.func @sum(
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
func.func @sum(%gate: tensor<?x8xf32>, %start: tensor<?xf32>) {
  %sums = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%gate : tensor<?x8xf32>) outs(%start : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %sum = arith.addf %a, %out : f32
    linalg.yield %sum : f32
  } -> tensor<?xf32>
  call @use_flat(%sums) : (tensor<?xf32>) -> ()
  call @use(%gate) : (tensor<?x8xf32>) -> ()
  call @use(%gate) : (tensor<?x8xf32>) -> ()
  call @use(%gate) : (tensor<?x8xf32>) -> ()
  call @use_flat(%sums) : (tensor<?xf32>) -> ()
  call @use(%gate) : (tensor<?x8xf32>) -> ()
  return
}
