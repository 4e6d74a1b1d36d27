// RUN: hone-opt %s -split-input-file -verify-diagnostics --hone-integrate-gradients

// expected-error @below {{cannot integrate gradients: the model has no entry 'gradients'}}
module {}

// -----

module {
  // expected-error @below {{cannot integrate gradients: expected @gradients to have a loss and gradients of parameters}}
  func.func @gradients(%x: tensor<2xf32>) -> (tensor<2xf32> {onnx.name = "w.gradient"}) {
    return %x : tensor<2xf32>
  }
}

// -----

module {
  hone.param @w : tensor<2xf32> = dense<1.0> : tensor<2xf32>
  // expected-error @below {{cannot integrate gradients: no parameter P with a gradient has a parameter P.path_end where its path ends}}
  func.func @gradients(%x: tensor<2xf32>, %l: tensor<f32>) -> (tensor<f32> {onnx.name = "loss"}, tensor<2xf32> {onnx.name = "w.gradient"}) {
    return %l, %x : tensor<f32>, tensor<2xf32>
  }
}

// -----

module {
  hone.param @w : tensor<2xf32> = dense<1.0> : tensor<2xf32>
  // expected-error @below {{cannot integrate gradients: expected @w.path_end and @w to be of the same type of f32 without an encoding, but got 'tensor<3xf32>' and 'tensor<2xf32>'}}
  hone.param @w.path_end : tensor<3xf32> = dense<1.0> : tensor<3xf32>
  func.func @gradients(%x: tensor<2xf32>, %l: tensor<f32>) -> (tensor<f32> {onnx.name = "loss"}, tensor<2xf32> {onnx.name = "w.gradient"}) {
    return %l, %x : tensor<f32>, tensor<2xf32>
  }
}

// -----

module {
  hone.param @w : tensor<2xf32> = dense<1.0> : tensor<2xf32>
  func.func @path_step(%x: tensor<2xf32>) { return }
  // expected-error @below {{cannot integrate gradients: the model has a symbol @path_step}}
  func.func @gradients(%x: tensor<2xf32>, %l: tensor<f32>) -> (tensor<f32> {onnx.name = "loss"}, tensor<2xf32> {onnx.name = "w.gradient"}) {
    return %l, %x : tensor<f32>, tensor<2xf32>
  }
}
