# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of a few kilobytes in the hone dialect: an embedding, a norm, a product and a head, with random weights."""

import numpy as np

WIDTH, VOCABULARY = 64, 16


def text():
    """The module as MLIR; the same at every call."""
    source = np.random.default_rng(1)

    def weights(*shape):
        return '"0x' + (source.standard_normal(shape) * 0.1).astype("<f4").tobytes().hex().upper() + '"'

    table, square, ids, rows = f"tensor<{VOCABULARY}x{WIDTH}xf32>", f"tensor<{WIDTH}x{WIDTH}xf32>", "tensor<?x?xi64>", f"tensor<?x?x{WIDTH}xf32>"
    logits = f"tensor<?x?x{VOCABULARY}xf32>"
    return f"""
hone.param @table : {table} = dense<{weights(VOCABULARY, WIDTH)}> : {table}
hone.param @w : {square} = dense<{weights(WIDTH, WIDTH)}> : {square}
hone.param @g : tensor<{WIDTH}xf32> = dense<1.0> : tensor<{WIDTH}xf32>
func.func @main(%ids: {ids} {{onnx.name = "ids", onnx.dims = ["batch", "sequence"]}}) -> ({logits} {{onnx.name = "logits"}}) {{
  %table = hone.get_param @table : {table}
  %w = hone.get_param @w : {square}
  %g = hone.get_param @g : tensor<{WIDTH}xf32>
  %x = hone.embedding %ids, %table : ({ids}, {table}) -> {rows}
  %n = hone.rms_norm %x, %g epsilon(1.0e-6) : ({rows}, tensor<{WIDTH}xf32>) -> {rows}
  %y = hone.linear %n, %w : ({rows}, {square}) -> {rows}
  %l = hone.linear %y, %table : ({rows}, {table}) -> {logits}
  return %l : {logits}
}}
"""
