// Spellings of norms that TensorFlow and JAX write, and what only looks like them.
//
// RUN: hone-opt %s -split-input-file --hone-raise-norms | FileCheck %s -enable-var-scope

// The variance as the mean square less the squared mean, limited to 0; an epsilon that takes its type from x.
// CHECK-LABEL: @moments
// CHECK: hone.layer_norm %arg0, %arg2 bias(%{{.*}}) epsilon(9.99999997E-7)
// CHECK-NOT: onnx.ReduceMean
func.func @moments(%x: tensor<?x7x8xf32>, %y: tensor<?x7x8xf32>, %w: tensor<8xf32>) -> tensor<?x7x8xf32> {
  %eps = "onnx.Constant"() {value = dense<1.0e-6> : tensor<f64>} : () -> tensor<f64>
  %limit = "onnx.Constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %axes = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %like = "onnx.CastLike"(%eps, %x) : (tensor<f64>, tensor<?x7x8xf32>) -> tensor<f32>
  %mean = "onnx.ReduceMean"(%x, %axes) {keepdims = 1 : i64} : (tensor<?x7x8xf32>, tensor<1xi64>) -> tensor<?x7x1xf32>
  %centred = "onnx.Sub"(%x, %mean) : (tensor<?x7x8xf32>, tensor<?x7x1xf32>) -> tensor<?x7x8xf32>
  %square = "onnx.Mul"(%x, %x) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %meansquare = "onnx.ReduceMean"(%square, %axes) {keepdims = 1 : i64} : (tensor<?x7x8xf32>, tensor<1xi64>) -> tensor<?x7x1xf32>
  %squaremean = "onnx.Mul"(%mean, %mean) : (tensor<?x7x1xf32>, tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %variance = "onnx.Sub"(%meansquare, %squaremean) : (tensor<?x7x1xf32>, tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %limited = "onnx.Max"(%variance, %limit) : (tensor<?x7x1xf32>, tensor<f32>) -> tensor<?x7x1xf32>
  %sum = "onnx.Add"(%limited, %like) : (tensor<?x7x1xf32>, tensor<f32>) -> tensor<?x7x1xf32>
  %root = "onnx.Sqrt"(%sum) : (tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %normed = "onnx.Div"(%centred, %root) : (tensor<?x7x8xf32>, tensor<?x7x1xf32>) -> tensor<?x7x8xf32>
  %weighted = "onnx.Mul"(%normed, %w) : (tensor<?x7x8xf32>, tensor<8xf32>) -> tensor<?x7x8xf32>
  %c = "onnx.Constant"() {value = dense<0.5> : tensor<8xf32>} : () -> tensor<8xf32>
  %out = "onnx.Add"(%weighted, %c) : (tensor<?x7x8xf32>, tensor<8xf32>) -> tensor<?x7x8xf32>
  return %out : tensor<?x7x8xf32>
}

// -----

// The mean square is that of another tensor.
// CHECK-LABEL: @moments_of_other
// CHECK-NOT: hone.
// CHECK: return
func.func @moments_of_other(%x: tensor<?x7x8xf32>, %y: tensor<?x7x8xf32>, %w: tensor<8xf32>) -> tensor<?x7x8xf32> {
  %eps = "onnx.Constant"() {value = dense<1.0e-6> : tensor<f64>} : () -> tensor<f64>
  %limit = "onnx.Constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %axes = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %like = "onnx.CastLike"(%eps, %x) : (tensor<f64>, tensor<?x7x8xf32>) -> tensor<f32>
  %mean = "onnx.ReduceMean"(%x, %axes) {keepdims = 1 : i64} : (tensor<?x7x8xf32>, tensor<1xi64>) -> tensor<?x7x1xf32>
  %centred = "onnx.Sub"(%x, %mean) : (tensor<?x7x8xf32>, tensor<?x7x1xf32>) -> tensor<?x7x8xf32>
  %square = "onnx.Mul"(%y, %y) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %meansquare = "onnx.ReduceMean"(%square, %axes) {keepdims = 1 : i64} : (tensor<?x7x8xf32>, tensor<1xi64>) -> tensor<?x7x1xf32>
  %squaremean = "onnx.Mul"(%mean, %mean) : (tensor<?x7x1xf32>, tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %variance = "onnx.Sub"(%meansquare, %squaremean) : (tensor<?x7x1xf32>, tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %limited = "onnx.Max"(%variance, %limit) : (tensor<?x7x1xf32>, tensor<f32>) -> tensor<?x7x1xf32>
  %sum = "onnx.Add"(%limited, %like) : (tensor<?x7x1xf32>, tensor<f32>) -> tensor<?x7x1xf32>
  %root = "onnx.Sqrt"(%sum) : (tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %normed = "onnx.Div"(%centred, %root) : (tensor<?x7x8xf32>, tensor<?x7x1xf32>) -> tensor<?x7x8xf32>
  %weighted = "onnx.Mul"(%normed, %w) : (tensor<?x7x8xf32>, tensor<8xf32>) -> tensor<?x7x8xf32>
  %c = "onnx.Constant"() {value = dense<0.5> : tensor<8xf32>} : () -> tensor<8xf32>
  %out = "onnx.Add"(%weighted, %c) : (tensor<?x7x8xf32>, tensor<8xf32>) -> tensor<?x7x8xf32>
  return %out : tensor<?x7x8xf32>
}

// -----

// A variance that is not below 1 is another formula.
// CHECK-LABEL: @moments_with_floor
// CHECK-NOT: hone.
// CHECK: return
func.func @moments_with_floor(%x: tensor<?x7x8xf32>, %y: tensor<?x7x8xf32>, %w: tensor<8xf32>) -> tensor<?x7x8xf32> {
  %eps = "onnx.Constant"() {value = dense<1.0e-6> : tensor<f64>} : () -> tensor<f64>
  %limit = "onnx.Constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %axes = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %like = "onnx.CastLike"(%eps, %x) : (tensor<f64>, tensor<?x7x8xf32>) -> tensor<f32>
  %mean = "onnx.ReduceMean"(%x, %axes) {keepdims = 1 : i64} : (tensor<?x7x8xf32>, tensor<1xi64>) -> tensor<?x7x1xf32>
  %centred = "onnx.Sub"(%x, %mean) : (tensor<?x7x8xf32>, tensor<?x7x1xf32>) -> tensor<?x7x8xf32>
  %square = "onnx.Mul"(%x, %x) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %meansquare = "onnx.ReduceMean"(%square, %axes) {keepdims = 1 : i64} : (tensor<?x7x8xf32>, tensor<1xi64>) -> tensor<?x7x1xf32>
  %squaremean = "onnx.Mul"(%mean, %mean) : (tensor<?x7x1xf32>, tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %variance = "onnx.Sub"(%meansquare, %squaremean) : (tensor<?x7x1xf32>, tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %limited = "onnx.Max"(%variance, %limit) : (tensor<?x7x1xf32>, tensor<f32>) -> tensor<?x7x1xf32>
  %sum = "onnx.Add"(%limited, %like) : (tensor<?x7x1xf32>, tensor<f32>) -> tensor<?x7x1xf32>
  %root = "onnx.Sqrt"(%sum) : (tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %normed = "onnx.Div"(%centred, %root) : (tensor<?x7x8xf32>, tensor<?x7x1xf32>) -> tensor<?x7x8xf32>
  %weighted = "onnx.Mul"(%normed, %w) : (tensor<?x7x8xf32>, tensor<8xf32>) -> tensor<?x7x8xf32>
  %c = "onnx.Constant"() {value = dense<0.5> : tensor<8xf32>} : () -> tensor<8xf32>
  %out = "onnx.Add"(%weighted, %c) : (tensor<?x7x8xf32>, tensor<8xf32>) -> tensor<?x7x8xf32>
  return %out : tensor<?x7x8xf32>
}

// -----

// The weight over the deviation is one factor, of x and of its mean.
// CHECK-LABEL: @factored
// CHECK-DAG: %[[W:.*]] = "onnx.Constant"() {value = dense<2.000000e+00> : tensor<8xf32>}
// CHECK: hone.layer_norm %arg0, %[[W]] bias(%{{.*}}) epsilon(9.99999974E-6)
// CHECK-NOT: onnx.GlobalAveragePool
func.func @factored(%x: tensor<?x7x8xf32>, %y: tensor<?x7x8xf32>) -> tensor<?x7x8xf32> {
  %w = "onnx.Constant"() {value = dense<2.0> : tensor<1x1x8xf32>} : () -> tensor<1x1x8xf32>
  %b = "onnx.Constant"() {value = dense<0.5> : tensor<1x1x8xf32>} : () -> tensor<1x1x8xf32>
  %eps = "onnx.Constant"() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %mean = "onnx.GlobalAveragePool"(%x) : (tensor<?x7x8xf32>) -> tensor<?x7x1xf32>
  %centred = "onnx.Sub"(%x, %mean) : (tensor<?x7x8xf32>, tensor<?x7x1xf32>) -> tensor<?x7x8xf32>
  %square = "onnx.Mul"(%centred, %centred) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %variance = "onnx.GlobalAveragePool"(%square) : (tensor<?x7x8xf32>) -> tensor<?x7x1xf32>
  %sum = "onnx.Add"(%variance, %eps) : (tensor<?x7x1xf32>, tensor<f32>) -> tensor<?x7x1xf32>
  %root = "onnx.Sqrt"(%sum) : (tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %inverse = "onnx.Reciprocal"(%root) : (tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %scale = "onnx.Mul"(%inverse, %w) : (tensor<?x7x1xf32>, tensor<1x1x8xf32>) -> tensor<?x7x8xf32>
  %scaled = "onnx.Mul"(%x, %scale) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %moved = "onnx.Mul"(%mean, %scale) : (tensor<?x7x1xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %shift = "onnx.Sub"(%b, %moved) : (tensor<1x1x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %out = "onnx.Add"(%scaled, %shift) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  return %out : tensor<?x7x8xf32>
}

// -----

// The mean is negated, and added.
// CHECK-LABEL: @factored_negated
// CHECK: hone.layer_norm %arg0
// CHECK-NOT: onnx.GlobalAveragePool
func.func @factored_negated(%x: tensor<?x7x8xf32>, %y: tensor<?x7x8xf32>) -> tensor<?x7x8xf32> {
  %w = "onnx.Constant"() {value = dense<2.0> : tensor<8xf32>} : () -> tensor<8xf32>
  %b = "onnx.Constant"() {value = dense<0.5> : tensor<8xf32>} : () -> tensor<8xf32>
  %eps = "onnx.Constant"() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %mean = "onnx.GlobalAveragePool"(%x) : (tensor<?x7x8xf32>) -> tensor<?x7x1xf32>
  %centred = "onnx.Sub"(%x, %mean) : (tensor<?x7x8xf32>, tensor<?x7x1xf32>) -> tensor<?x7x8xf32>
  %square = "onnx.Mul"(%centred, %centred) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %variance = "onnx.GlobalAveragePool"(%square) : (tensor<?x7x8xf32>) -> tensor<?x7x1xf32>
  %sum = "onnx.Add"(%variance, %eps) : (tensor<?x7x1xf32>, tensor<f32>) -> tensor<?x7x1xf32>
  %root = "onnx.Sqrt"(%sum) : (tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %inverse = "onnx.Reciprocal"(%root) : (tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %scale = "onnx.Mul"(%inverse, %w) : (tensor<?x7x1xf32>, tensor<8xf32>) -> tensor<?x7x8xf32>
  %scaled = "onnx.Mul"(%x, %scale) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %negated = "onnx.Neg"(%mean) : (tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %moved = "onnx.Mul"(%negated, %scale) : (tensor<?x7x1xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %shift = "onnx.Add"(%moved, %b) : (tensor<?x7x8xf32>, tensor<8xf32>) -> tensor<?x7x8xf32>
  %out = "onnx.Add"(%scaled, %shift) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  return %out : tensor<?x7x8xf32>
}

// -----

// No bias.
// CHECK-LABEL: @factored_without_bias
// CHECK: hone.layer_norm %arg0, %{{[0-9]+}} epsilon
// CHECK-NOT: onnx.GlobalAveragePool
func.func @factored_without_bias(%x: tensor<?x7x8xf32>, %y: tensor<?x7x8xf32>) -> tensor<?x7x8xf32> {
  %w = "onnx.Constant"() {value = dense<2.0> : tensor<8xf32>} : () -> tensor<8xf32>
  %eps = "onnx.Constant"() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %mean = "onnx.GlobalAveragePool"(%x) : (tensor<?x7x8xf32>) -> tensor<?x7x1xf32>
  %centred = "onnx.Sub"(%x, %mean) : (tensor<?x7x8xf32>, tensor<?x7x1xf32>) -> tensor<?x7x8xf32>
  %square = "onnx.Mul"(%centred, %centred) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %variance = "onnx.GlobalAveragePool"(%square) : (tensor<?x7x8xf32>) -> tensor<?x7x1xf32>
  %sum = "onnx.Add"(%variance, %eps) : (tensor<?x7x1xf32>, tensor<f32>) -> tensor<?x7x1xf32>
  %root = "onnx.Sqrt"(%sum) : (tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %inverse = "onnx.Reciprocal"(%root) : (tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %scale = "onnx.Mul"(%inverse, %w) : (tensor<?x7x1xf32>, tensor<8xf32>) -> tensor<?x7x8xf32>
  %scaled = "onnx.Mul"(%x, %scale) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %negated = "onnx.Neg"(%mean) : (tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %moved = "onnx.Mul"(%negated, %scale) : (tensor<?x7x1xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %out = "onnx.Add"(%scaled, %moved) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  return %out : tensor<?x7x8xf32>
}

// -----

// The mean of another tensor.
// CHECK-LABEL: @factored_of_other
// CHECK-NOT: hone.
// CHECK: return
func.func @factored_of_other(%x: tensor<?x7x8xf32>, %y: tensor<?x7x8xf32>) -> tensor<?x7x8xf32> {
  %w = "onnx.Constant"() {value = dense<2.0> : tensor<1x1x8xf32>} : () -> tensor<1x1x8xf32>
  %b = "onnx.Constant"() {value = dense<0.5> : tensor<1x1x8xf32>} : () -> tensor<1x1x8xf32>
  %eps = "onnx.Constant"() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %mean = "onnx.GlobalAveragePool"(%y) : (tensor<?x7x8xf32>) -> tensor<?x7x1xf32>
  %centred = "onnx.Sub"(%x, %mean) : (tensor<?x7x8xf32>, tensor<?x7x1xf32>) -> tensor<?x7x8xf32>
  %square = "onnx.Mul"(%centred, %centred) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %variance = "onnx.GlobalAveragePool"(%square) : (tensor<?x7x8xf32>) -> tensor<?x7x1xf32>
  %sum = "onnx.Add"(%variance, %eps) : (tensor<?x7x1xf32>, tensor<f32>) -> tensor<?x7x1xf32>
  %root = "onnx.Sqrt"(%sum) : (tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %inverse = "onnx.Reciprocal"(%root) : (tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %scale = "onnx.Mul"(%inverse, %w) : (tensor<?x7x1xf32>, tensor<1x1x8xf32>) -> tensor<?x7x8xf32>
  %scaled = "onnx.Mul"(%x, %scale) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %moved = "onnx.Mul"(%mean, %scale) : (tensor<?x7x1xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %shift = "onnx.Sub"(%b, %moved) : (tensor<1x1x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %out = "onnx.Add"(%scaled, %shift) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  return %out : tensor<?x7x8xf32>
}

// -----

// The mean times another factor.
// CHECK-LABEL: @factored_by_other
// CHECK-NOT: hone.
// CHECK: return
func.func @factored_by_other(%x: tensor<?x7x8xf32>, %y: tensor<?x7x8xf32>) -> tensor<?x7x8xf32> {
  %w = "onnx.Constant"() {value = dense<2.0> : tensor<1x1x8xf32>} : () -> tensor<1x1x8xf32>
  %b = "onnx.Constant"() {value = dense<0.5> : tensor<1x1x8xf32>} : () -> tensor<1x1x8xf32>
  %eps = "onnx.Constant"() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %mean = "onnx.GlobalAveragePool"(%x) : (tensor<?x7x8xf32>) -> tensor<?x7x1xf32>
  %centred = "onnx.Sub"(%x, %mean) : (tensor<?x7x8xf32>, tensor<?x7x1xf32>) -> tensor<?x7x8xf32>
  %square = "onnx.Mul"(%centred, %centred) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %variance = "onnx.GlobalAveragePool"(%square) : (tensor<?x7x8xf32>) -> tensor<?x7x1xf32>
  %sum = "onnx.Add"(%variance, %eps) : (tensor<?x7x1xf32>, tensor<f32>) -> tensor<?x7x1xf32>
  %root = "onnx.Sqrt"(%sum) : (tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %inverse = "onnx.Reciprocal"(%root) : (tensor<?x7x1xf32>) -> tensor<?x7x1xf32>
  %scale = "onnx.Mul"(%inverse, %w) : (tensor<?x7x1xf32>, tensor<1x1x8xf32>) -> tensor<?x7x8xf32>
  %scaled = "onnx.Mul"(%x, %scale) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %moved = "onnx.Mul"(%mean, %scaled) : (tensor<?x7x1xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %shift = "onnx.Sub"(%b, %moved) : (tensor<1x1x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  %out = "onnx.Add"(%scaled, %shift) : (tensor<?x7x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
  return %out : tensor<?x7x8xf32>
}
