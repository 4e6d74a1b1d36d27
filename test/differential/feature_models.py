# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A language model as vision language models are exported: what makes embeddings of tokens, a decoder that reads them, and an encoder."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PATCHES = 4  # features of an image


def cut(path, folder):
    """Writes embed_tokens.onnx and decoder_model_merged.onnx; returns the size of an embedding."""
    model = onnx.load(path)
    graph = model.graph
    lookup = next(node for node in graph.node if node.op_type == "Gather" and node.input[1] == "input_ids")
    table = next(tensor for tensor in graph.initializer if tensor.name == lookup.input[0])
    tokens = next(value for value in graph.input if value.name == "input_ids")
    dims = [dim.dim_param for dim in tokens.type.tensor_type.shape.dim]
    size = table.dims[1]
    embeds = helper.make_tensor_value_info("inputs_embeds", table.data_type, [*dims, size])
    lookup_graph = helper.make_graph([helper.make_node("Gather", [table.name, "input_ids"], ["inputs_embeds"])], "lookup", [tokens], [embeds], [table])
    save(lookup_graph, 13, folder / "embed_tokens.onnx")
    for node in graph.node:
        node.input[:] = ["inputs_embeds" if name == lookup.output[0] else name for name in node.input]
    graph.node.remove(lookup)
    if not any(table.name in node.input for node in graph.node):
        graph.initializer.remove(table)
    inputs = [embeds, *(value for value in graph.input if value.name != "input_ids")]
    del graph.input[:]
    graph.input.extend(inputs)
    onnx.save(model, folder / "decoder_model_merged.onnx")
    return size


def save(graph, opset, path):
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)


def write_encoder(folder, size):
    """pixel_values [images, 3, 8, 8] to image_features [images, PATCHES, size]."""
    random = np.random.default_rng(2)
    weight = numpy_helper.from_array(random.standard_normal((size, 3, 4, 4), np.float32) * 0.1, "weight")
    shape = numpy_helper.from_array(np.array([0, size, PATCHES]), "shape")
    nodes = [helper.make_node("Conv", ["pixel_values", "weight"], ["patches"], strides=[4, 4]),
             helper.make_node("Reshape", ["patches", "shape"], ["flat"]),
             helper.make_node("Transpose", ["flat"], ["rows"], perm=[0, 2, 1]),
             helper.make_node("ReduceMean", ["rows"], ["mean"], axes=[1]),  # which opset 18 has another form of
             helper.make_node("Sub", ["rows", "mean"], ["centred"]),
             helper.make_node("Tanh", ["centred"], ["image_features"])]
    graph = helper.make_graph(nodes, "encoder", [helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["images", 3, 8, 8])],
                              [helper.make_tensor_value_info("image_features", TensorProto.FLOAT, ["images", PATCHES, size])], [weight, shape])
    save(graph, 17, folder / "vision_encoder.onnx")


def write(path, folder, image):
    """Writes the three files, and the configuration, in which `image` is the token that stands for features."""
    write_encoder(folder, cut(path, folder))
    (folder / "config.json").write_text(json.dumps({"image_token_id": image}))
