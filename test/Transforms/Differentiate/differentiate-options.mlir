// RUN: not hone-opt %s --hone-differentiate=of=y 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not hone-opt %s --hone-differentiate=of=unread 2>&1 | FileCheck %s --check-prefix=UNREAD
// RUN: not hone-opt %s --hone-differentiate=of=ids 2>&1 | FileCheck %s --check-prefix=IDS
// RUN: not hone-opt %s --hone-differentiate=output=2 2>&1 | FileCheck %s --check-prefix=OUTPUT
// RUN: not hone-opt %s --hone-differentiate=entry=other 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: not hone-opt %s --hone-differentiate=loss=hinge 2>&1 | FileCheck %s --check-prefix=LOSS
// RUN: not hone-opt %s --hone-differentiate="loss=cross-entropy output=1" 2>&1 | FileCheck %s --check-prefix=LOGITS

// NAME: error: cannot differentiate @main: it has no parameter and no input of floats 'y'
// UNREAD: error: cannot differentiate @main: 'logits' does not depend on 'unread'
// IDS: error: cannot differentiate @main: it has no parameter and no input of floats 'ids'
// OUTPUT: error: cannot differentiate @main: expected an output from 0 to 1, but got 2
// ENTRY: error: cannot differentiate: the model has no entry 'other'
// LOSS: error: cannot differentiate @main: unsupported loss 'hinge'; supported: cross-entropy
// LOGITS: error: cannot differentiate @main: expected 'output1' to be logits of f32 for the loss cross-entropy, but got 'tensor<f64>'

hone.param @w : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
func.func @main(%x: tensor<?x4xf32> {onnx.name = "x"}, %unread: tensor<4xf32> {onnx.name = "unread"}, %ids: tensor<?xi64> {onnx.name = "ids"},
                %number: tensor<f64>) -> (tensor<?x8xf32> {onnx.name = "logits"}, tensor<f64>) {
  %w = hone.get_param @w : tensor<8x4xf32>
  %y = hone.linear %x, %w : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x8xf32>
  return %y, %number : tensor<?x8xf32>, tensor<f64>
}
