// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @attention_gradient_c1_keys(%q: tensor<?x8x?x32xf32>, %k: tensor<?x4x?x16xf32>, %v: tensor<?x4x?x32xf32>, %lse: tensor<?x8x?xf32>, %s: tensor<?x8x?xf32>,
    %g: tensor<?x8x?x32xf32>) -> tensor<?x8x?x32xf32> {
  // expected-error @below {{expected the last dimension of key to be 32, but got 16}}
  %0:3 = hone.attention_gradient %q, %k, %v, %lse, %s, %g pattern(#hone.causal) scale(0.125)
      : (tensor<?x8x?x32xf32>, tensor<?x4x?x16xf32>, tensor<?x4x?x32xf32>, tensor<?x8x?xf32>, tensor<?x8x?xf32>, tensor<?x8x?x32xf32>)
      -> (tensor<?x8x?x32xf32>, tensor<?x4x?x16xf32>, tensor<?x4x?x32xf32>)
  return %0#0 : tensor<?x8x?x32xf32>
}

// -----

func.func @attention_gradient_c2_gradient(%q: tensor<?x8x?x32xf32>, %k: tensor<?x4x?x32xf32>, %v: tensor<?x4x?x32xf32>, %lse: tensor<?x8x?xf32>, %s: tensor<?x8x?xf32>,
    %g: tensor<?x8x?x16xf32>) -> tensor<?x8x?x32xf32> {
  // expected-error @below {{expected the shape of gradient to be [?x8x?x32], but got [?x8x?x16]}}
  %0:3 = hone.attention_gradient %q, %k, %v, %lse, %s, %g pattern(#hone.causal) scale(0.125)
      : (tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x8x?xf32>, tensor<?x8x?xf32>, tensor<?x8x?x16xf32>)
      -> (tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x32xf32>)
  return %0#0 : tensor<?x8x?x32xf32>
}

// -----

func.func @attention_gradient_c3_lse(%q: tensor<?x8x?x32xf32>, %k: tensor<?x4x?x32xf32>, %v: tensor<?x4x?x32xf32>, %lse: tensor<?x4x?xf32>, %s: tensor<?x8x?xf32>,
    %g: tensor<?x8x?x32xf32>) -> tensor<?x8x?x32xf32> {
  // expected-error @below {{expected the shape of lse to be [?x8x?], but got [?x4x?]}}
  %0:3 = hone.attention_gradient %q, %k, %v, %lse, %s, %g pattern(#hone.causal) scale(0.125)
      : (tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?xf32>, tensor<?x8x?xf32>, tensor<?x8x?x32xf32>)
      -> (tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x32xf32>)
  return %0#0 : tensor<?x8x?x32xf32>
}

// -----

func.func @attention_gradient_c3_subtracted(%q: tensor<?x8x?x32xf32>, %k: tensor<?x4x?x32xf32>, %v: tensor<?x4x?x32xf32>, %lse: tensor<?x8x?xf32>, %s: tensor<?x4x?xf32>,
    %g: tensor<?x8x?x32xf32>) -> tensor<?x8x?x32xf32> {
  // expected-error @below {{expected the shape of subtracted to be [?x8x?], but got [?x4x?]}}
  %0:3 = hone.attention_gradient %q, %k, %v, %lse, %s, %g pattern(#hone.causal) scale(0.125)
      : (tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x8x?xf32>, tensor<?x4x?xf32>, tensor<?x8x?x32xf32>)
      -> (tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x32xf32>)
  return %0#0 : tensor<?x8x?x32xf32>
}

// -----

func.func @attention_gradient_c4_query(%q: tensor<?x8x?x32xf32>, %k: tensor<?x4x?x32xf32>, %v: tensor<?x4x?x32xf32>, %lse: tensor<?x8x?xf32>, %s: tensor<?x8x?xf32>,
    %g: tensor<?x8x?x32xf32>) -> tensor<?x4x?x32xf32> {
  // expected-error @below {{expected the shape of query_gradient to be [?x8x?x32], but got [?x4x?x32]}}
  %0:3 = hone.attention_gradient %q, %k, %v, %lse, %s, %g pattern(#hone.causal) scale(0.125)
      : (tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x8x?xf32>, tensor<?x8x?xf32>, tensor<?x8x?x32xf32>)
      -> (tensor<?x4x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x32xf32>)
  return %0#0 : tensor<?x4x?x32xf32>
}

// -----

func.func @attention_gradient_c4_value(%q: tensor<?x8x?x32xf32>, %k: tensor<?x4x?x32xf32>, %v: tensor<?x4x?x32xf32>, %lse: tensor<?x8x?xf32>, %s: tensor<?x8x?xf32>,
    %g: tensor<?x8x?x32xf32>) -> tensor<?x8x?x32xf32> {
  // expected-error @below {{expected the shape of value_gradient to be [?x4x?x32], but got [?x4x?x16]}}
  %0:3 = hone.attention_gradient %q, %k, %v, %lse, %s, %g pattern(#hone.causal) scale(0.125)
      : (tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x8x?xf32>, tensor<?x8x?xf32>, tensor<?x8x?x32xf32>)
      -> (tensor<?x8x?x32xf32>, tensor<?x4x?x32xf32>, tensor<?x4x?x16xf32>)
  return %0#0 : tensor<?x8x?x32xf32>
}
