// RUN: %lower %s | %run_main | FileCheck %s

// Key i is [i 10i 100i], a block has two keys, a row two elements. Rows 1 to 5: of block 0, whose keys have no block before them; the mean
// [0.5 5 50] of keys 0 and 1 and what fills it up, in the rows of block 1; that of keys 2 and 3 in those of block 2.
// CHECK: data =
// CHECK-NEXT: [0, 0]
// CHECK-NEXT: [0.5, 5]
// CHECK-NEXT: [50, 0]
// CHECK-NEXT: [2.5, 25]
// CHECK-NEXT: [250, 0]
// With keys from number 1 on:
// CHECK: data =
// CHECK-NEXT: [0, 0]
// CHECK-NEXT: [1, 10]
// CHECK-NEXT: [100, 0]
// CHECK-NEXT: [2.5, 25]
// CHECK-NEXT: [250, 0]
// And the largest and the smallest of each element of the keys of block 0 from number 1 on, and of block 1, in rows of three:
// CHECK: data =
// CHECK-NEXT: [0, 0, 0]
// CHECK-NEXT: [1, 10, 100]
// CHECK-NEXT: [1, 10, 100]
// CHECK-NEXT: [3, 30, 300]
// CHECK-NEXT: [2, 20, 200]
func.func private @pool(%k: tensor<?x1x?x3xf32>, %begin: tensor<?xi64>) {
  %c5 = arith.constant 5 : index
  %0 = hone.pool_keys %k of %c5 size(2) : (tensor<?x1x?x3xf32>, index) -> tensor<?x1x?x2xf32>
  %1 = tensor.cast %0 : tensor<?x1x?x2xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  %2 = hone.pool_keys %k of %c5 key_begin(%begin) size(2) : (tensor<?x1x?x3xf32>, index, tensor<?xi64>) -> tensor<?x1x?x2xf32>
  %3 = tensor.cast %2 : tensor<?x1x?x2xf32> to tensor<*xf32>
  call @printMemrefF32(%3) : (tensor<*xf32>) -> ()
  %4 = hone.pool_keys %k of %c5 key_begin(%begin) size(2) bounds : (tensor<?x1x?x3xf32>, index, tensor<?xi64>) -> tensor<?x1x?x3xf32>
  %5 = tensor.cast %4 : tensor<?x1x?x3xf32> to tensor<*xf32>
  call @printMemrefF32(%5) : (tensor<*xf32>) -> ()
  return
}

// Four blocks, whose pooled keys are [1 0 0], [0 1 0], [0 0 1] and [1 0 0]; the query [1 2 3] of one head and [5 0 0] of the other. Of all
// blocks the sums of softmaxes are 0.58, 0.23, 0.61 and 0.58; of the second and third 0.77 and 1.23; the last query has none to select.
// CHECK: data =
// CHECK-NEXT: [2, 0, 3, 1, -1]
// CHECK-NEXT: [2, 1, -1, -1, -1]
// CHECK-NEXT: [-1, -1, -1, -1, -1]
// And two places:
// CHECK: data =
// CHECK-NEXT: [2, 0]
// CHECK-NEXT: [2, 1]
// CHECK-NEXT: [-1, -1]
// By the bounds of one element, from 1 to 5, -4 to 4, 2 to 2 and -6 to 0, of the query 1 of one head and -1 of the other; scores are 5, 4, 2 and 0
// and -1, 4, -2 and 6, sums of softmaxes 0.70, 0.38, 0.04 and 0.88. The second query has the last three alone.
// CHECK: data =
// CHECK-NEXT: [3, 0, 1, 2]
// CHECK-NEXT: [1, 3, 2, -1]
func.func private @bound(%q: tensor<?x2x?x1xf32>, %pooled: tensor<?x1x?x1xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>) {
  %0 = hone.select_blocks %q, %pooled from %begin to %end size(2) scale(1.0) bounds
     : (tensor<?x2x?x1xf32>, tensor<?x1x?x1xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<?x1x?x4xi64>
  %1 = tensor.cast %0 : tensor<?x1x?x4xi64> to tensor<*xi64>
  call @printMemrefI64(%1) : (tensor<*xi64>) -> ()
  return
}

func.func private @select(%q: tensor<?x2x?x3xf32>, %pooled: tensor<?x1x?x2xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>) {
  %0 = hone.select_blocks %q, %pooled from %begin to %end size(2) scale(1.0)
     : (tensor<?x2x?x3xf32>, tensor<?x1x?x2xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<?x1x?x5xi64>
  %1 = tensor.cast %0 : tensor<?x1x?x5xi64> to tensor<*xi64>
  call @printMemrefI64(%1) : (tensor<*xi64>) -> ()
  %2 = hone.select_blocks %q, %pooled from %begin to %end size(2) scale(1.0)
     : (tensor<?x2x?x3xf32>, tensor<?x1x?x2xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<?x1x?x2xi64>
  %3 = tensor.cast %2 : tensor<?x1x?x2xi64> to tensor<*xi64>
  call @printMemrefI64(%3) : (tensor<*xi64>) -> ()
  return
}

func.func @main() {
  %keys = arith.constant dense<[[[[0.0, 0.0, 0.0], [1.0, 10.0, 100.0], [2.0, 20.0, 200.0], [3.0, 30.0, 300.0], [4.0, 40.0, 400.0],
                                  [5.0, 50.0, 500.0]]]]> : tensor<1x1x6x3xf32>
  %k = tensor.cast %keys : tensor<1x1x6x3xf32> to tensor<?x1x?x3xf32>
  %first = arith.constant dense<[1]> : tensor<1xi64>
  %pad = tensor.cast %first : tensor<1xi64> to tensor<?xi64>
  call @pool(%k, %pad) : (tensor<?x1x?x3xf32>, tensor<?xi64>) -> ()

  %queries = arith.constant dense<[[[[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]],
                                    [[5.0, 0.0, 0.0], [5.0, 0.0, 0.0], [5.0, 0.0, 0.0]]]]> : tensor<1x2x3x3xf32>
  %q = tensor.cast %queries : tensor<1x2x3x3xf32> to tensor<?x2x?x3xf32>
  %rows = arith.constant dense<[[[[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0],
                                  [1.0, 0.0], [0.0, 0.0]]]]> : tensor<1x1x10x2xf32>
  %pooled = tensor.cast %rows : tensor<1x1x10x2xf32> to tensor<?x1x?x2xf32>
  %begins = arith.constant dense<[[0, 1, 3]]> : tensor<1x3xi64>
  %ends = arith.constant dense<[[4, 3, 2]]> : tensor<1x3xi64>
  %begin = tensor.cast %begins : tensor<1x3xi64> to tensor<1x?xi64>
  %end = tensor.cast %ends : tensor<1x3xi64> to tensor<1x?xi64>
  call @select(%q, %pooled, %begin, %end) : (tensor<?x2x?x3xf32>, tensor<?x1x?x2xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> ()

  %ones = arith.constant dense<[[[[1.0], [1.0]], [[-1.0], [-1.0]]]]> : tensor<1x2x2x1xf32>
  %one = tensor.cast %ones : tensor<1x2x2x1xf32> to tensor<?x2x?x1xf32>
  %extremes = arith.constant dense<[[[[0.0], [0.0], [5.0], [1.0], [4.0], [-4.0], [2.0], [2.0], [0.0], [-6.0]]]]> : tensor<1x1x10x1xf32>
  %extreme = tensor.cast %extremes : tensor<1x1x10x1xf32> to tensor<?x1x?x1xf32>
  %firsts = arith.constant dense<[[0, 1]]> : tensor<1x2xi64>
  %lasts = arith.constant dense<[[4, 4]]> : tensor<1x2xi64>
  %from = tensor.cast %firsts : tensor<1x2xi64> to tensor<1x?xi64>
  %to = tensor.cast %lasts : tensor<1x2xi64> to tensor<1x?xi64>
  call @bound(%one, %extreme, %from, %to) : (tensor<?x2x?x1xf32>, tensor<?x1x?x1xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> ()
  return
}
func.func private @printMemrefF32(tensor<*xf32>)
func.func private @printMemrefI64(tensor<*xi64>)
