# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""com.microsoft.GroupQueryAttention with caches as tensors, against onnxruntime.

Caches longer than what they hold, sequences of different lengths in one batch, windows, and caches of the window's size.
"""

import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import suite

HEADS, KEY_HEADS, SIZE, POSITIONS = 4, 2, 16, 64
TOLERANCE = 1e-5
WINDOWED = {"local_window_size": 8, "sliding_window_cache": 1}
# Fresh tokens, rows of the cache, keys of each sequence after the call, attributes.
CASES = {
    "one-length": (1, 9, [10, 10], {}),
    "lengths": (1, 9, [10, 6], {}),
    "long-cache": (1, 32, [10, 6], {}),
    "several-tokens": (4, 32, [13], {}),
    "first-tokens": (5, 0, [5, 5], {}),
    "window": (1, 32, [20, 6], {"local_window_size": 8}),
    "every-key": (1, 9, [10, 6], {"causal": 0}),
    "windowed-cache": (1, 8, [30, 6], WINDOWED),
    "windowed-cache-with-room": (1, 11, [29, 12], WINDOWED),
    "windowed-cache-several-tokens": (5, 11, [29], WINDOWED),
    "windowed-cache-many-tokens": (20, 11, [29], WINDOWED),
    "windowed-cache-first-tokens": (20, 8, [20], WINDOWED),
}


def make_model(attributes):
    rng = np.random.default_rng(1)
    angles = rng.standard_normal((POSITIONS, SIZE // 2)).astype(np.float32)
    tables = {"cos": np.cos(angles), "sin": np.sin(angles)}
    inputs = {"query": ["b", "s", HEADS * SIZE], "key": ["b", "s", KEY_HEADS * SIZE], "value": ["b", "s", KEY_HEADS * SIZE],
              "past_key": ["b", KEY_HEADS, "p", SIZE], "past_value": ["b", KEY_HEADS, "p", SIZE]}
    counts = {"last": ["b"], "total": []}
    outputs = {"result": ["b", "s", HEADS * SIZE], "present_key": ["b", KEY_HEADS, "t", SIZE],
               "present_value": ["b", KEY_HEADS, "t", SIZE]}
    node = helper.make_node("GroupQueryAttention", [*inputs, *counts, *tables], list(outputs), domain="com.microsoft",
                            num_heads=HEADS, kv_num_heads=KEY_HEADS, do_rotary=1, **attributes)

    def infos(shapes, kind):
        return [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()]

    graph = helper.make_graph([node], "attention", infos(inputs, TensorProto.FLOAT) + infos(counts, TensorProto.INT32),
                              infos(outputs, TensorProto.FLOAT),
                              [onnx.numpy_helper.from_array(table, name) for name, table in tables.items()])
    return helper.make_model(graph, ir_version=9,
                             opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)])


def make_inputs(tokens, rows, lengths):
    rng = np.random.default_rng(0)
    batch = len(lengths)
    shapes = {"query": (batch, tokens, HEADS * SIZE), "key": (batch, tokens, KEY_HEADS * SIZE),
              "value": (batch, tokens, KEY_HEADS * SIZE), "past_key": (batch, KEY_HEADS, rows, SIZE),
              "past_value": (batch, KEY_HEADS, rows, SIZE)}
    arrays = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return arrays | {"last": np.array(lengths, np.int32) - 1, "total": np.array(max(lengths), np.int32)}


def clear_unspecified(outputs, lengths, attributes):
    """Rows beyond those that a cache holds are as onnxruntime's memory was."""
    for name in ("present_key", "present_value"):
        for cache, length in zip(outputs[name], lengths):
            if "sliding_window_cache" in attributes:
                length = suite.rows_held(length, cache.shape[1], attributes["local_window_size"])
            cache[:, length:] = 0


def check(case, tools):
    tokens, rows, lengths, attributes = case
    model, inputs = make_model(attributes), make_inputs(tokens, rows, lengths)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs)))
    clear_unspecified(expected, lengths, attributes)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        onnx.save(model, folder / "model.onnx")
        np.savez(folder / "in.npz", **inputs)
        suite.run_tool([tools / "hone", "compile", folder / "model.onnx", "-o", folder / "model.hone"])
        suite.run_tool([tools / "hone-run", "run", folder / "model.hone", "--inputs", folder / "in.npz",
                        "--outputs", folder / "out.npz"])
        outputs = dict(np.load(folder / "out.npz"))
    clear_unspecified(outputs, lengths, attributes)
    for name, array in expected.items():
        if outputs[name].shape != array.shape:
            raise suite.Failure(f"expected {name} to have shape {array.shape}, but got {outputs[name].shape}")
        if (worst := np.abs(outputs[name] - array).max()) > TOLERANCE:
            raise suite.Failure(f"{name} differs by {worst:.3g}")


def main():
    options = suite.parser(__doc__).parse_args()
    cases = [(name, case) for name, case in CASES.items() if options.only in name]
    return suite.run_all(cases, lambda case: check(case, options.build / "bin"), options.jobs)


sys.exit(main())
