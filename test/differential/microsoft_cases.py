# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of one node of com.microsoft, in the forms that onnxruntime's tools write and those that its documentation allows."""

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WORDS = 9


@dataclass
class Case:
    operator: str
    model: onnx.ModelProto
    inputs: dict
    reference: onnx.ModelProto = None  # what onnxruntime runs in its place: nodes of ONNX that mean the same


def sizes_of(array, has_widths):
    sizes = [None] * array.ndim
    if isinstance(has_widths, tuple):
        for dim in has_widths:
            sizes[dim] = array.shape[dim]
    elif has_widths and array.dtype.kind == "f":
        sizes[-1] = array.shape[-1]
        if array.ndim == 4:
            sizes[1] = array.shape[1]
    return sizes


class Cases:
    """Collects cases; tensors are random, and the same in every run."""

    def __init__(self):
        self.cases, self.rng = {}, np.random.default_rng(0)

    def real(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def code(self, *shape, kind=np.uint8):
        info = np.iinfo(kind)
        return self.rng.integers(info.min, info.max + 1, shape).astype(kind)

    def weights(self, *shape, kind):
        """Signed ones have 7 bits, as those of `reduce_range`: without VNNI onnxruntime adds their products with unsigned bytes in pairs of
        16 bits, which saturate."""
        codes = self.code(*shape, kind=kind)
        return codes >> 1 if kind == np.int8 else codes

    def add(self, name, operator, inputs, constants=(), outputs=1, results=(TensorProto.FLOAT,), has_widths=False, **attributes):
        """`inputs` has an array or None for each; those numbered in `constants` are initializers. Sizes are known at a call only; with
        `has_widths` except heads and what they are wide, or those of the dimensions that it names."""
        inputs = [None if array is None else np.asarray(array) for array in inputs]
        names = ["" if array is None else f"in{place}" for place, array in enumerate(inputs)]
        node = helper.make_node(operator, names, [f"out{i}" for i in range(outputs)], name=operator, domain="com.microsoft", **attributes)
        arrays = {name: array for name, array in zip(names, inputs) if name}
        fixed = {f"in{place}" for place in constants}
        infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), sizes_of(array, has_widths))
                 for name, array in arrays.items() if name not in fixed]
        kinds = [results[min(i, len(results) - 1)] for i in range(outputs)]
        graph = helper.make_graph([node], operator, infos, [helper.make_tensor_value_info(f"out{i}", kind, None) for i, kind in enumerate(kinds)],
                                  [numpy_helper.from_array(arrays[name], name) for name in sorted(fixed)])
        opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, ir_version=9, opset_imports=opsets)
        self.last = self.cases[f"{operator}.{name}"] = Case(operator, model, {k: v for k, v in arrays.items() if k not in fixed})

    def compare_with(self, nodes):
        """Gives the last case `nodes` of ONNX, from the names of its inputs to those of its outputs, to be compared with."""
        graph = onnx.GraphProto()
        graph.CopyFrom(self.last.model.graph)
        del graph.node[:]
        graph.node.extend(nodes)
        self.last.reference = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)])


SCALE, FINE = np.array(0.05, np.float32), np.array(0.01, np.float32)


def add_attention(cases):
    x, w, bias = cases.real(2, 5, 8), cases.real(8, 24), cases.real(24)
    lengths, flags = np.array([5, 3], np.int32), np.array([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]], np.int32)
    square = np.tril(np.ones((2, 5, 5), np.int32))
    past = cases.real(2, 2, 2, 3, 4)
    masks = {"plain": None, "lengths": lengths, "flags": flags, "square": square}
    for name, mask in masks.items():
        for causal in (0, 1):
            cases.add(f"{name}{'-causal' * causal}", "Attention", [x, w, bias, mask], (1, 2), num_heads=2, unidirectional=causal)
    long = np.array([[1] * 8, [0] * 3 + [1] * 5], np.int32)
    for causal in (0, 1):
        cases.add(f"past{'-causal' * causal}", "Attention", [x, w, bias, long, past], (1, 2), 2, num_heads=2, unidirectional=causal)
    # onnxruntime has masks of all positions there may be for other devices alone: on the CPU, the part of them that is read.
    rows = cases.code(2, 1, 9, 9).astype(np.int32) % 2
    rows[:, :, :, 0] = 1
    for held in (0, 3):
        inputs = [x, w, bias, rows, past if held else None]
        cases.add(f"all-{held}", "Attention", inputs, (1, 2), 2 if held else 1, num_heads=2)
        read = helper.make_node("Constant", [], ["read"], value=numpy_helper.from_array(rows[:, 0, held:held + 5, :held + 5].copy()))
        names = ["in0", "in1", "in2", "read", *["in4"] * bool(held)]
        cases.compare_with([read, helper.make_node("Attention", names, ["out0", "out1"][:1 + bool(held)], domain="com.microsoft", num_heads=2)])
    cases.add("past-alone", "Attention", [x, w, bias, None, past], (1, 2), 2, num_heads=2, unidirectional=1)
    cases.add("bias", "Attention", [x, w, bias, None, None, cases.real(2, 2, 5, 5)], (1, 2), num_heads=2)
    cases.add("scale", "Attention", [x, w, bias, flags], (1, 2), num_heads=2, scale=0.3, mask_filter_value=-50.0)
    cases.add("widths", "Attention", [x, cases.real(8, 32), cases.real(32)], (1, 2), num_heads=2, qkv_hidden_sizes=[8, 8, 16])
    for kind in (np.uint8, np.int8):
        codes = cases.weights(8, 24, kind=kind)
        zero = np.array(130 if kind == np.uint8 else 0, kind)
        for name, mask in masks.items():
            cases.add(f"{name}-{kind.__name__}", "QAttention", [cases.code(2, 5, 8), codes, bias, SCALE, FINE, mask, np.uint8(120), zero],
                      (1, 2), num_heads=2)
    cases.add("channels", "QAttention", [cases.code(2, 5, 8), codes, bias, SCALE, np.abs(cases.real(24)) / 50, None, np.uint8(120),
                                         np.zeros(24, np.int8)], (1, 2), num_heads=2)


def add_embeddings(cases):
    ids, segments = np.array([[1, 8, 3], [0, 2, 5]], np.int32), np.array([[0, 0, 1], [1, 1, 0]], np.int32)
    tables = [cases.real(WORDS, 8), cases.real(6, 8), cases.real(2, 8)]
    row = [cases.real(8), cases.real(8)]
    mask, positions = np.array([[1, 1, 0], [1, 1, 1]], np.int32), np.array([[2, 3, 4], [0, 1, 2]], np.int32)
    kinds = (TensorProto.FLOAT, TensorProto.INT32, TensorProto.FLOAT)
    fixed = (2, 3, 5, 6)
    cases.add("segments", "EmbedLayerNormalization", [ids, segments, *tables, *row, mask], (*fixed, 4), 2, kinds)
    cases.add("words", "EmbedLayerNormalization", [ids, None, *tables[:2], None, *row], fixed, 2, kinds)
    cases.add("positions", "EmbedLayerNormalization", [ids, segments, *tables, *row, mask, positions], (*fixed, 4), 3, kinds,
              epsilon=1e-5)
    codes = [cases.code(WORDS, 8), cases.code(6, 8), cases.code(2, 8), cases.code(8), cases.code(8)]
    scales, zeros = [FINE] * 5, [np.array(zero, np.uint8) for zero in (120, 130, 110, 0, 128)]
    cases.add("segments", "QEmbedLayerNormalization", [ids, segments, *codes, mask, *scales, *zeros], (*fixed, 4), 2, kinds)


def add_products(cases):
    for kind in (np.uint8, np.int8):
        name, code = kind.__name__, cases.weights(6, 7, kind=kind)
        zero, channels = np.array(3, kind), cases.code(7, kind=kind)
        scales = np.abs(cases.real(7)) / 40
        a, fixed = cases.real(2, 5, 6), (1,)
        cases.add(name, "DynamicQuantizeMatMul", [a, code, FINE], fixed)
        cases.add(f"{name}-channels", "DynamicQuantizeMatMul", [a, code, scales, channels, cases.real(7)], (1, 4))
        codes = cases.code(2, 5, 6)
        cases.add(name, "MatMulIntegerToFloat", [codes, code, SCALE, FINE, np.uint8(9), zero], fixed)
        cases.add(f"{name}-channels", "MatMulIntegerToFloat", [codes, code, SCALE, scales, np.uint8(9), channels, cases.real(7)], (1, 6))
        rows, sums = cases.code(5, 6), cases.rng.integers(-500, 500, 7).astype(np.int32)
        same = TensorProto.UINT8
        cases.add(name, "QGemm", [rows, SCALE, np.uint8(4), code, FINE, zero, sums, np.float32(0.4), np.uint8(7)], (3, 6), results=(same,))
        cases.add(f"{name}-float", "QGemm", [rows, SCALE, np.uint8(4), code.T.copy(), FINE, zero], (3,), transB=1, alpha=0.5)
    for name in ("", "Relu", "Tanh", "Sigmoid"):
        words = {"activation": name} if name else {}
        if name:
            cases.add(name, "FusedGemm", [cases.real(5, 6), cases.real(6, 7), cases.real(7)], (1,), alpha=0.5, **words)
        cases.add(name or "none", "FusedConv", [cases.real(1, 2, 6, 6), cases.real(3, 2, 3, 3), cases.real(3)], (1,), **words)
    cases.add("LeakyRelu", "FusedGemm", [cases.real(5, 6), cases.real(6, 7)], (1,), activation="LeakyRelu", activation_alpha=0.2)
    cases.add("sum", "FusedConv", [cases.real(1, 2, 6, 6), cases.real(3, 2, 3, 3), cases.real(3), cases.real(1, 3, 4, 4)], (1,),
              activation="Relu")
    cases.add("transposed", "TransposeMatMul", [cases.real(2, 3, 4), cases.real(2, 5, 4)], transB=1, alpha=0.5)
    cases.add("transposed", "FusedMatMul", [cases.real(2, 4, 3), cases.real(2, 4, 5)], transA=1)


def add_quantized(cases):
    for kind, result in ((np.uint8, TensorProto.UINT8), (np.int8, TensorProto.INT8)):
        name, kinds = kind.__name__, (result,)
        a, b = cases.code(2, 3, 8, kind=kind), cases.code(3, 1, kind=kind)
        zero = [np.array(value, kind) for value in (3, 100, 17)]
        for operator in ("QLinearAdd", "QLinearMul"):
            cases.add(name, operator, [a, SCALE, zero[0], b, FINE, zero[1], np.float32(0.11), zero[2]], (), results=kinds)
        parameters = [SCALE, zero[1], FINE, zero[0]]
        cases.add(name, "QLinearSigmoid", [a, *parameters], (1, 2, 3, 4), results=kinds)
        cases.add(name, "QLinearLeakyRelu", [a, *parameters], (1, 2, 3, 4), results=kinds, alpha=0.1)
        for opset in (11, 13):
            cases.add(f"{name}-{opset}", "QLinearSoftmax", [a, SCALE, zero[1], np.float32(1 / 256), np.array(np.iinfo(kind).min, kind)],
                      (1, 2, 3, 4), results=kinds, axis=-1, opset=opset)
        parts = [FINE, zero[2], a, SCALE, zero[0], a[:, :1], FINE, zero[1]]
        cases.add(name, "QLinearConcat", parts, (0, 1, 3, 4, 6, 7), results=kinds, axis=1)
        image = cases.code(1, 6, 6, 4, kind=kind)
        for last in (0, 1):
            cases.add(f"{name}-{last}", "QLinearGlobalAveragePool", [image, SCALE, zero[1], FINE, zero[0]], (1, 2, 3, 4), results=kinds,
                      channels_last=last)
        cases.add(name, "QLinearAveragePool", [cases.code(1, 4, 6, 6, kind=kind), SCALE, zero[1], SCALE, zero[0]], (1, 2, 3, 4),
                  results=kinds, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        cases.add(name, "QLinearWhere", [np.array([[True], [False], [True]]), a, SCALE, zero[0], b, FINE, zero[1], SCALE, zero[2]],
                  (2, 3, 5, 6, 7, 8), results=kinds)
    filters = cases.code(3, 2, 3, 3)
    cases.add("last", "QLinearConv", [cases.code(1, 6, 6, 2), SCALE, np.uint8(9), filters, FINE, np.uint8(120), np.float32(0.3), np.uint8(99)],
              (1, 2, 3, 4, 5, 6, 7), results=(TensorProto.UINT8,), channels_last=1)
    cases.add("int16", "QuantizeLinear", [cases.real(3, 4), FINE, np.array(5, np.int16)], (1, 2), results=(TensorProto.INT16,))
    cases.add("int16", "DequantizeLinear", [cases.code(3, 4, kind=np.int16), FINE, np.array(5, np.int16)], (1, 2))


def add_sums(cases):
    x, row = cases.real(2, 3, 8), cases.real(8)
    cases.add("plain", "BiasGelu", [x, row])
    cases.add("bias", "FastGelu", [x, row])
    cases.add("plain", "Gelu", [x])
    cases.add("plain", "QuickGelu", [x], alpha=1.5)
    cases.add("biases", "SkipLayerNormalization", [x, x[::-1].copy(), row, row[::-1].copy(), cases.real(8)])
    cases.add("bias", "SkipSimplifiedLayerNormalization", [x, x[::-1].copy(), row, cases.real(8)])


def add_multi_head_attention(cases):
    """Once for the lowering, and once with the widths that raising wants to know."""
    operator, x, other, bias = "MultiHeadAttention", cases.real(2, 5, 8), cases.real(2, 7, 8), cases.real(24)
    past = [cases.real(2, 2, 3, 4), cases.real(2, 2, 3, 4)]
    masks = {"plain": None, "lengths": np.array([7, 4], np.int32), "flags": np.array([[1] * 7, [0, 0, 1, 1, 0, 1, 1]], np.int32),
             "square": (cases.code(2, 5, 7) % 3 > 0).astype(np.int32)}
    long = np.array([[1] * 8, [0, 0, 0, 1, 1, 1, 1, 1]], np.int32)
    whole, one = cases.real(2, 2, 5, 7), cases.real(1, 1, 5, 7)
    encoder, wide = [cases.real(2, 2, 6, 4), cases.real(2, 2, 6, 4)], cases.real(2, 7, 12)

    def add(name, inputs, constants=(3,), outputs=1, **words):
        for form in ("", "-widths"):
            cases.add(name + form, operator, inputs, constants, outputs, has_widths=bool(form), num_heads=2, **words)

    for name, mask in masks.items():
        add(name, [x, other, other, bias, mask])
    add("filter", [x, other, other, None, masks["flags"]], (), scale=0.3, mask_filter_value=-3.0)
    for kind, added in (("whole", whole), ("one", one)):
        add(f"added-{kind}", [x, other, other, bias, None, added])
    for causal in (0, 1):
        add(f"causal{causal}", [x, x, x, bias], unidirectional=causal)
        add(f"past{causal}", [x, x, x, bias, None, None, *past], outputs=3, unidirectional=causal)
        add(f"past-flags{causal}", [x, x, x, bias, long, None, *past], outputs=3, unidirectional=causal)
    add("values", [x, other, wide], ())
    add("encoder", [x, *encoder], ())
    add("encoder-bias", [x, *encoder, bias])


def add_linear_attention(cases):
    """Four query heads over two of keys and values, of 4 and 3 elements; keys have the norm 1 that delta rules want."""
    query, value = cases.real(2, 5, 16), cases.real(2, 5, 6)
    key = cases.real(2, 5, 2, 4)
    key = (key / np.linalg.norm(key, axis=-1, keepdims=True)).reshape(2, 5, 8)
    past = cases.real(2, 2, 4, 3)
    decays = {"head": -np.abs(cases.real(2, 5, 2)), "key": -np.abs(cases.real(2, 5, 8))}
    betas = {"head": np.abs(cases.real(2, 5, 2)) / 2, "all": np.abs(cases.real(2, 5, 1)) / 2}
    heads = dict(q_num_heads=4, kv_num_heads=2, outputs=2)
    cases.add("linear", "LinearAttention", [query, key, value], update_rule="linear", **heads)
    cases.add("scale", "LinearAttention", [query, key, value, past], update_rule="linear", scale=0.3, **heads)
    for name, decay in decays.items():
        cases.add(f"gated/{name}", "LinearAttention", [query, key, value, past, decay], update_rule="gated", **heads)
    for name, beta in betas.items():
        cases.add(f"delta/{name}", "LinearAttention", [query, key, value, past, None, beta], update_rule="delta", **heads)
        for rows, decay in decays.items():
            cases.add(f"gated_delta/{rows}-{name}", "LinearAttention", [query, key, value, past, decay, beta], **heads)
    a, b, bias, scale = cases.real(2, 5, 3), cases.real(2, 5, 3), cases.real(3), -np.abs(cases.real(3))
    cases.add("decay", "LinearAttentionGate", [a, bias, scale], (1, 2))
    cases.add("both", "LinearAttentionGate", [a, bias, scale, b], (1, 2), outputs=2)
    for upper in (0, 1):
        cases.add(f"upper{upper}", "Trilu", [cases.real(2, 4, 5), np.array(1, np.int64)], upper=upper)


def add_causal_convolutions(cases):
    x, weight, bias, past = cases.real(2, 3, 5), cases.real(3, 1, 4), cases.real(3), cases.real(2, 3, 3)
    last, past_last = x.transpose(0, 2, 1).copy(), past.transpose(0, 2, 1).copy()
    cases.add("plain", "CausalConvWithState", [x, weight], (1,), 2)
    for activation in ("silu", "swish", "none"):
        cases.add(activation, "CausalConvWithState", [x, weight, bias, past], (1, 2), 2, activation=activation)
    cases.add("short", "CausalConvWithState", [x[:, :, :1], weight, bias, past], (1,), 2)
    cases.add("one-tap", "CausalConvWithState", [x, weight[:, :, :1], bias], (1,), 2)
    cases.add("dilation", "CausalConvWithState", [x, weight, None, cases.real(2, 3, 6)], (1,), 2, dilation=2)
    cases.add("last", "CausalConvWithState", [last, weight, bias, past_last], (1,), 2, channels_last=1)
    cases.add("last-alone", "CausalConvWithState", [last, weight, bias], (1,), 2, channels_last=1, activation="silu")
    cases.add("last-axes", "CausalConvWithState", [cases.real(2, 5, 3, 2), cases.real(6, 1, 3), None, cases.real(2, 2, 3, 2)], (1,), 2,
              channels_last=1)


def add_decoders(cases):
    """One token over a cache of 8 rows that has 4, which is its own, or over the keys of an encoder."""
    operator, held = "DecoderMaskedMultiHeadAttention", np.array([4], np.int32)
    token = [cases.real(2, 1, 8) for _ in range(3)]
    cache = [cases.real(2, 2, 8, 4), cases.real(2, 2, 8, 4), held]
    mask, added = np.array([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]], np.int32), cases.real(1, 2, 1, 5)
    shared = dict(outputs=3, num_heads=2, past_present_share_buffer=1)
    cases.add("plain", operator, [*token, None, None, *cache], **shared)
    cases.add("mask", operator, [*token, mask, None, *cache], mask_filter_value=-50.0, **shared)
    cases.add("added", operator, [*token, None, added, *cache], scale=0.3, **shared)
    cases.add("bias", operator, [*token, None, None, *cache, None, None, cases.real(24)], (10,), **shared)
    cases.add("packed", operator, [np.concatenate(token, 2), None, None, None, None, *cache], **shared)
    split = helper.make_node("Split", ["in0"], ["query", "key", "value"], axis=2, num_outputs=3)
    same = helper.make_node(operator, ["query", "key", "value", "", "", "in5", "in6", "in7"], ["out0", "out1", "out2"], domain="com.microsoft",
                            num_heads=2, past_present_share_buffer=1)
    cases.compare_with([split, same])  # on the CPU, onnxruntime ends in an error with the packed form
    cases.add("empty", operator, [*token, None, None, *cache[:2], np.array([0], np.int32)], **shared)
    encoder = [cases.real(2, 2, 6, 4), cases.real(2, 2, 6, 4)]
    cases.add("encoder", operator, [token[0], *encoder], num_heads=2)
    cases.add("encoder-mask", operator, [token[0], *encoder, np.array([[1] * 6, [1, 1, 0, 0, 0, 0]], np.int32)], num_heads=2)
    weights, bias, past = cases.real(8, 24), cases.real(24), cases.real(2, 2, 2, 4, 4)
    # Not on the CPU: a cache that grows, as Attention has it.
    cases.add("mask", "DecoderMaskedSelfAttention", [token[0], weights, bias, mask, past, None, held], (1, 2), 2, num_heads=2)
    node = helper.make_node("Attention", [f"in{i}" for i in range(5)], ["out0", "out1"], domain="com.microsoft", num_heads=2)
    cases.compare_with([node])


def last_to_second(rank):
    return [0, rank - 1, *range(1, rank - 1)]


def second_to_last(rank):
    return [0, *range(2, rank), 1]


def move_channels(before, after, rank=4):
    """Nodes `before` from `input` to `output`, in0 with its channels second, and `after` from `moved`, that with its channels last."""
    return [helper.make_node("Transpose", ["in0"], ["input"], perm=last_to_second(rank)), *before,
            helper.make_node("Transpose", ["output"], ["moved"], perm=second_to_last(rank)), *after]


def add_layouts(cases):
    """Operators whose channels are last; those that onnxruntime has for other devices alone are compared with ONNX's."""
    x, filters, bias = cases.real(1, 6, 7, 4), cases.real(6, 2, 3, 3), cases.real(6)
    window = dict(pads=[1, 0, 1, 1], strides=[2, 1])
    cases.add("groups", "NhwcConv", [x, filters, bias], (1, 2), group=2, **window)
    conv = helper.make_node("Conv", ["input", "in1", "in2"], ["output"], group=2, **window)
    cases.compare_with(move_channels([conv], [helper.make_node("Identity", ["moved"], ["out0"])]))
    cases.add("sum", "NhwcFusedConv", [x, filters, bias, cases.real(1, 3, 6, 6)], (1, 2), group=2, activation="LeakyRelu",
              activation_params=[0.2], **window)
    cases.compare_with(move_channels([conv], [helper.make_node("Add", ["moved", "in3"], ["sum"]),
                                              helper.make_node("LeakyRelu", ["sum"], ["out0"], alpha=0.2)]))
    for kind, result in ((np.uint8, TensorProto.UINT8), (np.int8, TensorProto.INT8)):
        cases.add(kind.__name__, "NhwcMaxPool", [cases.code(2, 6, 7, 3, kind=kind)], results=(result,), kernel_shape=[3, 2], **window)
        cases.add(f"{kind.__name__}-ceil", "NhwcMaxPool", [cases.code(2, 6, 8, 3, kind=kind)], results=(result,), kernel_shape=[2, 3],
                  strides=[2, 2], ceil_mode=1)


def add_group_norms(cases):
    """Compared with ONNX's GroupNormalization, as onnxruntime has these for other devices alone."""
    gamma, beta, bias = cases.real(6), cases.real(6), cases.real(6)
    for last in (0, 1):
        x = cases.real(2, 3, 5, 6) if last else cases.real(2, 6, 3, 5)
        column = (2, 1, 1, 6) if last else (2, 6, 1, 1)
        for activation in (0, 1):
            words = dict(groups=3, activation=activation, channels_last=last, epsilon=1e-4)
            end = [helper.make_node("Sigmoid", ["moved"], ["gate"]), helper.make_node("Mul", ["moved", "gate"], ["out0"])]
            end = end if activation else [helper.make_node("Identity", ["moved"], ["out0"])]
            normalize = [helper.make_node("GroupNormalization", ["input", "in1", "in2"], ["output"], num_groups=3, epsilon=1e-4)]
            plain = move_channels(normalize, end)
            if not last:
                plain = [helper.make_node("Identity", ["in0"], ["input"]), *normalize, helper.make_node("Identity", ["output"], ["moved"]), *end]
            name = f"{'last' if last else 'second'}-{activation}"
            cases.add(name, "GroupNorm", [x, gamma, beta], (1, 2), **words)
            cases.compare_with(plain)
            for form, shape in (("whole", x.shape), ("row", (2, 6)), ("column", column)):
                cases.add(f"{name}-{form}", "SkipGroupNorm", [x, gamma, beta, cases.real(*shape), bias], (1, 2, 4), 2, **words)
                shapes = [np.array(size, np.int64) for size in (column if form == "row" else shape, (1, *column[1:]))]
                start = [helper.make_node("Constant", [], [f"shape{i}"], value=numpy_helper.from_array(size)) for i, size in enumerate(shapes)]
                start += [helper.make_node("Reshape", [f"in{3 + i}", f"shape{i}"], [f"wide{i}"]) for i in (0, 1)]
                start += [helper.make_node("Add", ["in0", "wide0"], ["skipped"]), helper.make_node("Add", ["skipped", "wide1"], ["out1"])]
                moved = [onnx.NodeProto.FromString(node.SerializeToString()) for node in plain]
                moved[0].input[0] = "out1"
                cases.compare_with([*start, *moved])


def add_recurrent(cases):
    """Compared with LSTM, as onnxruntime rounds inputs and states for products of integers."""
    x, states, bias = cases.real(5, 2, 3), [cases.real(2, 2, 4), cases.real(2, 2, 4)], cases.real(2, 32)
    lengths = np.array([5, 3], np.int32)
    for kind, zero in ((np.int8, 0), (np.uint8, 128), (np.uint8, 7)):
        for per, shape in (("layer", (2,)), ("channel", (2, 16))):
            scales = [np.abs(cases.real(*shape)) / 100 for _ in range(2)]
            codes, zeros = [cases.code(2, size, 16, kind=kind) for size in (3, 4)], np.full(shape, zero, kind)
            cases.add(f"{kind.__name__}-{zero}-{per}", "DynamicQuantizeLSTM",
                      [x, *codes, bias, lengths, *states, None, scales[0], zeros, scales[1], zeros], (1, 2, 3, 8, 9, 10, 11), 3,
                      hidden_size=4, direction="bidirectional")
            floats = [(code.astype(np.float32) - zero) * scale.reshape(2, 1, -1) for code, scale in zip(codes, scales)]
            names = [f"float{i}" for i in (0, 1)]
            constants = [helper.make_node("Constant", [], [name], value=numpy_helper.from_array(matrices.transpose(0, 2, 1).copy()))
                         for name, matrices in zip(names, floats)]
            inputs = ["in0", *names, "in3", "in4", "in5", "in6"]
            cases.compare_with([*constants, helper.make_node("LSTM", inputs, ["out0", "out1", "out2"], hidden_size=4, direction="bidirectional")])


def add_branches(cases):
    """Residual streams of several branches, flat or not, and gated norms."""
    streams, flat, block, gate = cases.real(2, 5, 3, 8), cases.real(2, 5, 24), cases.real(2, 5, 8), cases.real(2, 5, 24)
    for activation in ("silu", "swish", "sigmoid"):
        cases.add(activation, "GatedRMSNorm", [flat, cases.real(24), gate], (1,), has_widths=True, activation=activation)
    cases.add("heads", "GatedRMSNorm", [flat, cases.real(8), gate], (1,), has_widths=True, epsilon=1e-2)
    cases.add("rows", "GatedAdd", [flat, gate, cases.real(2, 5, 1)], has_widths=True)
    for name, scale in (("plain", None), ("branch", cases.real(8)), ("all", cases.real(24)), ("matrix", cases.real(3, 8))):
        cases.add(name, "BranchwiseRMSNorm", [streams, scale], (1,) if scale is not None else (), has_widths=True)
        cases.add(f"{name}-flat", "BranchwiseRMSNorm", [flat, scale], (1,) if scale is not None else (), has_widths=True, num_branches=3, epsilon=1e-3)
    for name, shape in (("branches", (2, 5, 3)), ("columns", (2, 5, 3, 1)), ("features", (2, 5, 3, 8))):
        mix = cases.real(*shape)
        cases.add(name, "HyperConnectionPreMix", [streams, mix], has_widths=(-1, -2), reduction_scale=0.5)
        cases.add(f"{name}-flat", "HyperConnectionPreMix", [flat, mix], has_widths=True, num_branches=3)
        cases.add(name, "HyperConnectionPostMix", [streams, block, mix], has_widths=True)
        cases.add(f"{name}-flat", "HyperConnectionPostMix", [flat, block, mix, cases.real(2, 5, 3, 3)], has_widths=True, num_branches=3)
    cases.add("stream", "HyperConnectionPreMix", [flat, gate], has_widths=True, num_branches=3)
    for name, scale in (("gate", []), ("normed", [cases.real(3, 8)])):
        inputs = [streams, cases.real(2, 5, 3, 8), block, cases.real(3, 8), cases.real(3, 8), *scale]
        cases.add(name, "EngramGate", inputs, tuple(range(3, len(inputs))), 1 + len(scale), has_widths=True)


def add_multimodal_rotations(cases):
    tables, positions = [cases.real(11, 6), cases.real(11, 6)], cases.rng.integers(0, 11, (3, 2, 5))
    for name, words in (("sections", dict(mrope_section=[2, 3, 1])), ("interleaved", dict(mrope_section=[2, 2, 2], mrope_layout=1)),
                        ("pairs", dict(mrope_section=[1, 2, 3], interleaved=1))):
        cases.add(name, "MRotaryEmbedding", [cases.real(2, 5, 24), positions, *tables], (2, 3), has_widths=True, num_heads=2, **words)
        cases.add(f"{name}-heads", "MRotaryEmbedding", [cases.real(2, 3, 5, 12), positions, *tables], (2, 3), has_widths=True, **words)
    cases.add("part", "MRotaryEmbedding", [cases.real(2, 5, 32), positions, *tables], (2, 3), has_widths=True,
              mrope_section=[2, 3, 1], rotary_embedding_dim=12, num_heads=2)


def collect():
    cases = Cases()
    for family in (add_attention, add_embeddings, add_linear_attention, add_multi_head_attention, add_products, add_quantized, add_sums,
                   add_causal_convolutions, add_decoders, add_layouts, add_group_norms, add_recurrent, add_branches, add_multimodal_rotations):
        family(cases)
    return cases.cases
