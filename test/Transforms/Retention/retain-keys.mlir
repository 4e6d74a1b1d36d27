// RUN: hone-opt %s --hone-retain-keys="policy=snapkv budget=256 sinks=4 recent=32" | FileCheck %s
// RUN: hone-opt %s --hone-retain-keys="policy=snapkv budget=256 sinks=4 recent=32" --remarks-filter="hone-retain-keys" -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: hone-opt %s --hone-retain-keys="policy=prefix budget=64 sinks=1 recent=8" | FileCheck %s --check-prefix=PREFIX
// RUN: hone-opt %s --hone-retain-keys="policy=h2o budget=64 sinks=1 recent=8" | FileCheck %s --check-prefix=H2O
// RUN: hone-opt %s --hone-retain-keys="policy=snapkv budget=256" | hone-opt --hone-block-state | FileCheck %s --check-prefix=BLOCKED
// RUN: not hone-opt %s --hone-retain-keys="budget=64 importance=%t.absent" 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: cannot open {{.*}}.absent: No such file or directory

// The causal layer gets a slot of queries and scores; the sliding one keeps its window.
// REMARK-DAG: [Passed] Retention {{.*}}"a session keeps 256 keys, of which the first 4 and the last 32 always"
// REMARK-DAG: [Passed] Retention {{.*}}"a session keeps 116 keys, of which the first 0 and the last 100 always"
// CHECK:       hone.state @kv [
// CHECK-SAME:    #hone.slot<"0.key.queries", tensor<?x4x?x64xf32>, axis = 2>
// CHECK-SAME:    hone.retention = {block = 16 : i64, layers = [
// CHECK-SAME:      {budget = 256 : i64, keys = 0 : i64, queries = 4 : i64, recent = 32 : i64, sinks = 4 : i64, values = 1 : i64}
// CHECK-SAME:      {budget = 116 : i64, keys = 2 : i64, recent = 100 : i64, sinks = 0 : i64, values = 3 : i64}
// CHECK-SAME:    pooling = 5 : i64}
// H2O:         hone.retention = {accumulates, block = 4 : i64
// H2O-SAME:    pooling = 1 : i64}
// PREFIX:      hone.retention = {accumulates, block = 4 : i64
// PREFIX-SAME: pooling = 1 : i64, shares_heads}

// Appends follow one another, whatever is between them.
// CHECK-LABEL: func.func @forward
// CHECK:         hrt.check %{{.*}}, "expected one sequence, as a budget bounds its keys, but got {}"
// CHECK:         %[[K:.*]], %{{.*}} = hone.kv_append %{{.*}}[0], %[[Q:[a-z0-9]*]]
// CHECK:         %[[V:.*]], %{{.*}} = hone.kv_append %[[K]][1]
// CHECK:         %[[QUERIES:.*]], %{{.*}} = hone.kv_append %[[V]][4], %{{.*}} : !hone.kv<@kv>, tensor<?x4x?x64xf32> -> tensor<?x4x?x64xf32>
// CHECK-NEXT:    hone.attention {{.*}} pattern(#hone.causal)
// CHECK:         %[[K2:.*]], %{{.*}} = hone.kv_append %[[QUERIES]][2]
// CHECK:         %[[V2:.*]], %{{.*}} = hone.kv_append %[[K2]][3]
// CHECK-NEXT:    hone.attention {{.*}} pattern(#hone.sliding<window = 100>)
// CHECK:         return %{{.*}}, %[[V2]]

// CHECK-LABEL: func.func @importance
// CHECK-SAME:    -> (tensor<?x2x?xf32> {onnx.name = "mass.0.key"}, !hone.kv<@kv>)
// CHECK-DAG:     %[[QS:.*]] = hone.kv_view %{{.*}}[4]
// CHECK-DAG:     %[[KS:.*]] = hone.kv_view %{{.*}}[0]
// CHECK-DAG:     %[[VS:.*]] = hone.kv_view %{{.*}}[1]
// CHECK:         %{{.*}}, %{{.*}} = hone.attention %[[QS]], %[[KS]], %[[VS]] pattern(#hone.causal) scale(1.250000e-01) softcap(3.000000e+01)
// CHECK:         hone.pool_keys %[[KS]] of %{{.*}} size(1)
// CHECK-NOT:     hone.kv_view

// Keys and values stay in blocks, which the scores read where they lie.
// BLOCKED:       #hone.slot<"0.key", tensor<?x2x?x64xf32, #hrt.key_blocks>, axis = 2>
// BLOCKED-SAME:  #hone.slot<"1.value", tensor<?x2x?x64xf32, #hrt.value_blocks>, axis = 2>
hone.state @kv [#hone.slot<"0.key", tensor<?x2x?x64xf32>, axis = 2>, #hone.slot<"0.value", tensor<?x2x?x64xf32>, axis = 2>,
                #hone.slot<"1.key", tensor<?x2x?x64xf32>, axis = 2>, #hone.slot<"1.value", tensor<?x2x?x64xf32>, axis = 2>]
func.func @forward(%ids: tensor<?x?xi64>, %q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>, %s: !hone.kv<@kv>)
    -> (tensor<?x4x?x64xf32>, !hone.kv<@kv>) {
  %0, %keys = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  %1, %values = hone.kv_append %0[1], %k : !hone.kv<@kv>, tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  %2 = hone.attention %q, %keys, %values pattern(#hone.causal) scale(0.125) softcap(30.0)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32>
  %3, %keys2 = hone.kv_append %1[2], %k : !hone.kv<@kv>, tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  %4, %values2 = hone.kv_append %3[3], %k : !hone.kv<@kv>, tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  %5 = hone.attention %2, %keys2, %values2 pattern(#hone.sliding<window = 100>) scale(0.125)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32>
  return %5, %4 : tensor<?x4x?x64xf32>, !hone.kv<@kv>
}
