// RUN: hone-opt %s --hone-raise-linear --hone-raise-mlp | FileCheck %s -enable-var-scope
// RUN: sed 's/largest = 0/largest = 1/' %s | hone-opt --hone-raise-linear --hone-raise-mlp | FileCheck %s --check-prefix=LEFT
// RUN: sed 's/dense<5.000000e-01> : tensor<f32>/dense<2.0> : tensor<f32>/' %s \
// RUN:   | hone-opt --hone-raise-linear --hone-raise-mlp | FileCheck %s --check-prefix=LEFT
// RUN: sed 's/reduction = "add"/reduction = "max"/' %s | hone-opt --hone-raise-linear --hone-raise-mlp | FileCheck %s --check-prefix=LEFT
// RUN: sed 's/exclusive = 0/exclusive = 1/' %s | hone-opt --hone-raise-linear --hone-raise-mlp | FileCheck %s --check-prefix=LEFT
// RUN: sed 's/dense<2> : tensor<i64>/dense<3> : tensor<i64>/' %s \
// RUN:   | hone-opt --hone-raise-linear --hone-raise-mlp --remarks-filter=hone-raise-mlp 2>&1 | FileCheck %s --check-prefix=TOKENS
// RUN: sed 's/"onnx.GatherND"(%%flat, %%places)/"onnx.GatherND"(%%flat, %%tokens)/' %s \
// RUN:   | hone-opt --hone-raise-linear --hone-raise-mlp --remarks-filter=hone-raise-mlp 2>&1 | FileCheck %s --check-prefix=ROUTING
// RUN: sed 's/"onnx.ScatterND"(%%zeros, %%places,/"onnx.ScatterND"(%%zeros, %%tokens,/' %s \
// RUN:   | hone-opt --hone-raise-linear --hone-raise-mlp --remarks-filter=hone-raise-mlp 2>&1 | FileCheck %s --check-prefix=BACK

// Rows are sorted by expert, and those of each are multiplied at once. The experts' matrices are parts of one that is transposed.
// CHECK: hone.param @{{.*}} : tensor<24x8xf32> = #hone.stacked<tensor<12x8xf32, #hone.stored<f32, transposed>> = [
// CHECK-LABEL: @block
// CHECK: %[[BEST:.*]]:2 = "onnx.TopK"
// CHECK: %[[WEIGHTS:.*]] = "onnx.Softmax"(%[[BEST]]#0)
// CHECK: %[[FLAT:.*]] = "onnx.Reshape"(%[[BEST]]#1
// CHECK-NOT: onnx.TopK
// CHECK-DAG: %[[IDS:.*]] = "onnx.Reshape"(%[[FLAT]], {{.*}}) : (tensor<?xi64>, tensor<2xi64>) -> tensor<?x2xi64>
// CHECK-DAG: %[[FACTORS:.*]] = "onnx.Reshape"(%{{.*}}) : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x2xf32>
// CHECK: hone.moe silu %arg0, experts(%[[IDS]], %[[FACTORS]]), up(%{{.*}}), down(%{{.*}}) fused halves
// CHECK-NOT: onnx.ReduceSum

// They stay where ids are sorted downwards, an id is not its own bin, bins are no sums, or sums leave their own expert out.
// LEFT-NOT: hone.moe

// TOKENS: the rows of its experts are not in the order that they were sorted in
// ROUTING: the routing weights are not in the order that rows were sorted in
// BACK: the results of its experts are not in the order of its rows
hone.param @gate_up : tensor<2x8x12xf32> = dense<1.0> : tensor<2x8x12xf32>
func.func @block(%x: tensor<?x8xf32> {onnx.dims = ["rows", ""]}) -> tensor<?x8xf32> {
  %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<8x2xf32>} : () -> tensor<8x2xf32>
  %1 = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = "onnx.Constant"() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %two = "onnx.Constant"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %4 = "onnx.Constant"() {value = dense<5.000000e-01> : tensor<f32>} : () -> tensor<f32>
  %5 = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %6 = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %7 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %8 = "onnx.Constant"() {value = dense<0.000000e+00> : tensor<2xf32>} : () -> tensor<2xf32>
  %9 = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %10 = hone.get_param @gate_up : tensor<2x8x12xf32>
  %11 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<2x6x8xf32>} : () -> tensor<2x6x8xf32>
  %12 = "onnx.Constant"() {value = dense<[-1, 2, 8]> : tensor<3xi64>} : () -> tensor<3xi64>
  %13 = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %14 = "onnx.MatMul"(%x, %0) : (tensor<?x8xf32>, tensor<8x2xf32>) -> tensor<?x2xf32>
  %best:2 = "onnx.TopK"(%14, %1) {axis = -1 : i64} : (tensor<?x2xf32>, tensor<1xi64>) -> (tensor<?x2xf32>, tensor<?x2xi64>)
  %weights = "onnx.Softmax"(%best#0) {axis = -1 : i64} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %17 = "onnx.Reshape"(%best#1, %2) : (tensor<?x2xi64>, tensor<1xi64>) -> tensor<?xi64>
  %18 = "onnx.Shape"(%17) : (tensor<?xi64>) -> tensor<1xi64>
  %sorted:2 = "onnx.TopK"(%17, %18) {axis = -1 : i64, largest = 0 : i64, sorted = 1 : i64} : (tensor<?xi64>, tensor<1xi64>) -> (tensor<?xi64>, tensor<?xi64>)
  %places = "onnx.Unsqueeze"(%sorted#1, %2) : (tensor<?xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %token = "onnx.Div"(%sorted#1, %two) : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64>
  %tokens = "onnx.Unsqueeze"(%token, %2) : (tensor<?xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %flat = "onnx.Reshape"(%weights, %2) : (tensor<?x2xf32>, tensor<1xi64>) -> tensor<?xf32>
  %24 = "onnx.GatherND"(%flat, %places) : (tensor<?xf32>, tensor<?x1xi64>) -> tensor<?xf32>
  %25 = "onnx.Cast"(%sorted#0) {to = 1 : i64} : (tensor<?xi64>) -> tensor<?xf32>
  %26 = "onnx.Div"(%25, %4) : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %27 = "onnx.Cast"(%26) {to = 7 : i64} : (tensor<?xf32>) -> tensor<?xi64>
  %28 = "onnx.Clip"(%27, %5, %6) : (tensor<?xi64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %29 = "onnx.Shape"(%28) : (tensor<?xi64>) -> tensor<1xi64>
  %30 = "onnx.Expand"(%7, %29) : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32>
  %31 = "onnx.ScatterElements"(%8, %28, %30) {axis = 0 : i64, reduction = "add"} : (tensor<2xf32>, tensor<?xi64>, tensor<?xf32>) -> tensor<2xf32>
  %32 = "onnx.Cast"(%31) {to = 6 : i64} : (tensor<2xf32>) -> tensor<2xi32>
  %33 = "onnx.CumSum"(%32, %5) {exclusive = 0 : i64} : (tensor<2xi32>, tensor<i64>) -> tensor<2xi32>
  %34 = "onnx.Cast"(%33) {to = 7 : i64} : (tensor<2xi32>) -> tensor<2xi64>
  %35:2 = "onnx.Split"(%34) {axis = 0 : i64, num_outputs = 2 : i64} : (tensor<2xi64>) -> (tensor<1xi64>, tensor<1xi64>)
  %36 = "onnx.Squeeze"(%35#0, %9) : (tensor<1xi64>, tensor<1xi64>) -> tensor<i64>
  %37 = "onnx.Squeeze"(%35#1, %9) : (tensor<1xi64>, tensor<1xi64>) -> tensor<i64>
  %38 = "onnx.Range"(%5, %36, %6) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %39 = "onnx.Range"(%36, %37, %6) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %41 = "onnx.GatherND"(%x, %tokens) : (tensor<?x8xf32>, tensor<?x1xi64>) -> tensor<?x8xf32>
  %42:2 = "onnx.Split"(%10) {axis = 0 : i64, num_outputs = 2 : i64} : (tensor<2x8x12xf32>) -> (tensor<1x8x12xf32>, tensor<1x8x12xf32>)
  %43 = "onnx.Gather"(%41, %38) {axis = 0 : i64} : (tensor<?x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  %44 = "onnx.Squeeze"(%42#0, %9) : (tensor<1x8x12xf32>, tensor<1xi64>) -> tensor<8x12xf32>
  %45 = "onnx.MatMul"(%43, %44) : (tensor<?x8xf32>, tensor<8x12xf32>) -> tensor<?x12xf32>
  %46 = "onnx.Gather"(%41, %39) {axis = 0 : i64} : (tensor<?x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  %47 = "onnx.Squeeze"(%42#1, %9) : (tensor<1x8x12xf32>, tensor<1xi64>) -> tensor<8x12xf32>
  %48 = "onnx.MatMul"(%46, %47) : (tensor<?x8xf32>, tensor<8x12xf32>) -> tensor<?x12xf32>
  %49 = "onnx.Concat"(%45, %48) {axis = 0 : i64} : (tensor<?x12xf32>, tensor<?x12xf32>) -> tensor<?x12xf32>
  %50:2 = "onnx.Split"(%49) {axis = 1 : i64, num_outputs = 2 : i64} : (tensor<?x12xf32>) -> (tensor<?x6xf32>, tensor<?x6xf32>)
  %51 = "onnx.Sigmoid"(%50#0) : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %52 = "onnx.Mul"(%50#0, %51) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %53 = "onnx.Mul"(%52, %50#1) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %54:2 = "onnx.Split"(%11) {axis = 0 : i64, num_outputs = 2 : i64} : (tensor<2x6x8xf32>) -> (tensor<1x6x8xf32>, tensor<1x6x8xf32>)
  %55 = "onnx.Gather"(%53, %38) {axis = 0 : i64} : (tensor<?x6xf32>, tensor<?xi64>) -> tensor<?x6xf32>
  %56 = "onnx.Squeeze"(%54#0, %9) : (tensor<1x6x8xf32>, tensor<1xi64>) -> tensor<6x8xf32>
  %57 = "onnx.MatMul"(%55, %56) : (tensor<?x6xf32>, tensor<6x8xf32>) -> tensor<?x8xf32>
  %58 = "onnx.Gather"(%53, %39) {axis = 0 : i64} : (tensor<?x6xf32>, tensor<?xi64>) -> tensor<?x6xf32>
  %59 = "onnx.Squeeze"(%54#1, %9) : (tensor<1x6x8xf32>, tensor<1xi64>) -> tensor<6x8xf32>
  %60 = "onnx.MatMul"(%58, %59) : (tensor<?x6xf32>, tensor<6x8xf32>) -> tensor<?x8xf32>
  %61 = "onnx.Concat"(%57, %60) {axis = 0 : i64} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %62 = "onnx.Unsqueeze"(%24, %2) : (tensor<?xf32>, tensor<1xi64>) -> tensor<?x1xf32>
  %63 = "onnx.Mul"(%61, %62) : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %64 = "onnx.Shape"(%sorted#1) : (tensor<?xi64>) -> tensor<1xi64>
  %zeros = "onnx.Expand"(%5, %64) : (tensor<i64>, tensor<1xi64>) -> tensor<?xi64>
  %66 = "onnx.Shape"(%sorted#1) : (tensor<?xi64>) -> tensor<1xi64>
  %67 = "onnx.Squeeze"(%66, %9) : (tensor<1xi64>, tensor<1xi64>) -> tensor<i64>
  %68 = "onnx.Range"(%5, %67, %6) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %69 = "onnx.ScatterND"(%zeros, %places, %68) : (tensor<?xi64>, tensor<?x1xi64>, tensor<?xi64>) -> tensor<?xi64>
  %70 = "onnx.Unsqueeze"(%69, %2) : (tensor<?xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %71 = "onnx.GatherND"(%63, %70) : (tensor<?x8xf32>, tensor<?x1xi64>) -> tensor<?x8xf32>
  %72 = "onnx.Reshape"(%71, %12) : (tensor<?x8xf32>, tensor<3xi64>) -> tensor<?x2x8xf32>
  %73 = "onnx.ReduceSum"(%72, %13) {keepdims = 0 : i64} : (tensor<?x2x8xf32>, tensor<1xi64>) -> tensor<?x8xf32>
  return %73 : tensor<?x8xf32>
}
