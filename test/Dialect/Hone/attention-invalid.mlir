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

func.func @attention_c7_lags(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o: tensor<4xi64>) {
  // expected-error @below {{expected the size of lags to be 2, but got 4}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) lags(%o) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<4xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c7_key_positions(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o0: tensor<2x4xi64>) {
  // expected-error @below {{expected the shape of key_positions to be [2x5], but got [2x4]}}
  hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) key_positions(%o0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x4xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c8_operand_missing(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>) {
  // expected-error @below {{expected the pattern #hone.prefix_causal to have 1 operands, but got 0}}
  hone.attention %q, %k, %v pattern(#hone.prefix_causal) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c8_operand_unread(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o0: tensor<2xi64>) {
  // expected-error @below {{expected the pattern #hone.causal to have 0 operands, but got 1}}
  hone.attention %q, %k, %v pattern(#hone.causal, %o0) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_c11_lse(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>) {
  // expected-error @below {{expected the shape of lse to be [2x4x3], but got [2x4x5]}}
  %0:2 = hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x5xf32>)
  return
}

// -----

func.func @prefix_causal_rank(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o0: tensor<2x1xi64>) {
  // expected-error @below {{expected the prefix to be a 1D tensor, but got 'tensor<2x1xi64>'}}
  hone.attention %q, %k, %v pattern(#hone.prefix_causal, %o0) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x1xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @prefix_causal_c1(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o0: tensor<4xi64>) {
  // expected-error @below {{expected the size of the prefix to be 2, but got 4}}
  hone.attention %q, %k, %v pattern(#hone.prefix_causal, %o0) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<4xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @blocks_c2_rank(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o0: tensor<2x3x2xi64>) {
  // expected-error @below {{expected the blocks to be a 4D tensor, but got 'tensor<2x3x2xi64>'}}
  hone.attention %q, %k, %v pattern(#hone.blocks<size = 2>, %o0) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x3x2xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @blocks_c3_sequences(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o0: tensor<3x1x3x2xi64>) {
  // expected-error @below {{expected the first dimension of the blocks to be 1 or 2, but got 3}}
  hone.attention %q, %k, %v pattern(#hone.blocks<size = 2>, %o0) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<3x1x3x2xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @blocks_c4_heads(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o0: tensor<2x3x3x2xi64>) {
  // expected-error @below {{expected the second dimension of the blocks to be 1 or the number of heads of key or query, but got 'tensor<2x3x3x2xi64>'}}
  hone.attention %q, %k, %v pattern(#hone.blocks<size = 2>, %o0) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x3x3x2xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @blocks_c4_unknown_heads(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o0: tensor<2x?x3x2xi64>) {
  // expected-error @below {{expected the second dimension of the blocks to be 1 or the number of heads of key or query, but got 'tensor<2x?x3x2xi64>'}}
  hone.attention %q, %k, %v pattern(#hone.blocks<size = 2>, %o0) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x?x3x2xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @blocks_c5_queries(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o0: tensor<2x1x3x2xi64>) {
  // expected-error @below {{expected the third dimension of the blocks to be 2, but got 3}}
  hone.attention %q, %k, %v pattern(#hone.blocks<size = 2, queries = 2>, %o0) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x1x3x2xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @tree_c1_rank(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o0: tensor<2x3xi64>) {
  // expected-error @below {{expected the ancestors to be a 3D tensor, but got 'tensor<2x3xi64>'}}
  hone.attention %q, %k, %v pattern(#hone.tree, %o0) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x3xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @tree_c1_words(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o0: tensor<2x3x1xi32>) {
  // expected-error @below {{expected the ancestors to be words of i64, but got 'tensor<2x3x1xi32>'}}
  hone.attention %q, %k, %v pattern(#hone.tree, %o0) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x3x1xi32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @tree_c2_sequences(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o0: tensor<3x3x1xi64>) {
  // expected-error @below {{expected the first dimension of the ancestors to be 1 or 2, but got 3}}
  hone.attention %q, %k, %v pattern(#hone.tree, %o0) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<3x3x1xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @tree_c3_queries(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o0: tensor<2x5x1xi64>) {
  // expected-error @below {{expected the second dimension of the ancestors to be 3, but got 5}}
  hone.attention %q, %k, %v pattern(#hone.tree, %o0) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x5x1xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @tree_c3_words(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o0: tensor<2x3x2xi64>) {
  // expected-error @below {{expected the third dimension of the ancestors to be 1, but got 2}}
  hone.attention %q, %k, %v pattern(#hone.tree, %o0) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x3x2xi64>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @all_of_operands(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>, %o0: tensor<2xi64>, %o1: tensor<2x5x1xi64>) {
  // expected-error @below {{expected the second dimension of the ancestors to be 3, but got 5}}
  hone.attention %q, %k, %v pattern(#hone.all_of<#hone.prefix_causal, #hone.tree>, %o0, %o1) scale(1.0) : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2xi64>, tensor<2x5x1xi64>) -> tensor<2x4x3x8xf32>
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

func.func @attention_c12_skip(%q: tensor<2x4x3x8xf32>) {
  // expected-error @below {{expected skip to be finite and positive, but got 0.000000e+00}}
  hone.attention %q, %q, %q pattern(#hone.full) scale(1.0) skip(0.0) : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
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
