// Operators of ai.onnx.ml as nodes of other operators.
//
// RUN: hone-opt %s --hone-expand-onnx-functions=domain=ai.onnx.ml | FileCheck %s -enable-var-scope

module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {

// CHECK-LABEL: @scaler
// CHECK: onnx.Sub
// CHECK: onnx.Mul
func.func @scaler(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = "onnx.ai.onnx.ml.Scaler"(%x) {offset = array<f32: 1.0, 2.0>, scale = array<f32: 0.5, 0.25>} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}

// CHECK-LABEL: @normalizer
// CHECK: "onnx.LpNormalization"({{.*}}) {axis = -1 : i64, p = 1 : i64}
func.func @normalizer(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = "onnx.ai.onnx.ml.Normalizer"(%x) {norm = "L1"} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}

// CHECK-LABEL: @columns
// CHECK: "onnx.Gather"(%arg0, %{{.*}}) {axis = -1 : i64}
func.func @columns(%x: tensor<?x8xf32>, %y: tensor<1x3xi64>) -> tensor<?x3xf32> {
  %0 = "onnx.ai.onnx.ml.ArrayFeatureExtractor"(%x, %y) : (tensor<?x8xf32>, tensor<1x3xi64>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// CHECK-LABEL: @classifier
// CHECK: %[[SCORES:.*]] = "onnx.Gemm"
// CHECK: %[[BEST:.*]] = "onnx.ArgMax"(%[[SCORES]])
// CHECK: %[[LABEL:.*]] = "onnx.Gather"(%{{.*}}, %[[BEST]])
// CHECK: %[[SHARES:.*]] = "onnx.Softmax"(%[[SCORES]])
// CHECK: return %{{.*}}, %[[SHARES]]
func.func @classifier(%x: tensor<?x2xf32>) -> (tensor<?xi64>, tensor<?x3xf32>) {
  %0:2 = "onnx.ai.onnx.ml.LinearClassifier"(%x) {classlabels_ints = array<i64: 4, 5, 6>, coefficients = array<f32: 1.0, 2.0, 3.0, 4.0, 5.0, 6.0>, intercepts = array<f32: 0.0, 1.0, 2.0>, post_transform = "SOFTMAX"} : (tensor<?x2xf32>) -> (tensor<?xi64>, tensor<?x3xf32>)
  return %0#0, %0#1 : tensor<?xi64>, tensor<?x3xf32>
}

// A stump: one comparison for each row, and the sum of what its leaf gives.
// CHECK-LABEL: @tree
// CHECK-COUNT-1: onnx.GatherElements
// CHECK: onnx.Less
// CHECK: onnx.Equal
// CHECK: onnx.Or
// CHECK-NOT: onnx.GatherElements
// CHECK: onnx.MatMul
func.func @tree(%x: tensor<?x2xf32>) -> tensor<?x1xf32> {
  %0 = "onnx.ai.onnx.ml.TreeEnsembleRegressor"(%x) {n_targets = 1 : i64, nodes_treeids = array<i64: 0, 0, 0>, nodes_nodeids = array<i64: 0, 1, 2>, nodes_featureids = array<i64: 1, 0, 0>, nodes_values = array<f32: 0.5, 0.0, 0.0>, nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids = array<i64: 1, 0, 0>, nodes_falsenodeids = array<i64: 2, 0, 0>, target_treeids = array<i64: 0, 0>, target_nodeids = array<i64: 1, 2>, target_ids = array<i64: 0, 0>, target_weights = array<f32: 3.0, 4.0>} : (tensor<?x2xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// Weights of one of two classes are shares of the second.
// CHECK-LABEL: @one_of_two
// CHECK: "onnx.MatMul"
// CHECK: %[[SCORES:.*]] = "onnx.Add"
// CHECK: "onnx.Constant"() {value = dense<5.000000e-01>
// CHECK: "onnx.Greater"(%[[SCORES]], %
// CHECK: %[[FIRST:.*]] = "onnx.Sub"(%{{.*}}, %[[SCORES]])
// CHECK: "onnx.Concat"(%[[FIRST]], %{{.*}}) {axis = 1 : i64}
func.func @one_of_two(%x: tensor<?x2xf32>) -> (tensor<?xi64>, tensor<?x2xf32>) {
  %0:2 = "onnx.ai.onnx.ml.TreeEnsembleClassifier"(%x) {classlabels_int64s = array<i64: 0, 1>, nodes_treeids = array<i64: 0, 0, 0>, nodes_nodeids = array<i64: 0, 1, 2>, nodes_featureids = array<i64: 1, 0, 0>, nodes_values = array<f32: 0.5, 0.0, 0.0>, nodes_modes = ["BRANCH_LT", "LEAF", "LEAF"], nodes_truenodeids = array<i64: 1, 0, 0>, nodes_falsenodeids = array<i64: 2, 0, 0>, class_treeids = array<i64: 0, 0>, class_nodeids = array<i64: 1, 2>, class_ids = array<i64: 0, 0>, class_weights = array<f32: 1.0, 0.25>, post_transform = "NONE"} : (tensor<?x2xf32>) -> (tensor<?xi64>, tensor<?x2xf32>)
  return %0#0, %0#1 : tensor<?xi64>, tensor<?x2xf32>
}

// Distances to support vectors, and the sum of their kernels.
// CHECK-LABEL: @svm_regressor
// CHECK: %[[MOVED:.*]] = "onnx.Sub"
// CHECK: "onnx.Mul"(%[[MOVED]], %[[MOVED]])
// CHECK: %[[K:.*]] = "onnx.Exp"
// CHECK: "onnx.Gemm"(%[[K]],
func.func @svm_regressor(%x: tensor<?x2xf32>) -> tensor<?x1xf32> {
  %0 = "onnx.ai.onnx.ml.SVMRegressor"(%x) {kernel_type = "RBF", kernel_params = array<f32: 0.5, 0.0, 3.0>, n_supports = 2 : i64, support_vectors = array<f32: 1.0, 2.0, 3.0, 4.0>, coefficients = array<f32: 1.0, -1.0>, rho = array<f32: 0.5>} : (tensor<?x2xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// A column for each pair of classes, in which vectors of other classes have no weight; each pair gives a vote.
// CHECK-LABEL: @svm_classifier
// CHECK: dense<[2.000000e+00, 3.000000e+00, 0.000000e+00, 4.000000e+00, 0.000000e+00, 5.000000e+00, 0.000000e+00, 6.000000e+00, 7.000000e+00]>
// CHECK: "onnx.Greater"
// CHECK: dense<[1.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00, 0.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00, -1.000000e+00]>
// CHECK: dense<[0.000000e+00, 1.000000e+00, 2.000000e+00]>
// CHECK: "onnx.ArgMax"
func.func @svm_classifier(%x: tensor<?x2xf32>) -> (tensor<?xi64>, tensor<?x3xf32>) {
  %0:2 = "onnx.ai.onnx.ml.SVMClassifier"(%x) {kernel_type = "LINEAR", kernel_params = array<f32: 0.0, 0.0, 0.0>, classlabels_ints = array<i64: 7, 8, 9>, vectors_per_class = array<i64: 1, 1, 1>, support_vectors = array<f32: 1.0, 2.0, 3.0, 4.0, 5.0, 6.0>, coefficients = array<f32: 2.0, 4.0, 6.0, 3.0, 5.0, 7.0>, rho = array<f32: 0.5, 0.25, 0.125>} : (tensor<?x2xf32>) -> (tensor<?xi64>, tensor<?x3xf32>)
  return %0#0, %0#1 : tensor<?xi64>, tensor<?x3xf32>
}
}
