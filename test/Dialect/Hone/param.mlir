// RUN: hone-opt %s | hone-opt | FileCheck %s
// RUN: hone-opt %s -emit-bytecode | hone-opt | FileCheck %s

// Each way to give the bytes of a parameter prints as it is written.

// CHECK: hone.param @inline : tensor<2xf32> = dense<[1.000000e+00, 5.000000e-01]> : tensor<2xf32>
hone.param @inline : tensor<2xf32> = dense<[1.0, 0.5]> : tensor<2xf32>
// CHECK: hone.param @integers : tensor<3xi64> = dense<[1, 2, 3]> : tensor<3xi64>
hone.param @integers : tensor<3xi64> = dense<[1, 2, 3]> : tensor<3xi64>
// CHECK: hone.param @blob : tensor<1xf32> = dense_resource<one> : tensor<1xf32>
hone.param @blob : tensor<1xf32> = dense_resource<one> : tensor<1xf32>
// CHECK: hone.param @"a name/with:marks" : tensor<4x2xf32> = #hone.external<"model.onnx_data", 4096, 32>
hone.param @"a name/with:marks" : tensor<4x2xf32> = #hone.external<"model.onnx_data", 4096, 32>
// The planes of an encoding: bf16, and swapped.
// CHECK: hone.param @narrow : tensor<4x2xf32, #hone.stored<bf16>> = #hone.external<"model.safetensors", 0, 16>
hone.param @narrow : tensor<4x2xf32, #hone.stored<bf16>> = #hone.external<"model.safetensors", 0, 16>
// CHECK: hone.param @by_name : tensor<4x2xf32, #hone.stored<f16, transposed>> = {values = dense<1.000000e+00> : tensor<2x4xf16>}
hone.param @by_name : tensor<4x2xf32, #hone.stored<f16, transposed>> = {values = dense<1.0> : tensor<2x4xf16>}
// What is converted keeps its bytes, whatever they are in.
// CHECK: hone.param @converted : tensor<2xf32, #hone.stored<bf16>> = #hone.converted<tensor<2xf32> = dense_resource<two> : tensor<2xf32>>
hone.param @converted : tensor<2xf32, #hone.stored<bf16>> = #hone.converted<tensor<2xf32> = dense_resource<two> : tensor<2xf32>>
// CHECK: hone.param @planes : tensor<2xf32, #hone.stored<f16>> = #hone.converted<tensor<2xf32, #hone.stored<bf16>> = {values = dense_resource<three> : tensor<2xbf16>}>
hone.param @planes : tensor<2xf32, #hone.stored<f16>> = #hone.converted<tensor<2xf32, #hone.stored<bf16>> = {values = dense_resource<three> : tensor<2xbf16>}>
// Tensors that are joined, as they are and transposed.
// CHECK: hone.param @stacked : tensor<4x2xf32> = #hone.stacked<tensor<2x2xf32> = [#hone.external<"model.onnx_data", 64, 16>, dense<1.000000e+00> : tensor<2x2xf32>]>
hone.param @stacked : tensor<4x2xf32> = #hone.stacked<tensor<2x2xf32> = [#hone.external<"model.onnx_data", 64, 16>, dense<1.0> : tensor<2x2xf32>]>
// CHECK: hone.param @turned : tensor<4x1xf32, #hone.stored<bf16>> = #hone.converted<tensor<4x1xf32> = #hone.stacked<tensor<2x1xf32, #hone.stored<f32, transposed>> = [dense_resource<row> : tensor<1x2xf32>, dense_resource<two> : tensor<1x2xf32>]>>
hone.param @turned : tensor<4x1xf32, #hone.stored<bf16>> = #hone.converted<tensor<4x1xf32> = #hone.stacked<tensor<2x1xf32, #hone.stored<f32, transposed>> = [dense_resource<row> : tensor<1x2xf32>, dense_resource<two> : tensor<1x2xf32>]>>

// CHECK: dialect_resources: {
// CHECK-DAG: one: "0x040000000000803F"
// CHECK-DAG: row: "0x040000000000803F00000040"
// CHECK-DAG: two: "0x040000000000803F00000040"
// CHECK-DAG: three: "0x04000000803F0040"
{-#
  dialect_resources: { builtin: { one: "0x040000000000803F", two: "0x040000000000803F00000040", three: "0x04000000803F0040", row: "0x040000000000803F00000040" } }
#-}
