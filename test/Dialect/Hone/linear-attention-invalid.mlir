// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @linear_attention_c1_key_size(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x2x8xf32>, %v: tensor<?x?x2x24xf32>) {
  // expected-error @below {{expected the shape of key to be [?x?x2x16], but got [?x?x2x8]}}
  hone.linear_attention %q, %k, %v scale(1.0)
      : (tensor<?x?x4x16xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x24xf32>) -> (tensor<?x?x4x24xf32>, tensor<?x2x16x24xf32>)
  return
}

// -----

func.func @linear_attention_c1_tokens(%q: tensor<?x5x4x16xf32>, %k: tensor<?x6x2x16xf32>, %v: tensor<?x?x2x24xf32>) {
  // expected-error @below {{expected the shape of key to be [?x5x2x16], but got [?x6x2x16]}}
  hone.linear_attention %q, %k, %v scale(1.0)
      : (tensor<?x5x4x16xf32>, tensor<?x6x2x16xf32>, tensor<?x?x2x24xf32>) -> (tensor<?x?x4x24xf32>, tensor<?x2x16x24xf32>)
  return
}

// -----

func.func @linear_attention_c1_heads(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x3x16xf32>, %v: tensor<?x?x2x24xf32>) {
  // expected-error @below {{expected the heads of query to be a multiple of the 3 heads of key, but got 4}}
  hone.linear_attention %q, %k, %v scale(1.0)
      : (tensor<?x?x4x16xf32>, tensor<?x?x3x16xf32>, tensor<?x?x2x24xf32>) -> (tensor<?x?x4x24xf32>, tensor<?x2x16x24xf32>)
  return
}

// -----

func.func @linear_attention_c2_value(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x2x16xf32>, %v: tensor<?x?x4x24xf32>) {
  // expected-error @below {{expected the shape of value to be [?x?x2x24], but got [?x?x4x24]}}
  hone.linear_attention %q, %k, %v scale(1.0)
      : (tensor<?x?x4x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x4x24xf32>) -> (tensor<?x?x4x24xf32>, tensor<?x2x16x24xf32>)
  return
}

// -----

func.func @linear_attention_c3_decay(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x2x16xf32>, %v: tensor<?x?x2x24xf32>, %g: tensor<?x?x2x8xf32>) {
  // expected-error @below {{expected the last dimension of decay to be 16, but got 8}}
  hone.linear_attention %q, %k, %v decay(%g) scale(1.0)
      : (tensor<?x?x4x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x24xf32>, tensor<?x?x2x8xf32>) -> (tensor<?x?x4x24xf32>, tensor<?x2x16x24xf32>)
  return
}

// -----

func.func @linear_attention_c3_decay_known(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x2x16xf32>, %v: tensor<?x?x2x24xf32>, %g: tensor<?x?x2x?xf32>) {
  // expected-error @below {{expected the last dimension of decay to be known}}
  hone.linear_attention %q, %k, %v decay(%g) scale(1.0)
      : (tensor<?x?x4x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x24xf32>, tensor<?x?x2x?xf32>) -> (tensor<?x?x4x24xf32>, tensor<?x2x16x24xf32>)
  return
}

// -----

func.func @linear_attention_c3_heads(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x2x16xf32>, %v: tensor<?x?x2x24xf32>, %g: tensor<?x?x4x1xf32>) {
  // expected-error @below {{expected the shape of decay to be [?x?x2x1], but got [?x?x4x1]}}
  hone.linear_attention %q, %k, %v decay(%g) scale(1.0)
      : (tensor<?x?x4x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x24xf32>, tensor<?x?x4x1xf32>) -> (tensor<?x?x4x24xf32>, tensor<?x2x16x24xf32>)
  return
}

// -----

func.func @linear_attention_c4_beta(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x2x16xf32>, %v: tensor<?x?x2x24xf32>, %b: tensor<?x?x4xf32>) {
  // expected-error @below {{expected the last dimension of beta to be 2, but got 4}}
  hone.linear_attention %q, %k, %v beta(%b) scale(1.0)
      : (tensor<?x?x4x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x24xf32>, tensor<?x?x4xf32>) -> (tensor<?x?x4x24xf32>, tensor<?x2x16x24xf32>)
  return
}

// -----

func.func @linear_attention_c4_beta_known(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x2x16xf32>, %v: tensor<?x?x2x24xf32>, %b: tensor<?x?x?xf32>) {
  // expected-error @below {{expected the last dimension of beta to be known}}
  hone.linear_attention %q, %k, %v beta(%b) scale(1.0)
      : (tensor<?x?x4x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x24xf32>, tensor<?x?x?xf32>) -> (tensor<?x?x4x24xf32>, tensor<?x2x16x24xf32>)
  return
}

// -----

func.func @linear_attention_c4_sequences(%q: tensor<3x?x4x16xf32>, %k: tensor<?x?x2x16xf32>, %v: tensor<?x?x2x24xf32>, %b: tensor<2x?x1xf32>) {
  // expected-error @below {{expected the shape of beta to be [3x?x1], but got [2x?x1]}}
  hone.linear_attention %q, %k, %v beta(%b) scale(1.0)
      : (tensor<3x?x4x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x24xf32>, tensor<2x?x1xf32>) -> (tensor<?x?x4x24xf32>, tensor<?x2x16x24xf32>)
  return
}

// -----

func.func @linear_attention_c5_state(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x2x16xf32>, %v: tensor<?x?x2x24xf32>, %s: tensor<?x2x24x16xf32>) {
  // expected-error @below {{expected the shape of state to be [?x2x16x24], but got [?x2x24x16]}}
  hone.linear_attention %q, %k, %v state(%s) scale(1.0)
      : (tensor<?x?x4x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x24xf32>, tensor<?x2x24x16xf32>) -> (tensor<?x?x4x24xf32>, tensor<?x2x16x24xf32>)
  return
}

// -----

func.func @linear_attention_c6_value(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x2x16xf32>, %v: tensor<?x?x2x24xf16>) {
  // expected-error @below {{expected the elements of value to be 'f32', but got 'f16'}}
  hone.linear_attention %q, %k, %v scale(1.0)
      : (tensor<?x?x4x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x24xf16>) -> (tensor<?x?x4x24xf32>, tensor<?x2x16x24xf32>)
  return
}

// -----

func.func @linear_attention_c6_beta(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x2x16xf32>, %v: tensor<?x?x2x24xf32>, %b: tensor<?x?x2xbf16>) {
  // expected-error @below {{expected the elements of beta to be 'f32', but got 'bf16'}}
  hone.linear_attention %q, %k, %v beta(%b) scale(1.0)
      : (tensor<?x?x4x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x24xf32>, tensor<?x?x2xbf16>) -> (tensor<?x?x4x24xf32>, tensor<?x2x16x24xf32>)
  return
}

// -----

func.func @linear_attention_c7_scale(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x2x16xf32>, %v: tensor<?x?x2x24xf32>) {
  // expected-error @below {{expected scale to be finite, but got INF}}
  hone.linear_attention %q, %k, %v scale(0x7F800000)
      : (tensor<?x?x4x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x24xf32>) -> (tensor<?x?x4x24xf32>, tensor<?x2x16x24xf32>)
  return
}
