# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""external_data.py FOLDER: writes models whose weights lie in what is no file of their folder: links of both kinds, a pipe, a folder."""

import os
import pathlib
import sys

from onnx import TensorProto, helper, save

PLACES = {"beside": "weights.bin", "under": "under/weights.bin", "link": "link.bin", "hard": "hard.bin",
          "linked-inside": "inside/weights.bin", "linked-outside": "outside/secret.bin", "pipe": "pipe", "folder": "under", "dotted": "under/../../secret.bin", "nul": "weights.bin\0x"}

os.chdir(sys.argv[1])
os.mkdir("under")
for path in ("weights.bin", "under/weights.bin", "../secret.bin"):
    pathlib.Path(path).write_bytes(bytes(16))
os.symlink("../secret.bin", "link.bin")
os.symlink("under", "inside")
os.symlink("..", "outside")
os.link("../secret.bin", "hard.bin")
os.mkfifo("pipe")
for name, place in PLACES.items():
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value=place)
    x, y = (helper.make_tensor_value_info(value, TensorProto.FLOAT, [4]) for value in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [weight])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), f"{name}.onnx")
