// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @pool_keys_c1_size(%k: tensor<?x2x?x64xf32>, %fresh: index) {
  // expected-error @below {{expected size to be positive, but got 0}}
  hone.pool_keys %k of %fresh size(0) : (tensor<?x2x?x64xf32>, index) -> tensor<?x2x?x1xf32>
  return
}

// -----

func.func @pool_keys_c2_width(%k: tensor<?x2x?x65xf32>, %fresh: index) {
  // expected-error @below {{expected the shape of the result to be [?x2x?x2], but got [?x2x?x1]}}
  hone.pool_keys %k of %fresh size(64) : (tensor<?x2x?x65xf32>, index) -> tensor<?x2x?x1xf32>
  return
}

// -----

func.func @pool_keys_c2_bounds(%k: tensor<?x2x?x64xf32>, %fresh: index) {
  // expected-error @below {{expected the shape of the result to be [?x2x?x2], but got [?x2x?x1]}}
  hone.pool_keys %k of %fresh size(64) bounds : (tensor<?x2x?x64xf32>, index) -> tensor<?x2x?x1xf32>
  return
}

// -----

func.func @pool_keys_c2_heads(%k: tensor<?x2x?x64xf32>, %fresh: index) {
  // expected-error @below {{expected the shape of the result to be [?x2x?x1], but got [?x3x?x1]}}
  hone.pool_keys %k of %fresh size(64) : (tensor<?x2x?x64xf32>, index) -> tensor<?x3x?x1xf32>
  return
}

// -----

func.func @pool_keys_c2_key_size(%k: tensor<?x2x?x?xf32>, %fresh: index) {
  // expected-error @below {{expected the last dimension of keys to be known}}
  hone.pool_keys %k of %fresh size(64) : (tensor<?x2x?x?xf32>, index) -> tensor<?x2x?x1xf32>
  return
}

// -----

func.func @pool_keys_c3_key_begin(%k: tensor<3x2x?x64xf32>, %fresh: index, %pad: tensor<2xi64>) {
  // expected-error @below {{expected the size of key_begin to be 3, but got 2}}
  hone.pool_keys %k of %fresh key_begin(%pad) size(64) : (tensor<3x2x?x64xf32>, index, tensor<2xi64>) -> tensor<3x2x?x1xf32>
  return
}
