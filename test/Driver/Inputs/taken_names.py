# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model whose initializers have names that others have: taken_names.py FOLDER writes it with inputs, `check FILE.npz` compares its
output, `names MODEL.onnx` the names of a copy."""

import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

NAMES = ["main", "main#1", "forward", "__padding__.0", "__metadata__", "___metadata__", "malloc", "memcpy", "hone_program",
         "hone_rt_alloc", "printf", "a\"b", "llvm.foo", "type of main"]
SIZE = 16

os.chdir(sys.argv[1])
source = np.random.default_rng(1)
weights = {name: source.normal(size=(SIZE, SIZE)).astype(np.float32) / SIZE for name in NAMES}
x = source.normal(size=(3, SIZE)).astype(np.float32)
if len(sys.argv) == 2:
    nodes = [helper.make_node("MatMul", [f"v{i}", name], [f"v{i + 1}"]) for i, name in enumerate(NAMES)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("v0", TensorProto.FLOAT, ["n", SIZE])],
                              [helper.make_tensor_value_info(f"v{len(NAMES)}", TensorProto.FLOAT, ["n", SIZE])],
                              [numpy_helper.from_array(array, name) for name, array in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), "names.onnx")
    np.savez("in.npz", v0=x)
elif sys.argv[2] == "check":
    for name in NAMES:
        x = x @ weights[name]
    np.testing.assert_allclose(np.load(sys.argv[3])[f"v{len(NAMES)}"], x, rtol=1e-3, atol=1e-9)
else:
    assert [tensor.name for tensor in onnx.load(sys.argv[3]).graph.initializer] == NAMES
