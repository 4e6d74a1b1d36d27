# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Models of one operator whose inputs have sizes and values that only a call knows.

"""Models come from ONNX's own node tests, a few for each operator, so that attributes are valid; what those leave out is made here."""

import copy
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import onnx_cases

INTEGERS = (TensorProto.INT64, TensorProto.INT32, TensorProto.INT16, TensorProto.INT8, TensorProto.UINT8, TensorProto.BOOL)
# What of a model may be known when it is compiled, from nothing on. An operator that asks for more takes the next.
NOTHING, LENGTHS, VECTORS, SIZES = range(4)


@dataclass
class Model:
    name: str
    operator: str
    proto: onnx.ModelProto
    inputs: list  # of onnx_cases.Tensor


def find_node(graph, operator):
    """The node that a model is about."""
    nodes = [node for node in graph.node if node.op_type == operator]
    return nodes[-1] if nodes else graph.node[-1]


def list_traits(case):
    """What a test tries of its operator: inputs, floats or not, and attributes, with the words that those of text have."""
    node = find_node(case.model.graph, case.operator)
    kinds = {tensor.name: tensor.values.dtype.kind in "biu" for tensor in case.inputs}
    traits = {("input", place, kinds.get(name)) for place, name in enumerate(node.input) if name}
    return traits | {("attribute", attribute.name, attribute.s) for attribute in node.attribute}


def choose(cases):
    """Of each operator's tests those that try what none before them does."""
    seen, chosen = {}, []
    for case in cases:
        known = seen.setdefault(case.operator, set())
        if "_expanded" in case.name or list_traits(case) <= known:
            continue
        known |= list_traits(case)
        chosen.append(case)
    return chosen


def forget_sizes(value, keep_lengths):
    shape = value.type.tensor_type.shape
    if keep_lengths and len(shape.dim) == 1 and value.type.tensor_type.elem_type in INTEGERS:
        return
    for dim in shape.dim:
        dim.Clear()


def loosen(model, known):
    """A copy of a model of which only `known` is known."""
    proto = copy.deepcopy(model.proto)
    graph = proto.graph
    for node in graph.node:
        node.name = node.name or node.op_type  # so that messages have the same name in every run
    del graph.value_info[:]
    if known == SIZES:
        return Model(model.name, model.operator, proto, model.inputs)
    for value in graph.output:
        forget_sizes(value, keep_lengths=False)
    for value in graph.input:
        forget_sizes(value, keep_lengths=known >= LENGTHS)
    fixed = [] if known < VECTORS else [t for t in model.inputs if t.values.ndim <= 1 and t.element in INTEGERS]
    for tensor in fixed:
        graph.initializer.append(helper.make_tensor(tensor.name, tensor.element, tensor.values.shape, tensor.values.flatten()))
        graph.input.remove(next(value for value in graph.input if value.name == tensor.name))
    return Model(model.name, model.operator, proto, [t for t in model.inputs if t not in fixed])


# ------------------------------------------------------------------------------------------------------------------------------
# Operators that ONNX has no test of
# ------------------------------------------------------------------------------------------------------------------------------

def make_model(operator, inputs, outputs=1, domain="com.microsoft", opset=18, constants=(), result=None, ranks=None, **attributes):
    """A model of one node; `inputs` has an array or None for each, of which those named in `constants` are initializers. `result` is the
    element type of the results, and `ranks` how many dimensions each has, if not as many as the first input."""
    names = ["" if array is None else f"input_{place}" for place, array in enumerate(inputs)]
    node = helper.make_node(operator, names, [f"output_{i}" for i in range(outputs)], name=operator, domain=domain, **attributes)
    tensors = [onnx_cases.Tensor(name, helper.np_dtype_to_tensor_dtype(array.dtype), array)
               for name, array in zip(names, inputs) if name]
    initializers = [numpy_helper.from_array(t.values, t.name) for t in tensors if int(t.name[6:]) in constants]
    tensors = [t for t in tensors if int(t.name[6:]) not in constants]
    infos = [helper.make_tensor_value_info(t.name, t.element, t.values.shape) for t in tensors]
    # Results have the type of the first input of floats; shape inference knows those of other domains no better.
    kind = result or next(t.element for t in tensors if t.values.dtype.kind == "f")
    ranks = ranks or [tensors[0].values.ndim] * outputs
    results = [helper.make_tensor_value_info(name, kind, [None] * rank) for name, rank in zip(node.output, ranks)]
    graph = helper.make_graph([node], operator, infos, results, initializers)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return Model(f"made_{operator}", operator, helper.make_model(graph, ir_version=9, opset_imports=opsets), tensors)


def make_models():
    rng = np.random.default_rng(0)

    def real(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def whole(*values):
        return np.array(values, np.int64)

    def byte(*shape):
        return rng.integers(0, 256, shape).astype(np.uint8)

    scale, point, bytes_ = np.array(0.05, np.float32), np.array(120, np.uint8), TensorProto.UINT8
    codes = rng.integers(0, 256, (8, 2, 8)).astype(np.uint8)  # N, blocks, bytes of 16 elements of 4 bits
    zero = np.full((8, 1), 136, np.uint8)
    return [
        make_model("BatchNormalization", [real(2, 3, 4), real(3), real(3), real(3), np.abs(real(3))], domain=""),
        make_model("GlobalLpPool", [real(2, 3, 4, 5)], domain=""),
        make_model("Scatter", [real(4, 3), whole([0, 1, 3], [2, 2, 0]), real(2, 3)], domain="", opset=10),
        make_model("BiasGelu", [real(2, 4), real(4)]),
        make_model("CausalConvWithState", [real(2, 3, 5), real(3, 1, 4), real(3), real(2, 3, 3)], outputs=2, constants=(1,),
                   activation="silu"),
        make_model("DecoderMaskedMultiHeadAttention", [real(2, 1, 8), real(2, 1, 8), real(2, 1, 8), np.array([[1, 1, 1, 1, 1], [0, 1, 1, 1, 1]], np.int32),
                                                       real(1, 2, 1, 5), real(2, 2, 8, 4), real(2, 2, 8, 4), np.array([4], np.int32)],
                   outputs=3, ranks=[3, 4, 4], num_heads=2, past_present_share_buffer=1),
        make_model("DynamicQuantizeMatMul", [real(2, 6), byte(6, 7), np.abs(real(7)), byte(7), real(7)]),
        make_model("EmbedLayerNormalization", [np.array([[1, 2, 3]], np.int32), np.array([[0, 1, 1]], np.int32), real(9, 8), real(6, 8),
                                               real(2, 8), real(8), real(8), np.array([[1, 1, 0]], np.int32)], ranks=[3]),
        make_model("FusedConv", [real(1, 2, 6, 6), real(3, 2, 3, 3), real(3), real(1, 3, 4, 4)], activation="Relu"),
        make_model("FusedGemm", [real(2, 6), real(6, 7), real(7)], activation="Relu"),
        make_model("GroupNorm", [real(2, 3, 5, 6), real(6), real(6)], constants=(1,), groups=3, activation=1),
        make_model("SkipGroupNorm", [real(2, 3, 5, 6), real(6), real(6), real(2, 1, 1, 6), real(6)], constants=(1,), outputs=2, ranks=[4, 4],
                   groups=3, activation=0),
        make_model("NhwcFusedConv", [real(1, 6, 6, 2), real(3, 2, 3, 3), real(3), real(1, 4, 4, 3)], activation="Relu"),
        make_model("NhwcMaxPool", [byte(2, 6, 6, 3)], result=bytes_, kernel_shape=[3, 2], strides=[2, 1]),
        make_model("MatMulIntegerToFloat", [byte(2, 6), byte(6, 7), scale, np.abs(real(7)), point, byte(7), real(7)]),
        make_model("QAttention", [byte(2, 5, 8), byte(8, 24), real(24), scale, scale, np.array([5, 3], np.int32), point, point],
                   constants=(1,), num_heads=2),
        make_model("QGemm", [byte(2, 6), scale, point, byte(6, 7), scale, point, np.arange(7, dtype=np.int32), scale, point],
                   result=bytes_),
        make_model("QLinearAdd", [byte(2, 4), scale, point, byte(2, 1), scale, point, scale, point], result=bytes_),
        make_model("QLinearConcat", [scale, point, byte(2, 3), scale, point, byte(2, 4), scale, point], result=bytes_, ranks=[2], axis=1),
        make_model("QLinearSigmoid", [byte(2, 4), scale, point, scale, point], result=bytes_),
        make_model("FastGelu", [real(2, 4), real(4)]),
        make_model("Gelu", [real(2, 4)]),
        make_model("QuickGelu", [real(2, 4)]),
        make_model("FusedMatMul", [real(2, 3, 4), real(2, 5, 4)], transB=1, alpha=0.5),
        make_model("GatherBlockQuantized", [rng.integers(0, 256, (8, 16)).astype(np.uint8), whole([0, 7], [3, -1]), real(8, 2), zero],
                   bits=4, block_size=16, gather_axis=0, quantize_axis=1, constants=(0,), ranks=[3]),
        make_model("MatMulNBits", [real(2, 3, 32), codes, real(16), zero.flatten()], K=32, N=8, bits=4, block_size=16),
        make_model("MoE", [real(4, 8), real(4, 3), real(3, 16, 8), None, real(3, 8, 16)], k=2, activation_type="relu",
                   constants=(2, 4)),
        make_model("MultiHeadAttention", [real(2, 5, 8), real(2, 6, 8), real(2, 6, 8), real(24), None, real(2, 2, 5, 6)], num_heads=2),
        make_model("GroupQueryAttention", [real(2, 1, 32), real(2, 1, 16), real(2, 1, 16), real(2, 2, 9, 8), real(2, 2, 9, 8),
                                           np.array([9, 5], np.int32), np.array(10, np.int32), real(64, 4), real(64, 4)],
                   outputs=3, ranks=[3, 4, 4], num_heads=4, kv_num_heads=2, do_rotary=1),
        make_model("RotaryEmbedding", [real(2, 5, 8), whole([0, 1, 2, 3, 4], [3, 4, 5, 6, 7]), real(16, 4), real(16, 4)]),
        make_model("SimplifiedLayerNormalization", [real(2, 4), real(4)], domain=""),
        make_model("SkipLayerNormalization", [real(2, 3, 4), real(2, 3, 4), real(4), real(4), real(4)]),
        make_model("SkipSimplifiedLayerNormalization", [real(2, 3, 4), real(2, 3, 4), real(4), real(4)]),
    ]


def collect():
    """The models of all operators, by operator."""
    cases, _ = onnx_cases.collect()
    models = [Model(case.name, case.operator, case.model, case.inputs) for case in choose(cases)]
    return sorted(models + make_models(), key=lambda model: (model.operator, model.name))


# ------------------------------------------------------------------------------------------------------------------------------
# Inputs
# ------------------------------------------------------------------------------------------------------------------------------

INTEGER_EXTREMES = (-1, 0, 2**31, 2**62, np.iinfo(np.int64).min, np.iinfo(np.int64).max, 10**9, -(10**9))
FLOAT_EXTREMES = (-1.0, 0.0, 2.0**31, 1e9, -1e9, np.nan, np.inf, -np.inf)
LONGER = 1000  # so far that memory after a shorter tensor is another's
MOST_BYTES = 4 << 20


def list_extremes(array):
    """Values that an element may have, by name."""
    if array.dtype.kind == "b":
        return {"true": True, "false": False, "byte 255": np.frombuffer(b"\xff", np.bool_)[0]}
    if array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        fitting = {min(max(value, info.min), info.max) for value in INTEGER_EXTREMES}
        return {str(value): value for value in sorted(fitting)}
    return {str(value): value for value in FLOAT_EXTREMES}


def change_values(array):
    """(what, array) with all elements, and with the last alone, of each extreme value."""
    for name, value in list_extremes(array).items():
        with np.errstate(over="ignore", invalid="ignore"):
            yield f"all {name}", np.full_like(array, value)
            if array.size > 1:
                changed = array.copy()
                changed.reshape(-1)[-1] = value
                yield f"last {name}", changed


def resize(array, axis, size):
    return np.take(array, np.arange(size) % max(array.shape[axis], 1), axis) if array.shape[axis] else np.zeros(
        array.shape[:axis] + (size,) + array.shape[axis + 1:], array.dtype)


def change_sizes(array):
    """(what, array) with other sizes: one dimension shorter, longer, empty and much longer, and all empty."""
    for axis, size in enumerate(array.shape):
        for other in sorted({0, 1, max(size - 1, 0), size + 1, 2 * size, LONGER * max(size, 1)} - {size}):
            if other <= 2 * size + 1 or array.nbytes * LONGER <= MOST_BYTES:
                yield f"size {axis} {other}", resize(array, axis, other)
    if array.ndim > 1:
        yield "empty", np.zeros((0,) * array.ndim, array.dtype)


def list_changes(model):
    """(name, input, array as .npz files hold it) of every case but the base."""
    for tensor in model.inputs:
        carrier = np.asarray(onnx_cases.to_carrier(tensor.values, tensor.element))
        # Narrow floats have no extreme value that numpy can say; those that they have are all their bytes.
        for what, array in [*change_values(carrier), *change_sizes(carrier)]:
            yield f"{tensor.name}: {what}", tensor.name, array
