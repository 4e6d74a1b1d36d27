// RUN: hone-opt %s | hone-opt | FileCheck %s
// RUN: hone-opt %s -canonicalize -cse | FileCheck %s

// Nothing reads what is shown, but somebody may see it: the same rows twice as well.
// CHECK-LABEL: @observe
func.func @observe(%x: tensor<1x?x8xf32>, %y: tensor<8xbf16>) {
  // CHECK: hone.observe %{{.*}} site 3 : tensor<1x?x8xf32>
  // CHECK: hone.observe %{{.*}} site 3 : tensor<1x?x8xf32>
  // CHECK: hone.observe %{{.*}} site 0 : tensor<8xbf16>
  hone.observe %x site 3 : tensor<1x?x8xf32>
  hone.observe %x site 3 : tensor<1x?x8xf32>
  hone.observe %y site 0 : tensor<8xbf16>
  return
}
