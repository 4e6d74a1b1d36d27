// What ranks do together is calls of kernels; a grid that nothing names any more is gone.

// RUN: hone-opt %s -split-input-file -verify-diagnostics --hone-convert-hone-to-hrt | FileCheck %s --enable-var-scope
// RUN: hone-opt %s -split-input-file -verify-diagnostics --hone-convert-hone-to-hrt=target=cuda | FileCheck %s --check-prefix=CUDA

// CHECK-LABEL: module
// CHECK-NOT: shard.grid
module {
shard.grid @ranks(shape = 2)
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[CALL:[a-z0-9]*]]: !hrt.call)
// CHECK: %[[X:.*]] = bufferization.to_tensor
// CHECK-DAG: %[[ROWS:.*]] = tensor.dim %[[X]], %{{.*}}
// CHECK: %[[PLACE:.*]] = tensor.empty(%[[ROWS]]) : tensor<?x2xf32>
// CHECK: %[[PART:.*]] = hrt.kernel "hone.all_slice" %[[CALL]] ints [1] ins(%[[X]] : tensor<?x4xf32>) outs(%[[PLACE]] : tensor<?x2xf32>) -> tensor<?x2xf32>
// CHECK: %[[SUM:.*]] = hrt.kernel "hone.all_reduce.f32" %[[CALL]] ins(%[[PART]] : tensor<?x2xf32>) outs(%{{.*}} : tensor<?x2xf32>) -> tensor<?x2xf32>
// CUDA: hrt.kernel "cuda.all_slice"
// CUDA: hrt.kernel "cuda.all_reduce.f32"
// CUDA: hrt.kernel "cuda.all_gather"
// CHECK: hrt.kernel "hone.all_gather" %[[CALL]] ints [1] ins(%[[SUM]] : tensor<?x2xf32>) outs(%{{.*}} : tensor<?x4xf32>) -> tensor<?x4xf32>
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = shard.all_slice %x on @ranks grid_axes = [0] slice_axis = 1 : tensor<?x4xf32> -> tensor<?x2xf32>
  %1 = shard.all_reduce %0 on @ranks grid_axes = [0] : tensor<?x2xf32> -> tensor<?x2xf32>
  %2 = shard.all_gather %1 on @ranks grid_axes = [0] gather_axis = 1 : tensor<?x2xf32> -> tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}
}

// -----

module {
shard.grid @ranks(shape = 2)
func.func @main(%x: tensor<?x4xf16>) -> tensor<?x4xf16> {
  // expected-error @below {{unsupported reduction over ranks to 'tensor<?x4xf16>'; supported: sums of tensors of f32}}
  %0 = shard.all_reduce %x on @ranks grid_axes = [0] : tensor<?x4xf16> -> tensor<?x4xf16>
  return %0 : tensor<?x4xf16>
}
}

// -----

module {
shard.grid @ranks(shape = 2)
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // expected-error @below {{unsupported operation shard.broadcast over ranks; supported: shard.all_gather, shard.all_reduce, shard.all_slice}}
  %0 = shard.broadcast %x on @ranks grid_axes = [0] root = [0] : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
}
