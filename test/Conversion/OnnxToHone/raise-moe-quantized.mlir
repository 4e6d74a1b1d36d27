// RUN: hone-opt %s --hone-raise-linear --hone-raise-mlp | FileCheck %s -enable-var-scope
// RUN: sed -e 's/onnx.MatMul"(%%24, %%6) : (tensor<?x8xf32>, tensor<8x6xf32>)/onnx.com.microsoft.MatMulNBits"(%%24, %%blocks, %%steps) {K = 8 : i64, N = 6 : i64, bits = 8 : i64, block_size = 16 : i64} : (tensor<?x8xf32>, tensor<6x1x16xui8>, tensor<6xf32>)/' \
// RUN:   -e 's/onnx.MatMul"(%%50, %%6) : (tensor<?x8xf32>, tensor<8x6xf32>)/onnx.com.microsoft.MatMulNBits"(%%50, %%blocks, %%steps) {K = 8 : i64, N = 6 : i64, bits = 8 : i64, block_size = 16 : i64} : (tensor<?x8xf32>, tensor<6x1x16xui8>, tensor<6xf32>)/' %s \
// RUN:   | hone-opt --hone-raise-linear --hone-raise-mlp | FileCheck %s --check-prefix=BLOCKS

// Experts whose matrices are codes. Those of a file that has them as [K, N] are copied, the others stay where they are.
// CHECK: hone.param @{{.*}} : tensor<12x8xf32, #hone.affine<bits = 8, isSigned = true>> = {scales = dense_resource<{{.*}}> : tensor<12x1xf32>, values = dense_resource<[[CODES:.*]]> : tensor<12x8xi8>}
// CHECK-LABEL: @block
// CHECK: hone.moe silu %arg0, {{.*}} : {{.*}}#hone.affine
// CHECK-NOT: onnx.NonZero
// CHECK: {{0x[0-9A-F]+}}00060C12181E242A01070D13191F252B02080E141A20262C03090F151B21272D040A10161C22282E050B11171D23292F00060C12181E242A01070D13191F252B02080E141A20262C03090F151B21272D040A10161C22282E050B11171D23292F

// BLOCKS: hone.param @{{.*}} : tensor<12x8xf32, #hone.affine<bits = 8, group = 16>> = {scales = #hone.stacked<tensor<6x1xf32> = [{{.*}}]>, values = #hone.stacked<tensor<6x16xi8> = [{{.*}}]>}
// BLOCKS: hone.moe silu
func.func @block(%x: tensor<?x8xf32> {onnx.dims = ["rows", ""]}) -> tensor<?x8xf32> {
  %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<8x2xf32>} : () -> tensor<8x2xf32>
  %1 = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = "onnx.Constant"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %3 = "onnx.Constant"() {value = dense<[0, 1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %first = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %5 = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %blocks = "onnx.Constant"() {value = dense<1> : tensor<6x1x16xui8>} : () -> tensor<6x1x16xui8>
  %steps = "onnx.Constant"() {value = dense<0.5> : tensor<6xf32>} : () -> tensor<6xf32>
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %zero = "onnx.Constant"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
  %codes = "onnx.Constant"() {value = dense<"0x000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F"> : tensor<8x6xi8>} : () -> tensor<8x6xi8>
  %6 = "onnx.DequantizeLinear"(%codes, %scale, %zero) {axis = 1 : i64} : (tensor<8x6xi8>, tensor<f32>, tensor<i8>) -> tensor<8x6xf32>
  %down = "onnx.Constant"() {value = dense<3> : tensor<6x8xi8>} : () -> tensor<6x8xi8>
  %7 = "onnx.DequantizeLinear"(%down, %scale, %zero) {axis = 1 : i64} : (tensor<6x8xi8>, tensor<f32>, tensor<i8>) -> tensor<6x8xf32>
  %8 = "onnx.Constant"() {value = dense<[-1, 1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %second = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %10 = "onnx.MatMul"(%x, %0) : (tensor<?x8xf32>, tensor<8x2xf32>) -> tensor<?x2xf32>
  %best:2 = "onnx.TopK"(%10, %1) {axis = -1 : i64} : (tensor<?x2xf32>, tensor<1xi64>) -> (tensor<?x2xf32>, tensor<?x2xi64>)
  %weights = "onnx.Softmax"(%best#0) {axis = -1 : i64} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %hot = "onnx.OneHot"(%best#1, %2, %3) {axis = -1 : i64} : (tensor<?x2xi64>, tensor<i64>, tensor<2xi64>) -> tensor<?x2x2xi64>
  %masks = "onnx.Transpose"(%hot) {perm = array<i64: 2, 1, 0>} : (tensor<?x2x2xi64>) -> tensor<2x2x?xi64>
  %15 = "onnx.Shape"(%x) : (tensor<?x8xf32>) -> tensor<2xi64>
  %zeros = "onnx.ConstantOfShape"(%15) {value = dense<0.000000e+00> : tensor<1xf32>} : (tensor<2xi64>) -> tensor<?x8xf32>
  %17 = "onnx.Gather"(%masks, %first) {axis = 0 : i64} : (tensor<2x2x?xi64>, tensor<i64>) -> tensor<2x?xi64>
  %18 = "onnx.Cast"(%17) {to = 9 : i64} : (tensor<2x?xi64>) -> tensor<2x?xi1>
  %19 = "onnx.NonZero"(%18) : (tensor<2x?xi1>) -> tensor<2x?xi64>
  %20 = "onnx.Transpose"(%19) {perm = array<i64: 1, 0>} : (tensor<2x?xi64>) -> tensor<?x2xi64>
  %21:2 = "onnx.Split"(%20) {axis = 1 : i64, num_outputs = 2 : i64} : (tensor<?x2xi64>) -> (tensor<?x1xi64>, tensor<?x1xi64>)
  %token = "onnx.Squeeze"(%21#1, %5) : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?xi64>
  %slot = "onnx.Squeeze"(%21#0, %5) : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?xi64>
  %24 = "onnx.Gather"(%x, %token) {axis = 0 : i64} : (tensor<?x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  %25 = "onnx.MatMul"(%24, %6) : (tensor<?x8xf32>, tensor<8x6xf32>) -> tensor<?x6xf32>
  %26 = "onnx.MatMul"(%24, %6) : (tensor<?x8xf32>, tensor<8x6xf32>) -> tensor<?x6xf32>
  %27 = "onnx.Sigmoid"(%25) : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %28 = "onnx.Mul"(%25, %27) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %29 = "onnx.Mul"(%28, %26) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %30 = "onnx.MatMul"(%29, %7) : (tensor<?x6xf32>, tensor<6x8xf32>) -> tensor<?x8xf32>
  %31 = "onnx.Reshape"(%weights, %8) : (tensor<?x2xf32>, tensor<2xi64>) -> tensor<?x1xf32>
  %32 = "onnx.Mul"(%token, %2) : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64>
  %33 = "onnx.Add"(%slot, %32) : (tensor<?xi64>, tensor<?xi64>) -> tensor<?xi64>
  %34 = "onnx.Gather"(%31, %33) {axis = 0 : i64} : (tensor<?x1xf32>, tensor<?xi64>) -> tensor<?x1xf32>
  %35 = "onnx.Mul"(%30, %34) : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %36 = "onnx.Unsqueeze"(%token, %5) : (tensor<?xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %37 = "onnx.Shape"(%35) : (tensor<?x8xf32>) -> tensor<2xi64>
  %38 = "onnx.Expand"(%36, %37) : (tensor<?x1xi64>, tensor<2xi64>) -> tensor<?x8xi64>
  %39 = "onnx.Shape"(%zeros) : (tensor<?x8xf32>) -> tensor<2xi64>
  %40 = "onnx.ConstantOfShape"(%39) {value = dense<0.000000e+00> : tensor<1xf32>} : (tensor<2xi64>) -> tensor<?x8xf32>
  %of_first = "onnx.ScatterElements"(%40, %38, %35) {axis = 0 : i64} : (tensor<?x8xf32>, tensor<?x8xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %sum = "onnx.Add"(%zeros, %of_first) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %43 = "onnx.Gather"(%masks, %second) {axis = 0 : i64} : (tensor<2x2x?xi64>, tensor<i64>) -> tensor<2x?xi64>
  %44 = "onnx.Cast"(%43) {to = 9 : i64} : (tensor<2x?xi64>) -> tensor<2x?xi1>
  %45 = "onnx.NonZero"(%44) : (tensor<2x?xi1>) -> tensor<2x?xi64>
  %46 = "onnx.Transpose"(%45) {perm = array<i64: 1, 0>} : (tensor<2x?xi64>) -> tensor<?x2xi64>
  %47:2 = "onnx.Split"(%46) {axis = 1 : i64, num_outputs = 2 : i64} : (tensor<?x2xi64>) -> (tensor<?x1xi64>, tensor<?x1xi64>)
  %48 = "onnx.Squeeze"(%47#1, %5) : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?xi64>
  %49 = "onnx.Squeeze"(%47#0, %5) : (tensor<?x1xi64>, tensor<1xi64>) -> tensor<?xi64>
  %50 = "onnx.Gather"(%x, %48) {axis = 0 : i64} : (tensor<?x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  %51 = "onnx.MatMul"(%50, %6) : (tensor<?x8xf32>, tensor<8x6xf32>) -> tensor<?x6xf32>
  %52 = "onnx.MatMul"(%50, %6) : (tensor<?x8xf32>, tensor<8x6xf32>) -> tensor<?x6xf32>
  %53 = "onnx.Sigmoid"(%51) : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %54 = "onnx.Mul"(%51, %53) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %55 = "onnx.Mul"(%54, %52) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %56 = "onnx.MatMul"(%55, %7) : (tensor<?x6xf32>, tensor<6x8xf32>) -> tensor<?x8xf32>
  %57 = "onnx.Reshape"(%weights, %8) : (tensor<?x2xf32>, tensor<2xi64>) -> tensor<?x1xf32>
  %58 = "onnx.Mul"(%48, %2) : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64>
  %59 = "onnx.Add"(%49, %58) : (tensor<?xi64>, tensor<?xi64>) -> tensor<?xi64>
  %60 = "onnx.Gather"(%57, %59) {axis = 0 : i64} : (tensor<?x1xf32>, tensor<?xi64>) -> tensor<?x1xf32>
  %61 = "onnx.Mul"(%56, %60) : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %62 = "onnx.Unsqueeze"(%48, %5) : (tensor<?xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %63 = "onnx.Shape"(%61) : (tensor<?x8xf32>) -> tensor<2xi64>
  %64 = "onnx.Expand"(%62, %63) : (tensor<?x1xi64>, tensor<2xi64>) -> tensor<?x8xi64>
  %65 = "onnx.Shape"(%sum) : (tensor<?x8xf32>) -> tensor<2xi64>
  %66 = "onnx.ConstantOfShape"(%65) {value = dense<0.000000e+00> : tensor<1xf32>} : (tensor<2xi64>) -> tensor<?x8xf32>
  %of_second = "onnx.ScatterElements"(%66, %64, %61) {axis = 0 : i64} : (tensor<?x8xf32>, tensor<?x8xi64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %68 = "onnx.Add"(%sum, %of_second) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %68 : tensor<?x8xf32>
}
