# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""softmax_chain.py COUNT FILE: writes a model of so many nodes Softmax, one after the other."""

import sys

import onnx
from onnx import TensorProto, helper

count = int(sys.argv[1])
nodes = [helper.make_node("Softmax", [f"v{i}"], [f"v{i + 1}"], axis=-1) for i in range(count)]
first, last = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 16]) for name in ("v0", f"v{count}"))
graph = helper.make_graph(nodes, "g", [first], [last])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), sys.argv[2])
