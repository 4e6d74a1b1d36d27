# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models whose weights are initializers, or inputs for the entry that gives their gradients; and gradients by the names of a file."""

import re

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


def joined_parameters(text):
    """The parameters that were made of the matrices of several experts: for each the names of these, or that of the tensor with all of them,
    and whether the file has them transposed."""
    found = re.findall(r'hone.param @"?([^" ]+)"? [^\n]*= #hone.stacked<([^=]*) = \[[^\n]*hone.joined = \[([^\]]*)\]', text)
    return {name: (re.findall(r'"([^"]*)"', names), "transposed" in kind) for name, kind, names in found}


def split_joined(gradient, names, is_transposed, values):
    """The gradients of the parameters of the experts."""
    matrices = np.split(gradient, len(names) if len(names) > 1 else len(values[names[0]]))
    matrices = [matrix.T if is_transposed else matrix for matrix in matrices]
    return dict(zip(names, matrices if len(names) > 1 else [np.stack(matrices)], strict=True))


def initializer_gradients(tools, folder, path, inputs, values):
    """The loss of a decoder, and its gradient by each initializer that it depends on, in the shape of its value in `values`."""
    suite.run_tool([tools / "hone", "compile", path, "-o", folder / "gradients.hone", "--gradients=parameters", "--loss=cross-entropy",
                    f"--save-ir={folder}"])
    outputs = dict(run_gradients(tools, folder, inputs))
    loss = outputs.pop("loss")
    gradients = {name.removesuffix(".gradient"): array for name, array in outputs.items()}
    for name in [name.removesuffix(".0") for name in gradients if name.endswith(".0") and name not in values]:
        gradients[name] = np.concatenate([gradients.pop(f"{name}.{half}") for half in (0, 1)], axis=-1)  # fused gate_up
    for name, (names, is_transposed) in joined_parameters((folder / "3-lower.mlir").read_text()).items():
        gradients.update(split_joined(gradients.pop(name), names, is_transposed, values))
    unknown = set(gradients) - set(values)
    if unknown or len(gradients) < 8:
        raise suite.Failure(f"of {len(gradients)} gradients these are of no initializer: {sorted(unknown)}")
    return loss, {name: gradient.reshape(values[name].shape) for name, gradient in gradients.items()}  # matrices of experts are below each other
