# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that inputs decide, by their values or by their own sizes: a call whose tensors cannot be is refused in one sentence that
names the node and its sizes; one whose tensors can be gives what onnxruntime gives.

Each row of CASES is a model of a few nodes with the inputs of several calls, and what is expected of each: the end of the
message, or SAME for onnxruntime's results.
"""

import functools
import pathlib
import resource
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import suite

OPSET = 21
TIMEOUT_SECONDS = 120
MOST_BYTES = 8 << 30  # of address space, so that what should be refused ends here, not the machine
SAME = None
F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
BIG, HUGE = 2**31, 2**62
MANY = "too many elements"


def node(kind, inputs, outputs="y", **attributes):
    """A node by the names of its inputs, of which "-" is none."""
    return helper.make_node(kind, ["" if name == "-" else name for name in inputs.split()], outputs.split(), name="n_" + kind, **attributes)


def model(nodes, inputs, outputs, constants=None):
    """`inputs` and `outputs` are {name: (type, shape)}; `constants` {name: array}."""
    values = [[helper.make_tensor_value_info(name, *spec) for name, spec in group.items()] for group in (inputs, outputs)]
    initial = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", *values, initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def one(kind, inputs, rank, constants=None, element=F, before=(), after=(), **attributes):
    """A model of one node, between others perhaps, whose output is y."""
    names = " ".join([*inputs, *(constants or {})])
    nodes = [*before, node(kind, names, "t" if after else "y", **attributes), *after]
    return model(nodes, inputs, {"y": (element, [None] * rank)}, constants)


def ints(*values):
    return np.array(values, np.int64)


def number(value):
    return np.array(value, np.float32)


def floats(*shape):
    return (np.arange(int(np.prod(shape)), dtype=np.float32) % 7).reshape(shape)


def scan(count):
    """A Loop that collects a number each trip, whose sums are then sliced."""
    body = helper.make_graph([helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Cast", ["i"], ["s"], to=F)], "b",
                             [helper.make_tensor_value_info("i", I, []), helper.make_tensor_value_info("c", B, [])],
                             [helper.make_tensor_value_info("d", B, []), helper.make_tensor_value_info("s", F, [])])
    nodes = [node("Loop", "n true", "l", body=body), node("CumSum", "l zero", "t"), SLICE]
    return model(nodes, {"n": (I, [])}, {"y": (F, [None])}, {"true": np.array(True), "zero": np.array(0), **FIRST})


def doubling():
    """A Loop that doubles its value each trip, and the product of that with itself."""
    body = helper.make_graph([helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Concat", ["v", "v"], ["w"], axis=1)], "b",
                             [helper.make_tensor_value_info("i", I, []), helper.make_tensor_value_info("c", B, []),
                              helper.make_tensor_value_info("v", F, [None, None])],
                             [helper.make_tensor_value_info("d", B, []), helper.make_tensor_value_info("w", F, [None, None])])
    nodes = [node("Loop", "n true x", "l", body=body), node("Transpose", "l", "u"), node("MatMul", "u l", "t"), node("Slice", "t from to", "y")]
    return model(nodes, {"n": (I, []), "x": (F, [None, None])}, {"y": (F, [None, None])},
                 {"true": np.array(True), "from": ints(0, 0), "to": ints(4, 4)})


FIRST = {"from": ints(0), "to": ints(4)}
SLICE = node("Slice", "t from to", "y")
SUMS = [node("CumSum", "t zero", "u"), node("Slice", "u from to", "y")]
ZERO = {"zero": np.array(0)}
X1, X2, X4 = {"x": (F, [None])}, {"x": (F, [None, None])}, {"x": (F, [None] * 4)}


def sliced(kind, inputs, **attributes):
    return model([node(kind, " ".join(inputs), "t", **attributes), *SUMS], inputs, {"y": (F, [None, None])}, {**ZERO, **FIRST})


def shaped(kind, count, **attributes):
    return sliced(kind, {**X1, "s": (I, [count])}, **attributes)


def window(kind, inputs, constants=None, **attributes):
    return one(kind, inputs, 2, constants, after=[node("Flatten", "t", "y")], **attributes)


def too_small(size, kernel):
    return f"expected the padded input of size {size} to be at least as large as the kernel of size {kernel}"


def image(*shape):
    return {"x": floats(*shape)}


KERNEL = {"w": floats(3, 1, 5, 5)}
CASES = {
    "Expand": (shaped("Expand", 2), [
        ({"x": floats(1), "s": ints(HUGE, 2)}, f"n_Expand: cannot allocate a tensor of {HUGE}x2xf32: {MANY}"),
        ({"x": floats(1), "s": ints(-3, 2)}, "n_Expand: expected sizes of input 1 not to be negative, but got -3"),
        ({"x": floats(3), "s": ints(5, 3)}, SAME), ({"x": floats(3), "s": ints(5, 1)}, SAME),
        ({"x": floats(3), "s": ints(5, 7)}, "n_Expand: expected a size of 3 to expand to 1 or 3, but got 7"),
        ({"x": floats(3), "s": ints(2, 0)}, "n_Expand: expected a size of 3 to expand to 1 or 3, but got 0")]),
    "Expand of fixed sizes": (one("Expand", {"x": (F, [2, 3]), "s": (I, [2])}, 2), [
        ({"x": floats(2, 3), "s": ints(2, 1)}, SAME),
        ({"x": floats(2, 3), "s": ints(5, 7)}, "n_Expand: expected a size of 2 to expand to 1 or 2, but got 5"),
        ({"x": floats(2, 3), "s": ints(0, 3)}, "n_Expand: expected a size of 2 to expand to 1 or 2, but got 0")]),
    "ConstantOfShape": (sliced("ConstantOfShape", {"s": (I, [2])}), [
        ({"s": ints(HUGE, 4)}, f"n_ConstantOfShape: cannot allocate a tensor of {HUGE}x4xf32: {MANY}"),
        ({"s": ints(-1, -4)}, "expected sizes of input 0 not to be negative, but got -1"), ({"s": ints(2, 0)}, SAME),
        ({"s": ints(3, 4)}, SAME)]),
    "Tile": (sliced("Tile", {**X2, "s": (I, [2])}), [
        ({"x": floats(2, 2), "s": ints(2**30, 2**30)}, f"n_Tile: cannot allocate a tensor of {2**30}x2x{2**30}x2xf32: {MANY}"),
        ({"x": floats(2, 2), "s": ints(BIG, 2**29)}, MANY), ({"x": floats(0, 2), "s": ints(BIG, HUGE)}, MANY),
        ({"x": floats(2, 2), "s": ints(2, 3)}, SAME)]),
    "Tile, Sin": (model([node("Tile", "x s", "u"), node("Sin", "u", "t"), node("Slice", "t from to")], {**X2, "s": (I, [2])},
                        {"y": (F, [None, None])}, FIRST), [({"x": floats(2, 2), "s": ints(BIG, 2**29)}, MANY)]),
    "Reshape": (sliced("Reshape", {**X1, "s": (I, [2])}), [
        ({"x": floats(4), "s": ints(4, HUGE + 1)}, f"n_Reshape: cannot allocate a tensor of 4x{HUGE + 1}xf32: {MANY}"),
        ({"x": floats(4), "s": ints(HUGE + 1, 4)}, MANY), ({"x": floats(0), "s": ints(2**32, 2**32)}, MANY),
        ({"x": floats(6), "s": ints(-2, -3)}, "n_Reshape: expected a size not to be negative, but got -2"),
        ({"x": floats(6), "s": ints(-1, -1)}, "elements as the input has"),
        ({"x": floats(6), "s": ints(4, 2)}, "n_Reshape: expected the new shape to have 6 elements as the input has, but got 8"),
        ({"x": floats(6), "s": ints(-1, 3)}, SAME), ({"x": floats(6), "s": ints(2, 3)}, SAME)]),
    "Reshape as an intermediate": (model([node("Reshape", "x s", "t"), node("ReduceSum", "t")], {**X1, "s": (I, [2])},
                                         {"y": (F, [None, None])}), [
        ({"x": floats(4), "s": ints(HUGE + 1, 4)}, MANY), ({"x": floats(6), "s": ints(-2, -3)}, "not to be negative, but got -2"),
        ({"x": floats(6), "s": ints(2, 3)}, SAME)]),
    "Loop that collects": (scan(1), [
        ({"n": np.array(trips)}, f"n_Loop: cannot allocate a tensor of {trips}xf32: {MANY}") for trips in (HUGE, HUGE + 1, 2**63 - 1)] + [
        ({"n": np.array(3)}, SAME)]),
    "Loop that doubles": (doubling(), [
        ({"n": np.array(trips), "x": floats(0, 1)}, expected) for trips, expected in ((32, MANY), (40, MANY), (3, SAME))]),
    "Range": (one("Range", {name: (I, []) for name in "abc"}, 1, element=I), [
        ({"a": np.array(0), "b": np.array(HUGE), "c": np.array(1)}, f"n_Range: cannot allocate a tensor of {HUGE}xi64: {MANY}"),
        ({"a": np.array(-2**63), "b": np.array(2**63 - 1), "c": np.array(1)},
         f"n_Range: expected {2**63 - 1} and {-2**63} to be less than 2^63 apart"),
        ({"a": np.array(5), "b": np.array(0), "c": np.array(-2**63)}, SAME),
        ({"a": np.array(0), "b": np.array(5), "c": np.array(0)}, "n_Range: expected delta not to be 0"),
        ({"a": np.array(9), "b": np.array(-5), "c": np.array(-3)}, SAME), ({"a": np.array(1), "b": np.array(8), "c": np.array(2)}, SAME)]),
    "Range of floats": (one("Range", {name: (F, []) for name in "abc"}, 1), [
        ({"a": number(a), "b": number(b), "c": number(c)}, expected) for a, b, c, expected in (
            (0, np.inf, 1, "n_Range: expected start, limit and delta to give at most"), (0, np.nan, 1, "to give at most"),
            (0, 1e30, 1, "to give at most"), (0, 5, 0, "expected delta not to be 0"), (5, 0, 0, "expected delta not to be 0"),
            (0, 5, 1.5, SAME), (5, 0, 1, SAME), (5, 0, -2, SAME))]),
    "Pad": (one("Pad", {**X1, "p": (I, [2])}, 1), [
        ({"x": floats(4), "p": ints(2**63 - 1, 2**63 - 1)}, f"n_Pad: expected the pads to be in [{-2**40}, {2**40}], but got {2**63 - 1}"),
        ({"x": floats(4), "p": ints(2**40, 2**40)}, MANY), ({"x": floats(4), "p": ints(-3, -3)}, "padded size not to be negative, but got -2"),
        ({"x": floats(4), "p": ints(1, -2)}, SAME)]),
    "Split": (model([node("Split", "x s", "a y", axis=0)], {**X1, "s": (I, [2])}, {"y": (F, [None])}), [
        ({"x": floats(4), "s": ints(2**63 - 1, 5 - 2**63)}, f"n_Split: expected the lengths of the parts to be in [0, {2**40}], but got {2**63 - 1}"),
        ({"x": floats(4), "s": ints(1, 3)}, SAME)]),
    "Slice": (one("Slice", {**X1, **{name: (I, [1]) for name in "abcd"}}, 1), [
        ({"x": floats(4), "a": ints(-1), "b": ints(-2**63), "c": ints(0), "d": ints(-2**63)}, SAME),
        ({"x": floats(4), "a": ints(0), "b": ints(2**63 - 1), "c": ints(0), "d": ints(2**63 - 1)}, SAME),
        ({"x": floats(4), "a": ints(3), "b": ints(-9), "c": ints(0), "d": ints(-2)}, SAME)]),
    "Resize by scales": (one("Resize", {**X2, "r": (F, [None]), "s": (F, [2])}, 2, mode="nearest"), [
        ({"x": floats(2, 2), "r": floats(0), "s": number(scale)}, expected) for scale, expected in (
            ((1e30, 1), f"n_Resize: expected a size of 2 times its scale to be in [0, {2**40}]"), ((np.nan, 1), "times its scale"),
            ((-1, 1), "times its scale"), ((np.inf, 1), "times its scale"), ((2**30, 2**30), MANY), ((2, 1.5), SAME))]),
    "Resize by sizes": (model([node("Resize", "x - - s", mode="nearest")], {**X2, "s": (I, [2])}, {"y": (F, [None, None])}), [
        ({"x": floats(2, 2), "s": sizes}, expected) for sizes, expected in (
            (ints(HUGE, 4), MANY), (ints(-4, -4), "not to be negative, but got -4"), (ints(4, 3), SAME))]),
    "OneHot": (one("OneHot", {"x": (I, [None]), "d": (I, []), "v": (F, [2])}, 2), [
        ({"x": ints(0, 1), "d": np.array(depth), "v": floats(2)}, expected) for depth, expected in (
            (HUGE, MANY), (-1, "the depth not to be negative, but got -1"), (3, SAME))]),
    "TopK": (model([node("TopK", "x k", "y i")], {**X2, "k": (I, [1])}, {"y": (F, [None, None])}), [
        ({"x": floats(2, 3), "k": ints(k)}, expected) for k, expected in (
            (HUGE, "n_TopK: K is larger than the axis, or negative"), (-1, "K is larger than the axis, or negative"), (2, SAME))]),
    "CenterCropPad": (one("CenterCropPad", {**X1, "s": (I, [1])}, 1), [
        ({"x": floats(4), "s": ints(size)}, expected) for size, expected in (
            (2**63 - 1, MANY), (-1, "not to be negative, but got -1"), (2, SAME), (7, SAME))]),
    "Col2Im": (one("Col2Im", {"x": (F, [None] * 3), "i": (I, [2]), "b": (I, [2])}, 4), [
        ({"x": floats(1, 4, 4), "i": ints(4, 4), "b": ints(2, 2)}, "the blocks of the input and of the image"),
        ({"x": floats(1, 4, 4), "i": ints(HUGE, 4), "b": ints(1, 4)}, ""),
        # Sizes of inputs are checked before those that are data.
        ({"x": floats(1, 4, 0), "i": ints(1, 1), "b": ints(2, 2)}, "the blocks of the input to have elements"),
        ({"x": floats(1, 4, 4), "i": ints(2, 2), "b": ints(2**32, 2**32)}, too_small(2, 2**32)),
        ({"x": floats(1, 4, 9), "i": ints(4, 4), "b": ints(2, 2)}, SAME)]),
    "MelWeightMatrix": (one("MelWeightMatrix", {"b": (I, []), "l": (I, [])}, 2, {"r": np.array(8000), "lo": number(0), "hi": number(4000)}), [
        ({"b": np.array(HUGE), "l": np.array(8)}, f"n_MelWeightMatrix: expected input 0 to be in [0, {2**40}], but got {HUGE}"),
        ({"b": np.array(-1), "l": np.array(-8)}, "but got -1"), ({"b": np.array(4), "l": np.array(16)}, SAME)]),
    "DFT": (one("DFT", {"x": (F, [None, None, 1]), "l": (I, [])}, 3), [
        ({"x": floats(1, 4, 1), "l": np.array(HUGE)}, f"but got {HUGE}"), ({"x": floats(1, 4, 1), "l": np.array(-1)}, "but got -1"),
        ({"x": floats(1, 4, 1), "l": np.array(3)}, SAME)]),
    "STFT": (one("STFT", {"x": (F, [None, None, 1]), "s": (I, []), "w": (F, [None])}, 4), [
        ({"x": floats(1, 4, 1), "s": np.array(1), "w": floats(8)}, "n_STFT: " + too_small(4, 8)),
        ({"x": floats(1, 4, 1), "s": np.array(-1), "w": floats(2)}, f"expected input 1 to be in [1, {2**40}], but got -1"),
        ({"x": floats(1, 9, 1), "s": np.array(2), "w": floats(4)}, SAME)]),
    "Conv": (window("Conv", X4, {"w": floats(2, 3, 5, 5)}), [
        (image(1, 3, 2, 2), "n_Conv: " + too_small(2, 5)), (image(1, 3, 0, 0), too_small(0, 5)), (image(1, 3, 9, 2), too_small(2, 5)),
        (image(1, 3, 6, 7), SAME)]),
    "Conv with stride": (window("Conv", X4, {"w": floats(1, 1, 5, 5)}, strides=[2, 2], pads=[1, 1, 1, 1]), [
        (image(1, 1, 0, 5), too_small(2, 5)), (image(1, 1, 3, 4), SAME)]),
    "Conv twice": (model([node("Conv", "x w", "a"), node("Relu", "a", "r"), helper.make_node("Conv", ["r", "v"], ["c"]), node("GlobalAveragePool", "c")], X4,
                         {"y": (F, [None] * 4)}, {"w": floats(1, 1, 5, 5), "v": floats(1, 1, 3, 3)}), [
        (image(1, 1, 2, 2), too_small(2, 5)), (image(1, 1, 5, 5), too_small(1, 3)), (image(1, 1, 8, 7), SAME)]),
    "ConvInteger": (model([node("ConvInteger", "x w", "t"), node("Flatten", "t")], {"x": (TensorProto.UINT8, [None] * 4)},
                          {"y": (TensorProto.INT32, [None, None])}, {"w": np.ones((1, 1, 5, 5), np.uint8)}), [
        ({"x": np.ones((1, 1, 2, 2), np.uint8)}, too_small(2, 5)), ({"x": np.ones((1, 1, 5, 6), np.uint8)}, SAME)]),
    "ConvTranspose": (window("ConvTranspose", X4, {"w": floats(1, 1, 3, 3)}, strides=[2, 2], pads=[2, 2, 2, 2]), [
        (image(1, 1, 1, 1), "n_ConvTranspose: expected a size not to be negative"), (image(1, 1, 0, 0), "n_ConvTranspose: expected a size not to be negative"), (image(1, 1, 3, 4), SAME)]),
    "MaxPool": (window("MaxPool", X4, kernel_shape=[5, 5]), [
        (image(1, 64, 2, 2), "n_MaxPool: " + too_small(2, 5)), (image(1, 2, 5, 6), SAME)]),
    "MaxPool with stride": (window("MaxPool", X4, kernel_shape=[5, 5], strides=[2, 2]), [
        (image(1, 1, 3, 6), SAME), (image(1, 1, 2, 6), too_small(2, 5))]),
    "MaxPool with dilation and ceil_mode": (window("MaxPool", X4, kernel_shape=[3, 3], dilations=[2, 2], strides=[2, 2], ceil_mode=1), [
        (image(1, 1, 1, 1), too_small(1, 5)), (image(1, 2, 6, 9), SAME)]),
    "AveragePool": (window("AveragePool", X4, kernel_shape=[5, 5]), [(image(1, 64, 2, 2), too_small(2, 5)), (image(1, 2, 5, 6), SAME)]),
    "LpPool": (window("LpPool", X4, kernel_shape=[5, 5]), [(image(1, 64, 2, 2), too_small(2, 5)), (image(1, 2, 5, 6), SAME)]),
    "MaxUnpool": (window("MaxUnpool", {**X4, "i": (I, [None] * 4)}, kernel_shape=[2, 2], pads=[2, 2, 2, 2]), [
        ({"x": floats(1, 1, 1, 1), "i": np.zeros((1, 1, 1, 1), np.int64)}, "not to be negative, but got -2")]),
    "Where": (one("Where", {"x": (B, [None]), "a": (F, []), "b": (F, [])}, 1), [
        ({"x": np.array([0, 1, 2, 4, 255], np.uint8).view(bool), "a": number(1), "b": number(0)}, "sum 4")]),
    "Cast of bools": (model([node("Cast", "x", "t", to=I), node("ReduceSum", "t")], {"x": (B, [None])}, {"y": (I, [None])}), [
        ({"x": np.array([0, 1, 2, 4, 254, 255] * 11, np.uint8).view(bool)}, "sum 55")]),
    "inputs": (one("ReduceSum", X2, 2), [
        ({"x": np.zeros((0, 2**41), np.float32)}, "unsupported shape [0, 2199023255552] of input 'x'; supported: up to 1099511627776 elements"),
        ({"x": floats(2, 3)}, SAME)]),
}


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


def call(command):
    try:
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace",
                                timeout=TIMEOUT_SECONDS, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        raise suite.Failure(f"did not end in {TIMEOUT_SECONDS} s") from None
    if result.returncode not in (0, 1):
        raise suite.Failure(f"ended with {result.returncode}: {suite.one_line(result.stderr)}")
    return result.returncode, result.stderr


def check_same(graph, inputs, got):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
        wanted = session.run(None, inputs)
    except Exception as error:  # noqa: BLE001: onnxruntime has no class of its own for all it raises
        raise suite.Failure(f"got a result, but onnxruntime says: {suite.one_line(str(error))}") from None
    for name, want in zip([output.name for output in session.get_outputs()], wanted):
        if got[name].shape != want.shape or not np.allclose(got[name], want, rtol=1e-4, atol=1e-4, equal_nan=True):
            raise suite.Failure(f"expected {name} to be {want.shape} {want.ravel()[:6]}, but got {got[name].shape} {got[name].ravel()[:6]}")


def check_call(tools, folder, graph, inputs, expected):
    np.savez(folder / "in.npz", **inputs)
    code, text = call([tools / "hone-run", "run", folder / "m.hone", "--inputs", folder / "in.npz", "--outputs", folder / "out.npz"])
    if code:
        if expected is SAME or expected not in text:
            raise suite.Failure(f"expected {expected or 'a result'}, but got: {suite.one_line(text)}")
        return
    with np.load(folder / "out.npz") as got:
        if expected is SAME:
            check_same(graph, inputs, got)
        elif expected.startswith("sum "):
            if got["y"].sum() != int(expected[4:]):
                raise suite.Failure(f"expected {expected}, but got {got['y'].sum()}")
        else:
            raise suite.Failure(f"expected {expected}, but got a result of {got['y'].shape}")


def check(tools, graph, calls):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        onnx.save(graph, folder / "m.onnx")
        code, text = call([tools / "hone", "compile", folder / "m.onnx", "-o", folder / "m.hone", "--quiet"])
        if code:
            raise suite.Failure(f"compile: {suite.one_line(text)}")
        reasons = []
        for inputs, expected in calls:
            try:
                check_call(tools, folder, graph, inputs, expected)
            except suite.Failure as failure:
                shapes = ", ".join(f"{key} {value.tolist() if value.size < 8 else value.shape}" for key, value in inputs.items())
                reasons.append(f"{shapes}: {failure}")
        if reasons:
            raise suite.Failure("\n  ".join(["", *reasons]))


def main():
    options = suite.parser(__doc__).parse_args()
    cases = [(name, functools.partial(check, options.build.resolve() / "bin", *row)) for name, row in CASES.items() if options.only in name]
    return suite.run_all(cases, lambda case: case(), options.jobs)


if __name__ == "__main__":
    sys.exit(main())
