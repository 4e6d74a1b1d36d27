// An editor's session with the language server: a file with one error, and a hover over a value of the part without.
// RUN: %python %S/Inputs/lsp_session.py hone-lsp-server %s | FileCheck %s

// CHECK: capabilities: {{.*}}hoverProvider{{.*}}textDocumentSync
// CHECK: diagnostic: line [[#@LINE+14]]: {{.*}}'arith.addf' op operand #0 must be floating-point-like
// CHECK-NOT: diagnostic:
// CHECK: hover: {{.*}}arith.addi
// CHECK: shutdown: None
// CHECK: exit code: 0

func.func @add(%a: i32, %b: i32) -> i32 {
  %sum = arith.addi %a, %b : i32
  return %sum : i32
}

// -----

func.func @wrong(%a: i32) -> i32 {
  %twice = "arith.addf"(%a, %a) : (i32, i32) -> i32
  return %twice : i32
}
