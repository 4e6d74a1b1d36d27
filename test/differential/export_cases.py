# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that use the corners of the ONNX format: what a file may say beside the graph that it computes."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name, shape=("n", 4), element=FLOAT, **more):
    return helper.make_tensor_value_info(name, element, shape, **more)


def weight(name, *shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return numpy_helper.from_array(values, name)


def add_properties(message, **entries):
    for key, value in entries.items():
        message.metadata_props.add(key=key, value=value)


def make(graph, opset=21, **fields):
    fields.setdefault("ir_version", 10)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **fields)


def described():
    """Everything that may carry a text carries one."""
    node = helper.make_node("Gemm", ["x", "w", "b"], ["hidden"], name="layer/gemm", doc_string='a "quoted"\nline', alpha=0.5)
    node.attribute[0].doc_string = "half"
    add_properties(node, namespace=": Model/layer: Linear", stack_trace='File "model.py", line 3\n  return x @ w')
    last = helper.make_node("Relu", ["hidden"], ["y"], doc_string="nameless")
    initializers = [weight("w", 4, 4), weight("b", 4), weight("large", 40, 40)]
    initializers[0].doc_string = "sixteen numbers"
    add_properties(initializers[2], origin="never used")
    graph = helper.make_graph([node, last], "the graph", [info("x", doc_string="what comes in")],
                              [info("y", doc_string="what goes out")], initializers, doc_string="a graph",
                              value_info=[info("hidden", doc_string="between")])
    graph.input[0].type.denotation = "TENSOR"
    graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    for message in graph, graph.input[0], graph.output[0], graph.value_info[0]:
        add_properties(message, key="value", empty="")
    graph.quantization_annotation.add(tensor_name="x").quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="b")
    model = make(graph, producer_name="corner", producer_version="1.2.3", domain="org.example", model_version=7,
                 doc_string="a model\nof two lines")
    add_properties(model, author="none", text="ünï©ode")
    return model, [{"x": np.ones((2, 4), np.float32)}]


def constants():
    """Every way to write a constant; initializers stay initializers, constants stay nodes, whatever their size."""
    large = weight("inside", 300)
    nodes = [helper.make_node("Constant", [], ["large"], name="large constant", value=large),
             helper.make_node("Constant", [], ["floats"], value_floats=[1.0, 2.0]),
             helper.make_node("Constant", [], ["one"], value_float=1.5),
             helper.make_node("Constant", [], ["axes"], value_ints=[0]),
             helper.make_node("Constant", [], ["small"], value=weight("", 1)),
             helper.make_node("ReduceSum", ["large", "axes"], ["sum"], keepdims=1),
             helper.make_node("ReduceMax", ["floats", "axes"], ["most"], keepdims=0),
             helper.make_node("Sum", ["x", "sum", "most", "one", "small", "initial"], ["y"])]
    return make(helper.make_graph(nodes, "constants", [info("x")], [info("y")], [weight("initial", 4)])), [
        {"x": np.ones((3, 4), np.float32)}]


def element_types():
    """An initializer of every element type, half of them in typed fields, half in raw bytes; all unused but one."""
    initializers = [helper.make_tensor("strings", TensorProto.STRING, [2], [b"one", b"\xfftwo"])]
    for number in sorted(set(TensorProto.DataType.values()) - {TensorProto.UNDEFINED, TensorProto.STRING}):
        name = TensorProto.DataType.Name(number)
        for count in (3, 2000):
            values = np.arange(count) % 2
            tensor = helper.make_tensor(f"{name}.{count}", number, [count], values.astype(
                helper.tensor_dtype_to_np_dtype(number)).tolist())
            initializers.append(tensor)
            raw = TensorProto(name=f"{name}.{count}.raw", data_type=number, dims=[count],
                              raw_data=numpy_helper.from_array(numpy_helper.to_array(tensor)).raw_data)
            initializers.append(raw)
    initializers += [weight("scalar"), weight("empty", 0, 4)]
    node = helper.make_node("Add", ["x", "FLOAT.3.raw"], ["y"])
    graph = helper.make_graph([node], "types", [info("x", [3])], [info("y", [3])], initializers)
    return make(graph, opset=26, ir_version=13), []


def branch(name, *, shared, **names):
    """A graph with an initializer of its own, whose value names it shares with its sibling."""
    nodes = [helper.make_node("Mul", ["outer", "scale"], ["product"], name=f"{name}/mul"),
             helper.make_node("Add", ["product", shared], ["result"], name=f"{name}/add")]
    graph = helper.make_graph(nodes, name, [], [info("result", None)], [weight("scale", 4, seed=len(name))],
                              doc_string=f"doc of {name}", value_info=[info("product")])
    add_properties(graph, branch=name)
    return graph


def subgraphs():
    """If and Loop: sibling graphs with the same names, values of outer graphs, a result that an outer graph makes."""
    body = helper.make_graph(
        [helper.make_node("Add", ["carried", "w"], ["next"]), helper.make_node("Identity", ["going"], ["on"]),
         helper.make_node("Identity", ["y"], ["passed"], name="from outside")],
        "body", [info("i", [], INT64), info("going", [], BOOL), info("carried", None)],
        [info("on", [], BOOL), info("next", None), info("passed", None)])
    nodes = [helper.make_node("Neg", ["x"], ["outer"]),
             helper.make_node("If", ["which"], ["y"], name="if", then_branch=branch("then", shared="w"),
                              else_branch=branch("else", shared="x")),
             helper.make_node("Loop", ["count", "", "y"], ["last", "scan"], name="loop", body=body)]
    graph = helper.make_graph(nodes, "control", [info("x"), info("which", [], BOOL)],
                              [info("last"), info("scan", ("i", "n", 4))],
                              [weight("w", 4), numpy_helper.from_array(np.int64(3), "count")])
    x = np.ones((2, 4), np.float32)
    return make(graph), [{"x": x, "which": np.array(flag)} for flag in (True, False)]


def interface():
    """Outputs that are inputs, initializers, constants, or one value twice; inputs with defaults between those without."""
    nodes = [helper.make_node("Add", ["x", "default"], ["sum"]), helper.make_node("Relu", ["sum"], ["y"]),
             helper.make_node("Identity", ["y"], ["again"]), helper.make_node("Neg", ["z"], ["unused"]),
             helper.make_node("Dropout", ["y"], ["dropped", ""], name="optional output")]
    graph = helper.make_graph(
        nodes, "interface", [info("x"), info("default", [4]), info("z")],
        [info("y"), info("again"), info("sum"), info("dropped")], [weight("default", 4)])
    x = np.ones((2, 4), np.float32)
    return make(graph), [{"x": x, "z": x}, {"x": x, "z": x, "default": np.full(4, -2, np.float32)}]


def functions():
    """A function of the model, which import inlines."""
    body = [helper.make_node("Mul", ["a", "a"], ["square"]), helper.make_node("Add", ["square", "b"], ["c"])]
    function = helper.make_function("org.example", "SquareAdd", ["a", "b"], ["c"], body,
                                    [helper.make_opsetid("", 21)])
    nodes = [helper.make_node("SquareAdd", ["x", "w"], ["y"], domain="org.example")]
    graph = helper.make_graph(nodes, "functions", [info("x")], [info("y")], [weight("w", 4)])
    model = helper.make_model(graph, functions=[function], ir_version=10, producer_name="corner",
                              opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("org.example", 1)])
    return model, [{"x": np.ones((2, 4), np.float32)}]


def sparse():
    """A sparse initializer."""
    values = numpy_helper.from_array(np.array([2.0, 3.0], np.float32), "w")
    indices = numpy_helper.from_array(np.array([1, 6]), "w_indices")
    more = numpy_helper.from_array(np.array([5, 7], np.int64), "v")
    pairs = numpy_helper.from_array(np.array([[0, 1], [1, 3]]), "v_indices")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["product"]), helper.make_node("Cast", ["v"], ["cast"], to=FLOAT),
             helper.make_node("Add", ["product", "cast"], ["y"])]
    graph = helper.make_graph(nodes, "sparse", [info("x", (2, 4))], [info("y", (2, 4))],
                              sparse_initializer=[helper.make_sparse_tensor(values, indices, [4, 4]),
                                                  helper.make_sparse_tensor(more, pairs, [2, 4])])
    return make(graph), [{"x": np.ones((2, 4), np.float32)}]


def external():
    """Weights in another file; written by `write` below."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["hidden"]), helper.make_node("Add", ["hidden", "b"], ["y"])]
    graph = helper.make_graph(nodes, "external", [info("x")], [info("y")], [weight("w", 4, 4), weight("b", 4)])
    return make(graph), [{"x": np.ones((2, 4), np.float32)}]


def domains():
    """The default domain under its other name, and operators of com.microsoft."""
    nodes = [helper.make_node("Relu", ["x"], ["hidden"], domain="ai.onnx"),
             helper.make_node("FastGelu", ["hidden"], ["y"], domain="com.microsoft")]
    graph = helper.make_graph(nodes, "domains", [info("x")], [info("y")])
    opsets = [helper.make_opsetid("ai.onnx", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), [{"x": np.ones((2, 4), np.float32)}]


CASES = (described, constants, element_types, subgraphs, interface, functions, sparse, external, domains)


def write(folder):
    """Writes each model into `folder`; yields (name, path, inputs of its cases)."""
    for case in CASES:
        model, inputs = case()
        path = folder / f"{case.__name__}.onnx"
        onnx.save(model, path, save_as_external_data=case is external, location="weights.bin", size_threshold=0)
        yield case.__name__, path, inputs
