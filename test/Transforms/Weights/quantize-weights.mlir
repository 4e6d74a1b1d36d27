// RUN: hone-opt %s -hone-quantize-weights="bits=4 group=32" | FileCheck %s
// RUN: hone-opt %s -hone-quantize-weights="bits=4 group=32" -remarks-filter=hone-quantize-weights 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: hone-opt %s -hone-quantize-weights="asymmetric=true activations=0" | FileCheck %s --check-prefix=BYTES
// RUN: hone-opt %s -hone-quantize-weights="bits=3 group=32" | FileCheck %s --check-prefix=THREE
// RUN: hone-opt %s -hone-quantize-weights="bits=4 group=32 output-bits=8" | FileCheck %s --check-prefix=OUTPUT
// RUN: not hone-opt %s -hone-quantize-weights=output-bits=7 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not hone-opt %s -hone-quantize-weights=bits=7 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not hone-opt %s -hone-quantize-weights=scales=best 2>&1 | FileCheck %s --check-prefix=SCALES
// RUN: not hone-opt %s -hone-quantize-weights=refinements=2 2>&1 | FileCheck %s --check-prefix=REFINEMENTS

// UNKNOWN: error: unsupported number of bits 7; supported: 2, 3, 4, 5, 6, 8
// What a function returns may have other codes.
// OUTPUT: hone.param @weight : tensor<8x4xf32, #hone.affine<bits = 8, scales = f16, activations = 8, atLeast = true>>

// SCALES: error: unsupported choice of scales 'best'; supported: absmax, mse
// REFINEMENTS: error: expected 0 or more refinements, of method 'gptq', but got 2 of 'rtn'

// CHECK: hone.param @weight : tensor<8x4xf32, #hone.affine<bits = 4, group = 32, scales = f16, activations = 8, atLeast = true>> = #hone.converted<tensor<8x4xf32, #hone.stored<f32, transposed>> = #hone.external<"w", 0, 128>>
// CHECK: hone.param @norm : tensor<4xf32> = dense
// BYTES: hone.param @weight : tensor<8x4xf32, #hone.affine<bits = 8, group = 64, scales = f16, hasZeros = true>>
// THREE: hone.param @weight : tensor<8x4xf32, #hone.affine<bits = 3, group = 32, scales = f16, activations = 8, atLeast = true>>
// REMARK-DAG: [Passed] Quantized {{.*}}"weight is stored in 4 bits an element"
// REMARK-DAG: [Missed] Quantized {{.*}}"norm stays as it is: it is no matrix of f32"
hone.param @weight : tensor<8x4xf32, #hone.stored<f32, transposed>> = #hone.external<"w", 0, 128>
hone.param @norm : tensor<4xf32> = dense<0.0> : tensor<4xf32>

// CHECK-LABEL: @main
// CHECK: hone.linear %{{.*}}, %{{.*}} : (tensor<?x4xf32>, tensor<8x4xf32, #hone.affine<bits = 4, group = 32, scales = f16, activations = 8, atLeast = true>>) -> tensor<?x8xf32>
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x8xf32> {
  %weight = hone.get_param @weight : tensor<8x4xf32, #hone.stored<f32, transposed>>
  %norm = hone.get_param @norm : tensor<4xf32>
  %0 = hone.rms_norm %x, %norm epsilon(1.0e-6) : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = hone.linear %0, %weight : (tensor<?x4xf32>, tensor<8x4xf32, #hone.stored<f32, transposed>>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
