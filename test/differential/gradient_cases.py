# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small ONNX models whose gradients are checked: a graph each, of inputs that are all floats."""

import dataclasses

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import expert_spellings

OPSET = 23


@dataclasses.dataclass
class Case:
    """`nodes` compute y of `inputs` and `constants`. Gradients are taken of all floats but those called `fixed`."""
    nodes: list
    inputs: dict
    constants: dict = dataclasses.field(default_factory=dict)
    fixed: tuple = ()
    opset: int = OPSET

    def weights(self):
        """The constants that gradients are taken of."""
        return {name: array for name, array in self.constants.items()
                if np.asarray(array).dtype.kind == "f" and np.asarray(array).size > 1 and name not in self.fixed}

    def proto(self, element, shape=None):
        """The model with elements of the numpy type `element`, and a result of the shape, if it is known."""
        dtype = helper.np_dtype_to_tensor_dtype(np.dtype(element))
        inputs = [helper.make_tensor_value_info(name, dtype, array.shape) for name, array in self.inputs.items()]
        constants = [numpy_helper.from_array(np.asarray(array, element if np.asarray(array).dtype.kind == "f" else None), name)
                     for name, array in self.constants.items()]
        graph = helper.make_graph(self.nodes, "case", inputs, [onnx.ValueInfoProto(name="y")], constants)
        graph.output[0].CopyFrom(helper.make_tensor_value_info("y", dtype, shape))
        return helper.make_model(graph, ir_version=11, opset_imports=[helper.make_opsetid("", self.opset)])


def node(op, inputs, outputs="y", **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


class Source:
    """Numbers of the cases, the same at every run."""

    def __init__(self):
        self.random = np.random.default_rng(11)

    def normal(self, *shape):
        return self.random.standard_normal(shape)

    def positive(self, *shape):
        return self.random.uniform(0.3, 2.0, shape)

    def apart(self, *shape):
        """No two within a step of differences of each other, or of 0 and 1: kinks are not met."""
        values = np.linspace(-2.05, 2.05, int(np.prod(shape)) + 2)[1:-1]
        return self.random.permutation(values).reshape(shape)


def elementwise(source):
    for op in ("Exp", "Tanh", "Erf", "Sigmoid", "Softplus", "Sin", "Cos", "Neg", "Gelu", "Atan", "Sinh", "Cosh", "Mish", "Asinh", "Tan"):
        yield op, Case([node(op, "x")], {"x": source.normal(3, 4)})
    for op in ("Asin", "Acos", "Atanh"):
        yield op, Case([node(op, "x")], {"x": source.normal(3, 4) / 4})
    yield "Acosh", Case([node("Acosh", "x")], {"x": 1.2 + source.positive(3, 4)})
    for op in ("Log", "Sqrt", "Reciprocal"):
        yield op, Case([node(op, "x")], {"x": source.positive(3, 4)})
    for op in ("Abs", "Relu", "LeakyRelu", "Elu", "Selu", "HardSigmoid", "Floor", "Round"):
        yield op, Case([node(op, "x")], {"x": source.apart(3, 4)})
    yield "GeluTanh", Case([node("Gelu", "x", approximate="tanh")], {"x": source.normal(3, 4)})
    yield "Clip", Case([node("Clip", "x low high")], {"x": source.apart(3, 5)}, {"low": np.float64(-1.0), "high": np.float64(0.7)})
    for op in ("Add", "Sub", "Mul", "Div", "Pow"):
        yield op, Case([node(op, "a b")], {"a": source.positive(3, 1, 4), "b": source.positive(2, 4)})
    for op in ("Max", "Min"):
        both = source.apart(2, 3, 4)
        yield op, Case([node(op, "a b")], {"a": both[0], "b": both[1]})
    yield "Mod", Case([node("Mod", "a b", fmod=1)], {"a": np.array([2.3, -1.4, 5.1]), "b": np.array([0.7, 0.6, -1.3])})
    yield "Where", Case([node("Where", "mask a b")], {"a": source.normal(3, 4), "b": source.normal(1, 4)},
                        {"mask": np.arange(12).reshape(3, 4) % 3 == 0})
    yield "Mean", Case([node("Mean", "a b")], {"a": source.normal(2, 3), "b": source.normal(3)})
    yield "Swish", Case([node("Sigmoid", "x", "s"), node("Mul", "x s")], {"x": source.normal(4, 3)})
    yield "shared", Case([node("Mul", "x x", "s"), node("Exp", "x", "e"), node("Add", "s e")], {"x": source.normal(5)})


def reductions(source):
    for op in ("ReduceSum", "ReduceMean", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare"):
        for keep in (0, 1):
            yield f"{op}-{keep}", Case([node(op, "x axes", keepdims=keep)], {"x": source.normal(2, 3, 4)},
                                       {"axes": np.array([0, 2])})
    for op in ("ReduceMax", "ReduceMin"):
        yield op, Case([node(op, "x axes", keepdims=0)], {"x": source.apart(3, 5)}, {"axes": np.array([1])})
    for name, zeros in (("ReduceProd", 0), ("ReduceProd-zero", 1), ("ReduceProd-zeros", 2)):
        x = source.normal(3, 5)
        x[1, :zeros] = 0
        yield name, Case([node("ReduceProd", "x axes", keepdims=0)], {"x": x}, {"axes": np.array([1])})
    yield "ReduceMax-all", Case([node("ReduceMax", "x", keepdims=0)], {"x": source.apart(3, 5)})
    yield "LRN", Case([node("LRN", "x", size=3, alpha=0.4, beta=0.6)], {"x": source.normal(1, 4, 2, 3)})
    for op in ("Softmax", "LogSoftmax"):
        yield op, Case([node(op, "x", axis=1)], {"x": source.normal(2, 5, 3)})


def products(source):
    yield "MatMul", Case([node("MatMul", "a b")], {"a": source.normal(2, 3, 4), "b": source.normal(2, 4, 5)})
    yield "MatMul-repeated", Case([node("MatMul", "a b")], {"a": source.normal(2, 1, 3, 4), "b": source.normal(3, 4, 5)})
    yield "MatMul-matrix", Case([node("MatMul", "a b")], {"a": source.normal(2, 3, 4), "b": source.normal(4, 5)})
    yield "MatMul-vector", Case([node("MatMul", "a b")], {"a": source.normal(4), "b": source.normal(4, 5)})
    yield "Gemm", Case([node("Gemm", "a b c", alpha=0.5, beta=2.0, transA=1, transB=1)],
                       {"a": source.normal(4, 3), "b": source.normal(5, 4), "c": source.normal(5)})
    yield "Einsum", Case([node("Einsum", "a b", equation="bhid,bhjd->bhij")],
                         {"a": source.normal(2, 2, 3, 4), "b": source.normal(2, 2, 5, 4)})


def movement(source):
    x = {"x": source.normal(2, 3, 4)}
    yield "Transpose", Case([node("Transpose", "x", perm=[2, 0, 1])], x)
    yield "Reshape", Case([node("Reshape", "x to")], x, {"to": np.array([4, -1])})
    yield "Flatten", Case([node("Flatten", "x", axis=2)], x)
    yield "Unsqueeze", Case([node("Unsqueeze", "x axes")], x, {"axes": np.array([1, 4])})
    yield "Squeeze", Case([node("Squeeze", "x axes")], {"x": source.normal(1, 3, 1)}, {"axes": np.array([0])})
    yield "Slice", Case([node("Slice", "x from to axes steps")], x,
                        {"from": np.array([0, 1]), "to": np.array([3, 4]), "axes": np.array([1, 2]), "steps": np.array([2, 1])})
    yield "Concat", Case([node("Concat", "x z", axis=1)], {**x, "z": source.normal(2, 2, 4)})
    yield "Split", Case([node("Split", "x parts", "a b", axis=2), node("Mul", "a b")], x, {"parts": np.array([2, 2])})
    yield "Expand", Case([node("Expand", "x to")], {"x": source.normal(3, 1)}, {"to": np.array([2, 3, 4])})
    yield "Tile", Case([node("Tile", "x count")], {"x": source.normal(2, 3)}, {"count": np.array([2, 2])})
    yield "Pad", Case([node("Pad", "x around")], x, {"around": np.array([0, 1, 0, 1, 0, 2])})
    yield "Gather-rows", Case([node("Gather", "x rows", axis=0)], {"x": source.normal(5, 3)}, {"rows": np.array([[1, 4], [1, -1]])})
    yield "Gather-columns", Case([node("Gather", "x columns", axis=2)], x, {"columns": np.array([3, 0, 3])})
    yield "GatherElements", Case([node("GatherElements", "x places", axis=1)], {"x": source.normal(2, 4)},
                                 {"places": np.array([[0, 0, 3], [2, 1, 2]])})


def layers(source):
    """Parts of transformers, which are raised to the hone dialect in f32."""
    def weights(*shape):
        return source.normal(*shape) / np.sqrt(shape[0])

    x = {"x": source.normal(2, 5, 8)}
    yield "linear", Case([node("MatMul", "x w", "p"), node("Add", "p b")], x, {"w": weights(8, 6), "b": source.normal(6)})
    yield "layer-norm", Case([node("LayerNormalization", "x w b", epsilon=1e-5)], x, {"w": source.positive(8), "b": source.normal(8)})
    yield "rms-norm", Case([node("RMSNormalization", "x w", epsilon=1e-6)], x, {"w": source.positive(8)})
    yield "gated-mlp", Case([node("MatMul", "x g", "a"), node("Sigmoid", "a", "s"), node("Mul", "a s", "h"), node("MatMul", "x u", "c"),
                             node("Mul", "h c", "m"), node("MatMul", "m d")], x,
                            {"g": weights(8, 12), "u": weights(8, 12), "d": weights(12, 8)})
    yield "mlp", Case([node("MatMul", "x u", "p"), node("Add", "p c", "q"), node("Gelu", "q", "h"), node("MatMul", "h d", "r"),
                       node("Add", "r e")], x, {"u": weights(8, 12), "c": source.normal(12), "d": weights(12, 8), "e": source.normal(8)})
    yield "embedding", Case([node("Gather", "t ids", "e"), node("Add", "e x")], {"x": source.normal(2, 3, 8)},
                            {"t": source.normal(9, 8), "ids": np.array([[3, 0, 3], [8, 3, -1]])})


def attention(source):
    """Parts of transformers that ONNX has in f32 alone."""
    q, k, v = source.normal(2, 4, 5, 8), source.normal(2, 2, 5, 8), source.normal(2, 2, 5, 6)
    for name, attributes in {"attention": {}, "attention-causal": {"is_causal": 1}, "attention-softcap": {"softcap": 3.0, "scale": 0.4}}.items():
        yield name, Case([node("Attention", "q k v", **attributes)], {"q": q, "k": k, "v": v})
    bias = np.where(np.tri(5), 0, -np.inf)[None, None]
    yield "attention-mask", Case([node("Attention", "q k v mask")], {"q": q, "k": k, "v": v}, {"mask": bias}, ("mask",))
    yield "attention-bias", Case([node("Attention", "q k v bias")], {"q": q, "k": k, "v": v, "bias": source.normal(1, 4, 5, 5)})
    angles = source.normal(1, 5, 4)
    tables = {"cos": np.cos(angles), "sin": np.sin(angles)}
    for name, interleaved, fixed in (("rope", 0, ("cos", "sin")), ("rope-interleaved", 1, ("cos", "sin")), ("rope-tables", 0, ())):
        yield name, Case([node("RotaryEmbedding", "q cos sin", interleaved=interleaved)], {"q": q[:1]}, tables, fixed)


def subgraph(nodes, inputs, outputs, element=TensorProto.DOUBLE):
    """A body whose values are of `element`, but for those whose name begins with `i` (INT64) or `c` (BOOL)."""
    kinds = {"i": TensorProto.INT64, "c": TensorProto.BOOL}
    infos = [[helper.make_tensor_value_info(name, kinds.get(name[0], element), shape) for name, shape in values.items()]
             for values in (inputs, outputs)]
    return helper.make_graph(nodes, "body", *infos)


def control(source):
    x, w = {"x": source.normal(3, 4)}, {"w": source.normal(4, 4) / 2}
    step = [node("MatMul", "s w", "p"), node("Tanh", "p", "z"), node("Identity", "c", "cz")]
    turns = {"n": np.array(3), "go": np.array(True)}
    body = subgraph(step, {"i": [], "c": [], "s": [3, 4]}, {"cz": [], "z": [3, 4]})
    yield "Loop", Case([node("Loop", "n go x", "y", body=body)], x, {**turns, **w})
    yield "Loop-none", Case([node("Loop", "none go x", "z", body=body), node("MatMul", "z w")], x,
                            {"none": np.array(0), "go": np.array(True), **w})
    inner = subgraph([node("Mul", "t x", "a"), node("Sin", "a", "u"), node("Identity", "cc", "ce")], {"ii": [], "cc": [], "t": [3, 4]},
                     {"ce": [], "u": [3, 4]})
    body = subgraph([node("Loop", "n c s", "v", body=inner), node("Mul", "v s", "z"), node("Identity", "c", "cz")],
                    {"i": [], "c": [], "s": [3, 4]}, {"cz": [], "z": [3, 4]})
    yield "Loop-nested", Case([node("Loop", "n go b", "y", body=body)], {"x": source.apart(3, 4) / 2, "b": source.normal(3, 4)}, turns)
    body = subgraph([node("MatMul", "s w", "p"), node("Add", "p r", "a"), node("Tanh", "a", "z"), node("Identity", "z", "q")],
                    {"s": [4], "r": [4]}, {"z": [4], "q": [4]})
    yield "Scan", Case([node("Scan", "b x", "last y", body=body, num_scan_inputs=1)], {**x, "b": source.normal(4)}, w)
    branches = {"then_branch": subgraph([node("Mul", "x b", "z")], {}, {"z": [3, 4]}),
                "else_branch": subgraph([node("Exp", "x", "z")], {}, {"z": [3, 4]})}
    for name, most in (("If-then", 100.0), ("If-else", -100.0)):
        yield name, Case([node("ReduceSum", "x", "sum", keepdims=0), node("Less", "sum most", "c"), node("If", "c", "y", **branches)],
                         {**x, "b": source.normal(3, 4)}, {"most": np.float64(most)})
    yield "CumSum", Case([node("CumSum", "x axis", exclusive=1, reverse=1)], x, {"axis": np.array(1)})
    yield "ScatterND", Case([node("ScatterND", "x places u")], {**x, "u": source.normal(2, 4)}, {"places": np.array([[2], [0]])})
    yield "ScatterElements-add", Case([node("ScatterElements", "x places u", axis=1, reduction="add")], {**x, "u": source.normal(3, 2)},
                                      {"places": np.array([[1, 3], [0, 0], [3, 1]])})
    for name, places in (("ScatterElements", [[1, 3], [0, 2], [3, -4]]), ("ScatterElements-twice", [[1, 1], [0, 0], [3, 0]])):
        yield name, Case([node("ScatterElements", "x places u", axis=1)], {**x, "u": source.normal(3, 2)}, {"places": np.array(places)})
    yield "ScatterND-add", Case([node("ScatterND", "x places u", reduction="add")], {**x, "u": source.normal(3, 4)},
                                {"places": np.array([[2], [0], [2]])})


def windows(source):
    image = {"x": source.normal(2, 4, 7, 6)}

    def filters(*shape):
        return {"w": source.normal(*shape) / 4, "b": source.normal(shape[0])}

    yield "Conv", Case([node("Conv", "x w b", pads=[1, 1, 1, 1])], image, filters(3, 4, 3, 3))
    yield "Conv-strides", Case([node("Conv", "x w b", strides=[2, 3], pads=[0, 2, 1, 0], dilations=[2, 1])], image, filters(3, 4, 2, 3))
    yield "Conv-groups", Case([node("Conv", "x w", group=2)], image, {"w": source.normal(6, 2, 2, 2)})
    yield "Conv-causal", Case([node("Conv", "x w b", group=4, pads=[3, 0])], {"x": source.normal(2, 4, 6)}, filters(4, 1, 4))
    yield "ConvTranspose", Case([node("ConvTranspose", "x w", strides=[2, 2])], image, {"w": source.normal(4, 3, 3, 3)})
    apart = {"x": source.apart(1, 2, 6, 5)}
    yield "MaxPool", Case([node("MaxPool", "x", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 0, 1])], apart)
    yield "AveragePool", Case([node("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])], image)
    yield "LpPool", Case([node("LpPool", "x", kernel_shape=[2, 2], p=2)], image)


def recurrent(source):
    """Opset 27, which has linear attention."""
    q, k, v = source.normal(2, 5, 12), source.normal(2, 5, 6) / 2, source.normal(2, 5, 8)
    heads = {"q_num_heads": 4, "kv_num_heads": 2, "scale": 0.7}
    shared = {"q": q, "k": k, "v": v, "s": source.normal(2, 2, 3, 4)}
    decay, wide = -source.positive(2, 5, 2), -source.positive(2, 5, 6)
    beta = 1 / (1 + np.exp(source.normal(2, 5, 2)))
    rules = {"linear": {}, "gated": {"d": decay}, "gated-wide": {"d": wide}, "delta": {"e": beta}, "gated_delta": {"d": decay, "e": beta},
             "gated_delta-wide": {"d": wide, "e": beta}}
    for name, rates in rules.items():
        names = ["q", "k", "v", "s", "d" if "d" in rates else "", "e" if "e" in rates else ""]
        case = Case([helper.make_node("LinearAttention", names, ["y", "next"], update_rule=name.split("-")[0], **heads)],
                    {**shared, **rates}, opset=27)
        yield f"linear-attention-{name}", case
    yield "causal-conv", Case([helper.make_node("CausalConvWithState", ["x", "w", "b", "s"], ["y", "next"], activation="silu")],
                              {"x": source.normal(2, 4, 5), "s": source.normal(2, 4, 2)},
                              {"w": source.normal(4, 1, 3), "b": source.normal(4)}, opset=27)


def routed_rows(source, count, router):
    """Rows of which no two logits of the router come as near to each other as a step of differences moves them."""
    rows = []
    while len(rows) < count:
        row = source.normal(router.shape[0]).astype(np.float32)
        if np.diff(np.sort(row @ router)).min() > 0.02:
            rows.append(row)
    return np.stack(rows)


def experts(source):
    """Blocks of experts; one of them has an expert that no row chooses."""
    for name, options in (("biases", {"biases": True}), ("three", {"chosen": 3}), ("unused", {"unused": 2}), ("one", {"chosen": 1})):
        spelling = expert_spellings.Spelling(expert_spellings.gathered, width=8, hidden=6, **options)
        x = routed_rows(source, 5, spelling.constants["c0"])
        yield f"experts-{name}", Case([*spelling.nodes, node("Identity", spelling.result)], {"x": x}, spelling.constants, opset=18)


def cases():
    """Names, cases, and the types of floats that each is checked in; in f32 it is raised."""
    source = Source()
    for families, elements in (((elementwise, reductions, products, movement, control, windows), [np.float64]),
                               ((layers,), [np.float64, np.float32]), ((attention, recurrent, experts), [np.float32])):
        for family in families:
            for name, case in family(source):
                yield name, case, elements
