// An editor's session with the language server: a file with one error, and a hover over a value of the part without.
// RUN: %python %S/Inputs/lsp_session.py hone-lsp-server %s | FileCheck %s

// CHECK: capabilities: {{.*}}hoverProvider{{.*}}textDocumentSync
// CHECK: diagnostic: line [[#@LINE+14]]: {{.*}}expected the size of weight to be 8, but got 4
// CHECK-NOT: diagnostic:
// CHECK: hover: {{.*}}"hone.rms_norm"
// CHECK: shutdown: None
// CHECK: exit code: 0

func.func @norm(%x: tensor<?x8xf32>, %w: tensor<8xf32>) -> tensor<?x8xf32> {
  %norm = hone.rms_norm %x, %w epsilon(1.0e-6) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %norm : tensor<?x8xf32>
}

// -----

func.func @wrong(%x: tensor<?x8xf32>, %w: tensor<4xf32>) -> tensor<?x8xf32> {
  %norm = hone.rms_norm %x, %w epsilon(1.0e-6) : (tensor<?x8xf32>, tensor<4xf32>) -> tensor<?x8xf32>
  return %norm : tensor<?x8xf32>
}
