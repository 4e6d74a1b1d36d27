# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""odd_names.py FOLDER: models whose names hold what controls terminals, and inputs for one of them.

odd_names.py --check COMMAND...: runs the command, with ESC for the character, and fails where it prints a control character other than a line feed, a
bidirectional control, or a line that starts as a name told it to; else its output and its exit code are passed on."""

import os
import re
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ODD = "\x1b[31mred\x07\nhone: error: forged\u202etxt\x9b"
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|^hone: error: forged", re.M)


def save(folder, name, operator):
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    node = helper.make_node(operator, [ODD + "x", ODD + "w"], [ODD + "y"], name=ODD + "node")
    graph = helper.make_graph(
        [node], ODD + "graph",
        [helper.make_tensor_value_info(ODD + "x", TensorProto.FLOAT, [ODD + "rows", 2])],
        [helper.make_tensor_value_info(ODD + "y", TensorProto.FLOAT, [ODD + "rows", 3])],
        [numpy_helper.from_array(weight, ODD + "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, os.path.join(folder, name + ".onnx"))


def check(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = result.stdout.decode("utf-8")
    sys.stdout.buffer.write(result.stdout)
    found = UNSAFE.search(text)
    if found:
        sys.exit(f"\nprinted {found.group()!r} at {found.start()}: {text[max(0, found.start() - 40):found.end() + 40]!r}")
    sys.exit(result.returncode)


if sys.argv[1] == "--check":
    check([word.replace("ESC", "\x1b") for word in sys.argv[2:]])
save(sys.argv[1], "good", "MatMul")
save(sys.argv[1], "bad", "Relux")
np.savez(os.path.join(sys.argv[1], "in.npz"), **{ODD + "x": np.ones((4, 2), np.float32)})
