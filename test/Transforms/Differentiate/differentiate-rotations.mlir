// RUN: hone-opt %s --hone-differentiate --canonicalize --cse | FileCheck %s
// RUN: hone-opt %s --hone-differentiate=of=frequencies --canonicalize --cse | FileCheck %s --check-prefix=ASKED

// Frequencies of rotations are no parameters, unless they are asked for.

// CHECK-LABEL: func.func @gradients(
// CHECK-SAME: -> (tensor<64xf32> {onnx.name = "scale.gradient"})
// CHECK: hone.rope
// ASKED-LABEL: func.func @gradients(
// ASKED-SAME: -> (tensor<32xf32> {onnx.name = "frequencies.gradient"})
module {
  hone.param @frequencies : tensor<32xf32> = dense<1.0> : tensor<32xf32>
  hone.param @scale : tensor<64xf32> = dense<1.0> : tensor<64xf32>
  func.func @main(%x: tensor<1x2x8x64xf32>, %positions: tensor<1x8xf32>) -> tensor<1x2x8x64xf32> {
    %frequencies = hone.get_param @frequencies : tensor<32xf32>
    %scale = hone.get_param @scale : tensor<64xf32>
    %e = tensor.empty() : tensor<1x8x32xf32>
    %angles = linalg.generic {indexing_maps = [affine_map<(b, s, k) -> (b, s)>, affine_map<(b, s, k) -> (k)>, affine_map<(b, s, k) -> (b, s, k)>],
                              iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%positions, %frequencies : tensor<1x8xf32>, tensor<32xf32>) outs(%e : tensor<1x8x32xf32>) {
    ^bb0(%p: f32, %f: f32, %out: f32):
      %angle = arith.mulf %p, %f : f32
      linalg.yield %angle : f32
    } -> tensor<1x8x32xf32>
    %cos = linalg.generic {indexing_maps = [affine_map<(b, s, k) -> (b, s, k)>, affine_map<(b, s, k) -> (b, s, k)>],
                           iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%angles : tensor<1x8x32xf32>) outs(%e : tensor<1x8x32xf32>) {
    ^bb0(%a: f32, %out: f32):
      %c = math.cos %a : f32
      linalg.yield %c : f32
    } -> tensor<1x8x32xf32>
    %sin = linalg.generic {indexing_maps = [affine_map<(b, s, k) -> (b, s, k)>, affine_map<(b, s, k) -> (b, s, k)>],
                           iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%angles : tensor<1x8x32xf32>) outs(%e : tensor<1x8x32xf32>) {
    ^bb0(%a: f32, %out: f32):
      %s = math.sin %a : f32
      linalg.yield %s : f32
    } -> tensor<1x8x32xf32>
    %f = tensor.empty() : tensor<1x2x8x64xf32>
    %scaled = linalg.generic {indexing_maps = [affine_map<(b, h, s, k) -> (b, h, s, k)>, affine_map<(b, h, s, k) -> (k)>, affine_map<(b, h, s, k) -> (b, h, s, k)>],
                              iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%x, %scale : tensor<1x2x8x64xf32>, tensor<64xf32>) outs(%f : tensor<1x2x8x64xf32>) {
    ^bb0(%a: f32, %s: f32, %out: f32):
      %y = arith.mulf %a, %s : f32
      linalg.yield %y : f32
    } -> tensor<1x2x8x64xf32>
    %y = hone.rope %scaled, %cos, %sin : (tensor<1x2x8x64xf32>, tensor<1x8x32xf32>, tensor<1x8x32xf32>) -> tensor<1x2x8x64xf32>
    return %y : tensor<1x2x8x64xf32>
  }
}
