// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @attention_c1_elements_of_key(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf16>, %v: tensor<2x2x5x8xf32>) {
  // expected-error @below {{expected the elements of value to be 'f16', but got 'f32'}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf16>, tensor<2x2x5x8xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c1_elements_of_value(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf16>) {
  // expected-error @below {{expected the elements of value to be 'f32', but got 'f16'}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf16>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c2_batch_of_key(%q: tensor<2x4x3x8xf32>, %k: tensor<3x2x5x8xf32>, %v: tensor<2x2x5x8xf32>) {
  // expected-error @below {{expected the batch of key to be 2, but got 3}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<3x2x5x8xf32>, tensor<2x2x5x8xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c2_batch_of_value(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<3x2x5x8xf32>) {
  // expected-error @below {{expected the batch of value to be 2, but got 3}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<3x2x5x8xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c2_heads_of_value(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x1x5x8xf32>) {
  // expected-error @below {{expected the heads of value to be 2, but got 1}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x1x5x8xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c2_positions_of_value(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x6x8xf32>) {
  // expected-error @below {{expected the positions of value to be 5, but got 6}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x6x8xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c3_inner_dim(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x4xf32>, %v: tensor<2x2x5x8xf32>) {
  // expected-error @below {{expected the last dimension of key to be 8, but got 4}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x4xf32>, tensor<2x2x5x8xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c4_heads(%q: tensor<2x4x3x8xf32>, %k: tensor<2x3x5x8xf32>, %v: tensor<2x3x5x8xf32>) {
  // expected-error @below {{expected the heads of query to be a multiple of the 3 heads of key, but got 4}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x3x5x8xf32>, tensor<2x3x5x8xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c4_no_heads(%q: tensor<2x4x3x8xf32>, %k: tensor<2x0x5x8xf32>, %v: tensor<2x0x5x8xf32>) {
  // expected-error @below {{expected the heads of query to be a multiple of the 0 heads of key, but got 4}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x0x5x8xf32>, tensor<2x0x5x8xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c5_bias(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o: tensor<2x2x3x5xf32>) {
  // expected-error @below {{expected each dimension of bias to be 1 or that of the logits [2x4x3x5], but got [2x2x3x5]}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) bias(%o) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x3x5xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c6_alibi(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o: tensor<2xf32>) {
  // expected-error @below {{expected the size of alibi to be 4, but got 2}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) alibi(%o) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c6_sinks(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o: tensor<2xf32>) {
  // expected-error @below {{expected the size of sinks to be 4, but got 2}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) sinks(%o) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

// Kernels read what is given for heads as f32.
func.func @attention_alibi_elements(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o: tensor<4xf16>) {
  // expected-error @below {{must be 1D plain tensor of f32, but got 'tensor<4xf16>'}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) alibi(%o) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<4xf16>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_sinks_elements(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o: tensor<4xbf16>) {
  // expected-error @below {{must be 1D plain tensor of f32, but got 'tensor<4xbf16>'}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) sinks(%o) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<4xbf16>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c7_key_begin(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o: tensor<4xi64>) {
  // expected-error @below {{expected the size of key_begin to be 2, but got 4}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) key_begin(%o) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<4xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c7_key_end(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o: tensor<4xi64>) {
  // expected-error @below {{expected the size of key_end to be 2, but got 4}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) key_end(%o) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<4xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c7_prefix(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o: tensor<4xi64>) {
  // expected-error @below {{expected the size of prefix to be 2, but got 4}}
  hone.attention %q, %k, %v pattern(#hone.prefix_causal) scale(1.0) prefix(%o) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<4xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c8_prefix_missing(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>) {
  // expected-error @below {{expected prefix to be given with the pattern #hone.prefix_causal}}
  hone.attention %q, %k, %v pattern(#hone.prefix_causal) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c8_prefix_unread(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o: tensor<2xi64>) {
  // expected-error @below {{expected prefix to be absent with the pattern #hone.causal}}
  hone.attention %q, %k, %v pattern(#hone.causal) scale(1.0) prefix(%o) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c9_scale(%q: tensor<2x4x3x8xf32>) {
  // expected-error @below {{expected scale to be finite, but got}}
  hone.attention %q, %q, %q pattern(#hone.full) scale(0x7FC00000) : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c9_softcap(%q: tensor<2x4x3x8xf32>) {
  // expected-error @below {{expected softcap to be finite and positive, but got 0.000000e+00}}
  hone.attention %q, %q, %q pattern(#hone.full) scale(1.0) softcap(0.0) : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_pattern(%q: tensor<2x4x3x8xf32>) {
  // expected-error @below {{invalid kind of attribute specified}}
  hone.attention %q, %q, %q pattern("full") scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c1_narrow_query(%q: tensor<2x4x3x8xf16>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>) {
  // expected-error @below {{expected the elements of key to be 'f16', but got 'f32'}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) : (tensor<2x4x3x8xf16>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>) -> tensor<2x4x3x8xf16>
  return
}

// -----

func.func @attention_c10_layout(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32, #hrt.key_blocks>, %v: tensor<2x2x5x8xf32>) {
  // expected-error @below {{expected key and value to be both plain or both in a layout of the state, but got}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32, #hrt.key_blocks>, tensor<2x2x5x8xf32>) -> tensor<2x4x3x8xf32>
  return
}
