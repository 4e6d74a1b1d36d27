# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Classifiers that end in ZipMap, into a folder: with labels that are integers or texts, with too few labels, and with a map that a node
reads."""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

FOLDER = pathlib.Path(sys.argv[1])


def maps(key):
    value = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    return helper.make_sequence_type_proto(helper.make_map_type_proto(key, value))


def write(name, labels, key, read=False):
    nodes = [helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", classlabels_ints=[0, 1, 2],
                              coefficients=np.arange(12.0).tolist(), intercepts=[0.5, 0.25, 0.0], post_transform="SOFTMAX"),
             helper.make_node("ZipMap", ["scores"], ["probability"], domain="ai.onnx.ml", **labels)]
    outputs = [helper.make_tensor_value_info("label", TensorProto.INT64, ["n"]), helper.make_value_info("probability", maps(key))]
    if read:
        nodes.append(helper.make_node("SequenceLength", ["probability"], ["count"]))
        outputs.append(helper.make_tensor_value_info("count", TensorProto.INT64, []))
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])], outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), FOLDER / f"{name}.onnx")


write("integers", {"classlabels_int64s": [7, 8, 9]}, TensorProto.INT64)
write("texts", {"classlabels_strings": ["cat", "dog", "fish"]}, TensorProto.STRING)
write("few", {"classlabels_int64s": [7, 8]}, TensorProto.INT64)
write("read", {"classlabels_int64s": [7, 8, 9]}, TensorProto.INT64, read=True)
np.savez(FOLDER / "x.npz", x=np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4))
