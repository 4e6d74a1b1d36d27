# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoders in bf16 of the shapes of public models, for measurements of a decoding step. Its time does not depend on the values of weights,
so they are made where the artefact runs (make_weights.py).

The external data of the ONNX file is a sparse file of the size of the weights, except for the first elements of each: zeros alone would be
stored as 2:4 weights.
"""

import os
from dataclasses import dataclass

import onnx
from onnx import TensorProto, helper

BF16 = TensorProto.BFLOAT16
MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Shape:
    vocabulary: int
    width: int
    layers: int
    heads: int
    key_heads: int
    head: int
    hidden: int
    positions: int


SHAPES = {
    "tiny": Shape(512, 128, 2, 2, 1, 64, 256, 512),                # for tests
    "0.5b": Shape(151936, 896, 24, 14, 2, 64, 4864, 2048),         # Qwen2.5-0.5B
    "8b": Shape(128256, 4096, 32, 32, 8, 128, 14336, 2048),        # Llama-3.1-8B
}


class Decoder:
    """Nodes and weights of a decoder as onnxruntime-genai's model builder writes them."""

    def __init__(self, shape, path):
        self.shape, self.path = shape, path
        self.data = f"{path.name}.data"
        self.nodes, self.initializers, self.bytes = [], [], 0

    def weight(self, name, *sizes):
        """One that lies in the sparse file."""
        count = 2
        for size in sizes:
            count *= size
        tensor = TensorProto(name=name, data_type=BF16, dims=sizes, data_location=TensorProto.EXTERNAL)
        for key, value in {"location": self.data, "offset": self.bytes, "length": count}.items():
            tensor.external_data.add(key=key, value=str(value))
        self.initializers.append(tensor)
        self.bytes += count
        return name

    def constant(self, name, values):
        self.initializers.append(helper.make_tensor(name, TensorProto.INT64, [len(values)] if isinstance(values, list) else [],
                                                    values if isinstance(values, list) else [values]))
        return name

    def node(self, kind, inputs, name, outputs=(0,), **attributes):
        names = [f"{name}/{i}" if kept is not None else "" for i, kept in enumerate(outputs)]
        domain = MICROSOFT if kind in ("GroupQueryAttention", "SkipSimplifiedLayerNormalization") else ""
        self.nodes.append(helper.make_node(kind, inputs, names, name=name, domain=domain, **attributes))
        return names[0] if len([n for n in names if n]) == 1 else names

    def linear(self, x, name, outputs, inputs):
        weight = self.weight(f"{name}.weight", outputs, inputs)
        transposed = self.node("Transpose", [weight], f"{name}/transposed", perm=[1, 0])
        return self.node("MatMul", [x, transposed], name)

    def attend(self, layer, x, lengths):
        s = self.shape
        name = f"layers.{layer}.attention"
        query, key, value = (self.linear(x, f"{name}.{part}", heads * s.head, s.width)
                             for part, heads in (("q", s.heads), ("k", s.key_heads), ("v", s.key_heads)))
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        present = [f"present.{layer}.{part}" for part in ("key", "value")]
        self.nodes.append(helper.make_node(
            "GroupQueryAttention", [query, key, value, *past, *lengths, "cos", "sin"], [f"{name}/0", *present], name=name,
            domain=MICROSOFT, num_heads=s.heads, kv_num_heads=s.key_heads, do_rotary=1))
        return self.linear(f"{name}/0", f"{name}.o", s.width, s.heads * s.head)

    def feed_forward(self, layer, x):
        s, name = self.shape, f"layers.{layer}.mlp"
        gate, up = (self.linear(x, f"{name}.{part}", s.hidden, s.width) for part in ("gate", "up"))
        silu = self.node("Mul", [gate, self.node("Sigmoid", [gate], f"{name}.sigmoid")], f"{name}.silu")
        return self.linear(self.node("Mul", [silu, up], f"{name}.product"), f"{name}.down", s.width, s.hidden)

    def add_norm(self, x, added, name):
        """The norm of a sum, and the sum."""
        normed, _, _, total = self.node("SkipSimplifiedLayerNormalization", [x, added, self.weight(f"{name}.weight", self.shape.width)],
                                        name, outputs=(0, None, None, 3), epsilon=1e-6)
        return normed, total

    def lengths(self):
        """The inputs of GroupQueryAttention on lengths: the last key of each sequence, and the number of keys."""
        one, axis = self.constant("one", [1]), self.constant("axis", 1)
        held = self.node("ReduceSum", ["attention_mask", one], "held", keepdims=0)
        last = self.node("Cast", [self.node("Sub", [held, one], "last")], "last.i32", to=TensorProto.INT32)
        total = self.node("Gather", [self.node("Shape", ["attention_mask"], "shape"), axis], "total", axis=0)
        return last, self.node("Cast", [total], "total.i32", to=TensorProto.INT32)

    def build(self):
        s = self.shape
        for table in ("cos", "sin"):
            self.weight(table, s.positions, s.head // 2)
        lengths = self.lengths()
        x = self.node("Gather", [self.weight("embedding.weight", s.vocabulary, s.width), "input_ids"], "embedding")
        normed = self.node("SimplifiedLayerNormalization", [x, self.weight("layers.0.norm.weight", s.width)], "layers.0.norm",
                           axis=-1, epsilon=1e-6, stash_type=1)
        for layer in range(s.layers):
            normed, x = self.add_norm(x, self.attend(layer, normed, lengths), f"layers.{layer}.norm2")
            normed, x = self.add_norm(x, self.feed_forward(layer, normed), f"layers.{layer + 1}.norm")
        self.nodes[-1].output[3] = ""  # the last sum has no reader
        logits = self.linear(normed, "head", s.vocabulary, s.width)
        self.nodes.append(helper.make_node("Identity", [logits], ["logits"]))

    def save(self):
        s = self.shape
        cache = [1, s.key_heads, "past", s.head]
        inputs = {"input_ids": (TensorProto.INT64, [1, "tokens"]), "attention_mask": (TensorProto.INT64, [1, "total"])}
        outputs = {"logits": (BF16, [1, "tokens", s.vocabulary])}
        for layer in range(s.layers):
            for part in ("key", "value"):
                inputs[f"past_key_values.{layer}.{part}"] = (BF16, cache)
                outputs[f"present.{layer}.{part}"] = (BF16, [1, s.key_heads, "total", s.head])
        infos = [[helper.make_tensor_value_info(name, *what) for name, what in group.items()] for group in (inputs, outputs)]
        graph = helper.make_graph(self.nodes, "decoder", *infos, self.initializers)
        onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]),
                  self.path)
        with open(self.path.parent / self.data, "wb") as file:
            os.truncate(file.fileno(), self.bytes)
            for tensor in self.initializers:
                for entry in tensor.external_data:
                    if entry.key == "offset":
                        file.seek(int(entry.value))
                        file.write(b"\x80\x3f" * 16)  # ones


def make_shape(name, path):
    decoder = Decoder(SHAPES[name], path)
    decoder.build()
    decoder.save()
