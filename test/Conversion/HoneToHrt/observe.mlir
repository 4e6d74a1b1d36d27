// RUN: hone-opt %s -hone-convert-hone-to-hrt | FileCheck %s
// RUN: hone-opt %s -hone-convert-hone-to-hrt -one-shot-bufferize | FileCheck %s --check-prefix=BUFFER
// RUN: hone-opt %s -hone-convert-hone-to-hrt -one-shot-bufferize -hone-convert-hrt-to-llvm | FileCheck %s --check-prefix=LLVM

// An observation becomes one of the call's; it reads its buffer where that lies.
// CHECK-LABEL: @forward(
// CHECK-SAME: %[[CALL:.*]]: !hrt.call
// CHECK: %[[X:.*]] = bufferization.to_tensor
// CHECK: hrt.observe %[[CALL]][5], %[[X]] : tensor<?x4xf32>
// BUFFER: %[[X:.*]] = hrt.input
// BUFFER-NOT: memref.alloc
// BUFFER: hrt.observe %{{.*}}[5], %[[X]] : memref<?x4xf32>
// LLVM: llvm.mlir.addressof @slot.hone_rt_observe
func.func @forward(%x: tensor<?x4xf32>) {
  hone.observe %x site 5 : tensor<?x4xf32>
  return
}
