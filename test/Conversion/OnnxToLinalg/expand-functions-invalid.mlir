// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt %s --hone-expand-onnx-functions --verify-diagnostics

// Operators that have neither a lowering nor a function are named, not the function that cannot read what they give.
module attributes {onnx.opsets = {ai.onnx = 13 : i64, ai.onnx.ml = 1 : i64}} {
func.func @open(%x: tensor<?x8xf32>, %y: tensor<1x3xi64>) -> tensor<*xf32> {
  // expected-error @+1 {{unsupported operator ai.onnx.ml.FeatureVectorizer (2 nodes)}}
  %0 = "onnx.ai.onnx.ml.FeatureVectorizer"(%x) {inputdimensions = array<i64: 8>} : (tensor<?x8xf32>) -> tensor<*xf32>
  %1 = "onnx.ai.onnx.ml.FeatureVectorizer"(%x) {inputdimensions = array<i64: 8>} : (tensor<?x8xf32>) -> tensor<*xf32>
  %2 = "onnx.Add"(%0, %1) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %3 = "onnx.ai.onnx.ml.ArrayFeatureExtractor"(%2, %y) : (tensor<*xf32>, tensor<1x3xi64>) -> tensor<*xf32>
  return %3 : tensor<*xf32>
}
}
