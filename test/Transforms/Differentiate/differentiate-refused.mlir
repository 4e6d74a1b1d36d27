// RUN: hone-opt %s --hone-differentiate --split-input-file --verify-diagnostics

// What is on the way of a gradient and has no adjoint is named.

hone.param @w : tensor<4xf32> = dense<1.0> : tensor<4xf32>
func.func @main(%go: i1) -> tensor<4xf32> {
  %w = hone.get_param @w : tensor<4xf32>
  // expected-error @below {{cannot differentiate scf.while: it has no adjoint}}
  %y = scf.while (%x = %w) : (tensor<4xf32>) -> tensor<4xf32> {
    scf.condition(%go) %x : tensor<4xf32>
  } do {
  ^bb0(%x: tensor<4xf32>):
    scf.yield %x : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

hone.param @w : tensor<4xf32> = dense<1.0> : tensor<4xf32>
func.func @main(%n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w = hone.get_param @w : tensor<4xf32>
  %begin = tensor.cast %w : tensor<4xf32> to tensor<?xf32>
  // expected-error @below {{cannot differentiate scf.for: the shape of carried value 0 may change}}
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%x = %begin) -> tensor<?xf32> {
    %part = tensor.extract_slice %x[0] [%i] [1] : tensor<?xf32> to tensor<?xf32>
    scf.yield %part : tensor<?xf32>
  }
  return %y : tensor<?xf32>
}

// -----

hone.param @w : tensor<4xf32> = dense<1.0> : tensor<4xf32>
func.func @main() -> tensor<f32> {
  %w = hone.get_param @w : tensor<4xf32>
  %one = arith.constant dense<1.0> : tensor<f32>
  // expected-error @below {{cannot differentiate linalg.generic: it reduces with arith.subf; supported: sums, products, maxima, minima}}
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%w : tensor<4xf32>) outs(%one : tensor<f32>) {
  ^bb0(%x: f32, %sofar: f32):
    %p = arith.subf %sofar, %x : f32
    linalg.yield %p : f32
  } -> tensor<f32>
  return %y : tensor<f32>
}

// -----

hone.param @w : tensor<4xf32> = dense<1.0> : tensor<4xf32>
func.func @main() -> tensor<4xf32> {
  %w = hone.get_param @w : tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%w : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%x: f32, %out: f32):
    // expected-error @below {{cannot differentiate math.cbrt: it has no adjoint}}
    %p = math.cbrt %x : f32
    linalg.yield %p : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

hone.param @w : tensor<4xf32> = dense<1.0> : tensor<4xf32>
func.func @main() -> tensor<8xf32> {
  %w = hone.get_param @w : tensor<4xf32>
  %empty = tensor.empty() : tensor<8xf32>
  // expected-error @below {{it reads operand #0 in a way that is no choice, no repetition and no window of its dimensions}}
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0 floordiv 2)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%w : tensor<4xf32>) outs(%empty : tensor<8xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

hone.param @w : tensor<4x4xf16> = dense<1.0> : tensor<4x4xf16>
func.func @main(%x: tensor<2x4xf16>) -> tensor<2x4xf32> {
  %w = hone.get_param @w : tensor<4x4xf16>
  // expected-error @below {{cannot differentiate hone.linear of 'f16'; supported: f32, f64}}
  %y = hone.linear %x, %w : (tensor<2x4xf16>, tensor<4x4xf16>) -> tensor<2x4xf16>
  %empty = tensor.empty() : tensor<2x4xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
                       iterator_types = ["parallel", "parallel"]} ins(%y : tensor<2x4xf16>) outs(%empty : tensor<2x4xf32>) {
  ^bb0(%a: f16, %out: f32):
    %b = arith.extf %a : f16 to f32
    linalg.yield %b : f32
  } -> tensor<2x4xf32>
  return %z : tensor<2x4xf32>
}

// -----

hone.state @kv [#hone.slot<"key", tensor<?x1x?x8xf32>, axis = 2>]
func.func @forward(%x: tensor<?x1x?x8xf32>, %state: !hone.kv<@kv>) -> tensor<?x1x?x8xf32> {
  // expected-error @below {{cannot differentiate hone.kv_view: it reads the state}}
  %y = hone.kv_view %state[0] : !hone.kv<@kv> -> tensor<?x1x?x8xf32>
  return %y : tensor<?x1x?x8xf32>
}

// -----

// expected-error @below {{cannot differentiate @main: 'output0' depends on no parameter}}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{cannot differentiate @main: unsupported type 'tensor<4xi64>' of 'ids'; supported: tensors of f32 and f64}}
func.func @main(%x: tensor<4xi64>) -> (tensor<4xi64> {onnx.name = "ids"}) {
  return %x : tensor<4xi64>
}

// -----

// expected-error @below {{cannot make an entry 'gradients': the model has one}}
module {
  func.func @main() { return }
  func.func @gradients() { return }
}

// -----

// expected-error @below {{cannot differentiate: the model has no entry 'main'}}
module {
}
