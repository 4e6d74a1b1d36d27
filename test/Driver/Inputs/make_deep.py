# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""make_deep.py MODEL.onnx FOLDER: of a model of two layers that onnxruntime-genai's builder has written, one of eight that are
wider, with random weights beside it: FOLDER/deep.onnx; and FOLDER/tokens.npy."""

import copy
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

LAYERS, HIDDEN, INNER, VOCABULARY, HEADS, KEY_HEADS, HEAD, POSITIONS = 8, 320, 768, 1024, 5, 1, 64, 128
QKV = (HEADS + 2 * KEY_HEADS) * HEAD
SHAPES = {
    "input_layernorm.weight": (HIDDEN,),
    "attn.qkv_proj.MatMul.weight": (HIDDEN, QKV),
    "attn.qkv_proj.Add.bias": (QKV,),
    "attn.o_proj.MatMul.weight": (HEADS * HEAD, HIDDEN),
    "post_attention_layernorm.weight": (HIDDEN,),
    "mlp.gate_proj.MatMul.weight": (HIDDEN, INNER),
    "mlp.up_proj.MatMul.weight": (HIDDEN, INNER),
    "mlp.down_proj.MatMul.weight": (INNER, HIDDEN),
}


def renumbered(node, numbers):
    """A copy of the node; names of each layer in `numbers` get the number there."""
    node = copy.deepcopy(node)

    def change(name):
        for old, new in numbers.items():
            for text in ("layers.{}/", "layers.{}.", "past_key_values.{}.", "present.{}."):
                if text.format(old) in name:
                    return name.replace(text.format(old), text.format(new))
        return name

    node.name = change(node.name)
    for names in (node.input, node.output):
        names[:] = [change(name) for name in names]
    return node


def main():
    source, folder = onnx.load(sys.argv[1], load_external_data=False), pathlib.Path(sys.argv[2])
    graph, random = source.graph, np.random.default_rng(0)
    of = lambda text: [node for node in graph.node if text in node.name]  # noqa: E731
    last = of("layers.2/") + of("/lm_head/MatMul")
    nodes = [node for node in graph.node if "layers." not in node.name and node not in last] + of("layers.0/")
    for layer in range(1, LAYERS):
        nodes += [renumbered(node, {0: layer - 1, 1: layer}) for node in of("layers.1/")]
    nodes += [renumbered(node, {1: LAYERS - 1, 2: LAYERS}) for node in last]
    for node in nodes:
        for attribute in node.attribute if node.op_type == "GroupQueryAttention" else []:
            values = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS, "scale": HEAD**-0.5}
            attribute.CopyFrom(helper.make_attribute(attribute.name, values.get(attribute.name, helper.get_attribute_value(attribute))))

    data, tensors = open(folder / "deep.data", "wb"), []

    def add(name, array):
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=array.shape, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "deep.data"), ("offset", data.tell()), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        data.write(array.tobytes())
        tensors.append(tensor)

    def normal(shape):
        return random.standard_normal(shape, dtype=np.float32) * np.float32(shape[0] ** -0.5)

    for layer in range(LAYERS):
        for name, shape in SHAPES.items():
            add(f"model.layers.{layer}.{name}", normal(shape) + np.float32(name.endswith("norm.weight")))
    add(f"model.layers.{LAYERS}.final_norm_layernorm.weight", np.ones(HIDDEN, np.float32))
    add("lm_head.MatMul.weight", normal((HIDDEN, VOCABULARY)))
    angles = np.arange(POSITIONS)[:, None] * (1e6 ** (-np.arange(HEAD // 2) / (HEAD // 2)))
    add("cos_cache", np.cos(angles).astype(np.float32))
    add("sin_cache", np.sin(angles).astype(np.float32))

    inputs, outputs = list(graph.input[:2]), []
    outputs.append(helper.make_tensor_value_info("logits", 1, ["batch_size", "sequence_length", VOCABULARY]))
    for layer in range(LAYERS):
        for kind in ("key", "value"):
            for values, name, length in ((inputs, "past_key_values", "past"), (outputs, "present", "total")):
                shape = ["batch_size", KEY_HEADS, f"{length}_sequence_length", HEAD]
                values.append(helper.make_tensor_value_info(f"{name}.{layer}.{kind}", 1, shape))
    made = helper.make_graph(nodes, graph.name, inputs, outputs, tensors)
    onnx.save(
        helper.make_model(made, opset_imports=source.opset_import, ir_version=source.ir_version), folder / "deep.onnx"
    )
    np.save(folder / "tokens.npy", random.integers(0, VOCABULARY, 64, dtype=np.int32))


main()
