// RUN: not hone-opt %s --hone-differentiate=of=y 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not hone-opt %s --hone-differentiate=of=unread 2>&1 | FileCheck %s --check-prefix=UNREAD
// RUN: not hone-opt %s --hone-differentiate=of=ids 2>&1 | FileCheck %s --check-prefix=IDS
// RUN: not hone-opt %s --hone-differentiate=output=2 2>&1 | FileCheck %s --check-prefix=OUTPUT
// RUN: not hone-opt %s --hone-differentiate=entry=other 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: not hone-opt %s --hone-differentiate=loss=hinge 2>&1 | FileCheck %s --check-prefix=LOSS
// RUN: not hone-opt %s --hone-differentiate="loss=cross-entropy output=1" 2>&1 | FileCheck %s --check-prefix=LOGITS
// RUN: not hone-opt %s --hone-differentiate=teacher=main 2>&1 | FileCheck %s --check-prefix=TEACHER
// RUN: not hone-opt %s --hone-differentiate="loss=cross-entropy teacher=other" 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not hone-opt %s --hone-differentiate="loss=cross-entropy teacher=narrow" 2>&1 | FileCheck %s --check-prefix=NARROW
// RUN: not hone-opt %s --hone-differentiate="loss=cross-entropy teacher=asks" 2>&1 | FileCheck %s --check-prefix=ASKS
// RUN: not hone-opt %s --hone-differentiate="loss=cross-entropy teacher=limited" 2>&1 | FileCheck %s --check-prefix=LIMITED
// RUN: not hone-opt %s --hone-differentiate="loss=cross-entropy teacher=rows" 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not hone-opt %s --hone-differentiate="loss=cross-entropy distill-weight=1.5" 2>&1 | FileCheck %s --check-prefix=WEIGHT
// RUN: not hone-opt %s --hone-differentiate="loss=cross-entropy temperature=0" 2>&1 | FileCheck %s --check-prefix=TEMPERATURE
// RUN: not hone-opt %s --hone-differentiate="loss=cross-entropy feature-weight=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not hone-opt %s --hone-differentiate="loss=cross-entropy most-logits=-1" 2>&1 | FileCheck %s --check-prefix=CHUNK
// RUN: not hone-opt %s --hone-differentiate="loss=cross-entropy teacher=same feature-weight=1" 2>&1 | FileCheck %s --check-prefix=NOSTATES

// NAME: error: cannot differentiate @main: it has no parameter and no input of floats 'y'
// UNREAD: error: cannot differentiate @main: 'logits' does not depend on 'unread'
// IDS: error: cannot differentiate @main: it has no parameter and no input of floats 'ids'
// OUTPUT: error: cannot differentiate @main: expected an output from 0 to 1, but got 2
// ENTRY: error: cannot differentiate: the model has no entry 'other'
// LOSS: error: cannot differentiate @main: unsupported loss 'hinge'; supported: cross-entropy
// LOGITS: error: cannot differentiate @main: expected 'output1' to be logits of f32 for the loss cross-entropy, but got 'tensor<f64>'
// TEACHER: error: expected a loss with a teacher
// ABSENT: error: cannot distill: the module has no function @other with results
// NARROW: error: cannot distill: expected logits of the teacher to be of type 'tensor<?x8xf32>', but got 'tensor<?x4xf32>'
// ASKS: error: cannot distill: the teacher reads 'mask' of type 'tensor<?xi64>', which the model does not
// LIMITED: error: cannot distill: the teacher has a table of 512 positions for 'tokens', which is no size of the model's inputs
// ROWS: error: cannot distill: expected the teacher to have the vocabulary of the model
// WEIGHT: error: expected distill-weight to be 0 to 1, but got 1.5
// TEMPERATURE: error: expected temperature to be above 0, but got 0
// NEGATIVE: error: expected feature-weight to be 0 or more, but got -1
// CHUNK: error: expected most-logits to be 0 or more, but got -1
// NOSTATES: error: cannot distill: expected the model to have hidden states, which norms read

hone.param @w : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
func.func @main(%x: tensor<?x4xf32> {onnx.name = "x"}, %unread: tensor<4xf32> {onnx.name = "unread"}, %ids: tensor<?xi64> {onnx.name = "ids"},
                %number: tensor<f64>) -> (tensor<?x8xf32> {onnx.name = "logits"}, tensor<f64>) {
  %w = hone.get_param @w : tensor<8x4xf32>
  %y = hone.linear %x, %w : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x8xf32>
  return %y, %number : tensor<?x8xf32>, tensor<f64>
}
func.func private @narrow(%x: tensor<?x4xf32> {onnx.name = "x"}) -> tensor<?x4xf32> {
  return %x : tensor<?x4xf32>
}
func.func private @asks(%x: tensor<?x4xf32> {onnx.name = "x"}, %mask: tensor<?xi64> {onnx.name = "mask"}) -> tensor<?x4xf32> {
  return %x : tensor<?x4xf32>
}
func.func private @limited(%x: tensor<?x4xf32> {onnx.name = "x"}) -> tensor<?x4xf32>
    attributes {hone.limits = [{most = 512 : i64, sizes = ["tokens"], table = "t"}]} {
  return %x : tensor<?x4xf32>
}
func.func private @rows(%x: tensor<?x4xf32> {onnx.name = "x"}, %ids: tensor<?xi64> {onnx.name = "ids", hone.rows = array<i64: 9, 0>}) -> tensor<?x4xf32> {
  return %x : tensor<?x4xf32>
}
func.func private @same(%x: tensor<?x4xf32> {onnx.name = "x"}) -> tensor<?x8xf32> {
  %w = hone.get_param @w : tensor<8x4xf32>
  %y = hone.linear %x, %w : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
