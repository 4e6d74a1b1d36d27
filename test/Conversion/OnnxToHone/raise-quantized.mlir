// RUN: hone-opt %s --hone-raise-linear --split-input-file | FileCheck %s
// RUN: hone-opt %s --hone-raise-linear --split-input-file --remarks-filter=hone-raise-linear 2>&1 | FileCheck %s --check-prefix=REMARK

// Blocks of 4 bits keep their bytes; of activations accuracy_level 4 asks for 8 bits at least.
// CHECK: hone.param @b : tensor<3x40xf32, #hone.affine<bits = 4, group = 32, hasZeros = true, activations = 8, atLeast = true>> = {scales = dense<1.000000e+00> : tensor<3x2xf32>, values = #hone.external<"w", 0, 96>, zeros = dense<-120> : tensor<3x1xi8>}
// CHECK-LABEL: @blocks
// CHECK: hone.linear %arg0, %{{.*}} : (tensor<?x40xf32>, tensor<3x40xf32, #hone.affine<{{.*}}>>) -> tensor<?x3xf32>
// CHECK-NOT: onnx
// REMARK: [Passed] Linear | Category:hone-raise-linear | {{.*}}Remark=MatMulNBits
hone.param @b : tensor<3x2x16xui8> = #hone.external<"w", 0, 96>
hone.param @s : tensor<6xf32> = dense<1.0> : tensor<6xf32>
hone.param @z : tensor<3xui8> = dense<136> : tensor<3xui8>
func.func @blocks(%x: tensor<?x40xf32>) -> tensor<?x3xf32> {
  %b = hone.get_param @b : tensor<3x2x16xui8>
  %s = hone.get_param @s : tensor<6xf32>
  %z = hone.get_param @z : tensor<3xui8>
  %0 = "onnx.com.microsoft.MatMulNBits"(%x, %b, %s, %z) {K = 40 : i64, N = 3 : i64, accuracy_level = 4 : i64, bits = 4 : i64, block_size = 32 : i64}
     : (tensor<?x40xf32>, tensor<3x2x16xui8>, tensor<6xf32>, tensor<3xui8>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// What a quantizer makes of a product with bias: sums of integers times both scales. Zero points in the middle are none.
// CHECK: hone.param @w : tensor<3x4xf32, #hone.affine<bits = 8, isSigned = true, transposed = true, activations = 8, atLeast = true>> = {scales = dense<5.000000e-01> : tensor<1x3xf32>, values = dense<1> : tensor<4x3xi8>}
// CHECK-LABEL: @dynamic
// CHECK: %[[W:.*]] = hone.get_param @w
// CHECK: hone.linear %arg0, %[[W]] bias(%{{.*}}) : {{.*}} -> tensor<?x?x3xf32>
// CHECK-NOT: onnx
hone.param @w : tensor<4x3xi8> = dense<1> : tensor<4x3xi8>
hone.param @s : tensor<f32> = dense<0.5> : tensor<f32>
hone.param @z : tensor<i8> = dense<0> : tensor<i8>
hone.param @bias : tensor<3xf32> = dense<1.0> : tensor<3xf32>
func.func @dynamic(%x: tensor<?x?x4xf32>) -> tensor<?x?x3xf32> {
  %w = hone.get_param @w : tensor<4x3xi8>
  %s = hone.get_param @s : tensor<f32>
  %z = hone.get_param @z : tensor<i8>
  %bias = hone.get_param @bias : tensor<3xf32>
  %q:3 = "onnx.DynamicQuantizeLinear"(%x) : (tensor<?x?x4xf32>) -> (tensor<?x?x4xui8>, tensor<f32>, tensor<ui8>)
  %0 = "onnx.MatMulInteger"(%q#0, %w, %q#2, %z) : (tensor<?x?x4xui8>, tensor<4x3xi8>, tensor<ui8>, tensor<i8>) -> tensor<?x?x3xi32>
  %1 = "onnx.Cast"(%0) {to = 1 : i64} : (tensor<?x?x3xi32>) -> tensor<?x?x3xf32>
  %scale = "onnx.Mul"(%q#1, %s) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %2 = "onnx.Mul"(%1, %scale) : (tensor<?x?x3xf32>, tensor<f32>) -> tensor<?x?x3xf32>
  %3 = "onnx.Add"(%2, %bias) : (tensor<?x?x3xf32>, tensor<3xf32>) -> tensor<?x?x3xf32>
  return %3 : tensor<?x?x3xf32>
}

// -----

// A weight that is dequantized before a product, each output with a scale and a zero point of its own.
// CHECK: hone.param @w : tensor<3x4xf32, #hone.affine<bits = 8, hasZeros = true, transposed = true>> = {{.*}}zeros = dense<{{.*}}> : tensor<1x3xi8>}
// CHECK-LABEL: @dequantized
// CHECK: hone.linear %arg0, %{{.*}} -> tensor<?x3xf32>
// CHECK-NOT: onnx
hone.param @w : tensor<4x3xui8> = dense<1> : tensor<4x3xui8>
hone.param @s : tensor<3xf32> = dense<[0.5, 1.0, 2.0]> : tensor<3xf32>
hone.param @z : tensor<3xui8> = dense<[1, 128, 3]> : tensor<3xui8>
func.func @dequantized(%x: tensor<?x4xf32>) -> tensor<?x3xf32> {
  %w = hone.get_param @w : tensor<4x3xui8>
  %s = hone.get_param @s : tensor<3xf32>
  %z = hone.get_param @z : tensor<3xui8>
  %0 = "onnx.DequantizeLinear"(%w, %s, %z) {axis = 1 : i64} : (tensor<4x3xui8>, tensor<3xf32>, tensor<3xui8>) -> tensor<4x3xf32>
  %1 = "onnx.MatMul"(%x, %0) : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
  return %1 : tensor<?x3xf32>
}

// -----

// Scales along the inputs, zero points of floats, and rows chosen by an index are other things.
// CHECK-LABEL: @not_raised
// CHECK-NOT: hone.linear
// REMARK: [Missed] Linear | Category:hone-raise-linear | {{.*}}its zero points are no codes of as many bits as those of the weight
hone.param @w : tensor<4x3xi8> = dense<1> : tensor<4x3xi8>
hone.param @s : tensor<4xf32> = dense<0.5> : tensor<4xf32>
hone.param @b : tensor<3x1x16xui8> = dense<1> : tensor<3x1x16xui8>
hone.param @t : tensor<3xf32> = dense<1.0> : tensor<3xf32>
func.func @not_raised(%x: tensor<?x4xf32>) -> (tensor<?x3xf32>, tensor<?x3xf32>) {
  %w = hone.get_param @w : tensor<4x3xi8>
  %s = hone.get_param @s : tensor<4xf32>
  %b = hone.get_param @b : tensor<3x1x16xui8>
  %t = hone.get_param @t : tensor<3xf32>
  %0 = "onnx.DequantizeLinear"(%w, %s) {axis = 0 : i64} : (tensor<4x3xi8>, tensor<4xf32>) -> tensor<4x3xf32>
  %1 = "onnx.MatMul"(%x, %0) : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
  %2 = "onnx.com.microsoft.MatMulNBits"(%x, %b, %t, %t) {K = 4 : i64, N = 3 : i64, bits = 4 : i64, block_size = 32 : i64}
     : (tensor<?x4xf32>, tensor<3x1x16xui8>, tensor<3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  return %1, %2 : tensor<?x3xf32>, tensor<?x3xf32>
}

// -----

// REMARK: [Missed] Linear | Category:hone-raise-linear | {{.*}}its columns choose their scales by g_idx
// REMARK: [Missed] Linear | Category:hone-raise-linear | {{.*}}its scales are no f32 or f16
// REMARK: [Missed] Linear | Category:hone-raise-linear | {{.*}}its weight is no parameter of 2, 4 or 8 bits with a scale and a zero point for each block
// CHECK-LABEL: @other_blocks
// CHECK-NOT: hone.linear
hone.param @b : tensor<3x1x16xui8> = dense<1> : tensor<3x1x16xui8>
hone.param @s : tensor<3xf32> = dense<1.0> : tensor<3xf32>
hone.param @t : tensor<3xbf16> = dense<1.0> : tensor<3xbf16>
func.func @other_blocks(%x: tensor<?x4xf32>, %y: tensor<?x4xbf16>, %c: tensor<3x1x16xui8>, %g: tensor<4xi32>) -> (tensor<?x3xf32>, tensor<?x3xbf16>, tensor<?x3xf32>) {
  %b = hone.get_param @b : tensor<3x1x16xui8>
  %s = hone.get_param @s : tensor<3xf32>
  %t = hone.get_param @t : tensor<3xbf16>
  %none = "onnx.NoValue"() : () -> none
  %0 = "onnx.com.microsoft.MatMulNBits"(%x, %b, %s, %none, %g) {K = 4 : i64, N = 3 : i64, bits = 4 : i64, block_size = 32 : i64}
     : (tensor<?x4xf32>, tensor<3x1x16xui8>, tensor<3xf32>, none, tensor<4xi32>) -> tensor<?x3xf32>
  %1 = "onnx.com.microsoft.MatMulNBits"(%y, %b, %t) {K = 4 : i64, N = 3 : i64, bits = 4 : i64, block_size = 32 : i64}
     : (tensor<?x4xbf16>, tensor<3x1x16xui8>, tensor<3xbf16>) -> tensor<?x3xbf16>
  %2 = "onnx.com.microsoft.MatMulNBits"(%x, %c, %s) {K = 4 : i64, N = 3 : i64, bits = 4 : i64, block_size = 32 : i64}
     : (tensor<?x4xf32>, tensor<3x1x16xui8>, tensor<3xf32>) -> tensor<?x3xf32>
  return %0, %1, %2 : tensor<?x3xf32>, tensor<?x3xbf16>, tensor<?x3xf32>
}

// -----

// The same as a cast and a product, with a scale for each output.
// CHECK: hone.param @w : tensor<3x4xf32, #hone.affine<bits = 8, isSigned = true, transposed = true>> = {scales = dense<{{.*}}> : tensor<1x3xf32>, values = dense<1> : tensor<4x3xi8>}
// CHECK-LABEL: @scaled
// CHECK: hone.linear %arg0, %{{.*}} -> tensor<?x3xf32>
// CHECK-NOT: onnx
hone.param @w : tensor<4x3xi8> = dense<1> : tensor<4x3xi8>
hone.param @s : tensor<1x3xf32> = dense<[[0.5, 1.0, 2.0]]> : tensor<1x3xf32>
func.func @scaled(%x: tensor<?x4xf32>) -> tensor<?x3xf32> {
  %w = hone.get_param @w : tensor<4x3xi8>
  %s = hone.get_param @s : tensor<1x3xf32>
  %floats = "onnx.Cast"(%w) {to = 1 : i64} : (tensor<4x3xi8>) -> tensor<4x3xf32>
  %0 = "onnx.Mul"(%floats, %s) : (tensor<4x3xf32>, tensor<1x3xf32>) -> tensor<4x3xf32>
  %1 = "onnx.MatMul"(%x, %0) : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
  return %1 : tensor<?x3xf32>
}

// -----

// Scales of inputs are none of a row.
// CHECK-LABEL: @scaled_inputs
// CHECK: onnx.MatMul
hone.param @w : tensor<3x3xi8> = dense<1> : tensor<3x3xi8>
hone.param @s : tensor<3x1xf32> = dense<0.5> : tensor<3x1xf32>
func.func @scaled_inputs(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %w = hone.get_param @w : tensor<3x3xi8>
  %s = hone.get_param @s : tensor<3x1xf32>
  %floats = "onnx.Cast"(%w) {to = 1 : i64} : (tensor<3x3xi8>) -> tensor<3x3xf32>
  %0 = "onnx.Mul"(%s, %floats) : (tensor<3x1xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = "onnx.MatMul"(%x, %0) : (tensor<?x3xf32>, tensor<3x3xf32>) -> tensor<?x3xf32>
  return %1 : tensor<?x3xf32>
}
