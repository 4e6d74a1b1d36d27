// RUN: hone-opt %s -hone-decompose -split-input-file | FileCheck %s
// RUN: hone-opt %s -hone-decompose="ops=rms_norm,rope" -split-input-file | FileCheck %s --check-prefix=SOME
// RUN: hone-opt %s -hone-decompose -split-input-file -remarks-filter=hone-decompose 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: not hone-opt %s -hone-decompose="ops=linear,relu" 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: error: unsupported operation 'relu' to decompose; supported: attention, attention_gradient, convolution, cross_entropy, embedding, gated_mlp, kl_divergence, layer_norm, linear, linear_attention, matmul, mlp, moe, pool, pool_keys, rms_norm, rope, select_antidiagonals, select_blocks, select_means, unpack

// The option chooses operations.
// CHECK-LABEL: @two
// SOME-LABEL: @two
func.func @two(%x: tensor<?x8xf32>, %w: tensor<8xf32>, %m: tensor<4x8xf32>) -> tensor<?x4xf32> {
  // CHECK-NOT: hone.
  // SOME-NOT: hone.rms_norm
  // REMARK: remark: [Passed] Decomposed | Category:hone-decompose | Remark="hone.rms_norm runs as generated code
  %0 = hone.rms_norm %x, %w epsilon(0.0) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // SOME: hone.linear
  // REMARK: Remark="hone.linear runs as generated code
  %1 = hone.linear %0, %m : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  // CHECK: return
  return %1 : tensor<?x4xf32>
}

// -----

// Parameters and state have no parts.
hone.state @kv [#hone.slot<"key", tensor<?x2x?x8xf32>, axis = 2>]
hone.param @w : tensor<4x8xf32> = dense<0.0> : tensor<4x8xf32>
// CHECK-LABEL: @stay
// REMARK-NOT: Remark="hone.{{kv|get}}
func.func @stay(%s: !hone.kv<@kv>, %k: tensor<?x2x?x8xf32>, %b: index) -> (!hone.kv<@kv>, tensor<?x2x?x8xf32>, index, index, tensor<4x8xf32>) {
  // CHECK: hone.kv_append
  %next, %all = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>
  // CHECK: hone.kv_length
  %0 = hone.kv_length %s : !hone.kv<@kv>
  // CHECK: hone.kv_padding
  %1 = hone.kv_padding %s[%b] : !hone.kv<@kv>
  // CHECK: hone.get_param
  %2 = hone.get_param @w : tensor<4x8xf32>
  return %next, %all, %0, %1, %2 : !hone.kv<@kv>, tensor<?x2x?x8xf32>, index, index, tensor<4x8xf32>
}

// -----

// A weight with an encoding is unpacked from its planes: here swapped back and extended.
// CHECK-LABEL: @encoded
func.func @encoded(%x: tensor<?x8xf32>, %w: tensor<4x8xf32, #hone.stored<bf16, transposed>>) -> tensor<?x4xf32> {
  // CHECK: %[[PLANE:.*]] = hone.planes %{{.*}} : (tensor<4x8xf32, #hone.stored<bf16, transposed>>) -> tensor<8x4xbf16>
  // CHECK: %[[W:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<4x8xf32>)
  // CHECK-DAG: %[[ROW:.*]] = linalg.index 0
  // CHECK-DAG: %[[COLUMN:.*]] = linalg.index 1
  // CHECK: %[[ELEMENT:.*]] = tensor.extract %[[PLANE]][%[[COLUMN]], %[[ROW]]]
  // CHECK: arith.extf %[[ELEMENT]] : bf16 to f32
  // CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[W]] : tensor<?x8xf32>, tensor<4x8xf32>)
  %0 = hone.linear %x, %w : (tensor<?x8xf32>, tensor<4x8xf32, #hone.stored<bf16, transposed>>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// Stored as it is used: a copy of the plane.
// CHECK-LABEL: @unpack
func.func @unpack(%w: tensor<?x8xf16, #hone.stored<f16>>) -> tensor<?x8xf16> {
  // CHECK: hone.planes
  // CHECK-NOT: arith.extf
  // CHECK: return
  %0 = hone.unpack %w : tensor<?x8xf16, #hone.stored<f16>> -> tensor<?x8xf16>
  return %0 : tensor<?x8xf16>
}

// -----

// What a written type knows beyond its operands is kept.
// CHECK-LABEL: @known_size
func.func @known_size(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) -> tensor<3x4xf32> {
  // CHECK: tensor.cast %{{.*}} : tensor<?x4xf32> to tensor<3x4xf32>
  %0 = hone.linear %x, %w : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
