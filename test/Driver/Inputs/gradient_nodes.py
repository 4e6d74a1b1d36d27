# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with a node Gradient: one that is right, and some that are not."""

import pathlib
import sys

import onnx
from onnx import TensorProto, helper

TRAINING = "ai.onnx.preview.training"


def save(name, inputs=("a", "b"), element=TensorProto.FLOAT, **attributes):
    infos = [helper.make_tensor_value_info(each, element, [2]) for each in "ab"]
    nodes = [helper.make_node("Mul", ["a", "b"], ["y"]),
             helper.make_node("Gradient", inputs, ["da"], name="wanted", domain=TRAINING, **{"xs": ["a"], "zs": ["b"], "y": "y", **attributes})]
    graph = helper.make_graph(nodes, "g", infos, [helper.make_tensor_value_info("da", element, [2])])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(TRAINING, 1)]
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=opsets), pathlib.Path(sys.argv[1]) / f"{name}.onnx")


save("right")
save("other", inputs=("b", "b"))
save("few", inputs=("a",))
save("unknown", y="z")
save("half", element=TensorProto.FLOAT16)
