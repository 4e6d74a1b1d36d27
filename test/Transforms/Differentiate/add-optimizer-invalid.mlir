// RUN: hone-opt %s -split-input-file -verify-diagnostics --hone-add-optimizer
// RUN: not hone-opt %s --hone-add-optimizer=optimizer=adam 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not hone-opt %s --hone-add-optimizer=beta2=1 2>&1 | FileCheck %s --check-prefix=BETA
// RUN: not hone-opt %s --hone-add-optimizer=weight-decay=-1 2>&1 | FileCheck %s --check-prefix=DECAY
// RUN: not hone-opt %s --hone-add-optimizer=accumulate=0 2>&1 | FileCheck %s --check-prefix=ACCUMULATE

// NAME: error: unsupported optimizer 'adam'; supported: sgd, momentum, adamw, muon
// BETA: error: expected beta2 to be at least 0 and below 1, but got 1
// DECAY: error: expected weight-decay to be 0 or more, but got -1
// ACCUMULATE: error: expected accumulate to be 1 or more, but got 0

// expected-error @below {{cannot add an optimizer: the model has no entry 'gradients'}}
module {}

// -----

module {
  // expected-error @below {{cannot add an optimizer: expected @gradients to have a loss and gradients of parameters}}
  func.func @gradients(%x: tensor<2xf32>) -> (tensor<2xf32> {onnx.name = "w.gradient"}) {
    return %x : tensor<2xf32>
  }
}

// -----

module {
  // expected-error @below {{cannot add an optimizer: expected result 1 to be the gradient of a parameter, but got 'x.gradient'}}
  func.func @gradients(%x: tensor<2xf32>, %l: tensor<f32>) -> (tensor<f32> {onnx.name = "loss"}, tensor<2xf32> {onnx.name = "x.gradient"}) {
    return %l, %x : tensor<f32>, tensor<2xf32>
  }
}

// -----

module {
  hone.param @w : tensor<4x2xf32, #hone.stored<bf16>> = dense<1.0> : tensor<4x2xbf16>
  // expected-error @below {{cannot add an optimizer: unsupported parameter 'w' of type 'tensor<4x2xf32, #hone.stored<bf16>>'; supported: parameters that are stored as f32}}
  func.func @gradients(%x: tensor<4x2xf32>, %l: tensor<f32>) -> (tensor<f32> {onnx.name = "loss"}, tensor<4x2xf32> {onnx.name = "w.gradient"}) {
    return %l, %x : tensor<f32>, tensor<4x2xf32>
  }
}

// -----

module {
  hone.param @w : tensor<2xf32> = dense<1.0> : tensor<2xf32>
  func.func @train_step(%x: tensor<2xf32>) { return }
  // expected-error @below {{cannot add an optimizer: the model has a symbol @train_step}}
  func.func @gradients(%x: tensor<2xf32>, %l: tensor<f32>) -> (tensor<f32> {onnx.name = "loss"}, tensor<2xf32> {onnx.name = "w.gradient"}) {
    return %l, %x : tensor<f32>, tensor<2xf32>
  }
}
