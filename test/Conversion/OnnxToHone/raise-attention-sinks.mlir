// RUN: hone-opt %s --hone-raise-attention | FileCheck %s -enable-var-scope
// RUN: sed 's/"onnx.ReduceMax"(%%all,/"onnx.ReduceMean"(%%all,/' %s | hone-opt --hone-raise-attention | FileCheck %s --check-prefix=LEFT
// RUN: sed 's/"onnx.Slice"(%%weights, %%zero,/"onnx.Slice"(%%weights, %%one,/' %s | hone-opt --hone-raise-attention --remarks-filter=hone-raise-attention 2>&1 \
// RUN:   | FileCheck %s --check-prefix=KEPT
// RUN: sed 's/tensor<1x4x1x1xf32>/tensor<1x1x1x1xf32>/g' %s | hone-opt --hone-raise-attention | FileCheck %s --check-prefix=LEFT

// A logit of each head is joined to those of the keys, and its probability is cut off.
// CHECK-LABEL: @sinks
// CHECK-DAG: %[[SINKS:.*]] = "onnx.Reshape"(%arg3, %{{.*}}) : (tensor<1x4x1x1xf32>, tensor<1xi64>) -> tensor<4xf32>
// CHECK: hone.attention %arg0, %arg1, %arg2 pattern(#hone.full) scale(2.500000e-01) sinks(%[[SINKS]])
// CHECK-NOT: onnx.Softmax

// The mean is taken off, not the greatest logit; sinks are one for all heads.
// LEFT-LABEL: @sinks
// LEFT-NOT: hone.attention

// The probability of the first key is cut off.
// KEPT: its probabilities are used by something else than one product
// KEPT-NOT: hone.attention
func.func @sinks(%q: tensor<?x4x?x16xf32> {onnx.dims = ["b", "", "s", ""]}, %k: tensor<?x4x?x16xf32> {onnx.dims = ["b", "", "t", ""]},
                 %v: tensor<?x4x?x16xf32> {onnx.dims = ["b", "", "t", ""]}, %sinks: tensor<1x4x1x1xf32>) -> tensor<?x4x?x16xf32> {
  %last = "onnx.Constant"() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %zero = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %four = "onnx.Constant"() {value = dense<4> : tensor<1xi64>} : () -> tensor<1xi64>
  %axis = "onnx.Constant"() {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
  %scale = "onnx.Constant"() {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
  %b = "onnx.Shape"(%q) {start = 0 : i64, end = 1 : i64} : (tensor<?x4x?x16xf32>) -> tensor<1xi64>
  %s = "onnx.Shape"(%q) {start = 2 : i64, end = 3 : i64} : (tensor<?x4x?x16xf32>) -> tensor<1xi64>
  %shape = "onnx.Concat"(%b, %four, %s, %one) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4xi64>
  %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x4x?x16xf32>) -> tensor<?x4x16x?xf32>
  %product = "onnx.MatMul"(%q, %kt) : (tensor<?x4x?x16xf32>, tensor<?x4x16x?xf32>) -> tensor<?x4x?x?xf32>
  %logits = "onnx.Mul"(%product, %scale) : (tensor<?x4x?x?xf32>, tensor<f32>) -> tensor<?x4x?x?xf32>
  %column = "onnx.Expand"(%sinks, %shape) : (tensor<1x4x1x1xf32>, tensor<4xi64>) -> tensor<?x4x?x1xf32>
  %all = "onnx.Concat"(%logits, %column) {axis = -1 : i64} : (tensor<?x4x?x?xf32>, tensor<?x4x?x1xf32>) -> tensor<?x4x?x?xf32>
  %most = "onnx.ReduceMax"(%all, %last) {keepdims = 1 : i64} : (tensor<?x4x?x?xf32>, tensor<1xi64>) -> tensor<?x4x?x1xf32>
  %shifted = "onnx.Sub"(%all, %most) : (tensor<?x4x?x?xf32>, tensor<?x4x?x1xf32>) -> tensor<?x4x?x?xf32>
  %weights = "onnx.Softmax"(%shifted) {axis = -1 : i64} : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %kept = "onnx.Slice"(%weights, %zero, %last, %axis, %one) : (tensor<?x4x?x?xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x4x?x?xf32>
  %result = "onnx.MatMul"(%kept, %v) : (tensor<?x4x?x?xf32>, tensor<?x4x?x16xf32>) -> tensor<?x4x?x16xf32>
  return %result : tensor<?x4x?x16xf32>
}
