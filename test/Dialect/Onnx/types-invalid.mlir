// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{unsupported type 'text' of the onnx dialect; supported: string, unknown, sequence, optional, map, sparse}}
func.func private @unknown(tensor<2x!onnx.text>)

// -----

// expected-error@+1 {{expected 1 type parameters, but got 0}}
func.func private @parameters(!onnx.sequence)
