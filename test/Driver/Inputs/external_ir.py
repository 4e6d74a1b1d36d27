# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes IR whose weights lie in files, inside and outside of its folder: external_ir.py FOLDER."""

import os
import sys

import numpy as np

MODULE = """hone.param @w : tensor<4xf32> = {0}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %w = hone.get_param @w : tensor<4xf32>
  %y = "onnx.Add"(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}}
"""
PLACES = {"beside": "weights.bin", "under": "under/weights.bin", "outside": "../secret.bin", "absolute": "/etc/passwd",
          "link": "link.bin", "linked-folder": "linked/weights.bin", "pipe": "pipe", "absent": "absent.bin"}

os.chdir(sys.argv[1])
for path in ("weights.bin", "under/weights.bin", "../secret.bin"):
    np.arange(4, dtype=np.float32).tofile(path)
os.symlink("../secret.bin", "link.bin")
os.symlink("under", "linked")
os.mkfifo("pipe")
for name, place in PLACES.items():
    with open(f"{name}.mlir", "w") as file:
        file.write("module attributes {onnx.opsets = {ai.onnx = 18 : i64}} {\n" + MODULE.format(f'#hone.external<"{place}", 0, 16>') + "}\n")
with open("nested.mlir", "w") as file:
    file.write('hone.param @w : tensor<4xf32, #hone.stored<f16>> = #hone.converted<tensor<4xf32> = #hone.external<"../secret.bin", 0, 16>>\n'
               "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }\n")
