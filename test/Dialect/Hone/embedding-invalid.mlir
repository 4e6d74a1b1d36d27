// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @embedding_c1_rows(%ids: tensor<?xi64>, %t: tensor<0x8xf32>) {
  // expected-error @below {{expected the number of rows of the table to be at least 1, but got 0}}
  hone.embedding %ids, %t : (tensor<?xi64>, tensor<0x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @embedding_ids(%ids: tensor<?xf32>, %t: tensor<16x8xf32>) {
  // expected-error @below {{operand #0 must be plain tensor of i32 or i64}}
  hone.embedding %ids, %t : (tensor<?xf32>, tensor<16x8xf32>) -> tensor<?x8xf32>
  return
}
