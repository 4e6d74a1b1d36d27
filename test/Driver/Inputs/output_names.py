# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""output_names.py write MODEL.onnx: a model whose outputs are named like paths. output_names.py show FILE.npz: its members and their first
elements."""

import sys
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper

NAMES = ["../../up", "/etc/absolute", "_etc_absolute", "plain.0"]


def write(path):
    nodes = [helper.make_node("Add", ["x", f"c{i}"], [name]) for i, name in enumerate(NAMES)]
    constants = [onnx.numpy_helper.from_array(np.float32(i), f"c{i}") for i in range(len(NAMES))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in NAMES], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    np.savez(path.replace(".onnx", ".npz"), x=np.zeros(2, np.float32))


def show(path):
    for name in zipfile.ZipFile(path).namelist():
        print(name, np.load(path)[name.removesuffix(".npy")][0])


{"write": write, "show": show}[sys.argv[1]](sys.argv[2])
