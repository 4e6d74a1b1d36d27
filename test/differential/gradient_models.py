# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models whose weights are initializers, or inputs for the entry that gives their gradients."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import suite


def make_model(nodes, values, vocabulary, as_inputs):
    """`logits` of `ids`, as the nodes make them with these weights."""
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "sequence"])]
    if as_inputs:
        inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape) for name, array in values.items()]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "sequence", vocabulary])]
    initializers = [] if as_inputs else [numpy_helper.from_array(array, name) for name, array in values.items()]
    graph = helper.make_graph(nodes, "small", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def run_gradients(tools, folder, inputs):
    """What the entry `gradients` of gradients.hone in `folder` gives."""
    np.savez(folder / "in.npz", **inputs)
    suite.run_tool([tools / "hone-run", "run", folder / "gradients.hone", "--entry", "gradients", "--inputs", folder / "in.npz",
                    "--outputs", folder / "out.npz"])
    return np.load(folder / "out.npz")
