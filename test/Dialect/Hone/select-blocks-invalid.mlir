// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @select_blocks_c1_size(%q: tensor<2x4x?x64xf32>, %pooled: tensor<2x2x?x1xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>) {
  // expected-error @below {{expected size to be positive, but got -1}}
  hone.select_blocks %q, %pooled from %begin to %end size(-1) scale(0.125)
    : (tensor<2x4x?x64xf32>, tensor<2x2x?x1xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<2x2x?x3xi64>
  return
}

// -----

func.func @select_blocks_c1_scale(%q: tensor<2x4x?x64xf32>, %pooled: tensor<2x2x?x1xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>) {
  // expected-error @below {{expected scale to be finite, but got INF}}
  hone.select_blocks %q, %pooled from %begin to %end size(64) scale(0x7F800000)
    : (tensor<2x4x?x64xf32>, tensor<2x2x?x1xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<2x2x?x3xi64>
  return
}

// -----

func.func @select_blocks_c2_batch(%q: tensor<2x4x?x64xf32>, %pooled: tensor<3x2x?x1xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>) {
  // expected-error @below {{expected the batch of pooled to be 2, but got 3}}
  hone.select_blocks %q, %pooled from %begin to %end size(64) scale(0.125)
    : (tensor<2x4x?x64xf32>, tensor<3x2x?x1xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<2x2x?x3xi64>
  return
}

// -----

func.func @select_blocks_c2_heads(%q: tensor<2x4x?x64xf32>, %pooled: tensor<2x3x?x1xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>) {
  // expected-error @below {{expected the heads of query to be a multiple of the 3 heads of pooled, but got 4}}
  hone.select_blocks %q, %pooled from %begin to %end size(64) scale(0.125)
    : (tensor<2x4x?x64xf32>, tensor<2x3x?x1xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<2x2x?x3xi64>
  return
}

// -----

func.func @select_blocks_c3_width(%q: tensor<2x4x?x64xf32>, %pooled: tensor<2x2x?x2xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>) {
  // expected-error @below {{expected the last dimension of pooled to be 1, but got 2}}
  hone.select_blocks %q, %pooled from %begin to %end size(64) scale(0.125)
    : (tensor<2x4x?x64xf32>, tensor<2x2x?x2xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<2x2x?x3xi64>
  return
}

// -----

func.func @select_blocks_c3_bounds(%q: tensor<2x4x?x64xf32>, %pooled: tensor<2x2x?x1xf32>, %begin: tensor<1x?xi64>) {
  // expected-error @below {{expected the last dimension of pooled to be 2, but got 1}}
  hone.select_blocks %q, %pooled from %begin to %begin size(64) scale(0.125) bounds
    : (tensor<2x4x?x64xf32>, tensor<2x2x?x1xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<2x2x?x3xi64>
  return
}

// -----

func.func @select_blocks_c3_query_size(%q: tensor<2x4x?x?xf32>, %pooled: tensor<2x2x?x1xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>) {
  // expected-error @below {{expected the last dimension of query to be known}}
  hone.select_blocks %q, %pooled from %begin to %end size(64) scale(0.125)
    : (tensor<2x4x?x?xf32>, tensor<2x2x?x1xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<2x2x?x3xi64>
  return
}

// -----

func.func @select_blocks_c4_sequences(%q: tensor<2x4x?x64xf32>, %pooled: tensor<2x2x?x1xf32>, %begin: tensor<3x?xi64>, %end: tensor<1x?xi64>) {
  // expected-error @below {{expected the first dimension of begin to be 2, but got 3}}
  hone.select_blocks %q, %pooled from %begin to %end size(64) scale(0.125)
    : (tensor<2x4x?x64xf32>, tensor<2x2x?x1xf32>, tensor<3x?xi64>, tensor<1x?xi64>) -> tensor<2x2x?x3xi64>
  return
}

// -----

func.func @select_blocks_c4_queries(%q: tensor<2x4x5x64xf32>, %pooled: tensor<2x2x?x1xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x6xi64>) {
  // expected-error @below {{expected the second dimension of end to be 5, but got 6}}
  hone.select_blocks %q, %pooled from %begin to %end size(64) scale(0.125)
    : (tensor<2x4x5x64xf32>, tensor<2x2x?x1xf32>, tensor<1x?xi64>, tensor<1x6xi64>) -> tensor<2x2x5x3xi64>
  return
}

// -----

func.func @select_blocks_c5_places(%q: tensor<2x4x?x64xf32>, %pooled: tensor<2x2x?x1xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>) {
  // expected-error @below {{expected the last dimension of the result to be known}}
  hone.select_blocks %q, %pooled from %begin to %end size(64) scale(0.125)
    : (tensor<2x4x?x64xf32>, tensor<2x2x?x1xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<2x2x?x?xi64>
  return
}

// -----

func.func @select_blocks_c5_heads(%q: tensor<2x4x?x64xf32>, %pooled: tensor<2x2x?x1xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>) {
  // expected-error @below {{expected the shape of the result to be [2x2x?x3], but got [2x4x?x3]}}
  hone.select_blocks %q, %pooled from %begin to %end size(64) scale(0.125)
    : (tensor<2x4x?x64xf32>, tensor<2x2x?x1xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<2x4x?x3xi64>
  return
}
