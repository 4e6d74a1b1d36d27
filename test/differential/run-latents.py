# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoders with multi-head latent attention that cache latents, absorbed by `hone compile`, against onnxruntime with the file, which expands them.

A case is SPELLING.SIZES. Texts are greedy; where two tokens are likely alike, either may come. Keys are put together by a concatenation, or by
assignments to slices, which exporters write as ScatterND.
"""

import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import greedy_texts
import onnx_reference
import suite

NEW_TOKENS = 12
VOCABULARY, HIDDEN = 96, 64
# Heads, elements of a latent, of a key that come from it, that are rotated, and of a value.
SIZES = {"small": (4, 16, 12, 8, 20), "one_head": (1, 32, 16, 16, 16), "large": (16, 512, 128, 64, 128)}
SPELLINGS = ("concat", "scatter")


class Writer:
    """A graph that is being written."""

    def __init__(self):
        self.nodes, self.weights, self.random = [], [], np.random.default_rng(11)

    def add(self, op, *inputs, to_name=None, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [to_name or f"value{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def constant(self, values, dtype=np.int64):
        name = f"constant{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def weight(self, *shape):
        return self.constant(self.random.standard_normal(shape) / np.sqrt(shape[-2] if len(shape) > 1 else 1), np.float32)

    def heads(self, value, heads, size):
        """[batch, tokens, heads * size] to [batch, heads, tokens, size]."""
        return self.add("Transpose", self.add("Reshape", value, self.constant([0, 0, heads, size])), perm=[0, 2, 1, 3])

    def cut(self, value, axis, begin, end):
        return self.add("Slice", value, self.constant([begin]), self.constant([end]), self.constant([axis]))

    def rotate(self, value, angles, size):
        """Rotary embedding of the halves of the last dimension."""
        left, right = self.cut(value, -1, 0, size // 2), self.cut(value, -1, size // 2, size)
        turned = self.add("Concat", self.add("Neg", right), left, axis=-1)
        return self.add("Add", self.add("Mul", value, self.add("Cos", angles)), self.add("Mul", turned, self.add("Sin", angles)))


def join_keys(writer, spelling, expanded, rotated, sizes):
    """Keys of all heads: the part from the latents, then the rotated part."""
    heads, _, part, turned, _ = sizes
    shape = writer.add("Concat", writer.constant([1]), writer.constant([heads]), writer.constant([1]), writer.constant([1]), axis=0)
    shared = writer.add("Expand", rotated, shape)
    if spelling == "concat":
        return writer.add("Concat", expanded, shared, axis=-1)
    sizes = writer.add("Concat", writer.add("Shape", expanded, end=3), writer.constant([part + turned]), axis=0)
    keys = writer.add("Transpose", writer.add("ConstantOfShape", sizes), perm=[3, 1, 2, 0])
    for begin, value in ((0, expanded), (part, shared)):
        count = part if begin == 0 else turned
        places = writer.constant(np.arange(begin, begin + count)[:, None])
        keys = writer.add("ScatterND", keys, places, writer.add("Transpose", value, perm=[3, 1, 2, 0]))
    return writer.add("Transpose", keys, perm=[3, 1, 2, 0])


def write_model(path, spelling, sizes):
    heads, latent, part, turned, value = sizes
    w = Writer()
    x = w.add("Gather", w.weight(VOCABULARY, HIDDEN), "input_ids")
    positions = w.add("Unsqueeze", w.add("Cast", "position_ids", to=TensorProto.FLOAT), w.constant([1, 3]))
    frequencies = w.constant(np.tile(1 / 100 ** (np.arange(turned // 2) / (turned // 2)), 2), np.float32)
    angles = w.add("Mul", positions, frequencies)  # [batch, 1, tokens, turned]
    query = w.heads(w.add("MatMul", x, w.weight(HIDDEN, heads * (part + turned))), heads, part + turned)
    plain, rest = w.cut(query, -1, 0, part), w.cut(query, -1, part, part + turned)
    query = w.add("Concat", plain, w.rotate(rest, angles, turned), axis=-1)
    fresh = w.add("Unsqueeze", w.add("MatMul", x, w.weight(HIDDEN, latent)), w.constant([1]))
    rotated = w.rotate(w.add("Unsqueeze", w.add("MatMul", x, w.weight(HIDDEN, turned)), w.constant([1])), angles, turned)
    latents = w.add("Concat", "past_key_values.0.key", fresh, axis=2, to_name="present.0.key")
    rotations = w.add("Concat", "past_key_values.0.value", rotated, axis=2, to_name="present.0.value")
    both = w.add("MatMul", w.add("Squeeze", latents, w.constant([1])), w.weight(latent, heads * (part + value)))
    both = w.heads(both, heads, part + value)
    keys = join_keys(w, spelling, w.cut(both, -1, 0, part), rotations, sizes)
    logits = w.add("Mul", w.add("MatMul", query, w.add("Transpose", keys, perm=[0, 1, 3, 2])),
                   w.constant((part + turned) ** -0.5, np.float32))
    total = w.add("Gather", w.add("Shape", latents), w.constant(2))
    first = w.add("Sub", total, w.add("Gather", w.add("Shape", "input_ids"), w.constant(1)))
    rows = w.add("Unsqueeze", w.add("Range", first, total, w.constant(1)), w.constant([1]))
    allowed = w.add("LessOrEqual", w.add("Range", w.constant(0), total, w.constant(1)), rows)
    masked = w.add("Where", allowed, logits, w.constant(-np.inf, np.float32))
    given = w.add("MatMul", w.add("Softmax", masked, axis=-1), w.cut(both, -1, part, part + value))
    given = w.add("Reshape", w.add("Transpose", given, perm=[0, 2, 1, 3]), w.constant([0, 0, heads * value]))
    x = w.add("Add", x, w.add("MatMul", given, w.weight(heads * value, HIDDEN)))
    w.add("MatMul", x, w.weight(HIDDEN, VOCABULARY), to_name="logits")

    def info(name, dtype, *shape):
        return helper.make_tensor_value_info(name, dtype, shape)

    tokens = ["batch", "tokens"]
    graph = helper.make_graph(
        w.nodes, "mla",
        [info("input_ids", TensorProto.INT64, *tokens), info("position_ids", TensorProto.INT64, *tokens),
         info("past_key_values.0.key", TensorProto.FLOAT, "batch", 1, "past", latent),
         info("past_key_values.0.value", TensorProto.FLOAT, "batch", 1, "past", turned)],
        [info("logits", TensorProto.FLOAT, *tokens, VOCABULARY), info("present.0.key", TensorProto.FLOAT, "batch", 1, "all", latent),
         info("present.0.value", TensorProto.FLOAT, "batch", 1, "all", turned)], w.weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)


def write_text(path, prompt, sizes):
    """The greedy text of onnxruntime."""
    session = onnx_reference.open_session(path)
    key, value = (np.zeros((1, 1, 0, size), np.float32) for size in (sizes[1], sizes[3]))
    tokens, length, written = prompt, 0, []
    while len(written) < NEW_TOKENS:
        feeds = {"input_ids": np.array([tokens]), "position_ids": np.arange(length, length + len(tokens))[None],
                 "past_key_values.0.key": key, "past_key_values.0.value": value}
        logits, key, value = session.run(["logits", "present.0.key", "present.0.value"], feeds)
        length += len(tokens)
        written.append(greedy_texts.likeliest(logits[0, -1]))
        tokens = [written[-1][0]]
    return written


def check(case, build):
    spelling, _, named = case.partition(".")
    tools, sizes = build / "bin", SIZES[named]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_model(folder / "model.onnx", spelling, sizes)
        raised = suite.run_tool([tools / "hone", "compile", folder / "model.onnx", "--stop-after=rewrite", "-o", "-"])
        widened = f"tensor<?x1x?x{sizes[1] + sizes[3]}xf32>, axis = 2"
        if widened not in raised:
            raise suite.Failure("its latents are not absorbed")
        prompt = [5, 17, 3, 60, 8]
        expected = write_text(folder / "model.onnx", prompt, sizes)
        np.save(folder / "tokens.npy", prompt)
        for options in ([], ["--kv-cache=bf16"], ["--speculate=tree"]):
            suite.run_tool([tools / "hone", "compile", folder / "model.onnx", *options, "-o", folder / "model.hone"])
            suite.run_tool([tools / "hone-run", "run", folder / "model.hone", "--tokens", folder / "tokens.npy", "--max-new-tokens", NEW_TOKENS,
                            "--output-tokens", folder / "out.npy", "--ignore-end"])
            if options != ["--kv-cache=bf16"]:  # which rounds
                greedy_texts.compare(np.load(folder / "out.npy"), expected)


def main():
    options = suite.parser(__doc__).parse_args()
    cases = [(case, case) for case in (f"{spelling}.{sizes}" for spelling in SPELLINGS for sizes in SIZES) if options.only in case]
    return suite.run_all(cases, lambda case: check(case, options.build), options.jobs)


sys.exit(main())
