// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @select_means_c1_size(%q: tensor<2x4x130x64xf32>, %k: tensor<2x2x300x64xf32>, %t: tensor<1x3xf32>, %begin: tensor<1x3xi64>) {
  // expected-error @below {{expected size and queries to be positive, but got 0 and 64}}
  hone.select_means %q, %k by %t from %begin to %begin size(0) queries(64) scale(0.125)
    : (tensor<2x4x130x64xf32>, tensor<2x2x300x64xf32>, tensor<1x3xf32>, tensor<1x3xi64>, tensor<1x3xi64>) -> tensor<2x2x3x5xi64>
  return
}

// -----

func.func @select_means_c1_queries(%q: tensor<2x4x130x64xf32>, %k: tensor<2x2x300x64xf32>, %t: tensor<1x3xf32>, %begin: tensor<1x3xi64>) {
  // expected-error @below {{expected size and queries to be positive, but got 64 and 0}}
  hone.select_means %q, %k by %t from %begin to %begin size(64) queries(0) scale(0.125)
    : (tensor<2x4x130x64xf32>, tensor<2x2x300x64xf32>, tensor<1x3xf32>, tensor<1x3xi64>, tensor<1x3xi64>) -> tensor<2x2x3x5xi64>
  return
}

// -----

func.func @select_means_c1_scale(%q: tensor<2x4x130x64xf32>, %k: tensor<2x2x300x64xf32>, %t: tensor<1x3xf32>, %begin: tensor<1x3xi64>) {
  // expected-error @below {{expected scale to be finite, but got INF}}
  hone.select_means %q, %k by %t from %begin to %begin size(64) queries(64) scale(0x7F800000)
    : (tensor<2x4x130x64xf32>, tensor<2x2x300x64xf32>, tensor<1x3xf32>, tensor<1x3xi64>, tensor<1x3xi64>) -> tensor<2x2x3x5xi64>
  return
}

// -----

func.func @select_means_c2_batch(%q: tensor<2x4x130x64xf32>, %k: tensor<3x2x300x64xf32>, %t: tensor<1x3xf32>, %begin: tensor<1x3xi64>) {
  // expected-error @below {{expected the batch of keys to be 2, but got 3}}
  hone.select_means %q, %k by %t from %begin to %begin size(64) queries(64) scale(0.125)
    : (tensor<2x4x130x64xf32>, tensor<3x2x300x64xf32>, tensor<1x3xf32>, tensor<1x3xi64>, tensor<1x3xi64>) -> tensor<2x2x3x5xi64>
  return
}

// -----

func.func @select_means_c2_size(%q: tensor<2x4x130x64xf32>, %k: tensor<2x2x300x32xf32>, %t: tensor<1x3xf32>, %begin: tensor<1x3xi64>) {
  // expected-error @below {{expected the last dimension of keys to be 64, but got 32}}
  hone.select_means %q, %k by %t from %begin to %begin size(64) queries(64) scale(0.125)
    : (tensor<2x4x130x64xf32>, tensor<2x2x300x32xf32>, tensor<1x3xf32>, tensor<1x3xi64>, tensor<1x3xi64>) -> tensor<2x2x3x5xi64>
  return
}

// -----

func.func @select_means_c2_heads(%q: tensor<2x4x130x64xf32>, %k: tensor<2x3x300x64xf32>, %t: tensor<1x3xf32>, %begin: tensor<1x3xi64>) {
  // expected-error @below {{expected the heads of query to be a multiple of the 3 heads of the keys, but got 4}}
  hone.select_means %q, %k by %t from %begin to %begin size(64) queries(64) scale(0.125)
    : (tensor<2x4x130x64xf32>, tensor<2x3x300x64xf32>, tensor<1x3xf32>, tensor<1x3xi64>, tensor<1x3xi64>) -> tensor<2x2x3x5xi64>
  return
}

// -----

func.func @select_means_c3_lists(%q: tensor<2x4x130x64xf32>, %k: tensor<2x2x300x64xf32>, %t: tensor<1x3xf32>, %begin: tensor<1x2xi64>) {
  // expected-error @below {{expected the second dimension of begin to be 3, but got 2}}
  hone.select_means %q, %k by %t from %begin to %begin size(64) queries(64) scale(0.125)
    : (tensor<2x4x130x64xf32>, tensor<2x2x300x64xf32>, tensor<1x3xf32>, tensor<1x2xi64>, tensor<1x2xi64>) -> tensor<2x2x3x5xi64>
  return
}

// -----

func.func @select_means_c3_batch(%q: tensor<2x4x130x64xf32>, %k: tensor<2x2x300x64xf32>, %t: tensor<1x3xf32>, %begin: tensor<3x3xi64>) {
  // expected-error @below {{expected the first dimension of begin to be 2, but got 3}}
  hone.select_means %q, %k by %t from %begin to %begin size(64) queries(64) scale(0.125)
    : (tensor<2x4x130x64xf32>, tensor<2x2x300x64xf32>, tensor<1x3xf32>, tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<2x2x3x5xi64>
  return
}

// -----

func.func @select_means_c4_places(%q: tensor<2x4x130x64xf32>, %k: tensor<2x2x300x64xf32>, %t: tensor<1x3xf32>, %begin: tensor<1x3xi64>) {
  // expected-error @below {{expected the shape of the result to be [2x2x3x5], but got [2x2x3x4]}}
  hone.select_means %q, %k by %t from %begin to %begin size(64) queries(64) scale(0.125)
    : (tensor<2x4x130x64xf32>, tensor<2x2x300x64xf32>, tensor<1x3xf32>, tensor<1x3xi64>, tensor<1x3xi64>) -> tensor<2x2x3x4xi64>
  return
}

// -----

func.func @select_means_c5_key_begin(%q: tensor<2x4x130x64xf32>, %k: tensor<2x2x300x64xf32>, %t: tensor<1x3xf32>, %begin: tensor<1x3xi64>, %pad: tensor<3xi64>) {
  // expected-error @below {{expected the size of key_begin to be 2, but got 3}}
  hone.select_means %q, %k by %t from %begin to %begin key_begin(%pad) size(64) queries(64) scale(0.125)
    : (tensor<2x4x130x64xf32>, tensor<2x2x300x64xf32>, tensor<1x3xf32>, tensor<1x3xi64>, tensor<1x3xi64>, tensor<3xi64>) -> tensor<2x2x3x5xi64>
  return
}

// -----

func.func @select_means_c6_rows(%q: tensor<2x4x130x64xf32>, %k: tensor<2x2x300x64xf32>, %t: tensor<3x3xf32>, %begin: tensor<1x3xi64>) {
  // expected-error @below {{expected the first dimension of thresholds to be 2, but got 3}}
  hone.select_means %q, %k by %t from %begin to %begin size(64) queries(64) scale(0.125)
    : (tensor<2x4x130x64xf32>, tensor<2x2x300x64xf32>, tensor<3x3xf32>, tensor<1x3xi64>, tensor<1x3xi64>) -> tensor<2x2x3x5xi64>
  return
}

// -----

func.func @select_means_c6_columns(%q: tensor<2x4x130x64xf32>, %k: tensor<2x2x300x64xf32>, %t: tensor<2x2xf32>, %begin: tensor<1x3xi64>) {
  // expected-error @below {{expected the second dimension of thresholds to be 3, but got 2}}
  hone.select_means %q, %k by %t from %begin to %begin size(64) queries(64) scale(0.125)
    : (tensor<2x4x130x64xf32>, tensor<2x2x300x64xf32>, tensor<2x2xf32>, tensor<1x3xi64>, tensor<1x3xi64>) -> tensor<2x2x3x5xi64>
  return
}
