// RUN: %lower %s | %run_main | FileCheck %s

// One head, keys of two elements, values of two. The first token writes [1 2] under the key [1 0], the second [3 4] under [1 1], each after
// the state was halved (the logarithm of 0.5). Queries are [1 10].
//   S0 = [4 0; 0 4]  halved [2 0; 0 2] → [3 2; 0 2] → halved [1.5 1; 0 1] → [4.5 5; 3 5]
// CHECK: data =
// CHECK-NEXT: [3, 22]
// CHECK: [34.5, 55]
// CHECK: data =
// CHECK: [4.5, 5]
// CHECK-NEXT: [3, 5]
func.func private @gated(%q: tensor<?x?x1x2xf32>, %k: tensor<?x?x1x2xf32>, %v: tensor<?x?x1x2xf32>, %g: tensor<?x?x1x1xf32>, %s: tensor<?x1x2x2xf32>) {
  %0:2 = hone.linear_attention %q, %k, %v decay(%g) state(%s) scale(1.0)
       : (tensor<?x?x1x2xf32>, tensor<?x?x1x2xf32>, tensor<?x?x1x2xf32>, tensor<?x?x1x1xf32>, tensor<?x1x2x2xf32>)
       -> (tensor<?x?x1x2xf32>, tensor<?x1x2x2xf32>)
  %1 = tensor.cast %0#0 : tensor<?x?x1x2xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  %2 = tensor.cast %0#1 : tensor<?x1x2x2xf32> to tensor<*xf32>
  call @printMemrefF32(%2) : (tensor<*xf32>) -> ()
  return
}

// The delta rule from zeros, with a beta of 0.5, and two query heads, [1 10] and [2 20], times 10:
//   token 0: u = 0.5 [1 2] → S = [0.5 1; 0 0]
//   token 1: the key [1 1] reads [0.5 1], u = 0.5 ([3 4] - [0.5 1]) = [1.25 1.5] → S = [1.75 2.5; 1.25 1.5]
// CHECK: data =
// CHECK-NEXT: [5, 10]
// CHECK-NEXT: [10, 20]
// CHECK: [142.5, 175]
// CHECK-NEXT: [285, 350]
// CHECK: data =
// CHECK: [1.75, 2.5]
// CHECK-NEXT: [1.25, 1.5]
func.func private @delta(%q: tensor<?x?x2x2xf32>, %k: tensor<?x?x1x2xf32>, %v: tensor<?x?x1x2xf32>, %b: tensor<?x?x1xf32>) {
  %0:2 = hone.linear_attention %q, %k, %v beta(%b) scale(10.0)
       : (tensor<?x?x2x2xf32>, tensor<?x?x1x2xf32>, tensor<?x?x1x2xf32>, tensor<?x?x1xf32>) -> (tensor<?x?x2x2xf32>, tensor<?x1x2x2xf32>)
  %1 = tensor.cast %0#0 : tensor<?x?x2x2xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  %2 = tensor.cast %0#1 : tensor<?x1x2x2xf32> to tensor<*xf32>
  call @printMemrefF32(%2) : (tensor<*xf32>) -> ()
  return
}

// Each element of keys by its own decay: the first row of [4 0; 0 4] is halved, the second kept; nothing is written, as keys are 0.
// CHECK: data =
// CHECK: [2, 0]
// CHECK-NEXT: [0, 4]
func.func private @gated_by_element(%k: tensor<?x?x1x2xf32>, %g: tensor<?x?x1x2xf32>, %s: tensor<?x1x2x2xf32>) {
  %0:2 = hone.linear_attention %k, %k, %k decay(%g) state(%s) scale(1.0)
       : (tensor<?x?x1x2xf32>, tensor<?x?x1x2xf32>, tensor<?x?x1x2xf32>, tensor<?x?x1x2xf32>, tensor<?x1x2x2xf32>)
       -> (tensor<?x?x1x2xf32>, tensor<?x1x2x2xf32>)
  %1 = tensor.cast %0#1 : tensor<?x1x2x2xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %query = arith.constant dense<[[[[1.0, 10.0]], [[1.0, 10.0]]]]> : tensor<1x2x1x2xf32>
  %queries = arith.constant dense<[[[[1.0, 10.0], [2.0, 20.0]], [[1.0, 10.0], [2.0, 20.0]]]]> : tensor<1x2x2x2xf32>
  %key = arith.constant dense<[[[[1.0, 0.0]], [[1.0, 1.0]]]]> : tensor<1x2x1x2xf32>
  %value = arith.constant dense<[[[[1.0, 2.0]], [[3.0, 4.0]]]]> : tensor<1x2x1x2xf32>
  %halves = arith.constant dense<-0.6931471805599453> : tensor<1x2x1x1xf32>
  %first = arith.constant dense<[[[[-0.6931471805599453, 0.0]]]]> : tensor<1x1x1x2xf32>
  %state = arith.constant dense<[[[[4.0, 0.0], [0.0, 4.0]]]]> : tensor<1x1x2x2xf32>
  %rate = arith.constant dense<0.5> : tensor<1x2x1xf32>
  %nothing = arith.constant dense<0.0> : tensor<1x1x1x2xf32>
  %q = tensor.cast %query : tensor<1x2x1x2xf32> to tensor<?x?x1x2xf32>
  %qs = tensor.cast %queries : tensor<1x2x2x2xf32> to tensor<?x?x2x2xf32>
  %k = tensor.cast %key : tensor<1x2x1x2xf32> to tensor<?x?x1x2xf32>
  %v = tensor.cast %value : tensor<1x2x1x2xf32> to tensor<?x?x1x2xf32>
  %g = tensor.cast %halves : tensor<1x2x1x1xf32> to tensor<?x?x1x1xf32>
  %ge = tensor.cast %first : tensor<1x1x1x2xf32> to tensor<?x?x1x2xf32>
  %s = tensor.cast %state : tensor<1x1x2x2xf32> to tensor<?x1x2x2xf32>
  %b = tensor.cast %rate : tensor<1x2x1xf32> to tensor<?x?x1xf32>
  %z = tensor.cast %nothing : tensor<1x1x1x2xf32> to tensor<?x?x1x2xf32>
  call @gated(%q, %k, %v, %g, %s) : (tensor<?x?x1x2xf32>, tensor<?x?x1x2xf32>, tensor<?x?x1x2xf32>, tensor<?x?x1x1xf32>, tensor<?x1x2x2xf32>) -> ()
  call @delta(%qs, %k, %v, %b) : (tensor<?x?x2x2xf32>, tensor<?x?x1x2xf32>, tensor<?x?x1x2xf32>, tensor<?x?x1xf32>) -> ()
  call @gated_by_element(%z, %ge, %s) : (tensor<?x?x1x2xf32>, tensor<?x?x1x2xf32>, tensor<?x1x2x2xf32>) -> ()
  return
}

func.func private @printMemrefF32(tensor<*xf32>)
