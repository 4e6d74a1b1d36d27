// Forms of operators of ai.onnx.ml that are refused.
//
// RUN: hone-opt %s --hone-expand-onnx-functions=domain=ai.onnx.ml --split-input-file --verify-diagnostics

module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {
func.func @norm(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  // expected-error @+1 {{unsupported norm 'L3'; supported: L1, L2, MAX}}
  %0 = "onnx.ai.onnx.ml.Normalizer"(%x) {norm = "L3"} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {
func.func @scaler(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  // expected-error @+1 {{expected offset and scale}}
  %0 = "onnx.ai.onnx.ml.Scaler"(%x) {} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {
func.func @coefficients(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  // expected-error @+1 {{expected coefficients for 2 rows, but got 3}}
  %0 = "onnx.ai.onnx.ml.LinearRegressor"(%x) {targets = 2 : i64, coefficients = array<f32: 1.0, 2.0, 3.0>} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {
func.func @transform(%x: tensor<?x2xf32>) -> tensor<?x1xf32> {
  // expected-error @+1 {{unsupported post_transform 'PROBIT'; supported: LOGISTIC, NONE, SOFTMAX}}
  %0 = "onnx.ai.onnx.ml.LinearRegressor"(%x) {targets = 1 : i64, coefficients = array<f32: 1.0, 2.0>, post_transform = "PROBIT"} : (tensor<?x2xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {
func.func @loop(%x: tensor<?x2xf32>) -> tensor<?x1xf32> {
  // expected-error @+1 {{expected trees, but a node is reached in several ways or in none}}
  %0 = "onnx.ai.onnx.ml.TreeEnsembleRegressor"(%x) {n_targets = 1 : i64, nodes_treeids = array<i64: 0, 0, 0>, nodes_nodeids = array<i64: 0, 1, 2>, nodes_featureids = array<i64: 1, 0, 0>, nodes_values = array<f32: 0.5, 0.0, 0.0>, nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids = array<i64: 0, 0, 0>, nodes_falsenodeids = array<i64: 2, 0, 0>, target_treeids = array<i64: 0>, target_nodeids = array<i64: 1>, target_ids = array<i64: 0>, target_weights = array<f32: 3.0>} : (tensor<?x2xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {
func.func @absent(%x: tensor<?x2xf32>) -> tensor<?x1xf32> {
  // expected-error @+1 {{expected tree 0 to have a node 7}}
  %0 = "onnx.ai.onnx.ml.TreeEnsembleRegressor"(%x) {n_targets = 1 : i64, nodes_treeids = array<i64: 0, 0, 0>, nodes_nodeids = array<i64: 0, 1, 2>, nodes_featureids = array<i64: 1, 0, 0>, nodes_values = array<f32: 0.5, 0.0, 0.0>, nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids = array<i64: 7, 0, 0>, nodes_falsenodeids = array<i64: 2, 0, 0>, target_treeids = array<i64: 0>, target_nodeids = array<i64: 1>, target_ids = array<i64: 0>, target_weights = array<f32: 3.0>} : (tensor<?x2xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {
func.func @mode(%x: tensor<?x2xf32>) -> tensor<?x1xf32> {
  // expected-error @+1 {{unsupported mode 'BRANCH_EQ'}}
  %0 = "onnx.ai.onnx.ml.TreeEnsembleRegressor"(%x) {n_targets = 1 : i64, nodes_treeids = array<i64: 0, 0, 0>, nodes_nodeids = array<i64: 0, 1, 2>, nodes_featureids = array<i64: 1, 0, 0>, nodes_values = array<f32: 0.5, 0.0, 0.0>, nodes_modes = ["BRANCH_EQ", "LEAF", "LEAF"], nodes_truenodeids = array<i64: 1, 0, 0>, nodes_falsenodeids = array<i64: 2, 0, 0>, target_treeids = array<i64: 0>, target_nodeids = array<i64: 1>, target_ids = array<i64: 0>, target_weights = array<f32: 3.0>} : (tensor<?x2xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {
func.func @missing(%x: tensor<?x2xf32>) -> tensor<?x1xf32> {
  // expected-error @+1 {{unsupported nodes_missing_value_tracks_true 1; supported: 0}}
  %0 = "onnx.ai.onnx.ml.TreeEnsembleRegressor"(%x) {n_targets = 1 : i64, nodes_treeids = array<i64: 0, 0, 0>, nodes_nodeids = array<i64: 0, 1, 2>, nodes_featureids = array<i64: 1, 0, 0>, nodes_values = array<f32: 0.5, 0.0, 0.0>, nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids = array<i64: 1, 0, 0>, nodes_falsenodeids = array<i64: 2, 0, 0>, target_treeids = array<i64: 0>, target_nodeids = array<i64: 1>, target_ids = array<i64: 0>, target_weights = array<f32: 3.0>, nodes_missing_value_tracks_true = array<i64: 1, 0, 0>} : (tensor<?x2xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {
func.func @aggregate(%x: tensor<?x2xf32>) -> tensor<?x1xf32> {
  // expected-error @+1 {{unsupported aggregate_function 'MAX'; supported: SUM}}
  %0 = "onnx.ai.onnx.ml.TreeEnsembleRegressor"(%x) {n_targets = 1 : i64, nodes_treeids = array<i64: 0, 0, 0>, nodes_nodeids = array<i64: 0, 1, 2>, nodes_featureids = array<i64: 1, 0, 0>, nodes_values = array<f32: 0.5, 0.0, 0.0>, nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids = array<i64: 1, 0, 0>, nodes_falsenodeids = array<i64: 2, 0, 0>, target_treeids = array<i64: 0>, target_nodeids = array<i64: 1>, target_ids = array<i64: 0>, target_weights = array<f32: 3.0>, aggregate_function = "MAX"} : (tensor<?x2xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {
func.func @doubles(%x: tensor<?x2xf64>) -> tensor<?x1xf32> {
  // expected-error @+1 {{expected X to be floats of 2 dimensions}}
  %0 = "onnx.ai.onnx.ml.TreeEnsembleRegressor"(%x) {n_targets = 1 : i64, nodes_treeids = array<i64: 0, 0, 0>, nodes_nodeids = array<i64: 0, 1, 2>, nodes_featureids = array<i64: 1, 0, 0>, nodes_values = array<f32: 0.5, 0.0, 0.0>, nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids = array<i64: 1, 0, 0>, nodes_falsenodeids = array<i64: 2, 0, 0>, target_treeids = array<i64: 0>, target_nodeids = array<i64: 1>, target_ids = array<i64: 0>, target_weights = array<f32: 3.0>} : (tensor<?x2xf64>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {
func.func @counts(%x: tensor<?x2xf32>) -> tensor<?x1xf32> {
  // expected-error @+1 {{expected attributes of 3 nodes, but got some of 2}}
  %0 = "onnx.ai.onnx.ml.TreeEnsembleRegressor"(%x) {n_targets = 1 : i64, nodes_treeids = array<i64: 0, 0, 0>, nodes_nodeids = array<i64: 0, 1, 2>, nodes_featureids = array<i64: 1, 0, 0>, nodes_values = array<f32: 0.5, 0.0, 0.0>, nodes_modes = ["BRANCH_LEQ", "LEAF"], nodes_truenodeids = array<i64: 1, 0, 0>, nodes_falsenodeids = array<i64: 2, 0, 0>, target_treeids = array<i64: 0>, target_nodeids = array<i64: 1>, target_ids = array<i64: 0>, target_weights = array<f32: 3.0>} : (tensor<?x2xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {
func.func @svm_kernel(%x: tensor<?x2xf32>) -> tensor<?x1xf32> {
  // expected-error @+1 {{unsupported kernel_type 'COSINE'; supported: LINEAR, POLY, RBF, SIGMOID}}
  %0 = "onnx.ai.onnx.ml.SVMRegressor"(%x) {kernel_type = "COSINE", n_supports = 1 : i64, support_vectors = array<f32: 1.0, 2.0>, coefficients = array<f32: 1.0>, rho = array<f32: 0.5>} : (tensor<?x2xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {
func.func @svm_columns(%x: tensor<?x3xf32>) -> tensor<?x1xf32> {
  // expected-error @+1 {{expected X to have 2 columns, but got 3}}
  %0 = "onnx.ai.onnx.ml.SVMRegressor"(%x) {n_supports = 1 : i64, support_vectors = array<f32: 1.0, 2.0>, coefficients = array<f32: 1.0>, rho = array<f32: 0.5>} : (tensor<?x3xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {
func.func @svm_pairs(%x: tensor<?x2xf32>) -> (tensor<?xi64>, tensor<?x3xf32>) {
  // expected-error @+1 {{expected 6 coefficients and rho of 3 pairs, but got 6 and 2}}
  %0:2 = "onnx.ai.onnx.ml.SVMClassifier"(%x) {classlabels_ints = array<i64: 7, 8, 9>, vectors_per_class = array<i64: 1, 1, 1>, support_vectors = array<f32: 1.0, 2.0, 3.0, 4.0, 5.0, 6.0>, coefficients = array<f32: 2.0, 4.0, 6.0, 3.0, 5.0, 7.0>, rho = array<f32: 0.5, 0.25>} : (tensor<?x2xf32>) -> (tensor<?xi64>, tensor<?x3xf32>)
  return %0#0, %0#1 : tensor<?xi64>, tensor<?x3xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {
func.func @svm_probabilities(%x: tensor<?x1xf32>) -> (tensor<?xi64>, tensor<?x2xf32>) {
  // expected-error @+1 {{unsupported prob_a: probabilities of pairs}}
  %0:2 = "onnx.ai.onnx.ml.SVMClassifier"(%x) {classlabels_ints = array<i64: 7, 8>, vectors_per_class = array<i64: 1, 1>, support_vectors = array<f32: 1.0, 2.0>, coefficients = array<f32: 2.0, 4.0>, rho = array<f32: 0.5>, prob_a = array<f32: 1.0>, prob_b = array<f32: 1.0>} : (tensor<?x1xf32>) -> (tensor<?xi64>, tensor<?x2xf32>)
  return %0#0, %0#1 : tensor<?xi64>, tensor<?x2xf32>
}
}
