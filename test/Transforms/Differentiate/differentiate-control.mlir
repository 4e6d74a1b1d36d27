// RUN: hone-opt %s --hone-differentiate --split-input-file | FileCheck %s

// A loop saves what an iteration reads of carried values; its adjoint goes back over the copies.

// CHECK-LABEL: @gradients
// CHECK: %[[COPIES:.*]] = tensor.empty(%{{.*}}) : tensor<?x4xf32>
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%[[X:.*]] = %{{.*}}, %[[SAVED:.*]] = %[[COPIES]])
// CHECK: %[[NEXT:.*]] = tensor.insert_slice %[[X]] into %[[SAVED]]
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
// CHECK: scf.for {{.*}} iter_args(%[[G:.*]] = %{{.*}}) -> (tensor<4xf32>)
// CHECK: %[[OLD:.*]] = tensor.extract_slice %[[LOOP]]#1
// CHECK: linalg.generic {{.*}} ins(%[[OLD]], {{.*}}%[[G]]
// CHECK: math.cos
hone.param @w : tensor<4xf32> = dense<1.0> : tensor<4xf32>
func.func @main(%n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w = hone.get_param @w : tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%x = %w) -> tensor<4xf32> {
    %next = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %s = math.sin %in : f32
      linalg.yield %s : f32
    } -> tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

// A value that is only written into is not saved, and the gradient of a slice is added to in place.

// CHECK-LABEL: @gradients
// CHECK: scf.for {{.*}} iter_args(%[[G:.*]] = %{{.*}}, %[[W:.*]] = %{{.*}}) -> (tensor<6xf32>, tensor<6xf32>)
// CHECK: %[[PART:.*]] = tensor.extract_slice %[[G]]
// CHECK: %[[BEFORE:.*]] = tensor.extract_slice %[[W]]
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[PART]] : tensor<2xf32>) outs(%[[BEFORE]] : tensor<2xf32>)
// CHECK: tensor.insert_slice %[[SUM]] into %[[W]]
hone.param @w : tensor<6xf32> = dense<1.0> : tensor<6xf32>
func.func @main() -> tensor<6xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c6 = arith.constant 6 : index
  %w = hone.get_param @w : tensor<6xf32>
  %empty = tensor.empty() : tensor<6xf32>
  %y = scf.for %i = %c0 to %c6 step %c2 iter_args(%x = %empty) -> tensor<6xf32> {
    %part = tensor.extract_slice %w[%i] [2] [1] : tensor<6xf32> to tensor<2xf32>
    %next = tensor.insert_slice %part into %x[%i] [2] [1] : tensor<2xf32> into tensor<6xf32>
    scf.yield %next : tensor<6xf32>
  }
  return %y : tensor<6xf32>
}

// -----

// The branch that was taken adds to the gradients of what it reads.

// CHECK-LABEL: @gradients
// CHECK: scf.if %{{.*}} -> (tensor<4xf32>)
// CHECK: arith.negf
// CHECK: } else {
// CHECK-NOT: arith.negf
hone.param @w : tensor<4xf32> = dense<1.0> : tensor<4xf32>
func.func @main(%go: i1) -> tensor<4xf32> {
  %w = hone.get_param @w : tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %y = scf.if %go -> tensor<4xf32> {
    %less = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%w : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %n = arith.negf %in : f32
      linalg.yield %n : f32
    } -> tensor<4xf32>
    scf.yield %less : tensor<4xf32>
  } else {
    scf.yield %w : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
