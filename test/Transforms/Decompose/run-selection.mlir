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
func.func private @pool(%k: tensor<?x1x?x3xf32>, %begin: tensor<?xi64>) {
  %c5 = arith.constant 5 : index
  %0 = hone.pool_keys %k of %c5 size(2) : (tensor<?x1x?x3xf32>, index) -> tensor<?x1x?x2xf32>
  %1 = tensor.cast %0 : tensor<?x1x?x2xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  %2 = hone.pool_keys %k of %c5 key_begin(%begin) size(2) : (tensor<?x1x?x3xf32>, index, tensor<?xi64>) -> tensor<?x1x?x2xf32>
  %3 = tensor.cast %2 : tensor<?x1x?x2xf32> to tensor<*xf32>
  call @printMemrefF32(%3) : (tensor<*xf32>) -> ()
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
  return
}
func.func private @printMemrefF32(tensor<*xf32>)
func.func private @printMemrefI64(tensor<*xi64>)
