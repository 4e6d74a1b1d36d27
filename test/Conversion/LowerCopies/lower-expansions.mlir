// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt %s --hone-lower-expansions --canonicalize | FileCheck %s -enable-var-scope

// Contiguous memory stays so: a copy of it is one of bytes, which a strided operand would make a call of a library.
// CHECK-LABEL: func @copied
// CHECK: %[[ROWS:.*]] = memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [%arg1, %arg2, 64], strides: [%{{.*}}, 64, 1] : memref<?x64xi32> to memref<?x?x64xi32>
// CHECK: memref.copy %[[ROWS]], %arg3 : memref<?x?x64xi32> to memref<?x?x64xi32>
func.func @copied(%rows: memref<?x64xi32>, %b: index, %s: index, %to: memref<?x?x64xi32>) {
  %0 = memref.expand_shape %rows [[0, 1], [2]] output_shape [%b, %s, 64] : memref<?x64xi32> into memref<?x?x64xi32>
  memref.copy %0, %to : memref<?x?x64xi32> to memref<?x?x64xi32>
  return
}

// Strides that only a call knows are computed.
// CHECK-LABEL: func @strided
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [%{{.*}}], sizes: [%arg1, %arg2], strides: [%{{.*}}, %{{.*}}] : memref<?xf32, strided<[?], offset: ?>> to memref<?x?xf32, strided<[?, ?], offset: ?>>
func.func @strided(%rows: memref<?xf32, strided<[?], offset: ?>>, %b: index, %s: index) -> memref<?x?xf32, strided<[?, ?], offset: ?>> {
  %0 = memref.expand_shape %rows [[0, 1]] output_shape [%b, %s] : memref<?xf32, strided<[?], offset: ?>> into memref<?x?xf32, strided<[?, ?], offset: ?>>
  return %0 : memref<?x?xf32, strided<[?, ?], offset: ?>>
}
