// RUN: hone compile %s -o %t.hone --gradients=parameters --loss=cross-entropy
// RUN: %python -c "import numpy; [numpy.savez(f'%t.{target}.npz', ids=[[1, 2]], targets=[[0, target]]) for target in (3, 4, -5)]"
// RUN: hone-run run %t.hone --entry gradients --inputs %t.3.npz --outputs %t.out.npz
// RUN: %python -c "import numpy; [print(name, array.round(3).tolist()) for name, array in numpy.load('%t.out.npz').items()]" | FileCheck %s
// RUN: not hone-run run %t.hone --entry gradients --inputs %t.4.npz 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not hone-run run %t.hone --entry gradients --inputs %t.-5.npz 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: hone compile %s -o %t.vjp.hone --gradients=gain
// RUN: not hone-run run %t.vjp.hone --entry gradients --inputs %t.3.npz 2>&1 | FileCheck %s --check-prefix=LACKING

// All logits are alike: the loss is the logarithm of 4, and the gradient of the logits an eighth, less a half at each target. The rows of the table that were
// read get it, and what makes the logits of it.
// CHECK: loss 1.386
// CHECK: table.gradient {{\[\[}}0.0, 0.0, 0.0, 0.0], [-0.375, 0.125, 0.125, 0.125], [0.125, 0.125, 0.125, -0.375], [0.0, 0.0, 0.0, 0.0]]
// CHECK: gain.gradient [-0.5, 0.5, 0.5, -0.5]
// TARGET: targets
// NEGATIVE: targets
// LACKING: logits.gradient

hone.param @table : tensor<4x4xf32> = dense<2.0> : tensor<4x4xf32>
hone.param @gain : tensor<4xf32> = dense<1.0> : tensor<4xf32>
func.func @main(%ids: tensor<1x?xi64> {onnx.name = "ids", onnx.dims = ["", "sequence"]})
    -> (tensor<1x?x4xf32> {onnx.name = "logits", onnx.dims = ["", "sequence", ""]}) {
  %c1 = arith.constant 1 : index
  %count = tensor.dim %ids, %c1 : tensor<1x?xi64>
  %table = hone.get_param @table : tensor<4x4xf32>
  %gain = hone.get_param @gain : tensor<4xf32>
  %x = hone.embedding %ids, %table : (tensor<1x?xi64>, tensor<4x4xf32>) -> tensor<1x?x4xf32>
  %empty = tensor.empty(%count) : tensor<1x?x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %gain : tensor<1x?x4xf32>, tensor<4xf32>) outs(%empty : tensor<1x?x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<1x?x4xf32>
  return %y : tensor<1x?x4xf32>
}
