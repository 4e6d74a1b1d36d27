# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of experts as exporters spell them: matrices gathered for each row (torch.onnx), rows sorted by expert (transformers), each expert
adding the results of its rows to a sum (optimum), and all rows through all experts (optimum, for gpt_oss)."""

import numpy as np
import onnx
from onnx import TensorProto, helper

ALPHA, OFFSET, LIMIT = 1.702, 1.0, 0.5  # a limit that many sums reach
WIDTH, HIDDEN = 64, 96


class Spelling:
    """A model of one block; `form` is one of the functions below."""

    def __init__(self, form, experts=4, chosen=2, gate="silu", biases=False, unused=None, width=WIDTH, hidden=HIDDEN):
        self.rng = np.random.default_rng(3)
        self.experts, self.chosen, self.gate, self.biases = experts, chosen, gate, biases
        self.width, self.hidden = width, hidden
        self.nodes, self.constants, self.count = [], {}, 0
        router = self.draw(width, experts)
        logits = self.add("MatMul", "x", self.constant(router))
        if unused is not None:
            never = np.zeros(experts, np.float32)
            never[unused] = -1e4
            logits = self.add("Add", logits, self.constant(never))
        values, self.ids = self.add("TopK", logits, self.integers(chosen), outputs=2, axis=-1)
        self.weights = self.add("Softmax", values, axis=-1)
        self.result = form(self)

    def draw(self, *shape):
        return (self.rng.standard_normal(shape) / np.sqrt(shape[-2])).astype(np.float32)

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def integers(self, *values):
        return self.constant(np.array(values, np.int64))

    def integer(self, value):
        return self.constant(np.array(value, np.int64))

    def real(self, value):
        return self.constant(np.array(value, np.float32))

    def add(self, op, *inputs, outputs=1, **attributes):
        names = [f"{op}{self.count}_{i}" for i in range(outputs)]
        self.count += 1
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def activate(self, rows, axis):
        """silu(gate) · up of the halves of the rows, or the clamped SwiGLU of their alternate columns."""
        if self.gate == "silu":
            gate, up = self.add("Split", rows, outputs=2, axis=axis, num_outputs=2)
            return self.add("Mul", self.add("Mul", gate, self.add("Sigmoid", gate)), up)
        ends, axes, steps = self.integers(2**63 - 1), self.integers(axis), self.integers(2)
        gate, up = (self.add("Slice", rows, self.integers(i), ends, axes, steps) for i in (0, 1))
        gate = self.add("Clip", gate, "", self.real(LIMIT))
        up = self.add("Clip", up, self.real(-LIMIT), self.real(LIMIT))
        gate = self.add("Mul", gate, self.add("Sigmoid", self.add("Mul", gate, self.real(ALPHA))))
        return self.add("Mul", self.add("Add", up, self.real(OFFSET)), gate)

    def layers(self):
        """Matrices [experts, inputs, outputs] and biases [experts, outputs]."""
        first, second = self.draw(self.experts, self.width, 2 * self.hidden), self.draw(self.experts, self.hidden, self.width)
        return first, self.draw(self.experts, 2 * self.hidden), second, self.draw(self.experts, self.width)

    def proto(self):
        infos = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", self.width])] for name in ("x", "y")]
        nodes = [*self.nodes, helper.make_node("Identity", [self.result], ["y"])]
        graph = helper.make_graph(nodes, "experts", *infos,
                                  [onnx.numpy_helper.from_array(array, name) for name, array in self.constants.items()])
        return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)])

    def reference(self):
        return self.proto()

    def inputs(self, rows):
        return {"x": self.rng.standard_normal((rows, self.width)).astype(np.float32)}


def gathered(s):
    ids = s.add("Unsqueeze", s.add("Reshape", s.ids, s.integers(-1)), s.integers(-1))
    x = s.add("Expand", s.add("Unsqueeze", "x", s.integers(1)), s.integers(1, s.chosen, 1))
    x = s.add("Reshape", x, s.integers(-1, s.width))
    first, first_bias, second, second_bias = s.layers()

    def multiply(rows, weights, bias):
        rows = s.add("MatMul", s.add("Unsqueeze", rows, s.integers(1)), s.add("GatherND", s.constant(weights), ids))
        rows = s.add("Squeeze", rows, s.integers(1))
        return s.add("Add", rows, s.add("GatherND", s.constant(bias), ids)) if s.biases else rows

    rows = multiply(s.activate(multiply(x, first, first_bias), 1), second, second_bias)
    weights = s.add("Unsqueeze", s.add("Reshape", s.weights, s.integers(-1)), s.integers(-1))
    terms = s.add("Reshape", s.add("Mul", rows, weights), s.integers(-1, s.chosen, s.width))
    return s.add("ReduceSum", terms, s.integers(1), keepdims=0)


def ordered(s):
    flat = s.add("Reshape", s.ids, s.integers(-1))
    ids, order = s.add("TopK", flat, s.add("Shape", flat), outputs=2, axis=-1, largest=0, sorted=1)
    places = s.add("Unsqueeze", order, s.integers(-1))
    token = s.add("Unsqueeze", s.add("Div", order, s.integer(s.chosen)), s.integers(-1))
    weights = s.add("GatherND", s.add("Reshape", s.weights, s.integers(-1)), places)
    # A histogram, as torch.histc of as many bins as there are experts.
    width = (s.experts - 1) / s.experts
    bins = s.add("Cast", s.add("Div", s.add("Cast", ids, to=TensorProto.FLOAT), s.real(width)), to=TensorProto.INT64)
    bins = s.add("Clip", bins, s.integer(0), s.integer(s.experts - 1))
    ones = s.add("Expand", s.real(1), s.add("Shape", bins))
    counts = s.add("ScatterElements", s.constant(np.zeros(s.experts, np.float32)), bins, ones, axis=0, reduction="add")
    ends = s.add("CumSum", s.add("Cast", counts, to=TensorProto.INT32), s.integer(0))
    ends = s.add("Split", s.add("Cast", ends, to=TensorProto.INT64), outputs=s.experts, axis=0, num_outputs=s.experts)
    ends = [s.add("Squeeze", end, s.integers(0)) for end in ends]
    ranges = [s.add("Range", begin, end, s.integer(1)) for begin, end in zip([s.integer(0), *ends], ends)]
    tuples = s.add("Unsqueeze", ids, s.integers(-1))

    def multiply(rows, weights, bias):
        parts = s.add("Split", s.constant(weights), outputs=s.experts, axis=0, num_outputs=s.experts)
        products = [s.add("MatMul", s.add("Gather", rows, places, axis=0), s.add("Squeeze", part, s.integers(0)))
                    for places, part in zip(ranges, parts)]
        rows = s.add("Concat", *products, axis=0)
        return s.add("Add", rows, s.add("GatherND", s.constant(bias), tuples)) if s.biases else rows

    first, first_bias, second, second_bias = s.layers()
    rows = multiply(s.activate(multiply(s.add("GatherND", "x", token), first, first_bias), 1), second, second_bias)
    rows = s.add("Mul", rows, s.add("Unsqueeze", weights, s.integers(-1)))
    zeros = s.add("Expand", s.integer(0), s.add("Shape", order))
    count = s.add("Squeeze", s.add("Shape", order), s.integers(0))
    back = s.add("ScatterND", zeros, places, s.add("Range", s.integer(0), count, s.integer(1)))
    rows = s.add("GatherND", rows, s.add("Unsqueeze", back, s.integers(-1)))
    terms = s.add("Reshape", rows, s.integers(-1, s.chosen, s.width))
    return s.add("ReduceSum", terms, s.integers(1), keepdims=0)


def added(s, turned=True, adds=False):
    """`turned`: the mask of an expert is [chosen, rows]; `adds`: results are added by the scatter itself."""
    hot = s.add("OneHot", s.ids, s.integer(s.experts), s.integers(0, 1), axis=-1)
    hot = s.add("Transpose", hot, perm=[2, 1, 0] if turned else [2, 0, 1])
    total = s.add("ConstantOfShape", s.add("Shape", "x"), value=helper.make_tensor("zero", TensorProto.FLOAT, [1], [0.0]))
    for expert in range(s.experts):
        mask = s.add("Cast", s.add("Gather", hot, s.integer(expert), axis=0), to=TensorProto.BOOL)
        places = s.add("Split", s.add("Transpose", s.add("NonZero", mask), perm=[1, 0]), outputs=2, axis=1, num_outputs=2)
        token, slot = (s.add("Squeeze", place, s.integers(1)) for place in (reversed(places) if turned else places))
        rows = s.add("Gather", "x", token, axis=0)
        gate, up = (s.add("MatMul", rows, s.constant(s.draw(s.width, s.hidden))) for _ in range(2))
        if s.biases:
            gate, up = (s.add("Add", part, s.constant(s.draw(s.hidden, 1)[:, 0])) for part in (gate, up))
        rows = s.add("Mul", s.add("Mul", gate, s.add("Sigmoid", gate)), up)
        rows = s.add("MatMul", rows, s.constant(s.draw(s.hidden, s.width)))
        if s.biases:
            rows = s.add("Add", rows, s.constant(s.draw(s.width, 1)[:, 0]))
        flat = s.add("Reshape", s.weights, s.integers(-1, 1))
        place = s.add("Add", slot, s.add("Mul", token, s.integer(s.chosen)))
        rows = s.add("Mul", rows, s.add("Gather", flat, place, axis=0))
        at = s.add("Expand", s.add("Unsqueeze", token, s.integers(1)), s.add("Shape", rows))
        if adds:
            total = s.add("ScatterElements", total, at, rows, axis=0, reduction="add")
        else:
            zeros = s.add("ConstantOfShape", s.add("Shape", total),
                          value=helper.make_tensor("zero", TensorProto.FLOAT, [1], [0.0]))
            total = s.add("Add", total, s.add("ScatterElements", zeros, at, rows, axis=0))
    return total


def dense(s):
    logits = s.nodes[-2].input[0]
    zeros = s.add("ConstantOfShape", s.add("Shape", logits), value=helper.make_tensor("zero", TensorProto.FLOAT, [1], [0.0]))
    scores = s.add("Transpose", s.add("ScatterElements", zeros, s.ids, s.weights, axis=1), perm=[1, 0])
    x = s.add("Reshape", s.add("Tile", "x", s.integers(s.experts, 1)), s.integers(s.experts, -1, s.width))

    def multiply(rows, weights, bias):
        rows = s.add("MatMul", rows, s.constant(weights))
        return s.add("Add", rows, s.constant(bias[:, None])) if s.biases else rows

    first, first_bias, second, second_bias = s.layers()
    rows = multiply(s.activate(multiply(x, first, first_bias), 2), second, second_bias)
    return s.add("ReduceSum", s.add("Mul", rows, s.add("Unsqueeze", scores, s.integers(2))), s.integers(0), keepdims=0)


def all_spellings():
    clamped = dict(gate="swiglu", biases=True)
    yield "gathered-swiglu", Spelling(gathered, **clamped)
    yield "sorted", Spelling(ordered)
    yield "sorted-swiglu", Spelling(ordered, **clamped)
    yield "sorted-unused", Spelling(ordered, unused=1)
    yield "sorted-top-1", Spelling(ordered, chosen=1)
    yield "added", Spelling(added)
    yield "added-bias-unused", Spelling(added, biases=True, unused=2)
    yield "added-straight", Spelling(lambda s: added(s, turned=False))
    yield "added-by-scatter", Spelling(lambda s: added(s, adds=True))
    yield "added-top-1", Spelling(added, chosen=1)
    yield "dense", Spelling(dense)
    yield "dense-swiglu", Spelling(dense, **clamped)
