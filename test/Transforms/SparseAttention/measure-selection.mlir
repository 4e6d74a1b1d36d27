// RUN: hone-opt %s --hone-retain-keys="policy=prefix budget=1024 recent=1 sinks=0" --hone-measure-selection="sinks=4 window=16 block=16" | FileCheck %s
// RUN: not hone-opt %s --hone-measure-selection 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: nothing to measure: no attention of the model is causal and over all keys

// CHECK-LABEL: func.func @forward
// CHECK:       func.func @selection_errors(%[[T:.*]]: tensor<?x2x3xf32> {onnx.dims = ["lines", "", ""], onnx.name = "thresholds.key"}, %[[D:.*]]: tensor<?x4x?x16xf32> {onnx.dims = ["lines", "", "", ""], onnx.name = "output.key"}, %[[S:.*]]: !hone.kv<@kv>)
// CHECK-SAME:    -> (tensor<2xf32> {onnx.name = "difference.key"}, tensor<2xf32> {onnx.name = "magnitude.key"}, tensor<2xf32> {onnx.name = "blocks.key"}, tensor<?x2x?x?xi64> {onnx.name = "lists.key"}, !hone.kv<@kv>)
// CHECK:         %[[ROWS:.*]] = tensor.extract_slice %[[T]][0, 0, 0] [1, 2, 3] [1, 1, 1] : tensor<?x2x3xf32> to tensor<2x3xf32>
// CHECK:         %[[Q:.*]] = hone.kv_view %[[S]][2]
// CHECK:         %[[K:.*]] = hone.kv_view %[[S]][0]
// CHECK:         %[[V:.*]] = hone.kv_view %[[S]][1]
// CHECK:         %[[LISTS:.*]] = hone.select_means %[[Q]], %[[K]] by %[[ROWS]] from %{{.*}} to %{{.*}} size(16) queries(32) scale(2.500000e-01)
// CHECK:         hone.attention %[[Q]], %[[K]], %[[V]] pattern(#hone.all_of<#hone.causal, #hone.blocks<size = 16, queries = 32>>, %{{.*}}) scale(2.500000e-01)
// CHECK:       func.func @attention_outputs(%[[S:.*]]: !hone.kv<@kv>) -> (tensor<?x4x?x16xf32> {onnx.name = "output.key"}, !hone.kv<@kv>)
// CHECK:         hone.attention %{{.*}}, %{{.*}}, %{{.*}} pattern(#hone.causal) scale(2.500000e-01)
hone.state @kv [#hone.slot<"key", tensor<?x2x?x16xf32>, axis = 2>, #hone.slot<"value", tensor<?x2x?x16xf32>, axis = 2>]
func.func @forward(%ids: tensor<?x?xi64> {onnx.name = "ids", onnx.dims = ["lines", "tokens"]}, %q: tensor<?x4x?x16xf32>, %k: tensor<?x2x?x16xf32>,
                   %s: !hone.kv<@kv>) -> (tensor<?x4x?x16xf32>, !hone.kv<@kv>) {
  %0, %keys = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<?x2x?x16xf32> -> tensor<?x2x?x16xf32>
  %1, %values = hone.kv_append %0[1], %k : !hone.kv<@kv>, tensor<?x2x?x16xf32> -> tensor<?x2x?x16xf32>
  %2 = hone.attention %q, %keys, %values pattern(#hone.causal) scale(0.25)
     : (tensor<?x4x?x16xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>) -> tensor<?x4x?x16xf32>
  return %2, %1 : tensor<?x4x?x16xf32>, !hone.kv<@kv>
}
